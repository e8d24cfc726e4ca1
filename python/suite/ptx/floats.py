"""Floating point as the PTX ISA defines it, on bit patterns and exact integers.

A finite number is m · 2^e with integers m and e. Every operation computes the exact result and rounds once. If the exact result has no
end, its lowest bit is set instead ("sticky").
"""
import math
from typing import NamedTuple


class Format(NamedTuple):
    """A binary format: its width, the bits of its fraction, and the exponent bias."""

    width: int
    fraction: int
    bias: int

    @property
    def infinity(self):
        """The bits of +∞."""
        return ((1 << self.width - 1 - self.fraction) - 1) << self.fraction

    @property
    def sign(self):
        """The sign bit."""
        return 1 << self.width - 1


F16, BF16, F32, F64 = Format(16, 10, 15), Format(16, 7, 127), Format(32, 23, 127), Format(64, 52, 1023)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}
NAN = "nan"


def is_nan(f, x):
    """Whether the bits are those of a NaN."""
    return x & f.sign - 1 > f.infinity


def is_infinite(f, x):
    """Whether the bits are those of an infinity."""
    return x & f.sign - 1 == f.infinity


def flushed(f, x):
    """`.ftz`: a denormal number becomes a zero with the same sign."""
    return x & f.sign if x & f.infinity == 0 else x


def exact(f, x):
    """The m and e of finite bits. m has the sign."""
    magnitude = x & f.sign - 1
    biased, part = magnitude >> f.fraction, magnitude & (1 << f.fraction) - 1
    m = part | (biased != 0) << f.fraction
    return (-m if x & f.sign else m), max(biased, 1) - f.bias - f.fraction


def is_up(mode, negative, odd, rest, half):
    """Whether rounding increases a magnitude. This depends on what is cut off."""
    if mode == "rn":
        return rest > half or rest == half and odd
    if mode == "rna":
        return rest >= half
    return rest > 0 and {"rz": False, "rm": negative, "rp": not negative}[mode]


def rounded(f, negative, m, e, mode="rn", ftz=False):
    """The bits of m · 2^e, where m is not negative."""
    sign = f.sign if negative else 0
    if m == 0:
        return sign
    lowest = 1 - f.bias - f.fraction
    free = m.bit_length() - 1 + e - f.fraction
    if ftz and free < lowest:
        # The result is a denormal number, unless rounding with an unlimited exponent gives a normal number.
        bits = m.bit_length() - 1 - f.fraction
        q, rest = (m >> bits, m & (1 << bits) - 1) if bits > 0 else (m << -bits, 0)
        q += bits > 0 and is_up(mode, negative, q & 1, rest, 1 << bits - 1)
        if not (q >> f.fraction + 1 and free + 1 == lowest):
            return sign
    lsb = max(free, lowest)
    shift = lsb - e
    if shift <= 0:
        q = m << -shift
    else:
        q, rest = m >> shift, m & (1 << shift) - 1
        q += is_up(mode, negative, q & 1, rest, 1 << shift - 1)
    bits = q + (lsb - lowest << f.fraction)
    if bits >= f.infinity:
        finite = mode == "rz" or mode == "rm" and not negative or mode == "rp" and negative
        bits = f.infinity - finite
    return sign | bits


def signed(f, m, e, mode, ftz, zero):
    """The bits of m · 2^e, where m has a sign. `zero` is the sign of the result if it is exactly zero."""
    return rounded(f, m < 0 if m else zero, abs(m), e, mode, ftz)


def add(f, x, y, mode="rn", ftz=False):
    """X + y."""
    return fma(f, x, (f.bias << f.fraction), y, mode, ftz)


def mul(f, x, y, mode="rn", ftz=False):
    """X · y."""
    if ftz:
        x, y = flushed(f, x), flushed(f, y)
    if is_nan(f, x) or is_nan(f, y):
        return NAN
    negative = bool((x ^ y) & f.sign)
    if is_infinite(f, x) or is_infinite(f, y):
        return NAN if 0 in (x & f.sign - 1, y & f.sign - 1) else f.infinity | negative * f.sign
    (m, e), (n, g) = exact(f, x), exact(f, y)
    return rounded(f, negative, abs(m * n), e + g, mode, ftz)


def fma(f, x, y, z, mode="rn", ftz=False):
    """X · y + z with one rounding."""
    if ftz:
        x, y, z = flushed(f, x), flushed(f, y), flushed(f, z)
    if is_nan(f, x) or is_nan(f, y) or is_nan(f, z):
        return NAN
    minus = bool((x ^ y) & f.sign)
    if is_infinite(f, x) or is_infinite(f, y):
        if 0 in (x & f.sign - 1, y & f.sign - 1) or is_infinite(f, z) and bool(z & f.sign) != minus:
            return NAN
        return f.infinity | minus * f.sign
    if is_infinite(f, z):
        return z
    (m, e), (n, g), (o, h) = exact(f, x), exact(f, y), exact(f, z)
    product, low = m * n, min(e + g, h)
    total = (product << e + g - low) + (o << h - low)
    # An exact zero is −0 if both terms are −0, or if the terms cancel and rounding goes down.
    zero = minus if minus == bool(z & f.sign) else mode == "rm"
    return signed(f, total, low, mode, ftz, zero)


def div(f, x, y, mode="rn", ftz=False):
    """X / y."""
    if ftz:
        x, y = flushed(f, x), flushed(f, y)
    if is_nan(f, x) or is_nan(f, y):
        return NAN
    negative, (p, q) = bool((x ^ y) & f.sign), (x & f.sign - 1, y & f.sign - 1)
    if p == q and p in (0, f.infinity):
        return NAN
    if q == 0 or p == f.infinity:
        return f.infinity | negative * f.sign
    if p == 0 or q == f.infinity:
        return negative * f.sign
    (m, e), (n, g) = exact(f, p), exact(f, q)
    shift = 2 * f.fraction + 8 + max(0, n.bit_length() - m.bit_length())
    whole, rest = divmod(m << shift, n)
    return rounded(f, negative, whole << 1 | (rest != 0), e - g - shift - 1, mode, ftz)


def sqrt(f, x, mode="rn", ftz=False):
    """√x."""
    if ftz:
        x = flushed(f, x)
    if is_nan(f, x):
        return NAN
    if x & f.sign - 1 == 0 or x == f.infinity:
        return x
    if x & f.sign:
        return NAN
    m, e = exact(f, x)
    shift = 2 * f.fraction + 8 + (e & 1)
    root = math.isqrt(m << shift)
    sticky = root * root != m << shift
    return rounded(f, False, root << 1 | sticky, (e - shift) // 2 - 1, mode, ftz)


def convert(to, of, x, mode="rn", ftz=False):
    """The same number in another format. `ftz` flushes f32, which may be the source or the result."""
    if ftz and of is F32:
        x = flushed(of, x)
    if is_nan(of, x):
        return NAN
    negative = bool(x & of.sign)
    if is_infinite(of, x):
        return to.infinity | negative * to.sign
    m, e = exact(of, x)
    return rounded(to, negative, abs(m), e, mode, ftz and to is F32)


def saturated(f, x):
    """`.sat`: the number is limited to [0, 1], and a NaN becomes +0."""
    if x == NAN or x & f.sign:
        return 0
    return min(x, f.bias << f.fraction)


def relu(f, x):
    """`.relu`: the number is limited to [0, ∞], and a NaN stays a NaN."""
    return x if x == NAN or not x & f.sign else 0


def from_integer(f, value, mode="rn"):
    """Converts an integer to a float."""
    return rounded(f, value < 0, abs(value), 0, mode)


def integral(f, x, mode):
    """Rounds a finite number to an integer. The modes are rni, rzi, rmi and rpi."""
    m, e = exact(f, x)
    if e >= 0:
        return m << e
    q, rest = abs(m) >> -e, abs(m) & (1 << -e) - 1
    q += is_up(mode[:2], m < 0, q & 1, rest, 1 << -e - 1)
    return -q if m < 0 else q


def order(f, x):
    """An integer that increases with the number. Both zeros have the same one."""
    return -(x & f.sign - 1) if x & f.sign else x


def minmax(f, x, y, greatest, ftz=False, nan=False, xorsign=False):
    """`min` and `max`. Without `.NaN`, a number wins over a NaN. −0 is smaller than +0. `.xorsign.abs` compares magnitudes."""
    if ftz:
        x, y = flushed(f, x), flushed(f, y)
    sign = (x ^ y) & f.sign
    if xorsign:
        x, y = x & f.sign - 1, y & f.sign - 1
    if is_nan(f, x) or is_nan(f, y):
        if nan or is_nan(f, x) and is_nan(f, y):
            return NAN
        chosen = y if is_nan(f, x) else x
    else:
        # If both are zero, the sign decides.
        key = [(order(f, v), -(v >> f.width - 1)) for v in (x, y)]
        chosen = (x, y)[(key[1] > key[0]) == greatest]
    return chosen & f.sign - 1 | sign if xorsign else chosen


def compare(f, x, y, how, ftz=False):
    """Compares two numbers. `how` is the name of the comparison in PTX."""
    if ftz:
        x, y = flushed(f, x), flushed(f, y)
    unordered = is_nan(f, x) or is_nan(f, y)
    if how in ("num", "nan"):
        return unordered == (how == "nan")
    if unordered:
        return len(how) == 3  # equ, neu, ltu and so on
    p, q = order(f, x), order(f, y)
    return {"eq": p == q, "ne": p != q, "lt": p < q, "le": p <= q, "gt": p > q, "ge": p >= q}[how[:2]]


def number(f, x):
    """The number as a Python float, which can hold every number of these formats."""
    if is_nan(f, x):
        return math.nan
    if is_infinite(f, x):
        return -math.inf if x & f.sign else math.inf
    m, e = exact(f, x)
    value = math.ldexp(m, e)
    return -0.0 if m == 0 and x & f.sign else value


def nearest(f, value):
    """The bits of the number that is nearest to a Python float."""
    if math.isnan(value):
        return NAN
    if math.isinf(value):
        return f.infinity | (value < 0) * f.sign
    m, e = math.frexp(value)
    return rounded(f, math.copysign(1, value) < 0, abs(int(m * (1 << 53))), e - 53)
