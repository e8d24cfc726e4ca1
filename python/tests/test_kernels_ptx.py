"""A sample of the table of PTX forms (`make test-kernels` tries all of them), and tests of the functions that its references use."""

import collections
import fractions
import pathlib
import random
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[1] / "suite" / "ptx"
sys.path.insert(0, str(FOLDER))
import bench  # noqa: E402
import floats  # noqa: E402
import mutate  # noqa: E402
import row  # noqa: E402
import table  # noqa: E402

# How many forms of each family are in the sample. Each family has another level of optimisation. ptxas refuses some forms for sm_87, so
# more forms are tried until enough of them were right.
SAMPLE, ENOUGH, LEVELS = 8, 3, ("O0", "O1", "O3")
REFUSED_AT_LOAD = ("textures", "surfaces")


@pytest.fixture(scope="module")
def machine():
    machine = bench.Machine()
    yield machine
    machine.close()


def right(verdicts):
    return collections.Counter(v.result for v in verdicts)["right"]


def sampled(machine, family):
    """Verdicts on forms from all parts of a family."""
    rows, verdicts = table.rows(family), []
    level = LEVELS[list(table.FAMILIES).index(family) % len(LEVELS)]
    step = max(1, len(rows) // SAMPLE)
    for first in range(step):
        verdicts += bench.judged(machine, rows[first::step], [level])
        if right(verdicts) >= ENOUGH:
            break
    return verdicts


@pytest.mark.parametrize("family", [f for f in table.FAMILIES if f not in REFUSED_AT_LOAD])
def test_forms(machine, family):
    verdicts = sampled(machine, family)
    wrong = [f"{v.row} ({v.shape}, {v.level}): {v.says}" for v in verdicts if v.result in ("wrong", "failed", "refused")]
    assert not wrong, "\n".join(wrong)
    assert right(verdicts) >= ENOUGH


# The code of these forms used to be an illegal instruction: UPLOP3 on signs, CCTLL, BMMA, HMMA.SP and IMMA.SP.
@pytest.mark.parametrize(("family", "form"), [
    ("integer", "add.sat.s32"), ("integer", "mad.hi.sat.s32"), ("address spaces", "prefetch.local.L1"), ("mma", "m16n8k256.row.col.s32.b1"),
    ("wmma", "wmma.mma.xor.popc"), ("mma.sp", "mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16"), ("mma.sp", "m16n8k16.row.col.f32.tf32"),
    ("mma.sp", "m16n8k64.row.col.satfinite.s32.s8.u8"), ("mma.sp", "m16n8k128.row.col.s32.u4.s4")])
def test_instructions_that_were_missing(machine, family, form):
    rows = [r for r in table.rows(family) if form in r.text][:2]
    verdicts = bench.judged(machine, rows, ["O3"])
    assert verdicts and all(v.result == "right" for v in verdicts), verdicts


# One bit of a word is flipped, as if a rule of the opcode's row were wrong. `make test-mutants` does this for every rule of every row.
@pytest.mark.parametrize(("family", "form", "base", "bit"), [
    ("f32 and f64", "add.rn.sat.f32", 0x021, 77), ("f32 and f64", "mul.rn.ftz.f32", 0x020, 80), ("f32 and f64", "fma.rz.f32", 0x023, 78),
    ("f32 and f64", "fma.rm.f64", 0x02b, 79), ("integer", "min.s32", 0x017, 73), ("integer", "mul.hi.s32", 0x027, 73),
    ("bit fields", "bfind.shiftamt.u32", 0x100, 74), ("cvt to integers", "cvt.rmi.s32.f32", 0x105, 79),
    ("dot products", "dp4a.s32.u32", 0x026, 73), ("shuffles", "shfl.sync.up.b32", 0x189, 58),
    ("mma", "m16n8k32.row.col.satfinite.s32.s8", 0x037, 82),
    ("mma.sp", "m16n8k32.row.col.f32.f16", 0x03c, 48), ("atom", "atom.global.min.u32", 0x1a8, 87)])
def test_a_wrong_rule_is_noticed(machine, family, form, base, bit):
    r = next(r for r in table.rows(family) if form in r.text)
    cases, cubin, _ = bench.accepted([r], "O3")
    found = [(name, at, word) for name, at, word in mutate.words(cubin) if word & 0x1ff == base and name == "k0"]
    assert found, "the kernel has no such instruction"
    case = mutate.Case(r, cases[0][1], cases[0][2], cubin, "k0", [at for _, at, _ in found])
    assert not mutate.is_noticed(machine, case, found[0][2])
    assert mutate.is_noticed(machine, case, found[0][2] ^ 1 << bit)
    assert mutate.is_noticed(machine, case, mutate.NOP)


@pytest.mark.parametrize("family", REFUSED_AT_LOAD)
def test_what_the_library_lacks_is_refused_when_it_is_loaded(machine, family):
    rows = table.rows(family)
    for r in rows[::max(1, len(rows) // SAMPLE)]:
        for v in bench.judged(machine, [r], ["O3"]):
            assert v.result in ("refused", "not for sm_87"), v
            if v.result == "refused":
                assert "k0" in v.says and "no texture" in v.says, v.says


@pytest.mark.parametrize("name", floats.FORMATS)
def test_references_round_as_fractions_do(name):
    f, rng = floats.FORMATS[name], random.Random(name)
    for _ in range(400):
        x, y, z = (row.one_float(f, rng) for _ in range(3))
        if any(floats.is_nan(f, v) or floats.is_infinite(f, v) for v in (x, y, z)):
            continue
        a, b, c = (fractions.Fraction(m) * fractions.Fraction(2) ** e for m, e in (floats.exact(f, v) for v in (x, y, z)))
        for mode in ("rn", "rz", "rm", "rp"):
            check(f, floats.fma(f, x, y, z, mode), a * b + c, mode)
            if b:
                check(f, floats.div(f, x, y, mode), a / b, mode)


def check(f, bits, exact, mode):
    """A result is right if no neighbour is nearer to the exact value, or if it is the last number on its side."""
    m, e = floats.exact(f, f.infinity - 1)
    if abs(exact) > fractions.Fraction(m) * fractions.Fraction(2) ** e:
        assert bits & f.sign - 1 >= f.infinity - 1
        return
    m, e = floats.exact(f, bits)
    got, step = fractions.Fraction(m) * fractions.Fraction(2) ** e, fractions.Fraction(2) ** e
    error = got - exact
    if mode == "rn":
        assert abs(error) <= step / 2
    else:
        toward = {"rz": -1 if exact > 0 else 1, "rm": -1, "rp": 1}[mode]
        assert 0 <= error * toward < step or got == exact
