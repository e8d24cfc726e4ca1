"""Runs the tests of numba-cuda, as they are in its wheel, on the CUDA library, and prints a table (`make test-cuda`).

Each module of tests runs in a process of its own. What fails is listed with its cause in `known_numba.tsv`: a row is a part of a name, a
kind (`refused` for what docs/cuda.md refuses, `failed` for what is missing here, `theirs` for what no driver could mend, `time` for what a
busy computer fails) and the cause. A failure without a row fails the run, and so does a row that nothing needs, but for those of time. A
module that has such a failure runs a second time when all others have ended, because many tests stop a program after 30 seconds.

usage: numbas.py [-n WORKERS] [MODULE...]     numbas.py --one MODULE prints the outcomes of one module as JSON
"""

import argparse
import collections
import concurrent.futures
import importlib.util
import json
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TESTS = "numba.cuda.tests"
# A module that cannot be imported is a failure: test_bfloat16 imports ml_dtypes, for example.
FOLDERS = ("cudadrv", "cudapy", "doc_examples", "nrt", "core", "nocuda")
SAMPLE = ("cudadrv.test_cuda_memory", "cudadrv.test_events", "cudadrv.test_managed_alloc", "cudapy.test_sync", "cudapy.test_exception")
LIMIT_S = 900
KINDS = ("refused", "failed", "theirs", "time")


class Outcomes(unittest.TextTestResult):
    """Keeps how each test ended."""

    def __init__(self, *arguments, **more):
        super().__init__(*arguments, **more)
        self.outcomes: dict[str, tuple[str, str]] = {}

    def keep(self, test, outcome: str, why: str = "") -> None:
        """Keeps one outcome; a failure of a part of a test is its outcome."""
        if outcome == "passed" or self.outcomes.get(test.id(), ("", ""))[0] != "failed":
            self.outcomes.setdefault(test.id(), (outcome, why))
            if outcome == "failed":
                self.outcomes[test.id()] = (outcome, why)

    def addSuccess(self, test):
        """It passed."""
        self.keep(test, "passed")

    def addSkip(self, test, reason):
        """It was left out."""
        self.keep(test, "skipped", reason)

    def addExpectedFailure(self, test, err):
        """It failed as its authors expect."""
        self.keep(test, "passed")

    def addUnexpectedSuccess(self, test):
        """It passed, and its authors expect that it fails."""
        self.keep(test, "failed", "it was expected to fail")

    def addFailure(self, test, err):
        """It failed, or an exception ended it."""
        self.keep(test, "failed", str(err[1]))

    addError = addFailure

    def addSubTest(self, test, subtest, err):
        """A part of it ended."""
        if err is not None:
            self.keep(test, "failed", str(err[1]))


def one(module: str) -> None:
    """Runs one module in this process."""
    import numba.cuda.testing

    # Its own pytest sets this from an option.
    numba.cuda.testing.CUDATestCase._dump_failed_filechecks = False
    suite = unittest.defaultTestLoader.loadTestsFromName(f"{TESTS}.{module}")
    with open(os.devnull, "w") as nowhere:
        result = unittest.TextTestRunner(nowhere, resultclass=Outcomes).run(suite)
    print("\n" + json.dumps(result.outcomes))


def told(module: str) -> dict[str, tuple[str, str]]:
    """Runs one module, and writes a line about it, so that whoever waits sees how far it is."""
    outcomes = run(module)
    counts = collections.Counter(outcome for outcome, _ in outcomes.values())
    print(f"{module}: {', '.join(f'{count} {outcome}' for outcome, count in sorted(counts.items()))}", file=sys.stderr, flush=True)
    for test, (outcome, why) in outcomes.items():
        if outcome == "failed":
            print(f"    {test.rpartition('.')[2]}: {' '.join(why.split())[:160]}", file=sys.stderr, flush=True)
    return outcomes


def run(module: str) -> dict[str, tuple[str, str]]:
    """The outcomes of one module, which runs in a process of its own."""
    try:
        done = subprocess.run([sys.executable, __file__, "--one", module], capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return {f"{TESTS}.{module}": ("failed", f"it did not end within {LIMIT_S} seconds")}
    if done.returncode != 0:
        return {f"{TESTS}.{module}": ("failed", f"the process ended with {done.returncode}: {done.stderr.strip()[-300:]}")}
    return json.loads(done.stdout.splitlines()[-1])


def chapter() -> list[str]:
    """Runs the program with a race that docs/cuda.md prints, with the checker. Returns what is missing in its report."""
    text = (HERE.parents[1] / "docs/cuda.md").read_text()
    with tempfile.TemporaryDirectory() as folder:
        program = pathlib.Path(folder) / "race_numba.py"
        program.write_text(re.search(r"^```text\n(# race_numba.py\n.*?)^```$", text, re.S | re.M)[1])
        environment = os.environ | {"TEGRARM_SIM_CHECK": "race", "TEGRARM_BACKEND": "sim"}
        done = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=LIMIT_S, env=environment)
    wanted = (r"race: shared memory", r"store by .*race_numba.py:9\)", r"load by .*race_numba.py:10\)")
    return [f"docs/cuda.md: the report of race_numba.py has no {part}: {done.stderr[-300:]}" for part in wanted
            if not re.search(part, done.stderr)]


def modules() -> list[str]:
    """All modules of tests."""
    place = importlib.util.find_spec(TESTS)
    folders = [pathlib.Path(folder) / name for folder in place.submodule_search_locations for name in FOLDERS]
    found = [f"{folder.name}.{module.name}" for folder in folders for module in pkgutil.iter_modules([str(folder)])]
    return [name for name in found if ".test_" in name]


def known() -> list[tuple[str, str, str]]:
    """The rows of the list: a part of a name, the kind, the cause."""
    lines = (HERE / "known_numba.tsv").read_text().splitlines()
    rows = [tuple(line.split("\t")) for line in lines if line and not line.startswith("#")]
    assert all(len(row) == 3 and row[1] in KINDS for row in rows), "a row has a part of a name, a kind and a cause"
    return rows


def row_of(test: str, rows: list[tuple[str, str, str]]) -> tuple[str, str, str] | None:
    """The row about a test."""
    return next((row for row in rows if row[0] in test), None)


def main() -> int:
    """Runs the modules and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", metavar="MODULE")
    parser.add_argument("--sample", action="store_true", help="a few modules, which take seconds")
    parser.add_argument("-n", "--workers", type=int, default=2)
    parser.add_argument("modules", nargs="*", help="such as cudapy.test_atomics (default: all)")
    args = parser.parse_args()
    if args.one:
        one(args.one)
        return 0
    began, chosen = time.monotonic(), args.modules or (SAMPLE if args.sample else modules())
    with concurrent.futures.ThreadPoolExecutor(args.workers) as pool:
        found = dict(zip(chosen, pool.map(told, chosen), strict=True))
    rows, wrong = known(), []
    unexpected = {module for module, outcomes in found.items()
                  if any(outcome == "failed" and not row_of(test, rows) for test, (outcome, _) in outcomes.items())}
    found |= {module: told(module) for module in chosen if module in unexpected}
    outcomes = {test: tuple(ended) for every in found.values() for test, ended in every.items()}
    kinds: dict[str, int] = collections.Counter()
    causes: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    used = set()
    for test, (outcome, why) in sorted(outcomes.items()):
        row = row_of(test, rows)
        if outcome == "failed" and row:
            used.add(row)
            kinds[row[1]] += 1
            causes[row[1], row[2]].append(test)
        elif outcome == "failed":
            kinds["not listed"] += 1
            wrong.append(f"{test}: {' '.join(why.split())[:300]}")
        else:
            kinds[outcome] += 1
    if not args.modules and not args.sample:
        wrong += chapter()
        wrong += [f"the row {row[0]} of known_numba.tsv: nothing that fails needs it" for row in rows
                  if row not in used and row[1] != "time"]
    needs = kinds["passed"] + kinds["failed"] + kinds["not listed"]
    share = 100 * kinds["passed"] / max(needs, 1)
    print(f"numba-cuda: {kinds['passed']} passed, {kinds['skipped']} skipped by the tests themselves, "
          f"{kinds['refused']} need what is refused, {kinds['theirs']} fail with any driver, {kinds['time']} took too long, "
          f"{kinds['failed']} fail here, {kinds['not listed']} fail and are not listed: "
          f"{share:.1f} % of those that need nothing refused pass, "
          f"in {time.monotonic() - began:.0f} s")
    for (kind, cause), tests in sorted(causes.items()):
        print(f"  {kind}, {len(tests)}: {cause}")
    print("\n".join(re.sub(r"^numba\.cuda\.tests\.", "  ", line) for line in wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
