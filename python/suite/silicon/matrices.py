"""Forms of a whole warp: an item is the part of one lane, and 32 items are a tile.

The words of an item are four of A, two of B, four of a 32-bit C and two of a 16-bit C. Doubles use pairs of words.
"""
import itertools

# ruff: noqa: D103 - each function yields the forms that its name says.
A, B, C, HALF_C = range(0, 4), range(4, 6), range(6, 10), range(10, 12)


def registers(words):
    return "{" + ", ".join(f"%v{k}" for k in words) + "}"


def mma(shape, types, a, b, c):
    """An mma.sync on the first `a` and `b` registers of A and B and on the registers `c` of C."""
    d = "{" + ", ".join(f"%d{k}" for k in range(len(c))) + "}"
    return f"mma.sync.aligned.{shape}.row.col.{types} {d}, {registers(A[:a])}, {registers(B[:b])}, {registers(c)}"


def halves(kind):
    yield mma("m16n8k16", f"f32.{kind}.{kind}.f32", 4, 2, C)
    yield mma("m16n8k8", f"f32.{kind}.{kind}.f32", 2, 1, C)
    if kind == "f16":
        yield mma("m16n8k16", "f16.f16.f16.f16", 4, 2, HALF_C)
        yield mma("m16n8k8", "f16.f16.f16.f16", 2, 1, HALF_C)


def tf32():
    yield mma("m16n8k8", "f32.tf32.tf32.f32", 4, 2, C)
    yield mma("m16n8k4", "f32.tf32.tf32.f32", 2, 1, C)


def integers(bits):
    depth = 128 // bits
    for x, y, end in itertools.product((f"s{bits}", f"u{bits}"), (f"s{bits}", f"u{bits}"), ("", "satfinite.")):
        kind = f"{end}s32.{x}.{y}.s32"
        yield mma(f"m8n8k{depth}", kind, 1, 1, C[:2])
        yield mma(f"m16n8k{depth}", kind, 2, 1, C)
        yield mma(f"m16n8k{2 * depth}", kind, 4, 2, C)


def doubles():
    yield ("mov.b64 %A, {%v0, %v1}; mov.b64 %B, {%v4, %v5}; mov.b64 %R, {%v6, %v7}; mov.b64 %S, {%v8, %v9}; "
           "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%R, %S}, {%A}, {%B}, {%R, %S}")


def moves():
    store = "st.shared.v4.b32 [%z], {%v0, %v1, %v2, %v3}; bar.warp.sync -1; "
    for trans in ("", ".trans"):
        for n in (1, 2, 4):
            d = "{" + ", ".join(f"%d{k}" for k in range(n)) + "}"
            yield f"{store}ldmatrix.sync.aligned.m8n8.x{n}{trans}.shared.b16 {d}, [%z]; bar.warp.sync -1"
    yield "movmatrix.sync.aligned.m8n8.trans.b16 %d0, %v0"


# --- inputs -------------------------------------------------------------------------------------------------------

# For each kind: its width, the bits of its fraction and its exponent bias.
FORMATS = {"f16": (16, 10, 15), "bf16": (16, 7, 127), "tf32": (32, 23, 127), "f32": (32, 23, 127), "f64": (64, 52, 1023)}
STYLES = ("plain", "wide", "cancelling", "sparse", "tiny", "special", "large", "powers")


def number(kind, style, rng, addend=False):
    """A number of a format, as bits. The style chooses the exponents. `addend` is for C, whose range is that of the products."""
    width, fraction, bias = FORMATS[kind]
    sign = rng.getrandbits(1) << width - 1
    ones = (1 << width - 1) - 1

    def made(exponent, mantissa):
        exponent = max(0, min(2 * bias, exponent + bias))
        return sign | exponent << fraction | mantissa
    mantissa = rng.getrandbits(fraction)
    limit = min(bias - 2, 60)
    if style == "wide":
        return made(rng.randint(-limit, limit) * (2 if addend else 1), mantissa)
    if style == "cancelling":
        # With few different magnitudes, sums cancel often and leave terms that are much smaller.
        exponent, mantissa = rng.choice(((0, 0), (0, 1 << fraction - 1), (0, 0), (-6, mantissa), (5, 0)))
        return made(exponent * (2 if addend else 1), mantissa)
    if style == "sparse":
        if rng.randrange(4) and not addend:
            return 0
        return made(rng.randint(-14, 14) if kind != "f16" else rng.randint(-9, 9), mantissa)
    if style == "tiny":
        return made(-bias + rng.randint(0, 3), mantissa) if addend or rng.randrange(2) else made(rng.randint(-3, 3), mantissa)
    if style == "special" and rng.randrange(24) == 0:
        infinity = (2 * bias + 1) << fraction
        return rng.choice((sign | infinity, infinity | 1 << fraction - 1, ones, sign | infinity | 1, sign, 0))
    if style == "large":
        return made(rng.randint(bias - 6, bias) if addend else bias // 2 + rng.randint(-3, 2), mantissa)
    if style == "powers":
        return made(rng.randint(-13, 13) * (2 if addend else 1), 0)
    return made(rng.randint(-3, 3), mantissa)


def tiles(kind, count, rng):
    """`count` lanes. 32 of them make a tile, and each tile has one style."""
    for tile in range(count // 32):
        style = STYLES[tile % len(STYLES)]
        other = rng.choice(STYLES) if tile // len(STYLES) % 2 else style
        for _ in range(32):
            if kind == "f64":
                pairs = [number("f64", style, rng, k > 2) for k in range(5)]
                yield [w for k in (0, 1, 2, 3, 4) for w in (pairs[k] & 0xffffffff, pairs[k] >> 32)] + [0, 0]
                continue
            if kind == "tf32":
                # Some words have bits that the unit ignores.
                factors = [number("tf32", style, rng) & (0xffffffff if rng.randrange(2) else 0xffffe000) for _ in range(6)]
            else:
                factors = [number(kind, style, rng) | number(kind, style, rng) << 16 for _ in range(6)]
            addends = [number("f32", other, rng, True) for _ in range(4)]
            halves_ = [number("f16", other, rng, True) | number("f16", other, rng, True) << 16 for _ in range(2)]
            yield factors + addends + halves_


def bits(count, rng):
    """Random bits for A and B. C is near its limits, near zero, or random."""
    for i in range(count):
        style = i // 32 % 3
        addends = [rng.getrandbits(32) if style == 0 else (0x7fffffff - rng.getrandbits(12) if rng.getrandbits(1)
                   else 0x80000000 + rng.getrandbits(12)) if style == 1 else rng.getrandbits(8) for _ in range(4)]
        yield [rng.getrandbits(32) if style else rng.choice((0x80808080, 0xffffffff, 0x7f7f7f7f, rng.getrandbits(32)))
               for _ in range(6)] + addends + [0, 0]


POOLS = {f"tile_{kind}": lambda n, rng, kind=kind: tiles(kind, n, rng) for kind in ("f16", "bf16", "tf32", "f64")}
POOLS["tile_bits"] = bits

FAMILIES = {
    "matrix_half": ("tile_f16", 1024, list(halves("f16"))),
    "matrix_brain": ("tile_bf16", 1024, list(halves("bf16"))),
    "matrix_tf32": ("tile_tf32", 1024, list(tf32())),
    "matrix_double": ("tile_f64", 512, list(doubles())),
    "matrix_bytes": ("tile_bits", 384, list(integers(8))),
    "matrix_nibbles": ("tile_bits", 384, list(integers(4))),
    "matrix_moves": ("tile_bits", 192, list(moves())),
}
