"""Runs LibreCUDA's own test programs through LD_PRELOAD and compares what they print with the right numbers (`make test-librecuda`).

They are ten, and none needs a second GPU. Seven run as they are. Three need memory that a Tegra does not have.

The source is fetched at a fixed commit. How it is built is LibreCUDA's business: its README says it. Where the source cannot be had, or
was not built yet, a sentence says so and nothing fails.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys

from tegrarm import _ffi

URL, COMMIT = "https://github.com/mikex86/LibreCuda.git", "7470f81a5c910c3b2c6e0088fb07d55338b5041d"
# What each program must print.
PROGRAMS = {
    "test_write_float": [r"Dst value \(post exec\): 419\.31415"],
    "test_memcopy": [r"1, 2, 3, 4, 5, 6, 7, 8, 9, 10"],
    "test_dynamic_shared_mem": [r"Dst value \(post exec\): 314\.31415"],
    "test_chronological_consistency": [r"Dst compute value \(post exec\): 2", r"Dst dma value \(post exec\): 1"],
    "test_async_kernels": [r"Single kernel took", r"5xAsync kernel took", r"5xSync kernel took"],
    "test_dma_chronological_consistency": [r"Memory is equal!"],
    "test_kernel_struct_param": [r"Dst value \(post exec\): 64"],
    "test_indexing": [],
    "test_stream_events": [r"Elapsed: ", r"Dst value \(post exec\): 2"],
    "many_kernels_launch": [r"Average time: "],
}
# They copy to and from arrays of the process that no driver was told of. A desktop GPU reaches these with HMM, and a Tegra's does not:
# the copy is an MMU fault. With arrays that LibreCUDA allocated, the three give the right numbers, too.
HMM = {"test_memcopy", "test_dma_chronological_consistency", "test_indexing"}
# What a program says of a wrong result. Some of them end with status 0 all the same.
WRONG = re.compile(r"Mismatch|Not all values|CUDA ERROR")


def fetched(source: pathlib.Path) -> bool:
    """Whether the source is here, at its commit."""
    if not (source / ".git").exists():
        clone = ["git", "clone", "--quiet", "--recurse-submodules", URL, str(source)]
        done = subprocess.run(clone, capture_output=True, text=True, env={**os.environ, "GIT_TERMINAL_PROMPT": "0"})
        if done.returncode:
            reason = (done.stderr.strip() or f"git ended with {done.returncode}").splitlines()[-1]
            print(f"test-librecuda: SKIPPED, LibreCUDA's source cannot be had: {reason}")
            return False
    subprocess.run(["git", "-C", str(source), "checkout", "--quiet", COMMIT], check=True)
    return True


def programs(build: pathlib.Path) -> dict[str, pathlib.Path]:
    """The programs of a build, by name."""
    return {path.name: path for path in sorted(build.rglob("*")) if path.name in PROGRAMS and path.is_file() and os.access(path, os.X_OK)}


def folder(build: pathlib.Path, program: pathlib.Path) -> pathlib.Path:
    """Where a program finds its kernel: in its folder of the source. The build leaves some kernels under a name that is not looked for."""
    home = re.search(r"^CMAKE_HOME_DIRECTORY:INTERNAL=(.*)$", (build / "CMakeCache.txt").read_text(), re.MULTILINE)
    return pathlib.Path(home[1], "tests", program.parent.name) if home else program.parent


def run(build: pathlib.Path, program: pathlib.Path) -> str:
    """Runs a program. Returns what is wrong, or nothing."""
    preload = pathlib.Path(_ffi.find()).with_name("libtegrarm_preload.so")
    env = {**os.environ, "LD_PRELOAD": str(preload), "TEGRARM_REPORT": "1"}
    done = subprocess.run([program], cwd=folder(build, program), env=env, capture_output=True, text=True, timeout=1800)
    if done.returncode:
        return f"exit status {done.returncode}\n{done.stdout}{done.stderr}"
    if found := WRONG.search(done.stdout + done.stderr):
        return f"it says {found[0]!r}\n{done.stdout}{done.stderr}"
    missing = [pattern for pattern in PROGRAMS[program.name] if not re.search(pattern, done.stdout)]
    return f"it does not print {missing}\n{done.stdout}{done.stderr}" if missing else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", required=True, type=pathlib.Path, help="where the source is fetched to")
    parser.add_argument("--build", required=True, type=pathlib.Path, help="the directory of its build")
    args = parser.parse_args()
    if not programs(args.build) and not fetched(args.source):
        return 0
    found = programs(args.build)
    if not found:
        print(f"test-librecuda: SKIPPED, LibreCUDA is not built: build {args.source} in {args.build} as its README says, or pass "
              "LIBRECUDA=directory of another build")
        return 0
    able, wrong = [name for name in found if name not in HMM], 0
    for name, program in found.items():
        if name in HMM:
            print(f"{name}: SKIPPED, it needs HMM")
            continue
        problem = run(args.build, program)
        wrong += bool(problem)
        print(f"{name}: {'FAILED, ' + problem if problem else 'passed'}", flush=True)
    print(f"test-librecuda: {len(able) - wrong} of {len(able)} programs passed; {len(found) - len(able)} need HMM")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
