"""Tests the verdicts of the runner of tinygrad's own tests (`make test-tinygrad`). The runner itself takes too long to be run here."""

import importlib.util
import pathlib
import sys

import pytest

PATH = pathlib.Path(__file__).parents[1] / "suite" / "run.py"


@pytest.fixture(scope="module")
def suite():
    spec = importlib.util.spec_from_file_location("tinygrad_suite", PATH)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look up the module of their class
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def verdict(suite, here, cpu, known=()):
    runs = [suite.Run(outcomes, {test: "a reason" for test in outcomes}, 1.0) for outcomes in (here, cpu)]
    return suite.judge("test_x", *runs, {test: "a cause" for test in known})


@pytest.mark.parametrize(("here", "cpu", "known", "complaint"), [
    ("passed", "passed", (), None),
    ("skipped", "passed", (), None),
    ("failed", "failed", (), None),
    ("failed", "skipped", (), None),
    ("failed", "passed", (), "a reason"),
    ("failed", "passed", ("T.test",), None),
    ("passed", "passed", ("T.test",), "take it off the list"),
])
def test_verdict(suite, here, cpu, known, complaint):
    wrong = verdict(suite, {"T.test": here}, {"T.test": cpu}, known)
    assert not wrong if complaint is None else len(wrong) == 1 and complaint in wrong[0]


def test_a_test_that_only_ran_on_cpu_is_wrong(suite):
    assert verdict(suite, {}, {"T.test": "passed"}) == ["T.test passes on CPU and did not run here"]


def test_a_failed_subtest_fails_its_test(suite, tmp_path):
    report = tmp_path / "report.xml"
    report.write_text('<testsuites><testsuite><testcase classname="test.T" name="a"/><testcase classname="test.T" name="a">'
                      '<failure message="E no"/></testcase><testcase classname="T" name="b"><skipped/></testcase></testsuite></testsuites>')
    result = suite.read_report(report, 2.0)
    assert result.outcomes == {"T.a": "failed", "T.b": "skipped"}
    assert result.reasons == {"T.a": "E no"}


def test_the_list_of_known_failures_is_well_formed(suite):
    lines = (PATH.parent / "known_failures.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    which = [prefix + compiler for prefix in ("", "tegra-") for compiler in (*suite.COMPILERS, "all")]
    which += [f"cuda-{compiler}" for compiler in suite.CUDA_COMPILERS]
    assert all(len(row) == 3 and row[0] in which and row[1] and row[2] for row in rows)
    assert len({tuple(row[:2]) for row in rows}) == len(rows)


def test_names_are_those_of_pytests_command_line(suite):
    assert suite.node("test_ops.TestOps.test_add") == "test/test_ops.py::TestOps::test_add"
    assert suite.node("test_tiny.test_add[1.5-x::y]") == "test/test_tiny.py::test_add[1.5-x::y]"


def test_the_sample_runs_on_cpu_what_failed(suite, tmp_path, monkeypatch, capsys):
    asked = []

    def run(name, device, compiler, args, only=None):
        asked.append((device, only))
        if device == "CPU":
            return suite.Run({test: "passed" for test in only}, {test: "" for test in only}, 1.0)
        return suite.Run({"test_x.T.good": "passed", "test_x.T.bad": "failed"}, {"test_x.T.bad": "a reason"}, 1.0)

    monkeypatch.setattr(suite, "run", run)
    monkeypatch.setattr(suite, "sample", lambda args: {"nvrtc": ["test_x"]})
    monkeypatch.setattr(suite.shutil, "which", lambda name: name)
    monkeypatch.setattr(sys, "argv", ["run.py", "--cache", str(tmp_path), "--sample"])
    assert suite.main() == 1
    assert asked == [("GPU", None), ("CPU", ["test_x.T.bad"])]
    assert "test_x.T.bad: a reason" in capsys.readouterr().out
