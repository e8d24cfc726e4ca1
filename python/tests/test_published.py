"""Published figures of boards, and the table in which the model stands beside them."""

import importlib.util
import pathlib
import re

import pytest

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
    return {row[0]: row for row in rows if len(row) == 7}


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


def test_the_mean_error_is_that_of_the_table(suite, printed):
    judged = [row for row in published.figures() if row["use"] == "judges"]
    errors = [abs(float(printed[row["name"]][4].rstrip(" %"))) for row in judged]
    page = (ROOT / "docs/simulator/model.md").read_text()
    assert f"of the {len(judged)} rows that judge is {sum(errors) / len(errors):.1f} %" in page
    assert sum(errors) / len(errors) <= suite.GOAL


def test_the_model_still_gives_the_figures_of_the_table(suite, printed):
    row = next(row for row in published.figures() if row["benchmark"] == "read" and row["use"] == "judges")
    assert suite.shown(suite.modelled(row, None), row["unit"]) == printed[row["name"]][3]
