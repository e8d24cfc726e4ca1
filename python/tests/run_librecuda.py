"""Runs LibreCUDA's own test programs through LD_PRELOAD and compares what they print with the right numbers (`make test-librecuda`).

They are ten, and none needs a second GPU. Seven run as they are. Three copy to and from memory that only a desktop GPU reaches: of these,
a copy of the source gets its arrays from LibreCUDA.

The source is fetched at a fixed commit and built with CMake. Where it or CMake cannot be had, a sentence says so and nothing fails.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

from tegrarm import preload

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
# the copy is an MMU fault. The folders of their sources:
HMM = {"test_memcopy": "memcopy", "test_dma_chronological_consistency": "dma_chronological_consistency", "test_indexing": "indexing"}
# How these arrays are declared, and how the same arrays are made of memory that LibreCUDA allocates and the CPU sees, too.
ARRAYS = (
    (r"^int main\(\) \{", """template <class T, size_t N> T (&seen_by_both(const T (&values)[N]))[N] {
    void *memory{};
    CUDA_CHECK(libreCuMemAlloc(&memory, sizeof values, true));
    auto &array = *static_cast<T (*)[N]>(memory);
    for (size_t i = 0; i < N; i++) array[i] = values[i];
    return array;
}

int main() {"""),
    (r"(\w+) (\w*host_array)\[\] = \{([^}]*)\};", r"\1 given[] = {\3};\n    auto &\2 = seen_by_both(given);"),
    (r"(\w+) (\w*host_array)\[(.+)\](?: = )?\{\};", r"auto &\2 = seen_by_both<\1, \3>({});"),
    (r"auto \*host_dst = new float\[n_elements\];",
     "float *host_dst{};\n    CUDA_CHECK(libreCuMemAlloc(reinterpret_cast<void **>(&host_dst), n_elements * sizeof(float), true));"),
    (r"delete\[\] host_dst;", "CUDA_CHECK(libreCuMemFree(host_dst));"),
)
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


def without_hmm(source: pathlib.Path) -> pathlib.Path:
    """A copy of the source, in which the arrays of the programs that need HMM are memory of the GPU."""
    copy = source.with_name(f"{source.name}-without-hmm")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns(".git", "build"))
    for name in HMM.values():
        path = copy / "tests" / name / "main.cpp"
        text, changed = path.read_text(), 0
        for old, new in ARRAYS:
            text, count = re.subn(old, new, text, flags=re.MULTILINE)
            changed += count
        assert changed >= 3, f"{path}: the program is not as this script knows it"
        path.write_text(text)
    return copy


def built(source: pathlib.Path, build: pathlib.Path) -> bool:
    """Whether CMake is here and has built the programs. What it says is shown if it fails."""
    if not shutil.which("cmake"):
        print("test-librecuda: SKIPPED, there is no cmake")
        return False
    for step in (["cmake", "-S", source, "-B", build], ["cmake", "--build", build, "--parallel"]):
        done = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"{done.stdout}\ntest-librecuda: FAILED, LibreCUDA cannot be built")
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
    env = {**os.environ, **preload.environment({}, preload.library()), "TEGRARM_REPORT": "1"}
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
    args = parser.parse_args()
    source = args.source.resolve()
    if not fetched(source):
        return 0
    copy = without_hmm(source)
    if not all(built(tree, tree / "build") for tree in (source, copy)):
        return 0
    of_the_source, of_the_copy = (programs(tree / "build") for tree in (source, copy))
    wrong = 0
    for name in PROGRAMS:
        tree, found = (copy, of_the_copy) if name in HMM else (source, of_the_source)
        problem = run(tree / "build", found[name]) if name in found else "it was not built"
        wrong += bool(problem)
        how = " (its arrays are memory of the GPU)" if name in HMM else ""
        print(f"{name}{how}: {'FAILED, ' + problem if problem else 'passed'}", flush=True)
    print(f"test-librecuda: {len(PROGRAMS) - wrong} of {len(PROGRAMS)} programs passed; {len(HMM)} of them need HMM and had other arrays")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
