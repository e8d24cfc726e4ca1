"""Arithmetic on f32, f64, f16, bf16 and their pairs, and comparisons and selections of every type."""
# ruff: noqa: D103 - each function yields the rows that its name says.
import math
from itertools import product

import floats
from floats import BF16, F16, F32, F64, FORMATS, NAN
from row import join, row

ROUNDS = ("rn", "rz", "rm", "rp")
FTZ = ("", "ftz")


def clamped(f, x, end):
    return floats.saturated(f, x) if end == "sat" else floats.relu(f, x) if end == "relu" else x


def pairs(f, reference):
    """A reference for pairs of halves."""
    def both(*operands):
        return [reference(*(x >> 16 * k & 0xffff for x in operands)) for k in (0, 1)]
    return both


def negated(f, x):
    return x ^ f.sign


def single_and_double():
    for ty, f in (("f32", F32), ("f64", F64)):
        flushes = FTZ if ty == "f32" else ("",)
        for mode, ftz, sat in product(("", *ROUNDS), flushes, ("", "sat") if ty == "f32" else ("",)):
            def add(a, b, f=f, mode=mode or "rn", z=bool(ftz), sat=sat):
                return clamped(f, floats.add(f, a, b, mode, z), sat)
            yield row(f"{join('add', mode, ftz, sat, ty)} %x, %a, %b", f"{ty} {ty}", ty, add)
            yield row(f"{join('sub', mode, ftz, sat, ty)} %x, %a, %b", f"{ty} {ty}", ty, lambda a, b, add=add, f=f: add(a, negated(f, b)))
            yield row(f"{join('mul', mode, ftz, sat, ty)} %x, %a, %b", f"{ty} {ty}", ty,
                      lambda a, b, f=f, mode=mode or "rn", z=bool(ftz), sat=sat: clamped(f, floats.mul(f, a, b, mode, z), sat))

            def fma(a, b, c, f=f, mode=mode or "rn", z=bool(ftz), sat=sat):
                return clamped(f, floats.fma(f, a, b, c, mode, z), sat)
            if mode:
                yield row(f"{join('fma', mode, ftz, sat, ty)} %x, %a, %b, %c", f"{ty} {ty} {ty}", ty, fma)
                yield row(f"{join('mad', mode, ftz, sat, ty)} %x, %a, %b, %c", f"{ty} {ty} {ty}", ty, fma)
        for mode, ftz in product(ROUNDS, flushes):
            z = bool(ftz)
            yield row(f"{join('div', mode, ftz, ty)} %x, %a, %b", f"{ty} {ty}", ty,
                      lambda a, b, f=f, mode=mode, z=z: floats.div(f, a, b, mode, z))
            yield row(f"{join('rcp', mode, ftz, ty)} %x, %a", ty, ty,
                      lambda a, f=f, mode=mode, z=z: floats.div(f, f.bias << f.fraction, a, mode, z))
            yield row(f"{join('sqrt', mode, ftz, ty)} %x, %a", ty, ty, lambda a, f=f, mode=mode, z=z: floats.sqrt(f, a, mode, z))
        for kind, test in {"finite": lambda f, a: not floats.is_nan(f, a) and not floats.is_infinite(f, a), "infinite": floats.is_infinite,
                           "number": lambda f, a: not floats.is_nan(f, a), "notanumber": floats.is_nan,
                           "normal": lambda f, a: a & f.infinity < f.infinity and (a & f.infinity or not a & f.sign - 1),
                           "subnormal": lambda f, a: a & f.infinity == 0 and a & f.sign - 1 != 0}.items():
            yield row(f"testp.{kind}.{ty} %x, %a", ty, "pred", lambda a, f=f, test=test: bool(test(f, a)))
        yield row(f"copysign.{ty} %x, %a, %b", f"{ty} {ty}", ty, lambda a, b, f=f: b & f.sign - 1 | a & f.sign)


def of_every_kind(ops, kinds):
    """Rows of `kinds` for scalar functions. A kind with x2 has two halves."""
    for ty in kinds:
        f = FORMATS[ty.removesuffix("x2")]
        for text, count, reference in ops(ty, f):
            names = ", ".join("%" + k for k in "abc"[:count])
            reference = pairs(f, reference) if ty.endswith("x2") else reference
            yield row(f"{text} %x, {names}", " ".join([ty] * count), ty, reference)


def half():
    def ops(ty, f):
        flushes = FTZ if f is F16 else ("",)
        ends = ("", "sat") if f is F16 else ("",)
        for mode, ftz, sat in product(("", "rn"), flushes, ends):
            z = bool(ftz)

            def add(a, b, z=z, sat=sat):
                return clamped(f, floats.add(f, a, b, "rn", z), sat)
            yield join("add", mode, ftz, sat, ty), 2, add
            yield join("sub", mode, ftz, sat, ty), 2, lambda a, b, add=add: add(a, negated(f, b))
            yield join("mul", mode, ftz, sat, ty), 2, lambda a, b, z=z, sat=sat: clamped(f, floats.mul(f, a, b, "rn", z), sat)
        for ftz, end in product(flushes, (*ends, "relu")):
            yield (join("fma.rn", ftz, end, ty), 3,
                   lambda a, b, c, z=bool(ftz), end=end: clamped(f, floats.fma(f, a, b, c, "rn", z), end))
        yield f"neg.{ty}", 1, lambda a: NAN if floats.is_nan(f, a) else negated(f, a)
        yield f"abs.{ty}", 1, lambda a: a & f.sign - 1
        if f is F16:
            yield f"neg.ftz.{ty}", 1, lambda a: NAN if floats.is_nan(f, a) else negated(f, floats.flushed(f, a))
            yield f"abs.ftz.{ty}", 1, lambda a: floats.flushed(f, a & f.sign - 1)
    yield from of_every_kind(ops, ("f16", "f16x2", "bf16", "bf16x2"))


def smallest_and_largest():
    """`min`, `max`, `abs` and `neg` of every float type."""
    def ops(ty, f):
        flushes = FTZ if f in (F32, F16) else ("",)
        ends = product(flushes, ("", "NaN"), ("", "xorsign.abs")) if f is not F64 else [("", "", "")]
        for (ftz, nan, sign), op in product(ends, ("min", "max")):
            yield (join(op, ftz, nan, sign, ty), 2, lambda a, b, op=op, z=bool(ftz), n=bool(nan), s=bool(sign):
                   floats.minmax(f, a, b, op == "max", z, n, s))
            if f is F32:
                yield (join(op, ftz, nan, sign, ty), 3, lambda a, b, c: None)
    yield from of_every_kind(ops, ("f32", "f64", "f16", "f16x2", "bf16", "bf16x2"))

    def signs(ty, f):
        for ftz in FTZ if f is F32 else ("",):
            yield join("neg", ftz, ty), 1, lambda a, z=bool(ftz): NAN if floats.is_nan(f, a) else negated(f, floats.flushed(f, a) if z else a)
            yield join("abs", ftz, ty), 1, lambda a, z=bool(ftz): floats.flushed(f, a & f.sign - 1) if z else a & f.sign - 1
    yield from of_every_kind(signs, ("f32", "f64"))


# --- approximations -----------------------------------------------------------------------------------------------

def guarded(function, x):
    """A function of the math module. Where Python raises an error, it gives IEEE's result."""
    try:
        return function(x)
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


def reciprocal(x):
    return math.copysign(math.inf, x) if x == 0 else 1 / x


def root(x):
    return x if x == 0 else guarded(math.sqrt, x)


def logarithm(x):
    return -math.inf if x == 0 else guarded(math.log2, x)


def turn(function):
    return lambda x: math.nan if math.isinf(x) else function(x)


# The function, and for f32 the largest error that the PTX ISA allows. It is relative, or absolute where this is said.
APPROXIMATE = {"rcp.approx": (reciprocal, 2.0 ** -23, 0), "sqrt.approx": (root, 2.0 ** -22, 0),
               "rsqrt.approx": (lambda x: reciprocal(root(x)), 2.0 ** -22.4, 0), "lg2.approx": (logarithm, 2.0 ** -22, 2.0 ** -22),
               "ex2.approx": (lambda x: guarded(lambda y: math.pow(2, y), x), 2.0 ** -22, 0),
               "sin.approx": (turn(math.sin), 0, 2.0 ** -20.5), "cos.approx": (turn(math.cos), 0, 2.0 ** -20.5),
               "tanh.approx": (math.tanh, 2.0 ** -11, 0)}


def within(f, got, want, relative, absolute, ftz=True):
    """Whether bits are as near to a number as the bound demands. With `ftz`, a denormal number may be flushed."""
    value = floats.number(f, got)
    if math.isnan(want) or math.isnan(value):
        return math.isnan(want) and math.isnan(value)
    if math.isinf(value) or math.isinf(want):
        largest = floats.number(f, f.infinity - 1)
        return value == want or abs(want) >= largest * (1 - relative) and abs(value) >= largest * (1 - 2 * relative)
    smallest = math.ldexp(1, 1 - f.bias)
    slack = smallest if ftz and abs(want) < smallest * (1 + relative) else math.ldexp(1, 1 - f.bias - f.fraction)
    return abs(value - want) <= max(relative * abs(want), absolute) + (slack if abs(want) < 2 * smallest else 0)


def approximate():
    for op, (function, relative, absolute) in APPROXIMATE.items():
        for ftz in ("",) if op.startswith("tanh") else FTZ:
            def reference(a, function=function, z=bool(ftz)):
                return function(floats.number(F32, floats.flushed(F32, a) if z else a))
            periodic = op[:3] in ("sin", "cos")
            yield row(f"{join(op, ftz, 'f32')} %x, %a", "f32", "f32", reference,
                      limits=(lambda a: [a & 0x807fffff | min(a >> 23 & 255, 128) << 23]) if periodic else None,
                      values=lambda got, want, r=relative, a=absolute: within(F32, got, want, r, a))
    for how, ftz in product(("approx", "full"), FTZ):
        def divided(a, b, z=bool(ftz)):
            x, y = (floats.number(F32, floats.flushed(F32, v) if z else v) for v in (a, b))
            if y == 0:
                return math.nan if x == 0 or math.isnan(x) else math.copysign(math.inf, x) * math.copysign(1, y)
            return x / y
        # For larger divisors, div.approx may give 0. For an infinite dividend it may give NaN.
        yield row(f"{join('div', how, ftz, 'f32')} %x, %a, %b", "f32 f32", "f32", divided,
                  limits=lambda a, b: [a, b & 0x807fffff | min(max(b >> 23 & 255, 1), 252) << 23],
                  values=lambda got, want: within(F32, got, want, 2.0 ** -22, 0))
    for op in ("rcp", "rsqrt"):
        function = APPROXIMATE[f"{op}.approx"][0]
        for ftz in FTZ:
            yield row(f"{join(op, 'approx', ftz, 'f64')} %x, %a", "f64", "f64", lambda a, function=function: function(floats.number(F64, a)),
                      limits=lambda a: [a & 0x800fffff00000000 | min(max(a >> 52 & 2047, 30), 2000) << 52],
                      values=lambda got, want: within(F64, got, want, 2.0 ** -19.9, 0))
    for op, ty in product(("ex2", "tanh"), ("f16", "f16x2", "bf16", "bf16x2")):
        f = FORMATS[ty.removesuffix("x2")]
        function = APPROXIMATE[f"{op}.approx"][0]
        bound = {("ex2", F16): 2.0 ** -9.9, ("ex2", BF16): 2.0 ** -7, ("tanh", F16): 0, ("tanh", BF16): 2.0 ** -8}[op, f]
        absolute = 2.0 ** -10.987 if (op, f) == ("tanh", F16) else 0
        ftz = "ftz" if (op, f) == ("ex2", BF16) else ""

        def one(a, function=function, f=f):
            return function(floats.number(f, a))

        def judge(got, want, f=f, bound=bound, ty=ty, absolute=absolute):
            if not ty.endswith("x2"):
                return within(f, got, want, bound, absolute)
            return all(within(f, got >> 16 * k & 0xffff, want[k], bound, absolute) for k in (0, 1))
        for flush in (ftz,) if ftz else ("", "ftz") if op == "ex2" else ("",):
            yield row(f"{join(op, 'approx', flush, ty)} %x, %a", ty, ty, pairs(f, one) if ty.endswith("x2") else one, values=judge)


# --- comparisons --------------------------------------------------------------------------------------------------

ORDERED = ("eq", "ne", "lt", "le", "gt", "ge")
UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")
SIGNLESS = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
BOOLEAN = {"and": lambda p, q: p and q, "or": lambda p, q: p or q, "xor": lambda p, q: p != q}


def by_number(a, b, how, _=False):
    how = SIGNLESS.get(how, how)
    return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[how]


def compared():
    """What is compared: the type, the comparisons, the ways to flush, and the function."""
    for bits in (16, 32, 64):
        yield f"b{bits}", ("eq", "ne"), ("",), by_number
        yield f"s{bits}", ORDERED, ("",), by_number
        yield f"u{bits}", (*ORDERED, *SIGNLESS), ("",), by_number
    for ty in ("f32", "f64", "f16", "bf16"):
        f = FORMATS[ty]
        yield ty, ORDERED + UNORDERED, FTZ if f in (F32, F16) else ("",), lambda a, b, how, z, f=f: floats.compare(f, a, b, how, z)


def comparisons():
    for ty, names, flushes, test in compared():
        two = f"{ty} {ty}"
        for how, ftz in product(names, flushes):
            def plain(a, b, how=how, z=bool(ftz), test=test):
                return test(a, b, how, z)
            yield row(f"{join('setp', how, ftz, ty)} %x, %a, %b", two, "pred", plain)
            for op, no in product(BOOLEAN, ("", "!")):
                def combined(a, b, c, plain=plain, op=op, no=no):
                    p, q = plain(a, b), c ^ (no == "!")
                    return BOOLEAN[op](p, bool(q)), BOOLEAN[op](not p, bool(q))
                if ty.endswith("f16"):  # these have only one predicate
                    yield row(f"{join('setp', how, op, ftz, ty)} %x, %a, %b, {no}%c", f"{two} pred", "pred",
                              lambda a, b, c, combined=combined: combined(a, b, c)[0])
                else:
                    yield row(f"{join('setp', how, op, ftz, ty)} %x|%y, %a, %b, {no}%c", f"{two} pred", "pred pred", combined)
                if not no:
                    yield row(f"{join('set', how, op, ftz, 'u32', ty)} %x, %a, %b, %c", f"{two} pred", "u32",
                              lambda a, b, c, combined=combined: -combined(a, b, c)[0])
            for to in ("u32", "s32", "f32", *(("f16",) if ty == "f16" else ("bf16",) if ty == "bf16" else ())):
                true = FORMATS[to].bias << FORMATS[to].fraction if to in FORMATS else -1
                yield row(f"{join('set', how, ftz, to, ty)} %x, %a, %b", two, to.replace("s32", "u32"),
                          lambda a, b, plain=plain, true=true: true if plain(a, b) else 0)


def paired_comparisons():
    for ty in ("f16x2", "bf16x2"):
        f = FORMATS[ty[:-2]]
        for how, ftz in product(ORDERED + UNORDERED, FTZ if f is F16 else ("",)):
            def both(a, b, f=f, how=how, z=bool(ftz)):
                return [floats.compare(f, a >> 16 * k & 0xffff, b >> 16 * k & 0xffff, how, z) for k in (0, 1)]
            yield row(f"{join('setp', how, ftz, ty)} %x|%y, %a, %b", f"{ty} {ty}", "pred pred", lambda a, b, both=both: tuple(both(a, b)))
            for op in BOOLEAN:
                yield row(f"{join('setp', how, op, ftz, ty)} %x|%y, %a, %b, %c", f"{ty} {ty} pred", "pred pred",
                          lambda a, b, c, both=both, op=op: tuple(BOOLEAN[op](p, bool(c)) for p in both(a, b)))
                yield row(f"{join('set', how, op, ftz, ty, ty)} %x, %a, %b, %c", f"{ty} {ty} pred", ty,
                          lambda a, b, c, both=both, op=op, f=f: [(f.bias << f.fraction) * BOOLEAN[op](p, bool(c)) for p in both(a, b)])
            yield row(f"{join('set', how, ftz, ty, ty)} %x, %a, %b", f"{ty} {ty}", ty,
                      lambda a, b, both=both, f=f: [(f.bias << f.fraction) * p for p in both(a, b)])


def selections():
    for letter, bits in product("bus", (16, 32, 64)):
        ty = f"{letter}{bits}"
        yield row(f"selp.{ty} %x, %a, %b, %c", f"b{bits} b{bits} pred", f"b{bits}", lambda a, b, c: a if c else b)
        if bits > 8:
            yield row(f"slct.{ty}.s32 %x, %a, %b, %c", f"b{bits} b{bits} s32", f"b{bits}", lambda a, b, c: a if c >= 0 else b)
            for ftz in FTZ:
                def chosen(a, b, c, z=bool(ftz)):
                    c = floats.flushed(F32, c) if z else c
                    return b if floats.is_nan(F32, c) or c & F32.sign and c != F32.sign else a
                yield row(f"{join('slct', ftz, ty, 'f32')} %x, %a, %b, %c", f"b{bits} b{bits} f32", f"b{bits}", chosen)
    for ty in ("f32", "f64"):
        bits = ty[1:]
        yield row(f"{{.reg .{ty} %p, %q, %r; mov.b{bits} %p, %a; mov.b{bits} %q, %b; selp.{ty} %r, %p, %q, %c; mov.b{bits} %x, %r;}}",
                  f"b{bits} b{bits} pred", f"b{bits}", lambda a, b, c: a if c else b)
        yield row(f"{{.reg .{ty} %p, %q, %r; mov.b{bits} %p, %a; mov.b{bits} %q, %b; slct.{ty}.s32 %r, %p, %q, %c; mov.b{bits} %x, %r;}}",
                  f"b{bits} b{bits} s32", f"b{bits}", lambda a, b, c: a if c >= 0 else b)


FAMILIES = {"f32 and f64": single_and_double, "f16 and bf16": half, "min, max, abs, neg": smallest_and_largest,
            "approximations": approximate, "comparisons": comparisons, "comparisons of pairs": paired_comparisons,
            "selections": selections}
