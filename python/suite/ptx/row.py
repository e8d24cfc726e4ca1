"""A row of the table, and the operands with which it is tried."""
import dataclasses
import random
import zlib
from collections.abc import Callable

import floats

ITEMS = 256  # threads of a launch: one block of eight warps
CELL = 128  # in each space, every thread has its own memory of this many bytes

# For each kind of operand, the type of its register and the number of bits that have an effect.
KINDS = {"pred": ("pred", 1), "f16": ("b16", 16), "bf16": ("b16", 16), "f16x2": ("b32", 32), "bf16x2": ("b32", 32), "tf32": ("b32", 32),
         "f32": ("f32", 32), "f64": ("f64", 64)}
KINDS |= {f"{letter}{bits}": (f"b{max(bits, 16)}", bits) for letter in "bsu" for bits in (8, 16, 32, 64)}
# Bytes in registers of 32 bits, which conversions use.
KINDS |= {f"{letter}8w": ("b32", 8) for letter in "bsu"}


@dataclasses.dataclass(frozen=True)
class Row:
    """One form of one instruction.

    `text` is PTX. Operands are %a %b %c %e, and results are %x %y %z %w. %i is the number of the thread. %in is the address of memory that is
    only read. %out, %sh and %lo are the addresses of the thread's own cells in global, shared and local memory. The reference gets the operands
    of one thread and returns its results. The reference of a `warp` row gets lists with the operands of all threads, and returns lists.
    """

    text: str
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    reference: Callable | None
    bound: float = 0  # the largest error of a floating-point result, in units in the last place
    warp: bool = False
    limits: Callable | None = None  # changes the operands of a thread so that the result is defined
    declares: str = ""  # functions and variables in front of the kernel
    note: str = ""  # the reason if there is no reference
    shaped: bool = True  # whether operands are also tried as parameters and as numbers
    values: Callable | None = None  # instead of `bound`: a function (got, want) that says whether a result is right

    @property
    def name(self):
        """The name of the form in reports."""
        return self.text


def row(text, takes, gives, reference, **more):
    """Makes a row. The kinds of operands and results are words in a text."""
    return Row(text, tuple(takes.split()), tuple(gives.split()), reference, **more)


def join(*parts):
    """Joins modifiers with dots and leaves out empty ones."""
    return ".".join(p for p in parts if p)


EDGES = {8: (0, 1, 0x7f, 0x80, 0xff), 16: (0, 1, 2, 15, 16, 0xff, 0x7fff, 0x8000, 0x8001, 0xffff),
         32: (0, 1, 2, 7, 8, 31, 32, 33, 0xff, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0x80ff7f01),
         64: (0, 1, 2, 31, 32, 33, 63, 64, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000,
              0xffffffff80000000, 0xffffffffffffffff, 0x0123456789abcdef)}


def edges_of(f):
    """Zeros, ones, denormals, the smallest and largest numbers, infinities and NaNs."""
    one, tiny = f.bias << f.fraction, 1 << f.fraction
    found = [0, 1, tiny - 1, tiny, tiny + 1, one - 1, one, one + 1, one + tiny, one - tiny, f.infinity - 1, f.infinity,
             f.infinity | 1 << f.fraction - 1, one + (1 << f.fraction - 1)]
    return [s | x for x in found for s in (0, f.sign)]


FLOAT_EDGES = {f: edges_of(f) for f in floats.FORMATS.values()}


def one_float(f, rng):
    """An edge, a number with any bits, or a number whose exponent is near those of other operands."""
    form = rng.randrange(8)
    if form < 2:
        return rng.choice(FLOAT_EDGES[f])
    if form == 2:
        return rng.getrandbits(f.width)
    spread = min((2, 2, f.fraction, f.fraction, f.bias // 2)[form - 3], f.bias - 1)
    return rng.getrandbits(1) * f.sign | f.bias + rng.randint(-spread, spread) << f.fraction | rng.getrandbits(f.fraction)


def value(kind, rng):
    """The bits of an operand."""
    if kind in floats.FORMATS:
        return one_float(floats.FORMATS[kind], rng)
    if kind == "tf32":
        return one_float(floats.F32, rng)
    if kind.endswith("x2"):
        return one_float(floats.FORMATS[kind[:-2]], rng) | one_float(floats.FORMATS[kind[:-2]], rng) << 16
    bits = KINDS[kind][1]
    if bits == 1:
        return rng.getrandbits(1)
    form = rng.randrange(4)
    return rng.choice(EDGES[bits]) if form == 0 else rng.getrandbits(rng.randint(1, bits)) if form == 1 else rng.getrandbits(bits)


def read(kind, bits):
    """An operand as references expect it: a number for kinds with s and u, bits for others."""
    width = KINDS[kind][1]
    if kind[0] == "s" and bits >> width - 1:
        return bits - (1 << width)
    return bits


def operands(r):
    """The operands of every thread. They are always the same for a row."""
    rng = random.Random(zlib.crc32(r.text.encode()))
    found = []
    for _ in range(ITEMS):
        one = [value(kind, rng) for kind in r.takes]
        if r.limits:
            one = [x & (1 << KINDS[kind][1]) - 1 for x, kind in zip(r.limits(*one), r.takes, strict=True)]
        found.append(one)
    return found


def wanted(r, items):
    """The results that the reference gives: a list for each thread."""
    taken = [[read(kind, bits) for kind, bits in zip(r.takes, one, strict=True)] for one in items]
    if r.warp:
        found = r.reference(*([list(column) for column in zip(*taken, strict=True)] or []))
        found = found if isinstance(found, tuple) else (found,)
        return [list(one) for one in zip(*found, strict=True)]
    made = (r.reference(*one) for one in taken)
    return [list(one) if isinstance(one, tuple) else [one] for one in made]


def agrees(kind, got, want, r):
    """Whether a result is the reference's, or near enough to it. A reference of None accepts any result."""
    if want is None:
        return True
    if r.values:
        return r.values(got, want)
    if kind.endswith("x2") and kind != "b32":
        half = kind[:-2]
        both = want if isinstance(want, list) else (want & 0xffff, want >> 16)
        return all(agrees(half, got >> 16 * k & 0xffff, both[k], r) for k in (0, 1))
    f = floats.F32 if kind == "tf32" else floats.FORMATS.get(kind)
    if f is None:
        return got == want & (1 << KINDS[kind][1]) - 1
    if want == floats.NAN or floats.is_nan(f, want):
        return floats.is_nan(f, got)
    if got == want:
        return True
    return bool(r.bound) and not floats.is_nan(f, got) and abs(floats.order(f, got) - floats.order(f, want)) <= r.bound
