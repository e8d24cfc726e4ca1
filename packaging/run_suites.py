"""Runs the suites of `make test`, and ends with a table: what ran, how long, what was skipped and why.

    python packaging/run_suites.py STEP...

Every suite is a target of the Makefile. A step is a suite, or lanes: `one,two+other` runs `one` and then `two`, and `other` at the same
time, because each suite leaves a core without work now and then. One suite speaks at a time; what others print follows when it has ended.
The first suite that fails ends the run: those that run already come to their end, and those behind them are listed as not run.
"""

import concurrent.futures
import dataclasses
import os
import re
import subprocess
import sys
import threading
import time
from typing import TextIO

# Minutes on two cores when everything is built, for the sentence at the start. Only for that: nothing is held to them.
MINUTES = {
    "cargo-test": 3, "fetch": 0, "test-threads": 1, "test-out-of-process": 2, "test-aarch64-sample": 1, "test-glibc": 2, "ctest": 2,
    "pytest": 8, "test-releases-sample": 1, "test-tinygrad-sample": 3,
}
FIRST_BUILD = 6
# What says that something was left out: our own SKIPPED, and pytest's short summary (`SKIPPED [2] file.py:3: reason`).
SKIPPED = re.compile(r"^(?:(?P<what>[\w ./-]+): )?SKIPPED,? (?:\[(?P<times>\d+)\] )?(?P<why>.+)$")
# Counts as Rust's test programs and pytest give them.
PASSED = re.compile(r"(?:^test result: \w+\. |^|, )(\d+) passed")


@dataclasses.dataclass
class Suite:
    """What a suite said about itself."""

    name: str
    result: str = "not run"
    seconds: float = 0.0
    passed: int = 0
    skipped: list[str] = dataclasses.field(default_factory=list)

    def read(self, line: str) -> None:
        """Takes a line of its output."""
        if found := PASSED.search(line):
            self.passed += int(found[1])
        if found := SKIPPED.match(line):
            times = int(found["times"] or 1)
            self.skipped += [": ".join(filter(None, [found["what"], found["why"].strip()]))] * times


class Floor:
    """Who speaks: one suite at a time. The lines of others are kept until it has ended."""

    def __init__(self, out: TextIO):
        self.out, self.lock, self.speaker = out, threading.Lock(), ""
        self.kept: dict[str, list[str]] = {}
        self.ended: list[str] = []

    def say(self, name: str, line: str) -> None:
        """Passes on a line, at once or later."""
        with self.lock:
            self.speaker = self.speaker or name
            self.kept.setdefault(name, []).append(line)
            if self.speaker == name:
                self.flush(name)

    def end(self, name: str) -> None:
        """What the suites have said that ended in the meantime follows the speaker's last line."""
        with self.lock:
            self.ended.append(name)
            if self.speaker in ("", name):
                self.speaker = ""
                while self.ended:
                    self.flush(self.ended.pop(0))

    def flush(self, name: str) -> None:
        """Writes what was kept."""
        self.out.write("".join(self.kept.pop(name, [])))
        self.out.flush()


def run(suite: Suite, floor: Floor) -> None:
    """Runs it, and passes on what it prints."""
    started = time.monotonic()
    make = [os.environ.get("MAKE", "make"), "--no-print-directory", suite.name]
    with subprocess.Popen(make, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", bufsize=1) as process:
        for line in process.stdout:
            floor.say(suite.name, line)
            suite.read(line.rstrip("\n"))
    floor.end(suite.name)
    suite.seconds = time.monotonic() - started
    suite.result = "passed" if process.returncode == 0 else "FAILED"


def together(lanes: list[list[Suite]]) -> bool:
    """Runs lanes of suites at the same time, and returns whether all have passed."""
    floor = Floor(sys.stdout)

    def failed() -> bool:
        return any(suite.result == "FAILED" for lane in lanes for suite in lane)

    def drive(lane: list[Suite]) -> None:
        for suite in lane:
            if not failed():
                run(suite, floor)

    with concurrent.futures.ThreadPoolExecutor(len(lanes)) as pool:
        list(pool.map(drive, lanes))
    return not failed()


def clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{seconds // 60:.0f}:{seconds % 60:02.0f}"


def table(suites: list[Suite], seconds: float) -> str:
    """The end of a run that took `seconds`."""
    rows = [("suite", "result", "time", "tests passed", "skipped")]
    rows += [(s.name, s.result, clock(s.seconds), str(s.passed or "-"), str(len(s.skipped) or "-")) for s in suites]
    skipped = [f"  {suite.name}: {what}" for suite in suites for what in dict.fromkeys(suite.skipped)]
    rows.append(("all", "", clock(seconds), str(sum(s.passed for s in suites)), str(sum(len(s.skipped) for s in suites))))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(["", *lines, *(["", "skipped:", *skipped] if skipped else [])])


def main(names: list[str]) -> int:
    """Returns 0 if every suite passed."""
    steps = [[[Suite(name) for name in lane.split(",")] for lane in step.split("+")] for step in names]
    suites = [suite for step in steps for lane in step for suite in lane]
    minutes = sum(max(sum(MINUTES.get(suite.name, 1) for suite in lane) for lane in step) for step in steps)
    print(f"make test: {len(suites)} suites, about {minutes} minutes on two cores, {FIRST_BUILD} more the first time:")
    print(f"  {', '.join(suite.name for suite in suites)}", flush=True)
    if "n" in os.environ.get("MAKEFLAGS", "").split(" ")[0]:
        return 0  # make --dry-run starts us too
    started = time.monotonic()
    passed = all(map(together, steps))
    print(table(suites, time.monotonic() - started))
    print("make test: all suites passed" if passed else "make test: failed", flush=True)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
