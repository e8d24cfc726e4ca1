"""Runs the Rust tests that take only seconds, and prints those that it leaves to `make test`.

A test program of the workspace counts as fast unless `SLOW` names it, so a new one is run without being mentioned anywhere.
"""

import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
CARGO = os.environ.get("CARGO", "cargo")

# These are left to `make test`. Each has the seconds that it took on two cores when it was added here.
SLOW: dict[str, str] = {
    "failures": "18 s",
    "outlive": "55 s",
    "sm": "18 s",
}
OTHERS = "documentation examples, all of it on r35, out of process and on AArch64, C programs, Python, tinygrad's own tests"


def programs() -> tuple[list[str], list[str]]:
    """The names of the workspace's test programs, and of the programs that have unit tests: a library may be a program to cargo."""
    said = subprocess.run([CARGO, "metadata", "--locked", "--no-deps", "--format-version", "1"], cwd=ROOT, capture_output=True, check=True)
    packages = json.loads(said.stdout)["packages"]
    targets = [target for package in packages for target in package["targets"] if target["test"]]
    return tuple(sorted({target["name"] for target in targets if kind in target["kind"]}) for kind in ("test", "bin"))


def main() -> int:
    there, bins = programs()
    if gone := SLOW.keys() - set(there):
        print(f"fast_tests.py names test programs that are not there: {', '.join(sorted(gone))}")
        return 1
    fast = [name for name in there if name not in SLOW]
    command = [CARGO, "test", "--quiet", "--workspace", "--locked", "--lib", *(f"--bin={name}" for name in bins)]
    command += [f"--test={name}" for name in fast]
    result = subprocess.run(command, cwd=ROOT).returncode
    if result == 0:
        print(f"fast tests: all unit tests and {len(fast)} of {len(there)} test programs passed")
        print("left to `make test`: " + ", ".join([*(f"{name} ({why})" for name, why in SLOW.items()), OTHERS]))
    return result


if __name__ == "__main__":
    sys.exit(main())
