"""Runs a bring-up, the doors, tinygrad's test_tiny and the root suite on every kernel of the virtual Orin, and prints a table.

A cell has the number of tests that passed and ran, or FAILED. The output of a failed cell follows the table. `make test-releases` runs
all of it, and `make test` one row: without the root suite, which it runs on other kernels, and without the column test_tiny, because the
preload door runs the same file.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

from run_tinygrad_releases import nvrtc

ROOT = pathlib.Path(__file__).resolve().parents[2]
RELEASES = ("r35", "r35.4", "r36", "r39")
CARGO = ["cargo", "test", "--locked", "-p", "tegrarm"]
SUITE = "root suite"


def columns(test_tiny: str) -> dict[str, list[str]]:
    """The command of each column. The release is in the environment."""
    run = [sys.executable, "-m", "tegrarm", "run"]
    return {
        "bring-up": [*CARGO, "--test", "bringup"],
        "object door": [*CARGO, "--test", "objects"],
        "file door": [*CARGO, "--test", "files"],
        # tinygrad's own interface of desktop GPUs, in a process that was not changed.
        "preload door": ["env", "DEV=NVK+NV", *run, "--preload", "--", sys.executable, test_tiny, "-v"],
        "test_tiny": [*run, test_tiny, "-v"],
        SUITE: CARGO,
    }


def counted(text: str) -> tuple[int, int]:
    """The numbers (passed, ran) in the summaries of cargo and unittest. Without a summary both are zero."""
    passed = failed = 0
    for good, bad in re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed", text, re.MULTILINE):
        passed, failed = passed + int(good), failed + int(bad)
    for ran, end in re.findall(r"^Ran (\d+) tests? in [^\n]*\n\n(\w+[^\n]*)", text, re.MULTILINE):
        numbers = {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", end)}
        bad = numbers.get("failures", 0) + numbers.get("errors", 0)
        failed, passed = failed + bad, passed + int(ran) - bad - numbers.get("skipped", 0)
    return passed, passed + failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--test-tiny", required=True, help="tinygrad's test/test_tiny.py")
    parser.add_argument("--without", action="append", default=[], help="a column to leave out")
    parser.add_argument("releases", nargs="*", default=RELEASES, help=f"of {', '.join(RELEASES)} (default: all)")
    args = parser.parse_args()
    commands, output = {k: v for k, v in columns(args.test_tiny).items() if k not in args.without}, []
    print("| release | " + " | ".join(commands) + " |\n|---|" + "---|" * len(commands), flush=True)
    for release in args.releases:
        env = {**os.environ, **nvrtc(), "TEGRARM_BACKEND": "sim", "TEGRARM_SIM_L4T": release, "DEV": "TEGRA+NV", "CACHELEVEL": "0"}
        cells = []
        for name, command in commands.items():
            done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
            passed, ran = counted(done.stdout + done.stderr)
            good = done.returncode == 0 and ran > 0 and passed == ran
            cells.append(f"{passed} of {ran}" if good else f"FAILED ({passed} of {ran})")
            if not good:
                output.append(f"--- {release}, {name}: exit status {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}")
        print(f"| {release} | " + " | ".join(cells) + " |", flush=True)
    print("\n".join(output), end="")
    return int(bool(output))


if __name__ == "__main__":
    sys.exit(main())
