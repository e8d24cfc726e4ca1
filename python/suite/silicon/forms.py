"""The recorded instructions. Each form is one row of PTX text.

Operands are %a, %b, %c (32 bits), %A, %B, %C (64 bits), and %ha, %hb, %hc (the low halves of %a, %b, %c). Results are %r, %s (32 bits),
%R, %S (64), %h (16) and the predicates %p, %q. Every result that a form names is recorded. %o is the address of the item's first result.
%x and %y (32 bits each) and %i (a signed index) are scratch registers.
"""
# ruff: noqa: D103 - each function yields the forms that its name says.
from itertools import product

ROUNDS = ("rn", "rz", "rm", "rp")
COMPARES = ("eq", "ne", "lt", "le", "gt", "ge")
UNORDERED = ("equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan")


def join(*parts):
    """Joins modifiers with dots and leaves out empty ones."""
    return ".".join(p for p in parts if p)


def single():
    for op, r, ftz, sat in product(("add", "mul", "fma"), ROUNDS, ("", "ftz"), ("", "sat")):
        yield f"{join(op, r, ftz, sat, 'f32')} %r, %a, %b{', %c' if op == 'fma' else ''}"
    for r, ftz in product(ROUNDS, ("", "ftz")):
        yield f"{join('sub', r, ftz, 'f32')} %r, %a, %b"
    for op, ftz, nan, sign in product(("min", "max"), ("", "ftz"), ("", "NaN"), ("", "xorsign.abs")):
        yield f"{join(op, ftz, nan, sign, 'f32')} %r, %a, %b"
    for op, ftz in product(("abs", "neg"), ("", "ftz")):
        yield f"{join(op, ftz, 'f32')} %r, %a"
    for kind in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        yield f"testp.{kind}.f32 %p, %a"
    yield "copysign.f32 %r, %a, %b"
    yield "neg.f32 %r, %b; fma.rn.f32 %r, %a, %r, %c"
    yield "abs.f32 %r, %b; add.rn.f32 %r, %a, %r"
    yield "mul.rn.f32 %r, %a, 0f3f000000"
    yield "add.rn.f32 %r, %a, %a"


def single_division():
    for r, ftz in product(ROUNDS, ("", "ftz")):
        yield f"{join('div', r, ftz, 'f32')} %r, %a, %b"
        yield f"{join('rcp', r, ftz, 'f32')} %r, %a"
        yield f"{join('sqrt', r, ftz, 'f32')} %r, %a"


def compares(kind, names, flush):
    a, b = ("%A", "%B") if kind == "f64" else ("%a", "%b")
    for compare, ftz in product(names, flush):
        yield f"{join('setp', compare, ftz, kind)} %p, {a}, {b}"
        yield f"{join('set', compare, ftz, 'u32', kind)} %r, {a}, {b}"
    for compare, ftz in product(names, flush):
        yield f"{join('set', compare, ftz, 'f32', kind)} %r, {a}, {b}"


def single_compare():
    yield from compares("f32", COMPARES + UNORDERED, ("", "ftz"))
    for op in ("and", "or", "xor"):
        yield f"setp.gt.f32 %q, %c, 0f00000000; setp.lt.{op}.f32 %p|%q, %a, %b, %q"
        yield f"setp.gt.f32 %q, %c, 0f00000000; set.leu.{op}.u32.f32 %r, %a, %b, !%q"
    yield "slct.b32.f32 %r, %a, %b, %c"
    yield "slct.ftz.b32.f32 %r, %a, %b, %c"
    yield "slct.f32.s32 %r, %a, %b, %c"


def double():
    for op, r in product(("add", "sub", "mul", "fma"), ROUNDS):
        yield f"{op}.{r}.f64 %R, %A, %B{', %C' if op == 'fma' else ''}"
    for op in ("min", "max"):
        yield f"{op}.f64 %R, %A, %B"
    for op in ("abs", "neg"):
        yield f"{op}.f64 %R, %A"
    for kind in ("finite", "infinite", "number", "notanumber", "normal", "subnormal"):
        yield f"testp.{kind}.f64 %p, %A"
    yield "copysign.f64 %R, %A, %B"
    yield from compares("f64", COMPARES + UNORDERED, ("",))
    yield "slct.f64.s32 %R, %A, %B, %c"


def double_division():
    for r in ROUNDS:
        yield f"div.{r}.f64 %R, %A, %B"
        yield f"rcp.{r}.f64 %R, %A"
        yield f"sqrt.{r}.f64 %R, %A"


def half():
    for op, ftz, sat in product(("add", "sub", "mul"), ("", "ftz"), ("", "sat")):
        yield f"{join(op, ftz, sat, 'f16x2')} %r, %a, %b"
    for ftz, end in product(("", "ftz"), ("", "sat", "relu")):
        yield f"{join('fma.rn', ftz, end, 'f16x2')} %r, %a, %b, %c"
    yield "add.f16 %h, %ha, %hb"
    yield "mul.sat.f16 %h, %ha, %hb"
    yield "fma.rn.f16 %h, %ha, %hb, %hc"
    for op, ftz, nan, sign in product(("min", "max"), ("", "ftz"), ("", "NaN"), ("", "xorsign.abs")):
        yield f"{join(op, ftz, nan, sign, 'f16x2')} %r, %a, %b"
    for op, ftz in product(("abs", "neg"), ("", "ftz")):
        yield f"{join(op, ftz, 'f16x2')} %r, %a"
    for compare, ftz in product(COMPARES + UNORDERED, ("", "ftz")):
        yield f"{join('setp', compare, ftz, 'f16x2')} %p|%q, %a, %b"
        yield f"{join('set', compare, ftz, 'f16x2', 'f16x2')} %r, %a, %b"


def brain():
    for relu in ("", "relu"):
        yield f"{join('fma.rn', relu, 'bf16x2')} %r, %a, %b, %c"
    yield "fma.rn.bf16 %h, %ha, %hb, %hc"
    for op, nan, sign in product(("min", "max"), ("", "NaN"), ("", "xorsign.abs")):
        yield f"{join(op, nan, sign, 'bf16x2')} %r, %a, %b"
    for op in ("abs", "neg"):
        yield f"{op}.bf16x2 %r, %a"


def approximate():
    for op, ftz in product(("rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2"), ("", "ftz")):
        yield f"{join(op, 'approx', ftz, 'f32')} %r, %a"
    yield "tanh.approx.f32 %r, %a"
    for how, ftz in product(("approx", "full"), ("", "ftz")):
        yield f"{join('div', how, ftz, 'f32')} %r, %a, %b"


def approximate_half():
    for op in ("ex2", "tanh"):
        yield f"{op}.approx.f16x2 %r, %a"


def approximate_double():
    yield "rcp.approx.ftz.f64 %R, %A"
    yield "rsqrt.approx.f64 %R, %A"
    yield "rsqrt.approx.ftz.f64 %R, %A"


INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
NARROW = {"s8": "%r", "u8": "%r", "s16": "%h", "u16": "%h", "s32": "%r", "u32": "%r", "s64": "%R", "u64": "%R"}


def from_single():
    for to, r, ftz, sat in product(INTEGERS, ("rni", "rzi", "rmi", "rpi"), ("", "ftz"), ("", "sat")):
        if sat and to in ("s32", "u32", "s64", "u64"):
            continue  # These forms saturate anyway.
        yield f"{join('cvt', r, ftz, sat, to, 'f32')} {NARROW[to]}, %a"
    for r, ftz, sat in product(("rni", "rzi", "rmi", "rpi"), ("", "ftz"), ("", "sat")):
        yield f"{join('cvt', r, ftz, sat, 'f32.f32')} %r, %a"
    for ftz, sat in product(("", "ftz"), ("", "sat")):
        yield f"{join('cvt', ftz, sat, 'f32.f32')} %r, %a"
        yield f"{join('cvt', ftz, sat, 'f64.f32')} %R, %a"
    for r, ftz, sat in product(ROUNDS, ("", "ftz"), ("", "sat")):
        yield f"{join('cvt', r, ftz, sat, 'f16.f32')} %h, %a"
    for kind, r, relu in product(("f16", "bf16"), ("rn", "rz"), ("", "relu")):
        yield f"neg.f32 %s, %a; {join('cvt', r, relu, kind + 'x2', 'f32')} %r, %a, %s"
        yield f"{join('cvt', r, relu, kind, 'f32')} %h, %a"
    yield "cvt.rna.tf32.f32 %r, %a"


def from_double():
    for to, r in product(INTEGERS, ("rni", "rzi", "rmi", "rpi")):
        yield f"cvt.{r}.{to}.f64 {NARROW[to]}, %A"
    for to, r in product(("s8", "u8", "s16", "u16"), ("rni", "rzi")):
        yield f"cvt.{r}.sat.{to}.f64 {NARROW[to]}, %A"
    for r, sat in product(("rni", "rzi", "rmi", "rpi"), ("", "sat")):
        yield f"{join('cvt', r, sat, 'f64.f64')} %R, %A"
    yield "cvt.sat.f64.f64 %R, %A"
    for r, ftz, sat in product(ROUNDS, ("", "ftz"), ("", "sat")):
        yield f"{join('cvt', r, ftz, sat, 'f32.f64')} %r, %A"
    for r, sat in product(ROUNDS, ("", "sat")):
        yield f"{join('cvt', r, sat, 'f16.f64')} %h, %A"


def from_half():
    for to, r in product(INTEGERS, ("rni", "rzi", "rmi", "rpi")):
        yield f"cvt.{r}.{to}.f16 {NARROW[to]}, %ha"
    for to, r in product(("s8", "u8", "s16", "u16"), ("rni", "rpi")):
        yield f"cvt.{r}.sat.{to}.f16 {NARROW[to]}, %ha"
    for ftz, sat in product(("", "ftz"), ("", "sat")):
        yield f"{join('cvt', ftz, sat, 'f32.f16')} %r, %ha"
    yield "cvt.f64.f16 %R, %ha"
    for r, sat in product(("rni", "rzi", "rmi", "rpi"), ("", "sat")):
        yield f"{join('cvt', r, sat, 'f16.f16')} %h, %ha"


def from_integer():
    source = {"s8": "%a", "u8": "%a", "s16": "%ha", "u16": "%ha", "s32": "%a", "u32": "%a", "s64": "%A", "u64": "%A"}
    for of, r in product(INTEGERS, ROUNDS):
        yield f"cvt.{r}.f32.{of} %r, {source[of]}"
        yield f"cvt.{r}.f16.{of} %h, {source[of]}"
        if of not in ("s8", "u8", "s16", "u16", "s32", "u32"):
            yield f"cvt.{r}.f64.{of} %R, {source[of]}"
    for of in ("s8", "u8", "s16", "u16", "s32", "u32"):
        yield f"cvt.rn.f64.{of} %R, {source[of]}"
        yield f"cvt.rz.sat.f32.{of} %r, {source[of]}"
    for to, of in product(INTEGERS, INTEGERS):
        fits = int(to[1:]) >= int(of[1:]) and to[0] == of[0] or int(to[1:]) > int(of[1:]) and to[0] == "s"
        if to != of:
            yield f"cvt.{to}.{of} {NARROW[to]}, {source[of]}"
        if not fits:
            yield f"cvt.sat.{to}.{of} {NARROW[to]}, {source[of]}"
    for to in ("s16", "u16"):
        yield f"cvt.pack.sat.{to}.s32 %r, %a, %b"
    for to in ("s8", "u8", "s4", "u4", "s2", "u2"):
        yield f"cvt.pack.sat.{to}.s32.b32 %r, %a, %b, %c"


def integer():
    for of in ("s32", "u32"):
        for op, part in product(("mul", "mad"), ("lo", "hi")):
            yield f"{op}.{part}.{of} %r, %a, %b{', %c' if op == 'mad' else ''}"
            yield f"{op}24.{part}.{of} %r, %a, %b{', %c' if op == 'mad' else ''}"
        yield f"mul.wide.{of} %R, %a, %b"
        yield f"mad.wide.{of} %R, %a, %b, %C"
        for op in ("div", "rem", "min", "max"):
            yield f"{op}.{of} %r, %a, %b"
        for op in ("sad",):
            yield f"{op}.{of} %r, %a, %b, %c"
        for op, how in product(("bmsk", "szext"), ("clamp", "wrap")):
            yield f"{op}.{how}.{'b32' if op == 'bmsk' else of} %r, %a, %b"
        yield f"bfe.{of} %r, %a, %b, %c"
        yield f"bfind.{of} %r, %a"
        yield f"bfind.shiftamt.{of} %r, %a"
        yield f"shr.{of} %r, %a, %b"
        for compare in COMPARES + (("lo", "ls", "hi", "hs") if of == "u32" else ()):
            yield f"setp.{compare}.{of} %p, %a, %b"
        yield f"set.lt.f32.{of} %r, %a, %b"
        yield f"slct.{of}.s32 %r, %a, %b, %c"
        for part in ("lo", "hi"):
            yield f"mad.{part}.cc.{of} %r, %a, %b, %c; addc.u32 %s, 0, 0"
            yield f"add.cc.u32 %s, %a, %c; madc.{part}.cc.{of} %r, %a, %b, %c; addc.u32 %s, 0, 0"
    yield "mad.hi.sat.s32 %r, %a, %b, %c"
    yield "mad24.hi.sat.s32 %r, %a, %b, %c"
    yield "add.sat.s32 %r, %a, %b"
    yield "sub.sat.s32 %r, %a, %b"
    yield "abs.s32 %r, %a"
    yield "neg.s32 %r, %a"
    for op in ("popc", "clz", "brev"):
        yield f"{op}.b32 %r, %a"
    yield "not.b32 %r, %a"
    yield "cnot.b32 %r, %a"
    yield "bfi.b32 %r, %a, %b, %c, %b"
    yield "bfi.b32 %r, %a, %b, %b, %c"
    yield "and.b32 %s, %b, 31; and.b32 %r, %c, 63; sub.s32 %r, %r, 32; fns.b32 %r, %a, %s, %r"
    yield "shl.b32 %r, %a, %b"
    for way, how in product("lr", ("clamp", "wrap")):
        yield f"shf.{way}.{how}.b32 %r, %a, %b, %c"
    for mode in ("", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"):
        yield f"prmt.b32{mode} %r, %a, %b, %c"
    yield "prmt.b32 %r, %a, %b, 0x9c3a"
    for table in (0x96, 0xe8, 0xca, 0x2d):
        yield f"lop3.b32 %r, %a, %b, %c, {table:#x}"
    for a, b in product(("s32", "u32"), repeat=2):
        yield f"dp4a.{a}.{b} %r, %a, %b, %c"
        yield f"dp2a.lo.{a}.{b} %r, %a, %b, %c"
        yield f"dp2a.hi.{a}.{b} %r, %a, %b, %c"
    yield "add.cc.u32 %r, %a, %b; addc.u32 %s, %a, %c"
    yield "sub.cc.u32 %r, %a, %b; subc.u32 %s, %a, %c"
    yield "add.cc.u32 %r, %a, %b; addc.cc.u32 %s, %b, %c; addc.u32 %r, %a, %c"
    yield "sub.cc.u32 %r, %a, %b; subc.cc.u32 %s, %b, %c; subc.u32 %r, %a, %c"
    for of in ("s16", "u16"):
        for part in ("lo", "hi"):
            yield f"mul.{part}.{of} %h, %ha, %hb"
            yield f"mad.{part}.{of} %h, %ha, %hb, %hc"
        yield f"mul.wide.{of} %r, %ha, %hb"
        yield f"mad.wide.{of} %r, %ha, %hb, %c"
        for op in ("div", "rem", "min", "max"):
            yield f"{op}.{of} %h, %ha, %hb"
        yield f"shr.{of} %h, %ha, %b"
        yield f"setp.lt.{of} %p, %ha, %hb"
        yield f"sad.{of} %h, %ha, %hb, %hc"
    yield "shl.b16 %h, %ha, %b"


def long():
    for of in ("s64", "u64"):
        for part in ("lo", "hi"):
            yield f"mul.{part}.{of} %R, %A, %B"
            yield f"mad.{part}.{of} %R, %A, %B, %C"
        for op in ("div", "rem", "min", "max"):
            yield f"{op}.{of} %R, %A, %B"
        yield f"sad.{of} %R, %A, %B, %C"
        yield f"bfe.{of} %R, %A, %b, %c"
        yield f"bfind.{of} %r, %A"
        yield f"bfind.shiftamt.{of} %r, %A"
        yield f"shr.{of} %R, %A, %b"
        for compare in COMPARES:
            yield f"setp.{compare}.{of} %p, %A, %B"
        yield f"slct.{of}.s32 %R, %A, %B, %c"
    for op in ("add", "sub"):
        yield f"{op}.s64 %R, %A, %B"
        yield f"{op}.cc.u64 %R, %A, %B; {op}c.u64 %S, %C, %A"
    yield "abs.s64 %R, %A"
    yield "neg.s64 %R, %A"
    for op in ("popc", "clz"):
        yield f"{op}.b64 %r, %A"
    yield "brev.b64 %R, %A"
    yield "cnot.b64 %R, %A"
    yield "bfi.b64 %R, %A, %B, %b, %c"
    yield "shl.b64 %R, %A, %b"


def video():
    selectors = (("", ""), (".b1", ".h1"), (".h0", ".b3"))
    types = (("u32", "u32", "u32"), ("s32", "s32", "s32"), ("s32", "u32", "s32"), ("u32", "s32", "u32"))
    for op, (to, x, y), (i, j), sat in product(("vadd", "vsub", "vabsdiff", "vmin", "vmax"), types, selectors, ("", "sat")):
        yield f"{join(op, to, x, y, sat)} %r, %a{i}, %b{j}"
    for op, second, (i, j) in product(("vadd", "vsub", "vabsdiff", "vmin", "vmax"), ("add", "min", "max"), selectors):
        yield f"{op}.s32.s32.s32.{second} %r, %a{i}, %b{j}, %c"
    for op in ("vadd", "vabsdiff"):
        yield f"{op}.s32.s32.s32.sat %r.b2, %a.b0, %b.b1, %c"
        yield f"{op}.u32.u32.u32 %r.h1, %a.h0, %b.h1, %c"
    for op, of, how in product(("vshl", "vshr"), ("u32", "s32"), ("clamp", "wrap")):
        yield f"{op}.{of}.{of}.u32.{how} %r, %a, %b"
        yield f"{op}.{of}.{of}.u32.{how}.add %r, %a.h1, %b.b0, %c"
    for to, x, y in (("s32", "s32", "s32"), ("u32", "u32", "u32"), ("s32", "u32", "s32")):
        yield f"vmad.{to}.{x}.{y} %r, %a.h0, %b.b1, %c"
        yield f"vmad.{to}.{x}.{y}.shr7 %r, %a.h1, %b.h0, %c"
        yield f"vmad.{to}.{x}.{y}.sat.shr15 %r, %a.b2, %b.h1, %c"
    for compare, of in product(COMPARES, ("u32", "s32")):
        yield f"vset.{of}.{of}.{compare} %r, %a, %b"
    yield "vset.s32.u32.lt.add %r, %a.b1, %b.h1, %c"
    yield "vset.u32.u32.ge %r.b1, %a.b1, %b.b2, %c"
    for lanes, op, (to, x, y), end in product("24", ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"), types[:2], ("", "sat", "add")):
        yield f"{join(op + lanes, to, x, y, end)} %r, %a, %b, %c"
    for lanes, compare, of in product("24", COMPARES, ("u32", "s32")):
        yield f"vset{lanes}.{of}.{of}.{compare} %r, %a, %b, %c"
    yield "vset4.u32.u32.lt.add %r, %a, %b, %c"
    yield "vadd2.s32.s32.s32.sat %r.h0, %a.h10, %b.h23, %c"
    yield "vadd4.u32.u32.u32 %r.b20, %a.b0123, %b.b7654, %c"


def warp():
    for mode, c in product(("up", "down", "bfly", "idx"), (0, 31, 0x1803, 0x181f, 0x1c07, 0x0f)):
        yield f"shfl.sync.{mode}.b32 %r|%p, %a, %b, {c}, -1"
    # The clamp and the segment mask come from a register, the same in the whole warp.
    for mode in ("up", "down", "bfly", "idx"):
        yield f"shfl.sync.idx.b32 %s, %c, 0, 31, -1; shfl.sync.{mode}.b32 %r|%p, %a, %b, %s, -1"
    for mode in ("all", "any", "uni"):
        yield f"setp.gt.s32 %q, %a, 0; vote.sync.{mode}.pred %p, %q, -1"
        yield f"setp.eq.s32 %q, %a, 7; vote.sync.{mode}.pred %p, !%q, -1"
    yield "setp.gt.s32 %q, %a, 0; vote.sync.ballot.b32 %r, %q, -1"
    yield "match.any.sync.b32 %r, %a, -1"
    yield "match.all.sync.b32 %r|%p, %a, -1"
    yield "cvt.u64.u32 %R, %a; shl.b64 %R, %R, 32; match.any.sync.b64 %r, %R, -1"
    yield "cvt.u64.u32 %R, %a; match.all.sync.b64 %r|%p, %R, -1"
    for op in ("add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32", "xor.b32"):
        yield f"redux.sync.{op} %r, %a, -1"
    # The two halves of the warp have their own masks. %c of lane 0 says which lanes belong together.
    split = ("shfl.sync.idx.b32 %s, %c, 0, 31, -1; mov.u32 %r, %laneid; shr.u32 %r, %s, %r; and.b32 %r, %r, 1; "
             "setp.ne.u32 %q, %r, 0; ")
    for op in ("redux.sync.add.s32 %r, %a, ", "redux.sync.max.u32 %r, %a, ", "match.any.sync.b32 %r, %a, ",
               "redux.sync.xor.b32 %r, %a, "):
        yield split + f"@%q bra Y; not.b32 %s, %s; {op}%s; bra Z; Y: {op}%s; Z: bar.warp.sync -1"
    yield split + "vote.sync.ballot.b32 %r, %q, -1; activemask.b32 %s"
    for mask in ("lt", "le", "eq", "ge", "gt"):
        yield f"mov.u32 %r, %lanemask_{mask}"


def memory_atomics(space, at):
    """Atomics on a word that belongs to the item. The results are the word's old and new values."""
    def form(op, wide, operands):
        r, s, a = ("%R", "%S", "%A") if wide else ("%r", "%s", "%a")
        size = "b64" if wide else "b32"
        return f"st.{space}.{size} [{at}], {a}; atom.{space}.{op} {r}, [{at}], {operands}; ld.{space}.{size} {s}, [{at}]"

    def reduction(op, wide):
        a, b, s, size = ("%A", "%B", "%S", "b64") if wide else ("%a", "%b", "%s", "b32")
        return f"st.{space}.{size} [{at}], {a}; red.{space}.{op} [{at}], {b}; ld.{space}.{size} {s}, [{at}]"
    return form, reduction


def atomic_integer(space, at):
    form, reduction = memory_atomics(space, at)
    arithmetic = ("add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "inc.u32", "dec.u32")
    for op in (*arithmetic[:6], "and.b32", "or.b32", "xor.b32", *arithmetic[6:], "exch.b32"):
        yield form(op, False, "%b")
        if op != "exch.b32":
            yield reduction(op, False)
    yield form("cas.b32", False, "%b, %c")
    yield form("cas.b32", False, "%a, %c")
    for half in ("%ha, %hc", "%hb, %hc"):
        yield f"st.{space}.b32 [{at}], %a; atom.{space}.cas.b16 %h, [{at}], {half}; ld.{space}.b32 %s, [{at}]"


def atomic_long(space, at):
    form, reduction = memory_atomics(space, at)
    for op in ("add.u64", "min.u64", "min.s64", "max.u64", "max.s64", "and.b64", "or.b64", "xor.b64", "exch.b64"):
        yield form(op, True, "%B")
        if op != "exch.b64":
            yield reduction(op, True)
    yield form("cas.b64", True, "%B, %C")
    yield form("cas.b64", True, "%A, %C")


def atomic_float(kinds, wide):
    for space, at in (("global", "%o"), ("shared", "%z")):
        form, reduction = memory_atomics(space, at)
        for kind in kinds:
            yield form(kind, wide, "%B" if wide else "%b")
            yield reduction(kind, wide)


def memory():
    for size in ("u8", "s8", "u16", "s16"):
        for at in range(0, 4, 1 if size.endswith("8") else 2):
            yield f"st.shared.b32 [%z], %a; ld.shared.{size} %r, [%z+{at}]"
            yield f"st.global.b32 [%o], %a; ld.global.{size} %r, [%o+{at}]"
    for at in range(4):
        yield f"st.shared.b32 [%z], %a; st.shared.u8 [%z+{at}], %b; ld.shared.b32 %r, [%z]"
        yield f"st.global.b32 [%o], %a; st.global.u8 [%o+{at}], %b; ld.global.b32 %r, [%o]"
    for at in (0, 2):
        yield f"st.shared.b32 [%z], %a; st.shared.b16 [%z+{at}], %hb; ld.shared.b32 %r, [%z]"
        yield f"st.global.b32 [%o], %a; st.global.b16 [%o+{at}], %hb; ld.global.b32 %r, [%o]"
    yield "st.shared.v2.b32 [%z], {%a, %b}; ld.shared.b64 %R, [%z]"
    yield "st.shared.b64 [%z], %A; ld.shared.v2.b32 {%r, %s}, [%z]"
    yield "st.shared.v4.b32 [%z], {%a, %b, %c, %a}; ld.shared.v2.b64 {%R, %S}, [%z]"
    yield "st.shared.v2.b64 [%z], {%A, %A}; ld.shared.v4.b32 {%r, %s, %x, %y}, [%z]; xor.b32 %r, %r, %x; xor.b32 %s, %s, %y"
    yield ("st.shared.b32 [%z], %a; ld.shared.v4.u8 {%r, %s, %x, %y}, [%z]; "
           "shl.b32 %x, %x, 16; or.b32 %r, %r, %x; mad.lo.u32 %s, %y, 65536, %s")
    yield "st.shared.v4.u8 [%z], {%a, %b, %c, %a}; ld.shared.b32 %r, [%z]"
    yield "st.shared.v2.b16 [%z], {%ha, %hb}; ld.shared.v2.s8 {%r, %s}, [%z+2]"


# The functions that MUFU computes, by the instruction's function code. For all 2^32 inputs only hashes are kept.
MUFU = [f"{op}.approx.ftz.f32 %r, %a" for op in ("cos", "sin", "ex2", "lg2", "rcp", "rsqrt")]
MUFU += [f"mov.b64 %A, {{0, %a}}; {op}.approx.ftz.f64 %R, %A; mov.b64 {{%x, %r}}, %R" for op in ("rcp", "rsqrt")]
MUFU += ["sqrt.approx.ftz.f32 %r, %a", "tanh.approx.f32 %r, %a"]

FAMILIES = {
    # name: (pool, number of items, forms)
    "single": ("single", 768, list(single())),
    "single_division": ("single", 768, list(single_division())),
    "single_compare": ("single", 640, list(single_compare())),
    "double": ("double", 576, list(double())),
    "double_division": ("double", 576, list(double_division())),
    "half": ("half", 768, list(half())),
    "brain": ("brain", 960, list(brain())),
    "approximate": ("angle", 1024, list(approximate())),
    "approximate_half": ("one_half", 1024, list(approximate_half())),
    "approximate_double": ("one_double", 640, list(approximate_double())),
    "from_single": ("one_single", 512, list(from_single())),
    "from_double": ("one_double", 640, list(from_double())),
    "from_half": ("one_half", 512, list(from_half())),
    "from_integer": ("long", 576, list(from_integer())),
    "integer": ("word", 896, list(integer())),
    "long": ("long", 640, list(long())),
    "video": ("word", 512, list(video())),
    "warp": ("lane", 512, list(warp())),
    "atomic_global": ("word", 448, list(atomic_integer("global", "%o"))),
    "atomic_shared": ("word", 448, list(atomic_integer("shared", "%z"))),
    "atomic_long": ("long", 448, list(atomic_long("global", "%o")) + list(atomic_long("shared", "%z"))),
    "atomic_single": ("single", 704, list(atomic_float(["add.f32"], False))),
    "atomic_double": ("double", 576, list(atomic_float(["add.f64"], True))),
    "atomic_half": ("half", 704, list(atomic_float(["add.noftz.f16x2"], False))),
    "memory": ("long", 448, list(memory())),
}
