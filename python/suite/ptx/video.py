"""Video instructions: scalar ones with selectors and a second operation, and those that work on two and four parts of a word."""
# ruff: noqa: D103 - each function yields the rows that its name says.
from itertools import product

from integers import clamp, mask, signed
from row import join, row

SECOND = {"add": lambda x, c: x + c, "min": min, "max": max}
COMPARES = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
            "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}
SCALAR = {"vadd": lambda a, b: a + b, "vsub": lambda a, b: a - b, "vabsdiff": lambda a, b: abs(a - b), "vmin": min, "vmax": max}
SELECTORS = ("", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1")


# sm_87 has none of these instructions. NVIDIA's compiler replaces them by other instructions. Their results differ from the manual if a
# result is saturated, merged by minimum or maximum, or scaled, and if it goes into the upper half of %x: there the compiler puts the upper
# half of the result. python/suite/silicon has the results of an H200, which the engine also gives.
EMULATED = "the compiler's code departs from the manual; its results are recorded from an H200 (python/suite/silicon)"


def emulated(departs, reference):
    """The reference. If the compiler's code departs from the manual, there is none, but a note."""
    return {"reference": None if departs else reference, "note": EMULATED if departs else ""}


def part(x, selector, ty):
    """The selected byte or half, extended according to its type."""
    bits = {"": 32, ".b": 8, ".h": 16}[selector[:2]]
    x >>= bits * int(selector[2:] or 0)
    return signed(x, bits) if ty[0] == "s" else x & mask(bits)


def number(x, ty):
    return signed(x, 32) if ty[0] == "s" else x & mask(32)


def saturated(x, ty, to=32):
    return clamp(x, ty[0] + str(to)) if to != 8 else clamp(x, ty[0] + "8")


def merged(x, selector, c):
    bits = {"b": 8, "h": 16}[selector[1]]
    at = bits * int(selector[2])
    return c & ~(mask(bits) << at) | (x & mask(bits)) << at


def scalar():
    types = list(product(("u32", "s32"), repeat=3))
    pairs = list(product(SELECTORS, repeat=2))
    for n, (op, (to, p, q), sat) in enumerate(product(SCALAR, types, ("", "sat"))):
        for i, j in (pairs[n % len(pairs)], pairs[n * 11 % len(pairs)], ("", "")):
            def plain(a, b, op=op, p=p, q=q, i=i, j=j, to=to, sat=sat):
                x = SCALAR[op](part(a, i, p), part(b, j, q))
                return saturated(x, to) if sat else x
            stem = join(op, to, p, q, sat)
            yield row(f"{stem} %x, %a{i}, %b{j}", "b32 b32", "b32", **emulated(sat, plain))
            for second in SECOND:
                yield row(f"{stem}.{second} %x, %a{i}, %b{j}, %c", "b32 b32 b32", "b32", **emulated(
                    sat or second != "add", lambda a, b, c, plain=plain, s=second, to=to: SECOND[s](number(plain(a, b), to), number(c, to))))
        for selector in SELECTORS[1:]:
            width = 8 if selector[1] == "b" else 16

            def into(a, b, c, op=op, p=p, q=q, sat=sat, to=to, selector=selector, width=width):
                x = SCALAR[op](number(a, p), number(b, q))
                return merged(saturated(x, to, width) if sat else x, selector, c)
            yield row(f"{join(op, to, p, q, sat)} %x{selector}, %a, %b, %c", "b32 b32 b32", "b32", **emulated(sat or selector == ".h1", into))


def shifts():
    for op, ty, how, sat in product(("vshl", "vshr"), ("u32", "s32"), ("clamp", "wrap"), ("", "sat")):
        for i, j, second in (("", "", ""), (".h1", ".b0", ""), (".b3", "", "add"), ("", ".h1", "min"), (".h0", "", "max")):
            def reference(a, b, c=0, op=op, ty=ty, how=how, sat=sat, i=i, j=j, second=second):
                n = part(b, j, "u32")
                n = min(n, 32) if how == "clamp" else n & 31
                x = part(a, i, ty)
                x = x << n if op == "vshl" else x >> n
                x = number(saturated(x, ty) if sat else x, ty)
                return SECOND[second](x, number(c, ty)) if second else x
            yield row(f"{join(op, ty, ty, 'u32', sat, how, second)} %x, %a{i}, %b{j}{', %c' if second else ''}",
                      "b32 b32 b32" if second else "b32 b32", "b32", **emulated(sat or second in ("min", "max"), reference))


def multiply():
    for (p, q), sat, scale, n in product((("u32", "u32"), ("s32", "s32"), ("u32", "s32"), ("s32", "u32")), ("", "sat"), ("", "shr7", "shr15"),
                                         range(3)):
        i, j = (("", ""), (".h0", ".b1"), (".b2", ".h1"))[n]
        for no, to in product(("", "a", "c", "po"), ("u32", "s32")):
            if no and (p, q) != ("s32", "s32") or to == "u32" and (p, q) != ("u32", "u32"):
                continue

            def reference(a, b, c, p=p, q=q, i=i, j=j, no=no, sat=sat, scale=scale, to=to):
                product_ = part(a, i, p) * part(b, j, q)
                x = (-product_ if no == "a" else product_) + (-number(c, to) if no == "c" else number(c, to)) + (no == "po")
                x >>= int(scale[3:] or 0)
                return saturated(x, to) if sat else x
            suffix = ".po" if no == "po" else ""
            yield row(f"{join('vmad', to, p, q)}{suffix}{'.' + sat if sat else ''}{'.' + scale if scale else ''} "
                      f"%x, {'-' if no == 'a' else ''}%a{i}, %b{j}, {'-' if no == 'c' else ''}%c", "b32 b32 b32", "b32", **emulated(sat or scale, reference))


def sets():
    for how, (p, q) in product(COMPARES, product(("u32", "s32"), repeat=2)):
        for i, j in (("", ""), (".b1", ".h1"), (".h0", ".b3")):
            def plain(a, b, how=how, p=p, q=q, i=i, j=j):
                return int(COMPARES[how](part(a, i, p), part(b, j, q)))
            yield row(f"vset.{p}.{q}.{how} %x, %a{i}, %b{j}", "b32 b32", "b32", plain)
            for second in SECOND:
                yield row(f"vset.{p}.{q}.{how}.{second} %x, %a{i}, %b{j}, %c", "b32 b32 b32", "b32", **emulated(
                    second != "add", lambda a, b, c, plain=plain, s=second: SECOND[s](plain(a, b), c)))
        yield row(f"vset.{p}.{q}.{how} %x.b1, %a, %b, %c", "b32 b32 b32", "b32",
                  lambda a, b, c, how=how, p=p, q=q: merged(int(COMPARES[how](number(a, p), number(b, q))), ".b1", c))


LANES = {"vadd": lambda a, b: a + b, "vsub": lambda a, b: a - b, "vabsdiff": lambda a, b: abs(a - b), "vmin": min, "vmax": max,
         "vavrg": lambda a, b: a + b + (a + b >= 0) >> 1}


def lanes():
    for count, op, (to, p, q), end in product((2, 4), LANES, product(("u32", "s32"), repeat=3), ("", "sat", "add")):
        bits = 32 // count

        def reference(a, b, c, op=op, to=to, p=p, q=q, end=end, bits=bits, count=count):
            def lane(x, k, ty):
                x = x >> bits * k & mask(bits)
                return signed(x, bits) if ty[0] == "s" else x
            made = [LANES[op](lane(a, k, p), lane(b, k, q)) for k in range(count)]
            if end == "sat":
                made = [clamp(x, to[0] + str(bits)) for x in made]
            if end == "add":
                # A lane is a number with one bit more than the lane's bits, for the sign.
                return number(c, to) + sum(made)
            return sum((x & mask(bits)) << bits * k for k, x in enumerate(made))
        yield row(f"{join(op + str(count), to, p, q, end)} %x, %a, %b, %c", "b32 b32 b32", "b32", reference)
    for count, how, (p, q), end in product((2, 4), COMPARES, product(("u32", "s32"), repeat=2), ("", "add")):
        bits = 32 // count

        def chosen(a, b, c, how=how, p=p, q=q, end=end, bits=bits, count=count):
            def lane(x, k, ty):
                x = x >> bits * k & mask(bits)
                return signed(x, bits) if ty[0] == "s" else x
            made = [COMPARES[how](lane(a, k, p), lane(b, k, q)) for k in range(count)]
            return c + sum(made) if end else sum(x << bits * k for k, x in enumerate(made))
        yield row(f"{join('vset' + str(count), p, q, how, end)} %x, %a, %b, %c", "b32 b32 b32", "b32", chosen)

    def four(a, b, c, choice_a, choice_b, wide):
        count = 32 // wide
        pool = lambda x, y: [(y << 32 | x) >> wide * k & mask(wide) for k in range(2 * count)]  # noqa: E731
        found = [pool(a, b)[i] + pool(a, b)[j] for i, j in zip(choice_a, choice_b, strict=True)]
        return sum((x & mask(wide)) << wide * k for k, x in enumerate(found))
    for n, m in (("h10", "h32"), ("h01", "h23"), ("h20", "h31"), ("h33", "h00")):
        yield row(f"vadd2.u32.u32.u32 %x, %a.{n}, %b.{m}, %c", "b32 b32 b32", "b32",
                  lambda a, b, c, n=n, m=m: four(a, b, c, [int(d) for d in n[:0:-1]], [int(d) for d in m[:0:-1]], 16))
    for n, m in (("b3210", "b7654"), ("b0123", "b4567"), ("b7070", "b1234")):
        yield row(f"vadd4.u32.u32.u32 %x, %a.{n}, %b.{m}, %c", "b32 b32 b32", "b32",
                  lambda a, b, c, n=n, m=m: four(a, b, c, [int(d) for d in n[:0:-1]], [int(d) for d in m[:0:-1]], 8))


FAMILIES = {"video": scalar, "video shifts": shifts, "vmad": multiply, "vset": sets, "video lanes": lanes}
