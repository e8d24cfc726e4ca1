"""`wmma`: matrix products through memory, because PTX does not say which lane holds which element."""
# ruff: noqa: D103 - each function yields the rows that its name says.
from itertools import product

from integers import clamp, mask
from kernel import RESULTS
from matrices import BITS, element, listed, near, tame
from row import CELL, row
from warps import WARP, by_warp

LAYOUTS = ("row", "col")
# The numbers of registers of A and B, by shape and type. With f16 there are always eight.
REGISTERS = {("m16n16k16", "bf16"): (4, 4), ("m8n32k16", "bf16"): (2, 8), ("m32n8k16", "bf16"): (8, 2), ("m16n16k8", "tf32"): (4, 4),
             ("m8n8k4", "f64"): (1, 1), ("m16n16k16", "s8"): (2, 2), ("m8n32k16", "s8"): (1, 4), ("m32n8k16", "s8"): (4, 1),
             ("m8n8k32", "s4"): (1, 1), ("m8n8k128", "b1"): (1, 1)}
ACCUMULATOR = {"f32": ("f32", 8), "f16": ("b32", 4), "f64": ("f64", 2), "s32": ("b32", 8)}


def twist(kind, j):
    """A pattern by which word j of a lane differs from the others. It keeps the numbers small."""
    return {"f16": j * 0x10001, "bf16": j * 0x10001, "tf32": j << 13, "f32": j << 13, "f64": j << 40}.get(kind, j * 0x1234567 & mask(32))


class Place:
    """A matrix in the memory of a warp: its address, its layout and its words."""

    def __init__(self, at, kind, rows, columns, layout):
        self.at, self.kind, self.rows, self.columns, self.layout = at, kind, rows, columns, layout
        self.stride = columns if layout == "row" else rows
        self.word = 64 if kind == "f64" else 32
        self.each = rows * columns * BITS[kind] // self.word // WARP
        self.bytes = rows * columns * BITS[kind] // 8

    def fill(self, even, odd):
        """PTX that writes the words of a lane. They come from the two operands in turn, and each word is a little different."""
        size = self.word // 8
        return " ".join(f"xor.b{self.word} %v{self.word}, {(even, odd)[j & 1]}, {twist(self.kind, j)}; "
                        f"st.SPACE.b{self.word} [%q{self.word}+{self.at + 32 * size * j}], %v{self.word};" for j in range(self.each))

    def matrix(self, even, odd):
        """The numbers of the matrix as rows, computed from the operands of a warp."""
        words = [(even, odd)[j & 1][lane] ^ twist(self.kind, j) for j in range(self.each) for lane in range(WARP)]
        per = self.word // BITS[self.kind]

        def one(i, j):
            n = i * self.stride + j if self.layout == "row" else j * self.stride + i
            return element(self.kind, words[n // per], n % per)
        return [[one(i, j) for j in range(self.columns)] for i in range(self.rows)]


def product_row(shape, kinds, layouts, name="", d_kind=None, end="", space="global", combine=None, where=None):
    kind_a, kind_b, kind_c = kinds
    d_kind = d_kind or kind_c
    m, n, k = (int(x) for x in shape[1:].replace("n", " ").replace("k", " ").split())
    a = Place(0, kind_a, m, k, layouts[0])
    b = Place(a.bytes, kind_b, k, n, layouts[1])
    c = Place(b.at + b.bytes, kind_c, m, n, layouts[2])
    d = Place(c.at + c.bytes, d_kind, m, n, layouts[3])
    assert d.at + d.bytes <= CELL * WARP
    small = kind_a in ("f64", "s4", "u4", "b1")
    signed_a = {"u8": "s8", "u4": "s4"}.get(kind_a, kind_a)
    ra, rb = (8, 8) if kind_a == "f16" else REGISTERS[shape, signed_a]
    in_ = "f64" if kind_a == "f64" else "b32"
    (register_c, rc), (register_d, rd) = ACCUMULATOR[kind_c], ACCUMULATOR[d_kind]
    rc, rd = (2 if small else rc), (2 if small else rd)
    fa, fb, fc, fd = (listed([f"{x}{i}" for i in range(count)]) for x, count in (("fa", ra), ("fb", rb), ("fc", rc), ("fd", rd)))
    generic = space == ""
    base = "shared" if space == "shared" else "global"
    begin = (f"{{.reg .{in_} %fa<{ra}>, %fb<{rb}>; .reg .{register_c} %fc<{rc}>; .reg .{register_d} %fd<{rd}>; .reg .b32 %v32; "
             f".reg .b64 %v64, %p, %q32, %q64; mul.wide.u32 %p, %lane, {CELL}; "
             + ("cvt.u64.u32 %q32, %sh; sub.u64 %p, %q32, %p; " if base == "shared" else "sub.u64 %p, %out, %p; ")
             + "mul.wide.u32 %q32, %lane, 4; add.u64 %q32, %q32, %p; mul.wide.u32 %q64, %lane, 8; add.u64 %q64, %q64, %p; ")
    fills = " ".join([a.fill("%a", "%b"), b.fill("%b", "%a"), c.fill("%c", "%e")]).replace("SPACE", base)
    dot = "" if generic else f".{base}"

    def load(letter, place, registers):
        return (f"wmma.load.{letter}.sync.aligned.{place.layout}.{shape}{dot}.{place.kind} {registers}, [%p+{place.at}], {place.stride}; ")
    loads = load("a", a, fa) + load("b", b, fb) + load("c", c, fc)
    store = f"wmma.store.d.sync.aligned.{d.layout}.{shape}{dot}.{d_kind} [%p+{d.at}], {fd}, {d.stride}; bar.warp.sync -1; "
    size = d.word // 8
    read = " ".join(f"ld.{base}.b{d.word} {'%' + RESULTS[j]}, [%q{d.word}+{d.at + 32 * size * j}];" for j in range(d.each))
    text = f"{begin}{fills} bar.warp.sync -1; {loads}{name} {fd}, {fa}, {fb}, {fc}; bar.warp.sync -1; {store}{read}}}"
    held_a, held_c, held_d = (f"b{p.word}" for p in (a, c, d))

    def reference(p, q, r, s):
        left, right, add = a.matrix(p, q), b.matrix(q, p), c.matrix(r, s)
        found = [[None] * n for _ in range(m)]
        for i, j in product(range(m), range(n)):
            terms = [combine(left[i][x], right[x][j]) if combine else left[i][x] * right[x][j] for x in range(k)]
            total = sum(terms) + add[i][j]
            found[i][j] = ((clamp(total, "s32") if end else total) if d_kind == "s32" else (total, sum(map(abs, terms)) + abs(add[i][j])))
        words = [None] * (d.each * WARP)
        per = d.word // BITS[d_kind]
        for i, j in product(range(m), range(n)):
            at = i * d.stride + j if d.layout == "row" else j * d.stride + i
            if per == 2:
                words[at // 2] = words[at // 2] or [[0, 0], [0, 0]]
                words[at // 2][0][at % 2], words[at // 2][1][at % 2] = found[i][j]
            else:
                words[at] = found[i][j]
        out = tuple(words[32 * j:32 * j + 32] for j in range(d.each))
        return out if len(out) > 1 else out[0]
    precise = near(2.0 ** -50 if d_kind == "f64" else 2.0 ** -20)
    return row(text, f"{held_a} {held_a} {held_c} {held_c}", " ".join([held_d] * d.each), by_warp(reference), warp=True,
               limits=lambda p, q, r, s: [tame(kind_a)(p), tame(kind_a)(q), tame(kind_c)(r), tame(kind_c)(s)],
               values=None if d_kind == "s32" else lambda got, want: precise(got, want, d_kind))


def products():
    for shape, (la, lb, lc) in product(("m16n16k16", "m32n8k16", "m8n32k16"), product(LAYOUTS, repeat=3)):
        for c, d in product(("f16", "f32"), repeat=2):
            space = ("global", "shared", "")[(la == "row") + (lc == d)]
            yield product_row(shape, ("f16", "f16", c), (la, lb, lc, lc), f"wmma.mma.sync.aligned.{la}.{lb}.{shape}.{d}.{c}", d, space=space)
        yield product_row(shape, ("bf16", "bf16", "f32"), (la, lb, lc, lc), f"wmma.mma.sync.aligned.{la}.{lb}.{shape}.f32.bf16.bf16.f32",
                          space="shared" if lc == "row" else "global")
        for kind, end in product(("s8", "u8"), ("", ".satfinite")):
            yield product_row(shape, (kind, kind, "s32"), (la, lb, lc, lc), f"wmma.mma.sync.aligned.{la}.{lb}.{shape}.s32.{kind}.{kind}.s32{end}",
                              end=end, space="shared" if end else "global")
    for la, lb, lc in product(LAYOUTS, repeat=3):
        for space in ("global", "shared", ""):
            yield product_row("m16n16k8", ("tf32", "tf32", "f32"), (la, lb, lc, lc), f"wmma.mma.sync.aligned.{la}.{lb}.m16n16k8.f32.tf32.tf32.f32",
                              space=space)
        for mode in ("", ".rn", ".rz", ".rm", ".rp"):
            yield product_row("m8n8k4", ("f64", "f64", "f64"), (la, lb, lc, lc), f"wmma.mma.sync.aligned.{la}.{lb}.m8n8k4{mode}.f64.f64.f64.f64",
                              space="shared" if mode else "global")
    for lc, kind, end in product(LAYOUTS, ("s4", "u4"), ("", ".satfinite")):
        yield product_row("m8n8k32", (kind, kind, "s32"), ("row", "col", lc, lc), f"wmma.mma.sync.aligned.row.col.m8n8k32.s32.{kind}.{kind}.s32{end}",
                          end=end, space="shared" if end else "global")
    for lc, op in product(LAYOUTS, ("xor", "and")):
        combine = (lambda x, y: x ^ y) if op == "xor" else (lambda x, y: x & y)
        yield product_row("m8n8k128", ("b1", "b1", "s32"), ("row", "col", lc, lc), f"wmma.mma.{op}.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32",
                          combine=combine)


FAMILIES = {"wmma": products}
