"""Integer arithmetic, extended precision, logic and shifts, bit fields, dot products."""
# ruff: noqa: D103 - each function yields the rows that its name says.
from itertools import product

from row import KINDS, row

SIZES = (16, 32, 64)


def mask(bits):
    return (1 << bits) - 1


def signed(x, bits):
    x &= mask(bits)
    return x - (1 << bits) if x >> bits - 1 else x


def clamp(x, ty):
    bits = KINDS[ty][1]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if ty[0] == "s" else (0, mask(bits))
    return min(max(x, low), high)


def quotient(a, b):
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def remainder(a, b):
    return a - b * quotient(a, b)


def not_zero(*operands):
    return [*operands[:-1], operands[-1] or 1]


def arithmetic():
    """`add`, `sub`, `mul`, `mad`, `sad`, `div`, `rem`, `abs`, `neg`, `min`, `max` on every type."""
    for letter, bits in product("us", SIZES):
        ty = f"{letter}{bits}"
        two, three = f"{ty} {ty}", f"{ty} {ty} {ty}"
        yield row(f"add.{ty} %x, %a, %b", two, ty, lambda a, b: a + b)
        yield row(f"sub.{ty} %x, %a, %b", two, ty, lambda a, b: a - b)
        yield row(f"mul.lo.{ty} %x, %a, %b", two, ty, lambda a, b: a * b)
        yield row(f"mul.hi.{ty} %x, %a, %b", two, ty, lambda a, b, bits=bits: a * b >> bits)
        yield row(f"mad.lo.{ty} %x, %a, %b, %c", three, ty, lambda a, b, c: a * b + c)
        yield row(f"mad.hi.{ty} %x, %a, %b, %c", three, ty, lambda a, b, c, bits=bits: (a * b >> bits) + c)
        if bits < 64:
            wide = f"{letter}{2 * bits}"
            yield row(f"mul.wide.{ty} %x, %a, %b", two, wide, lambda a, b: a * b)
            yield row(f"mad.wide.{ty} %x, %a, %b, %c", f"{two} {wide}", wide, lambda a, b, c: a * b + c)
        yield row(f"sad.{ty} %x, %a, %b, %c", three, ty, lambda a, b, c: abs(a - b) + c)
        yield row(f"div.{ty} %x, %a, %b", two, ty, quotient, limits=not_zero)
        yield row(f"rem.{ty} %x, %a, %b", two, ty, remainder, limits=not_zero)
        yield row(f"min.{ty} %x, %a, %b", two, ty, min)
        yield row(f"max.{ty} %x, %a, %b", two, ty, max)
        if letter == "s":
            yield row(f"abs.{ty} %x, %a", ty, ty, abs)
            yield row(f"neg.{ty} %x, %a", ty, ty, lambda a: -a)
    yield row("add.sat.s32 %x, %a, %b", "s32 s32", "s32", lambda a, b: clamp(a + b, "s32"))
    yield row("sub.sat.s32 %x, %a, %b", "s32 s32", "s32", lambda a, b: clamp(a - b, "s32"))
    yield row("mad.hi.sat.s32 %x, %a, %b, %c", "s32 s32 s32", "s32", lambda a, b, c: clamp((a * b >> 32) + c, "s32"))
    for ty in ("u32", "s32"):
        def low(x, ty=ty):
            return signed(x, 24) if ty == "s32" else x & mask(24)
        yield row(f"mul24.lo.{ty} %x, %a, %b", f"{ty} {ty}", ty, lambda a, b, low=low: low(a) * low(b))
        yield row(f"mul24.hi.{ty} %x, %a, %b", f"{ty} {ty}", ty, lambda a, b, low=low: low(a) * low(b) >> 16)
        yield row(f"mad24.lo.{ty} %x, %a, %b, %c", f"{ty} {ty} {ty}", ty, lambda a, b, c, low=low: low(a) * low(b) + c)
        yield row(f"mad24.hi.{ty} %x, %a, %b, %c", f"{ty} {ty} {ty}", ty, lambda a, b, c, low=low: (low(a) * low(b) >> 16) + c)
    yield row("mad24.hi.sat.s32 %x, %a, %b, %c", "s32 s32 s32", "s32",
              lambda a, b, c: clamp((signed(a, 24) * signed(b, 24) >> 16) + c, "s32"))
    # Only later generations have these.
    for op, ty in product(("add", "min", "max"), ("u16x2", "s16x2")):
        yield row(f"{op}.{ty} %x, %a, %b", "b32 b32", "b32", None)
    for ty in ("s32", "s16x2"):
        yield row(f"min.relu.{ty} %x, %a, %b", "b32 b32", "b32", None)
        yield row(f"max.relu.{ty} %x, %a, %b", "b32 b32", "b32", None)


def immediate_divisors():
    """Division by constants, for which compilers use multiplications."""
    for ty, divisor in product(("u32", "s32", "u64", "s64", "u16", "s16"), (1, 3, 7, 10, 16, 641)):
        yield row(f"div.{ty} %x, %a, {divisor}", ty, ty, lambda a, d=divisor: quotient(a, d))
        yield row(f"rem.{ty} %x, %a, {divisor}", ty, ty, lambda a, d=divisor: remainder(a, d))


def extended():
    """Chains of carries."""
    for bits in (32, 64):
        for letter in "us":
            u, top = f"{letter}{bits}", 1 << bits

            def add(a, b, c, top=top):
                low = (a % top) + (b % top)
                return low, a + c + low // top

            def sub(a, b, c, top=top):
                low = a % top - b % top
                return low, a - c - (low < 0)
            yield row(f"add.cc.{u} %x, %a, %b; addc.{u} %y, %a, %c", f"{u} {u} {u}", f"{u} {u}", add)
            yield row(f"sub.cc.{u} %x, %a, %b; subc.{u} %y, %a, %c", f"{u} {u} {u}", f"{u} {u}", sub)

            def add3(a, b, c, top=top):
                x, y, z = a % top, b % top, c % top
                one = x + y
                two = y + z + one // top
                return one, two, x + z + two // top

            def sub3(a, b, c, top=top):
                x, y, z = a % top, b % top, c % top
                one = x - y
                two = y - z - (one < 0)
                return one, two, x - z - (two < 0)
            yield row(f"add.cc.{u} %x, %a, %b; addc.cc.{u} %y, %b, %c; addc.{u} %z, %a, %c", f"{u} {u} {u}", f"{u} {u} {u}", add3)
            yield row(f"sub.cc.{u} %x, %a, %b; subc.cc.{u} %y, %b, %c; subc.{u} %z, %a, %c", f"{u} {u} {u}", f"{u} {u} {u}", sub3)
            for part in ("lo", "hi"):
                def mad(a, b, c, top=top, part=part):
                    p = a * b
                    sum_ = (p % top if part == "lo" else p // top % top) + c % top
                    return sum_, sum_ // top

                def madc(a, b, c, top=top, part=part):
                    p, carry = a * b, a % top + c % top >= top
                    sum_ = (p % top if part == "lo" else p // top % top) + c % top + carry
                    return sum_, sum_ // top
                yield row(f"mad.{part}.cc.{u} %x, %a, %b, %c; addc.{u} %y, 0, 0", f"{u} {u} {u}", f"{u} {u}", mad)
                yield row(f"add.cc.{u} %y, %a, %c; madc.{part}.cc.{u} %x, %a, %b, %c; addc.{u} %y, 0, 0", f"{u} {u} {u}", f"{u} {u}", madc)
                yield row(f"add.cc.{u} %y, %a, %c; madc.{part}.{u} %x, %a, %b, %c; mov.b{bits} %y, 0", f"{u} {u} {u}", f"{u} {u}",
                          lambda *o, madc=madc: (madc(*o)[0], 0))


def logic():
    """`and`, `or`, `xor`, `not`, `cnot`, `lop3`, shifts, `prmt`."""
    functions = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}
    for op, ty in product(functions, ("pred", "b16", "b32", "b64")):
        yield row(f"{op}.{ty} %x, %a, %b", f"{ty} {ty}", ty, functions[op])
    for ty in ("pred", "b16", "b32", "b64"):
        yield row(f"not.{ty} %x, %a", ty, ty, lambda a: ~a)
        if ty != "pred":
            yield row(f"cnot.{ty} %x, %a", ty, ty, lambda a: a == 0)
    for table in range(256):
        def lop3(a, b, c, table=table):
            one = ((a if k >> 2 else ~a) & (b if k >> 1 & 1 else ~b) & (c if k & 1 else ~c) for k in range(8) if table >> k & 1)
            found = 0
            for term in one:
                found |= term
            return found & mask(32)
        yield row(f"lop3.b32 %x, %a, %b, %c, {table:#04x}", "b32 b32 b32", "b32", lop3)
        if table % 16 == 6:
            for op in ("or", "and"):
                def both(a, b, c, e, lop3=lop3, op=op):
                    d = lop3(a, b, c)
                    return d, (d != 0) | e if op == "or" else (d != 0) & e
                yield row(f"lop3.{op}.b32 %x|%y, %a, %b, %c, {table:#04x}, %e", "b32 b32 b32 pred", "b32 pred", both)
    for bits in SIZES:
        yield row(f"shl.b{bits} %x, %a, %b", f"b{bits} u32", f"b{bits}", lambda a, b, bits=bits: a << min(b, bits))
        for letter in "bus":
            yield row(f"shr.{letter}{bits} %x, %a, %b", f"{letter}{bits} u32", f"{letter}{bits}", lambda a, b, bits=bits: a >> min(b, bits))
        for n in (1, bits // 2 - 1, bits // 2, bits - 1):
            yield row(f"shl.b{bits} %x, %a, {n}", f"b{bits}", f"b{bits}", lambda a, n=n: a << n)
            yield row(f"shr.s{bits} %x, %a, {n}", f"s{bits}", f"s{bits}", lambda a, n=n: a >> n)
    for way, how in product("lr", ("clamp", "wrap")):
        def shf(a, b, c, way=way, how=how):
            n = min(c, 32) if how == "clamp" else c & 31
            both = b << 32 | a
            return both << n >> 32 if way == "l" else both >> n
        yield row(f"shf.{way}.{how}.b32 %x, %a, %b, %c", "b32 b32 u32", "b32", shf)

    def picked(a, b, selectors):
        data, found = b << 32 | a, 0
        for k, s in enumerate(selectors):
            byte = data >> 8 * (s & 7) & 0xff
            found |= (0xff * (byte >> 7) if s & 8 else byte) << 8 * k
        return found
    yield row("prmt.b32 %x, %a, %b, %c", "b32 b32 b32", "b32", lambda a, b, c: picked(a, b, [c >> 4 * k & 15 for k in range(4)]))
    for number in (0x3210, 0x5410, 0x7632, 0x0123, 0x9c3a, 0xba98, 0x4440):
        yield row(f"prmt.b32 %x, %a, %b, {number:#06x}", "b32 b32", "b32",
                  lambda a, b, c=number: picked(a, b, [c >> 4 * k & 15 for k in range(4)]))
    modes = {"f4e": lambda n: [n, n + 1, n + 2, n + 3], "b4e": lambda n: [n & 7, n + 7 & 7, n + 6 & 7, n + 5 & 7], "rc8": lambda n: [n] * 4,
             "ecl": lambda n: [max(n, k) for k in range(4)], "ecr": lambda n: [min(n, k) for k in range(4)],
             "rc16": lambda n: [2 * (n & 1), 2 * (n & 1) + 1] * 2}
    for mode, choose in modes.items():
        yield row(f"prmt.b32.{mode} %x, %a, %b, %c", "b32 b32 b32", "b32",
                  lambda a, b, c, choose=choose: picked(a, b, [s & 7 for s in choose(c & 3)]))


def fields():
    """Bits and fields of bits."""
    for bits in (32, 64):
        b = f"b{bits}"
        yield row(f"popc.{b} %x, %a", b, "u32", lambda a: a.bit_count())
        yield row(f"clz.{b} %x, %a", b, "u32", lambda a, bits=bits: bits - a.bit_length())
        yield row(f"brev.{b} %x, %a", b, b, lambda a, bits=bits: int(f"{a:0{bits}b}"[::-1], 2))
        for letter in "us":
            ty = f"{letter}{bits}"

            def bfind(a, bits=bits, shift=False):
                found = (~a if a < 0 else a) & mask(bits)
                at = found.bit_length() - 1
                return mask(32) if at < 0 else bits - 1 - at if shift else at
            yield row(f"bfind.{ty} %x, %a", ty, "u32", bfind)
            yield row(f"bfind.shiftamt.{ty} %x, %a", ty, "u32", lambda a, bfind=bfind: bfind(a, shift=True))

            def bfe(a, at, count, bits=bits, letter=letter):
                at, count = at & 255, count & 255
                sign = 0 if letter == "u" or count == 0 else a >> min(at + count - 1, bits - 1) & 1
                return sum((a >> at + k & 1 if k < count and at + k < bits else sign) << k for k in range(bits))
            yield row(f"bfe.{ty} %x, %a, %b, %c", f"{ty} u32 u32", ty, bfe, limits=lambda a, b, c: [a, b & 255, c & 255])
            for at, count in ((0, 8), (5, 7), (bits - 8, 8), (3, bits)):
                yield row(f"bfe.{ty} %x, %a, {at}, {count}", ty, ty, lambda a, at=at, count=count, bfe=bfe: bfe(a, at, count))

        def bfi(a, b, at, count, bits=bits):
            at, count = at & 255, count & 255
            hole = (mask(count) << at) & mask(bits)
            return b & ~hole | a << at & hole
        yield row(f"bfi.{b} %x, %a, %b, %c, %e", f"{b} {b} u32 u32", b, bfi, limits=lambda a, b, c, e: [a, b, c & 255, e & 255])
        for at, count in ((0, 8), (5, 7), (bits - 8, 8)):
            yield row(f"bfi.{b} %x, %a, %b, {at}, {count}", f"{b} {b}", b, lambda a, b, at=at, count=count, bfi=bfi: bfi(a, b, at, count))

    def fns(value, base, offset):
        if offset == 0:
            return base if value >> base & 1 else mask(32)
        step, left, at = (1, offset, base) if offset > 0 else (-1, -offset, base)
        while 0 <= at < 32:
            left -= value >> at & 1
            if left == 0:
                return at
            at += step
        return mask(32)
    yield row("fns.b32 %x, %a, %b, %c", "b32 u32 s32", "b32", fns, limits=lambda a, b, c: [a, b & 31, c % 40 - 20])
    for how, ty in product(("clamp", "wrap"), ("u32", "s32")):
        def szext(a, n, how=how, ty=ty):
            n = min(n, 32) if how == "clamp" else n & 31
            return 0 if n == 0 else signed(a, n) if ty == "s32" else a & mask(n)
        # If the operand comes from a parameter, ptxas 12.9 makes code that reads a constant bank that the cubin does not have.
        yield row(f"szext.{how}.{ty} %x, %a, %b", f"{ty} u32", ty, szext, shaped=False)
    for how in ("clamp", "wrap"):
        def bmsk(at, count, how=how):
            if how == "wrap":
                return mask(count & 31) << (at & 31)
            return mask(min(count, 32)) << at if at < 32 else 0
        yield row(f"bmsk.{how}.b32 %x, %a, %b", "u32 u32", "b32", bmsk)


def dots():
    """`dp4a` and `dp2a`."""
    def part(x, k, bits, letter):
        found = x >> bits * k & mask(bits)
        return signed(found, bits) if letter == "s" else found
    for p, q in product("us", "us"):
        ty = "u32" if p + q == "uu" else "s32"
        yield row(f"dp4a.{p}32.{q}32 %x, %a, %b, %c", f"b32 b32 {ty}", ty,
                  lambda a, b, c, p=p, q=q: c + sum(part(a, k, 8, p) * part(b, k, 8, q) for k in range(4)))
        for half in ("lo", "hi"):
            yield row(f"dp2a.{half}.{p}32.{q}32 %x, %a, %b, %c", f"b32 b32 {ty}", ty,
                      lambda a, b, c, p=p, q=q, at=2 * (half == "hi"): c + sum(part(a, k, 16, p) * part(b, at + k, 8, q) for k in (0, 1)))


FAMILIES = {"integer": arithmetic, "integer by constants": immediate_divisors, "extended precision": extended, "logic": logic,
            "bit fields": fields, "dot products": dots}
