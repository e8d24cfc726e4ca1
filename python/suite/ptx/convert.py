"""`cvt` between every two types, and packing."""
# ruff: noqa: D103 - each function yields the rows that its name says.
from itertools import product

import floats
from floats import BF16, F16, F32, F64, FORMATS, NAN
from integers import clamp, mask, signed
from row import join, row

INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
ROUNDS, INTEGRAL = ("rn", "rz", "rm", "rp"), ("rni", "rzi", "rmi", "rpi")
FTZ, SAT = ("", "ftz"), ("", "sat")


def source(ty):
    """The register of an integer operand, whose upper bits have no effect, and how the operand is read."""
    bits = int(ty[1:])
    held = {8: "b32", 16: "b16", 32: "b32", 64: "b64"}[bits]
    return held, lambda a: signed(a, bits) if ty[0] == "s" else a & mask(bits)


def target(ty):
    """The register of an integer result. A byte is extended to 32 bits."""
    return f"{ty[0]}32" if ty[1:] == "8" else ty


def integers():
    for of, to, sat in product(INTEGERS, INTEGERS, SAT):
        held, get = source(of)

        def reference(a, get=get, to=to, sat=sat):
            x = get(a)
            bits = int(to[1:])
            return clamp(x, to) if sat else signed(x, bits) if to[0] == "s" else x & mask(bits)
        yield row(f"{join('cvt', sat, to, of)} %x, %a", held, target(to), reference)


def from_integers():
    for of, to, mode, sat in product(INTEGERS, FORMATS, ROUNDS, SAT):
        held, get = source(of)
        f = FORMATS[to]

        def reference(a, get=get, f=f, mode=mode, sat=sat):
            x = floats.from_integer(f, get(a), mode)
            return floats.saturated(f, x) if sat else x
        yield row(f"{join('cvt', mode, sat, to, of)} %x, %a", held, to, reference)


def to_integers():
    for of, to, mode, ftz, sat in product(FORMATS, INTEGERS, INTEGRAL, FTZ, SAT):
        f = FORMATS[of]
        if ftz and f is not F32:
            continue

        def reference(a, f=f, to=to, mode=mode, z=bool(ftz), of=of):
            a = floats.flushed(f, a) if z else a
            if floats.is_nan(f, a):
                # PTX defines the result for a NaN, but not clearly for bytes and halfwords of f64.
                small = f is not F64 and to[1:] != "64"
                return 0 if small else 1 << int(to[1:]) - 1 if int(to[1:]) >= 32 else None
            if floats.is_infinite(f, a):
                return clamp(-(1 << 70) if a & f.sign else 1 << 70, to)
            return clamp(floats.integral(f, a, mode), to)
        yield row(f"{join('cvt', mode, ftz, sat, to, of)} %x, %a", of, target(to), reference)


def between_floats():
    for of, to, mode, ftz, end in product(FORMATS, FORMATS, ("", *ROUNDS, *INTEGRAL), FTZ, ("", "sat", "relu", "satfinite", "relu.satfinite")):
        f, t = FORMATS[of], FORMATS[to]
        if ftz and F32 not in (f, t) or "relu" in end and (f is not F32 or t not in (F16, BF16)) or "satf" in end and "x" in to:
            continue
        if of == to and mode in ROUNDS or mode in INTEGRAL and of != to or f is t and end not in ("", "sat"):
            continue
        if not mode and t.fraction < f.fraction:
            continue

        # ptxas 12.9 departs from the manual in two cases: it leaves out .ftz if it rounds a float up or down to f16, and it takes a bf16
        # for an f16 if .ftz is there. The reference says what its code computes.
        ftz_done = ftz and not (t is F16 and mode in ("rm", "rp"))
        f = F16 if ftz and f is BF16 and t is F32 else f

        def reference(a, f=f, t=t, mode=mode, z=bool(ftz_done), end=end):
            if z and f is F32:
                a = floats.flushed(f, a)
            if f is t:
                if mode and not floats.is_nan(f, a) and not floats.is_infinite(f, a):
                    whole = floats.integral(f, a, mode)
                    a = floats.from_integer(f, whole) | (a & f.sign if whole == 0 else 0)
                x = NAN if floats.is_nan(f, a) else a
            else:
                x = floats.convert(t, f, a, mode or "rn", z)
            return finished(t, x, end)
        yield row(f"{join('cvt', mode, ftz, end, to, of)} %x, %a", of, to, reference)
    for mode, end in product(("rn", "rz", "rna"), ("", "relu", "satfinite")):
        def tf32(a, mode=mode, end=end):
            if floats.is_nan(F32, a) or floats.is_infinite(F32, a):
                return None
            # The fraction has ten bits. The bits below have no effect.
            short = floats.Format(19, 10, 127)
            m, e = floats.exact(F32, a)
            x = floats.rounded(short, bool(a & F32.sign), abs(m), e, mode)
            return (x - 1 if "satfinite" in end and floats.is_infinite(short, x) else x) << 13
        yield row(f"{join('cvt', mode, end, 'tf32.f32')} %x, %a", "f32", "b32", tf32,
                  values=lambda got, want: want is None or got >> 13 == want >> 13)


def finished(t, x, end):
    if end == "sat":
        return floats.saturated(t, x)
    if "relu" in end:
        x = floats.relu(t, x)
    if "satfinite" in end and x != NAN and floats.is_infinite(t, x):
        x -= 1
    return x


def packed():
    for ty, mode, end in product(("f16x2", "bf16x2"), ("rn", "rz"), ("", "relu", "satfinite", "relu.satfinite")):
        t = FORMATS[ty[:-2]]
        yield row(f"{join('cvt', mode, end, ty, 'f32')} %x, %a, %b", "f32 f32", ty,
                  lambda a, b, t=t, mode=mode, end=end: [finished(t, floats.convert(t, F32, v, mode), end) for v in (b, a)])
    for kind, of in product(("e4m3x2", "e5m2x2"), ("f32", "f16x2")):
        two = "%a, %b" if of == "f32" else "%a"
        yield row(f"cvt.rn.satfinite.{kind}.{of} %x, {two}", "f32 f32" if of == "f32" else "f16x2", "b16", None)
        yield row(f"cvt.rn.f16x2.{kind} %x, %a", "b16", "f16x2", None)
    for ty in ("s16", "u16"):
        yield row(f"cvt.pack.sat.{ty}.s32 %x, %a, %b", "s32 s32", "b32", lambda a, b, ty=ty: (clamp(a, ty) & 0xffff) << 16 | clamp(b, ty) & 0xffff)
    for letter, bits in product("su", (8, 4, 2)):
        def pack(a, b, c, letter=letter, bits=bits):
            low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if letter == "s" else (0, mask(bits))
            parts = [min(max(v, low), high) & mask(bits) for v in (a, b)]
            return c << 2 * bits | parts[0] << bits | parts[1]
        yield row(f"cvt.pack.sat.{letter}{bits}.s32.b32 %x, %a, %b, %c", "s32 s32 b32", "b32", pack)


def moves():
    """`mov` of every type, and `mov` that packs and unpacks vectors."""
    for ty in ("pred", "b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"):
        held = f"b{ty[1:]}" if ty != "pred" else ty
        text = f"mov.{ty} %x, %a" if ty[0] != "f" else f"{{.reg .{ty} %p; mov.{held} %p, %a; mov.{ty} %p, %p; mov.{held} %x, %p;}}"
        yield row(text, held, held, lambda a: a)
    yield row("mov.b32 %x, {%a, %b}", "b16 b16", "b32", lambda a, b: b << 16 | a)
    yield row("mov.b64 %x, {%a, %b}", "b32 b32", "b64", lambda a, b: b << 32 | a)
    yield row("mov.b64 %x, {%a, %b, %c, %e}", "b16 b16 b16 b16", "b64", lambda a, b, c, e: e << 48 | c << 32 | b << 16 | a)
    yield row("mov.b32 {%x, %y}, %a", "b32", "b16 b16", lambda a: (a, a >> 16))
    yield row("mov.b64 {%x, %y}, %a", "b64", "b32 b32", lambda a: (a, a >> 32))
    yield row("mov.b64 {%x, %y, %z, %w}, %a", "b64", "b16 b16 b16 b16", lambda a: (a, a >> 16, a >> 32, a >> 48))
    yield row("mov.b32 {_, %x}, %a", "b32", "b16", lambda a: a >> 16)
    yield row("mov.b64 {%x, _}, %a", "b64", "b32", lambda a: a)
    yield row("{.reg .b8 %p<4>; cvt.u8.u32 %p0, %a; cvt.u32.u8 %x, %p0;}", "b32", "b32", lambda a: a & 0xff)
    yield row("{.reg .b128 %q; mov.b128 %q, {%a, %b}; mov.b128 {%x, %y}, %q;}", "b64 b64", "b64 b64", lambda a, b: (a, b))


FAMILIES = {"cvt of integers": integers, "cvt from integers": from_integers, "cvt to integers": to_integers,
            "cvt of floats": between_floats, "cvt to pairs": packed, "mov": moves}
