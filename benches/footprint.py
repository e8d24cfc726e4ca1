"""What a process pays for the GPU, in memory and in processor time, as a table: a C program (benches/c/footprint.c) and tinygrad.

    python benches/footprint.py [--library LIBRARY.so] [--json]

The programs run below `tegrarm-sim run`, where the simulator is another process and its share is not counted. Each figure is the
difference to the same program without the GPU: a C program that does nothing, and tinygrad with its device PYTHON.
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SIMULATOR = TARGET / "release" / "tegrarm-sim"
KEYS = ("anonymous", "file", "shared", "cpu", "faults", "maps", "threads")

# The same figures as the C program's, of a process of Python.
PYTHON = """
import json, re, resource, time
from tinygrad import Tensor
import numpy
assert (Tensor([1.0, 2.0]) + 1).numpy().tolist() == [2.0, 3.0]
status = open("/proc/self/status").read()
kib = lambda key: int(re.search(rf"{key}:\\s+(\\d+)", status)[1])
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({"anonymous": kib("RssAnon"), "file": kib("RssFile"), "shared": kib("RssShmem"), "threads": kib("Threads"),
                  "cpu": time.process_time_ns() // 1000, "faults": usage.ru_minflt + usage.ru_majflt,
                  "maps": len(open("/proc/self/maps").readlines())}))
"""


def compiled(work: pathlib.Path, library: pathlib.Path) -> dict[str, list[str]]:
    """The C program without and with the library: their command lines."""
    source, cc = str(ROOT / "benches/c/footprint.c"), [os.environ.get("CC", "cc"), "-O2", "-D_GNU_SOURCE", f"-I{ROOT / 'include'}"]
    cubin = work / "kernels.cubin"
    compiler = [sys.executable, ROOT / "examples/c/compile.py", ROOT / "examples/c/kernels.cu", cubin]
    subprocess.run(compiler, check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*cc, "-DBASELINE", source, "-o", work / "without"], check=True)
    subprocess.run([*cc, source, "-o", work / "with", str(library), f"-Wl,-rpath,{library.parent}"], check=True)
    return {"without": [str(work / "without")], "with": [str(work / "with"), str(cubin)]}


def measured(command: list[str], env: dict[str, str], runs: int) -> dict[str, float]:
    """The figures of a program below the supervisor: of each the median."""
    def once() -> dict[str, int]:
        done = subprocess.run([SIMULATOR, "run", "--quiet", "--", *command], env={**os.environ, "TEGRARM_BACKEND": "nvgpu", **env},
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{command[0]}: {done.stderr}")
        return dict(json.loads(done.stdout.splitlines()[-1]))
    samples = [once() for _ in range(runs)]
    return {key: statistics.median(sample[key] for sample in samples) for key in KEYS}


def calls(command: list[str], work: pathlib.Path) -> dict[str, int]:
    """How many nodes a program opens, and how many ioctls and mappings it makes of them."""
    log = work / "strace"
    env = {**os.environ, "TEGRARM_BACKEND": "nvgpu"}
    subprocess.run([SIMULATOR, "run", "--quiet", f"--strace={log}", "--", *command], env=env, check=True, stdout=subprocess.DEVNULL)
    lines = log.read_text().splitlines()
    names = [found[1] for line in lines if (found := re.search(r"\] [\d.]+ (\w+)\(", line))]
    return {"opens": names.count("open"), "mmaps": names.count("mmap"), "ioctls": sum(name[0].isupper() for name in names)}


def difference(after: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    return {key: after[key] - before[key] for key in KEYS}


def figures(work: pathlib.Path, library: pathlib.Path, runs: int, tinygrad: bool) -> dict[str, dict[str, float]]:
    """The library's share in each program."""
    commands = compiled(work, library)
    plain = {key: measured(command, {}, runs) for key, command in commands.items()}
    told = {"C": {**difference(plain["with"], plain["without"]), **calls(commands["with"], work)}}
    if tinygrad:
        code = work / "footprint.py"
        code.write_text(PYTHON)
        common = {"CACHELEVEL": "0", "TEGRARM_LIB": str(library)}
        without = measured([sys.executable, str(code)], {**common, "DEV": "PYTHON"}, 1)
        ours = measured([sys.executable, "-m", "tegrarm", "run", str(code)], {**common, "DEV": "TEGRA"}, 1)
        told["tinygrad, `DEV=TEGRA`"] = difference(ours, without)
    return told


def table(told: dict[str, dict[str, float]]) -> str:
    head = ("| program | private memory | memory of files (code) | memory shared with the driver | processor time | kernel calls |\n"
            "|---|---|---|---|---|---|\n")
    def row(name: str, f: dict[str, float]) -> str:
        made = f"{f['opens'] + f['ioctls'] + f['mmaps']:.0f}" if "ioctls" in f else ""
        return f"| {name} | {f['anonymous']:.0f} KiB | {f['file']:.0f} KiB | {f['shared']:.0f} KiB | {f['cpu'] / 1000:.1f} ms | {made} |\n"
    return head + "".join(row(name, figures) for name, figures in told.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("--library", type=pathlib.Path, default=TARGET / "release" / "libtegrarm.so")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--no-tinygrad", action="store_true")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        told = figures(pathlib.Path(work), args.library.resolve(), args.runs, not args.no_tinygrad)
    print(json.dumps(told, indent=1) if args.json else table(told), end="")


if __name__ == "__main__":
    main()
