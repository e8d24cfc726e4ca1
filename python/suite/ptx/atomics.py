"""`atom` and `red` for every space, type, order and scope. Each thread has its own word, so the old value is known."""
# ruff: noqa: D103 - each function yields the rows that its name says.
from itertools import product

import floats
from floats import BF16, F16, F32, F64
from integers import mask, signed
from memory import POLICY
from row import row

SPACES = {"global": "%out", "shared": "%sh", "shared::cta": "%sh", "": "%out", "generic shared": "%g"}
SCOPES = ("", "cta", "cluster", "gpu", "sys")
ORDERS = ("", "relaxed", "acquire", "release", "acq_rel")


def wrap_up(old, b):
    return 0 if old >= b else old + 1


def wrap_down(old, b):
    return b if old == 0 or old > b else old - 1


def sum_of(f, ftz=False):
    return lambda old, b: floats.add(f, old, b, "rn", ftz)


def two(f):
    return lambda old, b: [floats.add(f, old >> 16 * k & 0xffff, b >> 16 * k & 0xffff) for k in (0, 1)]


def operations():
    """The operation, the type, the kind of register, and the function of the old value and the operand."""
    for ty in ("u32", "s32", "u64"):
        yield "add", ty, ty, lambda old, b: old + b
    for ty in ("u32", "s32", "u64", "s64"):
        yield "min", ty, ty, min
        yield "max", ty, ty, max
    yield "inc", "u32", "u32", wrap_up
    yield "dec", "u32", "u32", wrap_down
    for bits in (32, 64):
        yield "and", f"b{bits}", f"b{bits}", lambda old, b: old & b
        yield "or", f"b{bits}", f"b{bits}", lambda old, b: old | b
        yield "xor", f"b{bits}", f"b{bits}", lambda old, b: old ^ b
        yield "exch", f"b{bits}", f"b{bits}", lambda old, b: b
    yield "add", "f32", "f32", None
    yield "add", "f64", "f64", sum_of(F64)
    yield "add.noftz", "f16", "f16", sum_of(F16)
    yield "add.noftz", "f16x2", "f16x2", two(F16)
    yield "add.noftz", "bf16", "bf16", sum_of(BF16)
    yield "add.noftz", "bf16x2", "bf16x2", two(BF16)


def place(space):
    """Whether the stores beside the atomic are in global or shared memory, their address, and the PTX that makes the atomic's address."""
    if space == "generic shared":
        return "shared", "%sh", "%g", "{.reg .b64 %g; cvt.u64.u32 %g, %sh; cvta.shared.u64 %g, %g; ", "}"
    plain = "shared" if space.startswith("shared") else "global"
    return plain, SPACES[space], SPACES[space], "{", "}"


def stem(name, order, scope, space, op, ty):
    where = "" if space == "generic shared" else space
    parts = op.split(".")
    return ".".join(p for p in (name, order, scope, where, *parts, ty) if p)


def size(kind):
    return {"f16": "16", "bf16": "16", "f32": "32", "f64": "64", "f16x2": "32", "bf16x2": "32"}.get(kind, kind[1:])


def atomics(name):
    for (op, ty, kind, function), space in product(operations(), SPACES):
        plain, cell, at, begin, end = place(space)
        bits = size(kind)
        if function is None and ty == "f32":
            # In global memory, additions flush denormal numbers. In shared memory they keep them.
            function = sum_of(F32, plain == "global")  # noqa: PLW2901
        full = op in ("add", "exch", "inc") and ty in ("u32", "b64", "f32")
        for order, scope in product(ORDERS, SCOPES) if full else (("", ""), ("relaxed", "gpu"), ("acq_rel", "cta"), ("release", "sys")):
            if name == "red" and order in ("acquire", "acq_rel"):
                continue
            held = {"f32": "f32", "f64": "f64"}.get(kind, f"b{bits}")
            word = f"st.{plain}.b64 [{cell}], -1; st.{plain}.{held} [{cell}], %a; "
            if plain == "shared" and ty == "f16x2":
                # ptxas 12.9 takes the upper half of %b from bit 32 on of the word that %b was converted from, unless memory is in between.
                word += "st.volatile.shared.b32 [%sh+16], %b; ld.volatile.shared.b32 %b, [%sh+16]; "
            read = f"ld.{plain}.{held} %y, [{cell}];"
            if name == "atom":
                text = f"{begin}{word}{stem(name, order, scope, space, op, ty)} %x, [{at}], %b; {read}{end}"
                yield row(text, f"{kind} {kind}", f"{kind} {kind}", function and (lambda a, b, f=function: (a, f(a, b))), shaped=order == scope == "")
            elif op != "exch":
                text = f"{begin}{word}{stem(name, order, scope, space, op, ty)} [{at}], %b; {read.replace('%y', '%x')}{end}"
                yield row(text, f"{kind} {kind}", kind, function, shaped=order == scope == "")


def reading():
    yield from atomics("atom")
    for bits, space in product(("16", "32", "64"), SPACES):
        plain, cell, at, begin, end = place(space)
        for order, scope in product(ORDERS, SCOPES):
            for same in (False, True):
                compare = "%a" if same else "%b"

                def cas(a, b, c, same=same, bits=bits):
                    found = same or a == b
                    return a, c if found else a
                text = (f"{begin}st.{plain}.b64 [{cell}], -1; st.{plain}.b{bits} [{cell}], %a; "
                        f"{stem('atom', order, scope, space, 'cas', 'b' + bits)} %x, [{at}], {compare}, %c; "
                        f"ld.{plain}.b{bits} %y, [{cell}];{end}")
                kind = f"b{bits}"
                yield row(text, f"{kind} {kind} {kind}", f"{kind} {kind}", cas, shaped=order == scope == "")
    for hint in ("atom.global.add.L2::cache_hint.u32 %x, [%out], %b, %policy", "red.global.add.L2::cache_hint.u32 [%out], %b, %policy; mov.b32 %x, %a",
                 "atom.global.cas.L2::cache_hint.b32 %x, [%out], %a, %b, %policy"):
        yield row(f"{POLICY}st.global.b32 [%out], %a; {hint};}}", "b32 b32", "b32", lambda a, b: a)
    for ty in ("v2.f32", "v4.f32", "v2.f16", "v2.bf16x2"):
        registers = "{%a, %b}" if "2." in ty else "{%a, %b, %a, %b}"
        yield row(f"red.global.add.{'noftz.' if '16' in ty else ''}{ty} [%out], {registers}", "f32 f32", "f32", None)


def reducing():
    yield from atomics("red")


def contended():
    """All threads of a block use one word. The order is not known, so only the sum is compared."""
    head = "{.reg .pred %first; .reg .b64 %one; .reg .b32 %s1; setp.eq.u32 %first, %i, 0; "
    spot = {"global": ("mul.wide.u32 %one, %i, 128; sub.u64 %one, %out, %one; ", "%one"),
            "shared": ("mul.lo.u32 %s1, %i, 128; sub.u32 %s1, %sh, %s1; ", "%s1")}
    folds = {"add.u32": ("u32", 0, lambda x, y: x + y & mask(32)), "add.u64": ("u64", 0, lambda x, y: x + y & mask(64)),
             "min.s32": ("s32", 0x7fffffff, min), "max.s32": ("s32", -0x80000000, max), "min.u64": ("u64", mask(64), min),
             "max.u64": ("u64", 0, max), "and.b32": ("b32", mask(32), lambda x, y: x & y), "or.b64": ("b64", 0, lambda x, y: x | y),
             "xor.b32": ("b32", 0, lambda x, y: x ^ y)}
    for (op, (kind, start, fold)), (space, (make, at)), name in product(folds.items(), spot.items(), ("atom", "red")):
        bits = kind[1:]
        go = f"{name}.{space}.{op} {'%x, ' if name == 'atom' else ''}[{at}], %a; "
        number = start if bits == "64" or start < 0 else signed(start, 32)

        def total(a, fold=fold, start=start):
            found = start
            for x in a:
                found = fold(found, x)
            return [found] * len(a)
        yield row(f"{head}{make}@%first st.{space}.b{bits} [{at}], {number if number < 1 << 63 else -1}; bar.sync 0; {go}bar.sync 0; ld.{space}.b{bits} %x, [{at}];}}",
                  kind, kind, total, warp=True)


FAMILIES = {"atom": reading, "red": reducing, "contended atomics": contended}
