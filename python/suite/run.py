"""Runs tinygrad's own tests on the library and on tinygrad's CPU device, and compares (`make test-tinygrad`).

Every test that passes on CPU must pass here. What does not is listed with its cause in `known_failures.tsv`; an entry that passes
again fails the run, and so does a failure that is not listed. 0.12.0 is the last release whose source distribution carries the
test files (without the folders they import from: `stand_ins/` has ours); of 0.14.0 there is `test_tiny`. Both are fetched from
the package index, used as they are, and never committed.

There are three devices. `--device nv` is the interface TEGRA+NV, on which the tests of 0.12.0 run with that release. `--device tegra` is
the device TEGRA, which needs a newer one: there the same files run on the installed tinygrad (`older_names.py`), and so they do on CPU.
`--device cuda` is tinygrad's own CUDA device, for whoever finds our libcuda.so.1 (`tegrarm run --cuda`).
"""

import argparse
import dataclasses
import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
import zlib

HERE = pathlib.Path(__file__).resolve().parent
OLD, NEW = "0.12.0", "0.14.0"
FILES = ["test_tiny", "test_ops", "test_dtype", "test_dtype_alu", "test_jit", "test_nn", "test_optim", "test_randomness", "test_tensor",
         "test_uops"]
# The sample takes minutes on a machine with two cores, because it asks the CPU only about tests that fail. Files that compare with torch
# are left out where torch is not installed.
# `test_tiny` on this interface is a test of its own (python/tests/test_tiny.py).
SAMPLE = ["test_uops", "test_jit", "test_ops"]
# Of this file the sample runs every tenth test: whole, it takes as long as all others together.
TENTHS = ["test_ops"]
NEEDS_TORCH = ["test_ops"]
# tinygrad's switch for each compiler of its NV device, in release 0.12 and in later ones, and those of its CUDA device.
COMPILERS = {"nvrtc": ({}, ""), "nak": ({"NV_NAK": "1"}, ":NAK"), "ptx": ({"NV_PTX": "1"}, ":PTX")}
CUDA_COMPILERS = {"nvrtc": ({"CUDA_CC": "CUDA"}, ""), "ptx": ({"CUDA_PTX": "1"}, ":PTX"), "nvcc": ({"CUDA_CC": "NVCC"}, ":NVCC")}
# What of 0.12.0's tests says something about a newer tinygrad: the others look into its insides.
OUTSIDE = ["test_tiny", "test_ops", "test_dtype", "test_dtype_alu", "test_nn", "test_optim", "test_randomness", "test_tensor"]
OUTSIDE_SAMPLE = "test_tiny or test_add or test_matmul or test_softmax or test_sum or test_cat or test_gather or test_conv2d"
# Whole files with NVRTC, and what the other compilers must do too.
PLAN = {"nv": {"nvrtc": FILES, "nak": ["test_ops", "test_uops"], "ptx": ["test_ops"]},
        "cuda": {"nvrtc": ["test_tiny", "test_jit", "test_graph", "test_dtype", "test_ops"],
                 "ptx": ["test_tiny", "test_jit", "test_graph", "test_dtype", "test_ops"], "nvcc": ["test_tiny", "test_jit", "test_graph"]},
        "tegra": {"nvrtc": OUTSIDE, "nak": ["test_tiny", "test_ops"], "ptx": ["test_tiny", "test_ops"]}}
WAIT_S = 540  # tinygrad gives a real GPU half a minute for a launch; on a busy machine a slow kernel needs minutes, and HANG_S ends a test
HANG_S = 600  # a test that takes this long will never end
NO_TESTS = 5  # pytest's exit status when a selection is empty


@dataclasses.dataclass
class Run:
    """One pytest run: the outcome of every test, and why it failed."""

    outcomes: dict[str, str]
    reasons: dict[str, str]
    seconds: float
    engine: float = 0.0  # seconds in the engine, one after another
    instructions: int = 0  # of warps

    def count(self, outcome: str) -> int:
        """The number of tests that ended in this way."""
        return list(self.outcomes.values()).count(outcome)


def fetch(cache: pathlib.Path, release: str) -> pathlib.Path:
    """Unpacks tinygrad's source distribution, once."""
    tree = cache / f"tinygrad-{release}"
    if not tree.exists():
        pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
        subprocess.run([*pip, "--no-binary", "tinygrad", "-d", cache / "sdist", f"tinygrad=={release}"], check=True)
        subprocess.run(["tar", "-C", cache, "-xzf", cache / "sdist" / f"tinygrad-{release}.tar.gz"], check=True)
    return tree


def tests_alone(cache: pathlib.Path, tree: pathlib.Path) -> pathlib.Path:
    """A folder with a release's tests and without the release."""
    folder = cache / f"tests-{tree.name}"
    folder.mkdir(exist_ok=True)
    if not (folder / "test").exists():
        (folder / "test").symlink_to(tree / "test")
    return folder


def wheel_library(pattern: str) -> str:
    """A shared library that pip installed in a place where tinygrad does not look. It is empty if there is none."""
    return str(next((path for place in sys.path for path in sorted(pathlib.Path(place).glob(pattern))), ""))


def cuda_folder(folder: pathlib.Path) -> pathlib.Path:
    """A folder as tinygrad 0.12 expects CUDA's: with the driver that a program would get, and with the headers of NVRTC's wheel."""
    folder.mkdir(parents=True, exist_ok=True)
    places = [pathlib.Path(place) / "libcuda.so.1" for place in os.environ.get("LD_LIBRARY_PATH", "").split(":") if place]
    headers = pathlib.Path(wheel_library("nvidia/cuda_runtime/include/cuda_fp16.h")).parent
    for name, place in (("libcuda.so.1", next(place for place in places if place.exists())), ("include", headers)):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(place)
    return folder


def environment(device: str, compiler: str, release: str, tree: pathlib.Path, door: str) -> dict[str, str]:
    """Chooses tinygrad's release, device and compiler; hypothesis draws the same examples every time."""
    installed = door == "tegra"
    names = ("DEV", "NV", "CPU", "NV_IFACE", "NV_NAK", "NV_PTX", "NV_CC", "CUDA_CC", "CUDA_PTX", "PYTHONPATH")
    env = {name: value for name, value in os.environ.items() if name not in names}
    env |= {"DERANDOMIZE_CI": "1", "HCQDEV_WAIT_TIMEOUT_MS": str(WAIT_S * 1000)}
    env["TEGRARM_SIM_STATS"] = "1"
    if installed:
        return env | {"DEV": "CPU" if device == "CPU" else f"TEGRA:{compiler.upper()}", "PYTHONPATH": f"{HERE}:{HERE / 'stand_ins'}"}
    if release == NEW and door == "cuda":
        return env | {"DEV": device if device == "CPU" else f"CUDA{CUDA_COMPILERS[compiler][1]}"}
    if release == NEW:
        return env | {"DEV": "CPU" if device == "CPU" else f"TEGRA+NV{COMPILERS[compiler][1]}"}
    env |= {"PYTHONPATH": f"{tree}:{HERE / 'stand_ins'}:{HERE}"}
    if device == "CPU":
        return env | {"CPU": "1"}
    for name, pattern in (("MESA_PATH", "tinymesa/libtinymesa.so"), ("NVJITLINK_PATH", "nvidia/nvjitlink/lib/libnvJitLink.so.*")):
        env.setdefault(name, wheel_library(pattern))
    if door == "cuda":
        # This release looks for its libraries by the names of these variables.
        env.setdefault("NVRTC_PATH", wheel_library("nvidia/cuda_nvrtc/lib/libnvrtc.so.*"))
        return env | {"CUDA": "1", "CUDA_PATH": str(cuda_folder(tree.parent / "cuda"))} | CUDA_COMPILERS[compiler][0]
    return env | {"NV": "1", "NV_IFACE": "TEGRA"} | COMPILERS[compiler][0]


def run(name: str, device: str, compiler: str, args: argparse.Namespace, only: list[str] | None = None) -> Run:
    """Runs one test file on one device, or only some of its tests."""
    if only == []:
        return Run({}, {}, 0)
    release = NEW if name == "test_tiny" else OLD
    tree = fetch(args.cache, release)
    installed = args.device == "tegra"
    keep = args.cache / ("results" if args.device == "nv" else f"results-{args.device}")
    keep.mkdir(parents=True, exist_ok=True)
    report = keep / f"{name}-{device if device == 'CPU' else compiler}.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--timeout={HANG_S}", f"--junitxml={report}", "--tb=short"]
    command += ["-p", "tegrarm.tinygrad"] if device != "CPU" and args.device != "cuda" else []
    if installed and release == OLD:
        command, tree = [*command, "-p", "older_names"], tests_alone(args.cache, tree)
    command += ["-n", str(args.workers)] if args.workers > 1 else []
    command += ["-k", args.k] if args.k else []
    command += ["-p", "run"] if args.sample and name in TENTHS and not args.k and only is None else []
    report.unlink(missing_ok=True)
    env = environment(device, compiler, release, tree, args.device)
    # Compiled kernels are kept, a file per compiler: `make test-disasm` reads them, and the next run need not compile.
    kernels = "CPU" if device == "CPU" else compiler if args.device == "nv" else f"{args.device}-{compiler}"
    env["CACHEDB"] = str(args.cache / "kernels" / f"{kernels}.db")
    start = time.monotonic()
    tests = [node(test) for test in only] if only else [f"test/{name}.py"]
    done = subprocess.run([*command, *tests], cwd=tree, env=env, capture_output=True, text=True)
    (keep / f"{report.stem}.log").write_text(done.stdout + done.stderr)
    if not report.exists() or done.returncode not in (0, 1, NO_TESTS):
        sys.exit(f"{name} on {device}: pytest ended with {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    result = read_report(report, time.monotonic() - start)
    sums = re.findall(r"^ +all +\d+ +(\d+) +([\d.]+)$", done.stdout + done.stderr, re.MULTILINE)
    result.instructions, result.engine = sum(int(n) for n, _ in sums), sum(float(s) for _, s in sums)
    return result


def pytest_collection_modifyitems(config, items):
    """Leaves out nine tenths of the tests: for samples, pytest loads this file as a plugin. A checksum of the name chooses, so that a new
    test does not change which others run.
    """
    left_out = [item for item in items if zlib.crc32(item.name.encode()) % 10]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def node(test: str) -> str:
    """How pytest names a test on its command line."""
    name, bracket, values = test.partition("[")
    module, *rest = name.split(".")
    return "::".join([f"test/{module}.py", *rest]) + bracket + values


def read_report(report: pathlib.Path, seconds: float) -> Run:
    """Reads a report. A test whose set-up or tear-down failed too counts once, as failed."""
    result = Run({}, {}, seconds)
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname', '').removeprefix('test.')}.{case.get('name')}"
        bad = case.find("failure") if case.find("failure") is not None else case.find("error")
        if bad is not None:
            result.outcomes[name], result.reasons[name] = "failed", (bad.get("message") or bad.text or "").strip().split("\n")[0]
        else:
            result.outcomes.setdefault(name, "skipped" if case.find("skipped") is not None else "passed")
    return result


def known_failures(compiler: str) -> dict[str, str]:
    """The committed list: compiler, test, cause. Of the device TEGRA the compiler is `tegra-` and its name."""
    lines = (HERE / "known_failures.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    every = "tegra-all" if compiler.startswith("tegra-") else "all"
    return {test: cause for which, test, cause in rows if which in (compiler, every)}


def heading(compiler: str) -> None:
    """Prints the names of the columns of :func:`judge`."""
    print(f"{compiler:16} {'passed':>7} {'failed':>7} {'skipped':>8} {'CPU fails too':>14} {'known':>6}"
          f" {'CPU passed':>11} {'CPU failed':>11} {'time':>10} {'engine':>10} {'warp instr.':>12}")


def judge(name: str, here: Run, cpu: Run, known: dict[str, str]) -> list[str]:
    """Prints one row of the table and returns the mistakes as sentences."""
    listed = [test for test in here.outcomes if test in known]
    wrong = [f"{test} is a known failure and passes: take it off the list" for test in listed if here.outcomes[test] == "passed"]
    wrong += [f"{test}: {here.reasons[test][:300]}" for test, outcome in here.outcomes.items()
              if outcome == "failed" and cpu.outcomes.get(test) == "passed" and test not in known]
    wrong += [f"{test} passes on CPU and did not run here" for test, outcome in cpu.outcomes.items()
              if outcome == "passed" and test not in here.outcomes]
    both = sum(here.outcomes[test] == "failed" and cpu.outcomes.get(test) != "passed" for test in here.outcomes)
    # Workers of pytest-xdist end without printing the engine's figures.
    engine = f"{here.engine:8.1f} s {here.instructions / 1e6:10.0f} M" if here.instructions else f"{'-':>10} {'-':>12}"
    print(f"{name:16} {here.count('passed'):7} {here.count('failed'):7} {here.count('skipped'):8} {both:14} {len(listed):6}"
          f" {cpu.count('passed'):11} {cpu.count('failed'):11} {here.seconds:8.0f} s"
          f" {engine}", flush=True)
    for test in sorted(test for test, outcome in here.outcomes.items() if outcome == "failed"):
        where = "" if cpu.outcomes.get(test) == "passed" else f"{cpu.outcomes.get(test, 'absent')} on CPU: "
        print(f"    {test}: {where}{known.get(test) or here.reasons[test][:160]}")
    return wrong


def sample(args: argparse.Namespace) -> dict[str, list[str]]:
    """The sample's files for each compiler, those that can run here; says which cannot. Of some files it selects tests."""
    plan = {"nvrtc": SAMPLE}
    if args.device == "tegra":
        plan = {"nvrtc": ["test_tiny", "test_ops"], "nak": ["test_tiny"], "ptx": ["test_tiny"]}
        args.k = args.k or OUTSIDE_SAMPLE
    if importlib.util.find_spec("torch"):
        return plan
    print(f"SKIPPED, without torch (Debian's python3-torch, or `make test-tinygrad`): {' '.join(NEEDS_TORCH)}")
    return {compiler: [name for name in files if name not in NEEDS_TORCH] for compiler, files in plan.items()}


def main() -> int:
    """Parses the arguments, runs every file on both devices and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="where tinygrad's sources and the results go")
    parser.add_argument("--device", choices=PLAN, default="nv", help="the interface TEGRA+NV, the device TEGRA or CUDA")
    parser.add_argument("--compiler", choices=[*(COMPILERS | CUDA_COMPILERS)],
                        help="only this one (default: NVRTC for every file, all for test_ops)")
    parser.add_argument("--sample", action="store_true", help="minutes of it")
    parser.add_argument("-n", "--workers", type=int, default=2)
    parser.add_argument("-k", default="", help="pytest's selection expression, in every file")
    parser.add_argument("files", nargs="*", help=f"test files without .py (default: {' '.join(FILES)})")
    args = parser.parse_args()
    args.cache = args.cache.resolve()
    if not shutil.which(os.environ.get("CC", "clang")):
        print("tinygrad's own tests: SKIPPED, there is no clang, which tinygrad's CPU device compiles with: nothing to compare with")
        return int(not args.sample)
    if args.compiler and args.compiler not in PLAN[args.device]:
        parser.error(f"the device {args.device} has the compilers {', '.join(PLAN[args.device])}")
    plan = sample(args) if args.sample else PLAN[args.device]
    if args.compiler:
        plan = {args.compiler: args.files or plan["nvrtc"]}
    wrong, cpu = [], {}
    if "nvcc" in plan and not shutil.which("nvcc"):
        if args.compiler:
            sys.exit("run.py: there is no nvcc in PATH: `make test-cudart` fetches NVIDIA's")
        print(f"SKIPPED, without NVIDIA's nvcc in PATH: {' '.join(plan.pop('nvcc'))} compiled by nvcc")
    for compiler, files in plan.items():
        heading(compiler)
        for name in args.files or files:
            here = run(name, "GPU", compiler, args)
            known = known_failures(compiler if args.device == "nv" else f"{args.device}-{compiler}")
            if args.sample:
                # Only a test that fails has to be compared, and the sample has no time for the others.
                cpu[name] = run(name, "CPU", compiler, args, [test for test, outcome in here.outcomes.items() if outcome == "failed"])
            elif name not in cpu:
                cpu[name] = run(name, "CPU", compiler, args)
            wrong += judge(name, here, cpu[name], known)
    print("\n".join(["", *wrong]) if wrong else "every test that passes on CPU passes here, but for the known failures")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
