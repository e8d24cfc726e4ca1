"""Published figures of boards, and the table in which the model stands beside them."""

import importlib.util
import pathlib
import re
import sys

import pytest

from tegrarm import say
from tegrarm.validate import published

ROOT = pathlib.Path(__file__).parents[2]
FOLDER = ROOT / "python/suite/model"
FIELDS = {"name", "module", "mode", "board", "clock_mhz", "l4t", "date", "value", "unit", "benchmark", "use", "source"}
MORE = {"note", "range", "constant", "why", "parameters", "validate", "work"}
UNITS = {"B/s", "op/s", "s", "cycles", "1/cycle", "times", "part"}
SOURCES = "".join(path.read_text() for path in (ROOT / "crates/sm87-model/src").glob("*.rs"))


@pytest.fixture(scope="module")
def suite():
    """python/suite/model."""
    sys.path.insert(0, str(FOLDER))
    spec = importlib.util.spec_from_file_location("suite_model", FOLDER / "__main__.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path.remove(str(FOLDER))
    return module


@pytest.fixture(scope="module")
def printed():
    """The cells of the book's tables, by the name of the row."""
    page = (ROOT / "docs/simulator/model.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")]
    return {row[0]: row for row in rows if len(row) in (4, 5)}


@pytest.mark.parametrize("row", published.figures(), ids=lambda row: row["name"])
def test_a_row_says_where_it_is_from_and_what_it_is_for(row, suite, printed):
    assert FIELDS <= row.keys() <= FIELDS | MORE and row["value"] > 0 and row["source"]
    assert re.match(r"20\d\d|not stated$", row["date"]) and row["unit"] in UNITS and (row["module"], row["mode"]) in suite.CLOCKS
    assert row["benchmark"] in {*suite.BENCHMARKS, suite.SAMPLE, None}
    if row["benchmark"] in suite.BENCHMARKS:
        assert suite.BENCHMARKS[row["benchmark"]].unit == row["unit"]
    assert row["use"] == "sets" or row["use"] == "judges" and row["benchmark"] and row["clock_mhz"] or row["use"] == "beside" and row["why"]
    assert ("constant" in row) == (row["use"] == "sets") and ("why" in row) == (row["use"] == "beside")
    assert printed[row["name"]][1] == suite.shown(row["value"], row["unit"])
    # Whoever chooses a parameter for a figure cannot be judged by it.
    parameters = row.get("parameters", {})
    assert parameters.keys() <= set(say.SETTINGS) and (not parameters or row["use"] == "beside")
    assert all(f"`{name}={value}`" in printed[row["name"]][4] for name, value in parameters.items())


def test_names_are_names():
    names = [row["name"] for row in published.figures()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("name", sorted({row["constant"] for row in published.figures() if row["use"] == "sets"}))
def test_a_constant_that_a_row_sets_is_one_of_the_model(name):
    assert re.search(rf"{name}\b" if "::" in name else rf"\b(const|static) {name}\b", SOURCES)


def test_the_mean_error_is_that_of_the_table(suite, printed):
    judged = [row for row in published.figures() if row["use"] == "judges"]
    errors = [abs(float(printed[row["name"]][3].rstrip(" %"))) for row in judged]
    page = (ROOT / "docs/simulator/model.md").read_text()
    said = re.search(rf"of the {len(judged)} rows that judge is ([\d.]+) %", page)
    assert said and float(said[1]) == pytest.approx(sum(errors) / len(errors), abs=0.1)
    assert float(said[1]) <= suite.GOAL


def test_pairs_of_programs_are_ranked_by_their_figures(suite):
    common = {"use": "judges", "source": "somebody, a file", "board": "a board", "mode": "MAXN", "work": "a sum"}
    found = [({**common, "value": 1.0}, 1.0), ({**common, "value": 2.0}, 3.0), ({**common, "value": 3.0}, 2.0),
             # It is as fast as the first one on the board, does something else, or judges nobody.
             ({**common, "value": 1.04}, 0.5), ({**common, "value": 9.0, "work": "a product"}, 1.0),
             ({**common, "value": 9.0, "use": "sets"}, 1.0)]
    assert suite.ranked(found[:3]) == (2, 3)
    assert suite.ranked(found) == (2 + 2, 3 + 2)


def test_the_page_says_how_many_pairs_are_in_order(suite, printed):
    def number(text):
        digits, unit = re.match(r"([\d.]+) ?(\S*)", text).groups()
        return float(digits) * {"ms": 1e3, "T/s": 1e3}.get(unit, 1.0)

    found = [(row, number(printed[row["name"]][2]) if row["use"] == "judges" else None) for row in published.figures()]
    page = (ROOT / "docs/simulator/model.md").read_text()
    said = re.search(r"Of (\d+) pairs of programs .*, (\d+) are in the same order\.", page)
    alike, pairs = suite.ranked(found)
    assert said and int(said[1]) == pairs and abs(int(said[2]) - alike) <= 1


@pytest.mark.parametrize("name", ["FP16 product, a tile for each warp, 512, 15W", "matrix instructions, TF32"])
def test_the_model_still_gives_the_figures_of_the_table(name, suite, printed):
    row = next(row for row in published.figures() if row["name"] == name)
    assert suite.shown(suite.modelled(row, None), row["unit"]) == printed[name][2]


def test_the_second_table_has_every_other_benchmark_and_none_passes_its_limit(suite, printed):
    for name in suite.unpublished(published.figures()):
        benchmark = suite.BENCHMARKS[name]
        limit, what = suite.LIMITS[benchmark.limit]
        cells = printed[benchmark.name]
        assert cells[2] == f"{suite.shown(limit, benchmark.unit)} ({what})"
        assert 0 < int(cells[3].removesuffix(" %")) <= 100, cells


@pytest.mark.parametrize("name", ["triad_again", "fma1", "launch", "tinygrad_half"])
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
        suite.kernels.checked(1.0, "triad", is_right=False)
