"""GPU addresses for tinygrad's NV device, which are used again. tinygrad itself counts up, because a desktop GPU has 47 bits of them, or
more. A Tegra's GPU has 40, and a process that runs for long would use them up.
"""

from __future__ import annotations

from collections import defaultdict

PAGE = 0x1000
BIG_PAGE = 2 << 20
# tinygrad's own first address, and the first of those at which the library and the kernel place memory of the process.
START, END = 0x10_0000_0000, 0x40_0000_0000


def rounded(size: int) -> int:
    """The size that is taken for ``size`` bytes. There are eight sizes between two powers of two, so that freed ones fit again."""
    step = max(PAGE, 1 << max((size - 1).bit_length() - 4, 0))
    return -(-size // step) * step


class Addresses:
    """Gives out ranges of addresses, and takes them back."""

    def __init__(self, start: int = START, end: int = END):
        self.next, self.end = start, end
        self.taken: dict[int, int] = {}
        self.free: dict[int, list[int]] = defaultdict(list)

    def alloc(self, size: int, alignment: int = PAGE) -> int:
        """The start of a range. Ranges of two megabytes or more are aligned to as much."""
        if alignment > BIG_PAGE:
            raise ValueError(f"addresses are aligned to {BIG_PAGE:#x} at most, not to {alignment:#x}")
        size = rounded(max(size, BIG_PAGE if alignment > PAGE else PAGE))
        if self.free[size]:
            start = self.free[size].pop()
        else:
            unit = BIG_PAGE if size >= BIG_PAGE else PAGE
            start = -(-self.next // unit) * unit
            if start + size > self.end:
                raise MemoryError(f"no GPU addresses are left for {size:#x} bytes: {START:#x} to {self.end:#x} are in use")
            self.next = start + size
        self.taken[start] = size
        return start

    def release(self, start: int) -> None:
        """Takes a range back. An address that was not given out here is somebody else's."""
        if size := self.taken.pop(start, 0):
            self.free[size].append(start)
