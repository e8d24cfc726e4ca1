"""`mma`, `mma.sp`, `wmma`, `ldmatrix` and `movmatrix`: one matrix product for each warp."""
# ruff: noqa: D103 - each function yields the rows that its name says.
from itertools import product

import floats
from floats import BF16, F16, F32, F64
from integers import clamp, mask, signed
from kernel import OPERANDS, RESULTS
from row import row
from warps import by_warp

WARP = 32


# --- elements -----------------------------------------------------------------------------------------------------

def tame(kind):
    """The bits of an operand's register, changed so that products do not overflow."""
    def single(x):
        return x & 0x807fffff | 124 + (x >> 24) % 6 << 23

    def halves(f):
        def both(x):
            found = 0
            for k in (0, 1):
                h = x >> 16 * k & 0xffff
                found |= (h & f.sign | h & (1 << f.fraction) - 1 | f.bias - 3 + (h >> 5) % 6 << f.fraction) << 16 * k
            return found
        return both
    return {"f16": halves(F16), "bf16": halves(BF16), "tf32": lambda x: single(x) & ~0x1fff, "f32": single,
            "f64": lambda x: x & 0x800fffffffffffff | 1020 + (x >> 55) % 6 << 52}.get(kind, lambda x: x)


BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "f32": 32, "s32": 32}


def element(kind, word, k):
    """An element of a register as a number."""
    bits = BITS[kind]
    x = word >> bits * k & mask(bits)
    if kind[0] == "s":
        return signed(x, bits)
    if kind[0] in "ub":
        return x if kind[0] == "u" or bits == 1 else floats.number(BF16, x)
    return floats.number({"f16": F16, "tf32": F32, "f32": F32, "f64": F64}[kind], x)


def held(kind):
    return "f64" if kind == "f64" else "b32"


# --- fragments ----------------------------------------------------------------------------------------------------

def matrix_a(kind, rows, depth, registers):
    """The rows of A, from the registers of a warp: registers[r][lane]."""
    n = max(1, 32 // BITS[kind])
    a = [[0] * depth for _ in range(rows)]
    for r, column in enumerate(registers):
        for lane in range(WARP):
            for j in range(n):
                a[lane // 4 + 8 * (r & 1) * (rows == 16)][lane % 4 * n + j + 4 * n * (r >> 1 if rows == 16 else r)] = element(kind, column[lane], j)
    return a


def matrix_b(kind, depth, registers):
    n = max(1, 32 // BITS[kind])
    b = [[0] * 8 for _ in range(depth)]
    for r, column in enumerate(registers):
        for lane in range(WARP):
            for j in range(n):
                b[lane % 4 * n + j + 4 * n * r][lane // 4] = element(kind, column[lane], j)
    return b


def accumulator(kind, rows, registers):
    c = [[0] * 8 for _ in range(rows)]
    for r, column in enumerate(registers):
        for lane in range(WARP):
            if kind == "f16":
                for j in (0, 1):
                    c[lane // 4 + 8 * r][lane % 4 * 2 + j] = element(kind, column[lane], j)
            else:
                c[lane // 4 + 8 * (r >> 1)][lane % 4 * 2 + (r & 1)] = element(kind, column[lane], 0)
    return c


def counts(rows, depth, kind_a, kind_c):
    """The numbers of registers of A, B and C."""
    b = max(1, depth * BITS[kind_a] // max(32, BITS[kind_a]) // 4)
    a = b * rows // 8
    return a, b, rows // 8 if kind_c == "f16" else rows // 4


def near(size):
    """Checks a sum against (sum, sum of magnitudes). It may differ by the rounding error of each term."""
    def check(got, want, kind):
        value, magnitude = want
        if kind == "f64":
            return abs(floats.number(F64, got) - value) <= size * magnitude
        if kind == "f16":
            return all(abs(floats.number(F16, got >> 16 * k & 0xffff) - value[k]) <= 2.0 ** -9 * magnitude[k] + 2.0 ** -24 for k in (0, 1))
        return abs(floats.number(F32, got) - value) <= size * magnitude
    return check


def result(kind, end, c, products, row_, column):
    """The expected element of D. An integer is exact; a float is (sum, sum of magnitudes)."""
    if kind == "s32":
        total = sum(products) + c
        return clamp(total, "s32") if end == "satfinite" else total
    return sum(products) + c, sum(map(abs, products)) + abs(c)


def spread(kind, rows, d):
    """D in registers: a list for each register, with one item for each lane."""
    if kind == "f16":
        return [[tuple([d[lane // 4 + 8 * r][lane % 4 * 2 + j][k] for j in (0, 1)] for k in (0, 1)) for lane in range(WARP)] for r in range(rows // 8)]
    return [[d[lane // 4 + 8 * (r >> 1)][lane % 4 * 2 + (r & 1)] for lane in range(WARP)] for r in range(rows // 4)]




def listed(names):
    return "{" + ", ".join("%" + n for n in names) + "}"


def product_row(stem, rows, depth, kinds, end="", combine=None, bit=None, sparse=None, plain=False):
    """A row of mma. `combine` multiplies two elements. `sparse` has the number of registers of B and says what the metadata mean."""
    kind_a, kind_b, kind_c = kinds
    a, b, c = counts(rows, depth, kind_a, kind_c)
    chooser = None
    if sparse:
        b, chooser = 2 * b, sparse
    takes = [held(kind_a)] * a + [held(kind_b)] * b + [held(kind_c)] * c + ["b32"] * (sparse is not None)
    names = OPERANDS[:len(takes)]
    gives = [held(kind_c)] * c
    groups = [names[:a], names[a:a + b], names[a + b:a + b + c]]
    operands = ", ".join([listed(RESULTS[:c]), *map(listed, groups)]) + (f", %{names[-1]}, {sparse.selector}" if sparse else "")

    def reference(*columns):
        left = matrix_a(kind_a, rows, depth, columns[:a])
        right = matrix_b(kind_b, depth * (2 if sparse else 1), columns[a:a + b])
        add = accumulator(kind_c, rows, columns[a + b:a + b + c])
        d = [[None] * 8 for _ in range(rows)]
        for i, j in product(range(rows), range(8)):
            at = chooser(columns[-1], i, depth) if chooser else range(depth)
            terms = [combine(left[i][k], right[at[k]][j]) if combine else left[i][k] * right[at[k]][j] for k in range(depth)]
            d[i][j] = result(kind_c, end, add[i][j], terms, i, j)
        found = tuple(spread(kind_c, rows, d))
        return found if len(found) > 1 else found[0]

    def limits(*o):
        tamed = [tame(kind)(x) for kind, x in zip([kind_a] * a + [kind_b] * b + [kind_c] * c, o, strict=False)]
        return tamed + [sparse.metadata(o[-1])] if sparse else tamed
    precise = near(2.0 ** -50 if kind_c == "f64" else 2.0 ** -21)
    check = None if kind_c == "s32" else lambda got, want: precise(got, want, kind_c)
    return row(f"{stem} {operands}", " ".join(takes), " ".join(gives), None if plain else by_warp(reference), warp=True, limits=limits, values=check)


def dense():
    for kind, depth in (("f16", 8), ("f16", 16), ("bf16", 8), ("bf16", 16), ("tf32", 4), ("tf32", 8)):
        for c in ("f32", "f16") if kind == "f16" else ("f32",):
            stem = f"mma.sync.aligned.m16n8k{depth}.row.col.{c}.{kind}.{kind}.{c}"
            yield product_row(stem, 16, depth, (kind, kind, c))
    yield product_row("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 8, 4, ("f64", "f64", "f64"))
    for mode in ("rn", "rz", "rm", "rp"):
        yield product_row(f"mma.sync.aligned.m8n8k4.row.col.{mode}.f64.f64.f64.f64", 8, 4, ("f64", "f64", "f64"))
    for depth in (4, 8, 16):
        yield product_row(f"mma.sync.aligned.m16n8k{depth}.row.col.f64.f64.f64.f64", 16, depth, ("f64", "f64", "f64"), plain=True)
    for bits, (rows, depth) in [(8, s) for s in ((8, 16), (16, 16), (16, 32))] + [(4, s) for s in ((8, 32), (16, 32), (16, 64))]:
        for p, q, end in product("su", "su", ("", "satfinite")):
            stem = f"mma.sync.aligned.m{rows}n8k{depth}.row.col.{end + '.' if end else ''}s32.{p}{bits}.{q}{bits}.s32"
            yield product_row(stem, rows, depth, (f"{p}{bits}", f"{q}{bits}", "s32"), end)
    for (rows, depth), op in product(((8, 128), (16, 128), (16, 256)), ("xor", "and")):
        combine = (lambda x, y: x ^ y) if op == "xor" else (lambda x, y: x & y)
        yield product_row(f"mma.sync.aligned.m{rows}n8k{depth}.row.col.s32.b1.b1.s32.{op}.popc", rows, depth, ("b1", "b1", "s32"), combine=combine)
    for kind in ("e4m3", "e5m2"):
        yield product_row(f"mma.sync.aligned.m16n8k32.row.col.f32.{kind}.{kind}.f32", 16, 16, ("f16", "f16", "f32"), plain=True)


# --- sparse -------------------------------------------------------------------------------------------------------

class Chosen:
    """Says which elements of a row of A are stored.

    A field of four bits of the metadata describes two stored elements (one for tf32, two pairs for elements of four bits). A row has `fields`
    of them. The threads of a quad hold the metadata: for elements of 16 bits or more a word has fields of two rows, otherwise of one.
    """

    def __init__(self, kind, fields, selector):
        self.kind, self.fields, self.selector = kind, fields, selector

    def metadata(self, word):
        """Changes the metadata so that every field is valid."""
        valid = (0b0100, 0b1110) if self.kind == "tf32" else (0b0100, 0b1000, 0b1100, 0b1001, 0b1101, 0b1110)
        return sum(valid[(word >> 4 * k & 15) % len(valid)] << 4 * k for k in range(8))

    def __call__(self, words, i, depth):
        """The columns of the stored elements of row i."""
        g, low = i % 8, i < 8
        fields = []
        for n in range(self.fields):
            if BITS[self.kind] >= 16:  # a word has 16 bits for row g and 16 bits for row g + 8
                per, lane = 4, self.selector if self.fields == 4 else 2 * self.selector + n // 4
                fields.append(words[4 * g + lane] >> 16 * (not low) + 4 * (n % per) & 15)
            else:  # a word has 32 bits for one row
                lane = (2 * self.selector if self.fields == 8 else 2 * (n // 8)) + (not low)
                fields.append(words[4 * g + lane] >> 4 * (n % 8) & 15)
        found = []
        for n, field in enumerate(fields):
            if self.kind == "tf32":
                found.append(2 * n + (field == 0b1110))
            elif BITS[self.kind] == 4:
                found += [8 * n + 2 * (field >> s & 3) + j for s in (0, 2) for j in (0, 1)]
            else:
                found += [4 * n + (field >> s & 3) for s in (0, 2)]
        return found


def sparse():
    for name in ("mma.sp", "mma.sp::ordered_metadata"):
        for kind, depth, fields in (("f16", 16, 4), ("f16", 32, 8), ("bf16", 16, 4), ("bf16", 32, 8), ("tf32", 8, 4), ("tf32", 16, 8)):
            for c, selector in product(("f32", "f16") if kind == "f16" else ("f32",), range(4 if fields == 4 else 2)):
                stem = f"{name}.sync.aligned.m16n8k{depth}.row.col.{c}.{kind}.{kind}.{c}"
                yield product_row(stem, 16, depth // 2, (kind, kind, c), sparse=Chosen(kind, fields, selector))
        for bits, depth, fields in ((8, 32, 8), (8, 64, 16), (4, 64, 8), (4, 128, 16)):
            for p, q, end, selector in product("su", "su", ("", "satfinite"), range(2 if fields == 8 else 1)):
                stem = f"{name}.sync.aligned.m16n8k{depth}.row.col.{end + '.' if end else ''}s32.{p}{bits}.{q}{bits}.s32"
                yield product_row(stem, 16, depth // 2, (f"{p}{bits}", f"{q}{bits}", "s32"), end, sparse=Chosen(f"{p}{bits}", fields, selector))


# --- moves --------------------------------------------------------------------------------------------------------

def moves():
    def loaded(n, trans):
        def reference(a, b):
            # a and b of lane l are a row of sixteen bytes. Matrix m consists of the rows of lanes 8m to 8m + 7.
            rows = [[(x | y << 64) >> 16 * k & 0xffff for k in range(8)] for x, y in zip(a, b, strict=True)]
            found = []
            for m in range(n):
                matrix = rows[8 * m:8 * m + 8]
                if trans:
                    matrix = [list(column) for column in zip(*matrix, strict=True)]
                found.append([matrix[lane // 4][lane % 4 * 2] | matrix[lane // 4][lane % 4 * 2 + 1] << 16 for lane in range(WARP)])
            return tuple(found) if n > 1 else found[0]
        return by_warp(reference)
    for n, trans, space in product((1, 2, 4), ("", ".trans"), (".shared", ".shared::cta", "")):
        at = "%sh" if space else "%g"
        make = "" if space else ".reg .b64 %g; cvt.u64.u32 %g, %sh; cvta.shared.u64 %g, %g; "
        yield row(f"{{{make}st.shared.b64 [%sh], %a; st.shared.b64 [%sh+8], %b; bar.warp.sync -1; "
                  f"ldmatrix.sync.aligned.m8n8.x{n}{trans}{space}.b16 {listed(RESULTS[:n])}, [{at}]; bar.warp.sync -1;}}",
                  "b64 b64", " ".join(["b32"] * n), loaded(n, trans), warp=True)
    for n in (1, 2, 4):
        yield row(f"stmatrix.sync.aligned.m8n8.x{n}.shared.b16 [%sh], {listed('abce'[:n])}", " ".join(["b32"] * n), "b32", None)

    def transposed(a):
        whole = [[a[4 * i + j // 2] >> 16 * (j % 2) & 0xffff for j in range(8)] for i in range(8)]
        return [whole[lane % 4 * 2][lane // 4] | whole[lane % 4 * 2 + 1][lane // 4] << 16 for lane in range(WARP)]
    yield row("movmatrix.sync.aligned.m8n8.trans.b16 %x, %a", "b32", "b32", by_warp(transposed), warp=True)
    yield row("wgmma.fence.sync.aligned", "", "b32", None)


FAMILIES = {"mma": dense, "mma.sp": sparse, "ldmatrix and movmatrix": moves}
