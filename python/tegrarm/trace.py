"""Reads a recording (``TEGRARM_RECORD``) and says which kernel calls each RM call made."""

from __future__ import annotations

import collections
import json
from collections.abc import Iterable, Iterator


def read(path: str) -> Iterator[dict]:
    """The kernel calls of a recording, in order."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def _kernel_call(call: dict) -> str:
    """One kernel call as the table names it: ``ctrl NVGPU_GPU_IOCTL_OPEN_TSG``, ``dmabuf mmap``."""
    return f"{call.get('node', '?')} {call.get('ioctl') or call['call']}"


def count(calls: Iterable[dict]) -> dict[str, collections.Counter]:
    """RM call -> how often each kernel call was made for it. Calls outside any RM call are under ``(library)``."""
    table: dict[str, collections.Counter] = {}
    for call in calls:
        table.setdefault(call.get("rm") or "(library)", collections.Counter())[_kernel_call(call)] += 1
    return table


def table(calls: Iterable[dict]) -> str:
    """The counts as text, one RM call per block, in the order they first came."""
    lines = []
    for rm_call, made in count(calls).items():
        for number, (kernel_call, times) in enumerate(sorted(made.items())):
            lines.append(f"{rm_call if number == 0 else '':44} {kernel_call:52} {times:6}")
    return "\n".join(lines)
