"""Published figures of boards, and the table in which the model stands beside them."""

import importlib.util
import pathlib
import re

import pytest

from tegrarm import say
from tegrarm.validate import published

ROOT = pathlib.Path(__file__).parents[2]
FIELDS = {"name", "module", "board", "clock_mhz", "l4t", "date", "value", "unit", "benchmark", "use", "source"}


@pytest.fixture(scope="module")
def suite():
    """python/suite/model.py."""
    spec = importlib.util.spec_from_file_location("suite_model", ROOT / "python/suite/model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def printed():
    """The cells of the book's table, by the name of the row."""
    page = (ROOT / "docs/simulator/model.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")]
    return {row[0]: row for row in rows if len(row) in (4, 7)}


@pytest.mark.parametrize("row", published.figures(), ids=lambda row: row["name"])
def test_a_row_says_where_it_is_from_and_what_it_is_for(row, suite, printed):
    assert FIELDS <= row.keys() and row["value"] > 0 and row["source"] and re.match(r"20\d\d", row["date"])
    assert row["benchmark"] in {*suite.BENCHMARKS, "cudaTensorCoreGemm", None}
    if row["use"] == "sets":
        sources = "".join(path.read_text() for path in (ROOT / "crates/sm87-model/src").glob("*.rs"))
        assert f"const {row['constant']}: u64" in sources
    else:
        assert row["use"] == "judges" and row["benchmark"] and row["clock_mhz"] or row["use"] == "beside" and row["why"]
    assert printed[row["name"]][2] == suite.shown(row["value"], row["unit"])
    # Whoever chooses a parameter for a figure cannot be judged by it.
    parameters = row.get("parameters", {})
    assert parameters.keys() <= set(say.SETTINGS) and (not parameters or row["use"] == "beside")
    assert all(f"`{name}={value}`" in printed[row["name"]][5] for name, value in parameters.items())


def test_the_mean_error_is_that_of_the_table(suite, printed):
    judged = [row for row in published.figures() if row["use"] == "judges"]
    errors = [abs(float(printed[row["name"]][4].rstrip(" %"))) for row in judged]
    page = (ROOT / "docs/simulator/model.md").read_text()
    assert f"of the {len(judged)} rows that judge is {sum(errors) / len(errors):.1f} %" in page
    assert sum(errors) / len(errors) <= suite.GOAL


def test_the_model_still_gives_the_figures_of_the_table(suite, printed):
    row = next(row for row in published.figures() if row["benchmark"] == "read" and row["use"] == "judges")
    assert suite.shown(suite.modelled(row, None), row["unit"]) == printed[row["name"]][3]


def test_the_second_table_has_every_other_benchmark_and_none_passes_its_limit(suite, printed):
    for name in suite.unpublished(published.figures()):
        cells = printed[suite.BENCHMARKS[name].name]
        assert suite.LIMITS[suite.BENCHMARKS[name].limit][1] in cells[2]
        assert 0 < int(cells[3].removesuffix(" %")) <= 100, cells


def test_the_limits_are_the_constants_of_the_model(suite):
    folder = ROOT / "crates/sm87-model/src"
    text = "".join((folder / name).read_text() for name in ("table.rs", "machine.rs"))
    number = {name: int(value) for name, value in re.findall(r"const (\w+): u(?:32|64) = (\d+);", text)}
    loads = re.findall(r"\[(\d+), (\d+)\]", re.search(r"const GLOBAL_LOAD: .*", text)[0])
    word, wide = (int(loads[row][1]) for row in (3, 4))  # of 32 and of 64 bits, at an address in regular registers
    more = wide - word
    known = {
        "dram": number["DRAM_ALL"] / 1000 * suite.DRAM, "dram_reads": number["DRAM_READS"] / 1000 * suite.DRAM,
        "l2": number["SLICE"] * suite.SLICES * suite.HZ, "halves": 2 * number["HALVES"] * suite.SMS * suite.HZ,
        "bytes": 2 * number["BYTES"] * suite.SMS * suite.HZ, "l1_latency": wide / suite.HZ,
        "l2_latency": (number["L2_HIT"] + more) / suite.HZ, "dram_latency": (number["DRAM"] + more) / suite.HZ,
    }
    assert {name: suite.LIMITS[name][0] for name in known} == pytest.approx(known)


@pytest.mark.parametrize("name", ["triad_again", "fma1", "chase_l1", "chase_l2", "chase_dram", "launch", "tinygrad_half"])
def test_the_model_still_gives_the_figures_of_the_second_table(name, suite, printed):
    benchmark = suite.BENCHMARKS[name]
    assert suite.shown(suite.figure(name, "agx-orin"), benchmark.unit) == printed[benchmark.name][1]


def test_the_parameters_change_what_they_are_for(suite):
    """The host's time is added to a launch, and a clock that begins low makes products slower, but not what only waits for the DRAM."""
    quick, slow = (suite.figure("launch", "agx-orin", {"TEGRARM_SIM_HOST_LAUNCH_US": str(us)}) for us in (0, 100))
    assert slow - quick == pytest.approx(100e-6, abs=1e-7)
    low = {"TEGRARM_SIM_CLOCK_RAMP_MS": "4294967295"}
    assert suite.figure("fma32", "agx-orin", low) / suite.figure("fma32", "agx-orin") == pytest.approx(306 / 1300, rel=0.01)


def test_a_kernel_that_computes_something_else_has_no_figure(suite):
    with pytest.raises(SystemExit, match="triad computes something else than numpy"):
        suite.checked(1.0, "triad", is_right=False)
