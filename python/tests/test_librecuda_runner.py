"""`make test-librecuda` says what passed, what is wrong and what is missing. Shell scripts stand in for git, CMake and the programs."""

import os
import pathlib
import subprocess
import sys

import pytest
from run_librecuda import COMMIT, HMM, PROGRAMS

RUNNER = pathlib.Path(__file__).with_name("run_librecuda.py")
# What the programs print when they are right. Those that need HMM are right in the copy only, in which their arrays are others.
RIGHT = {
    "test_write_float": "Dst value (post exec): 419.31415",
    "test_memcopy": "1, 2, 3, 4, 5, 6, 7, 8, 9, 10",
    "test_dynamic_shared_mem": "Dst value (post exec): 314.31415",
    "test_chronological_consistency": "Dst compute value (post exec): 2\\nDst dma value (post exec): 1",
    "test_async_kernels": "Single kernel took 1\\n5xAsync kernel took 2\\n5xSync kernel took 3",
    "test_dma_chronological_consistency": "Memory is equal!",
    "test_kernel_struct_param": "Dst value (post exec): 64",
    "test_indexing": "",
    "test_stream_events": "Elapsed: 1\\nDst value (post exec): 2",
    "many_kernels_launch": "Average time: 3",
}
MAIN = """
int main() {
    uint8_t dst_host_array[sizeof(host_array)] = {};
    auto *host_dst = new float[n_elements];
    delete[] host_dst;
}
"""
# Configures with `cmake -S SOURCE -B BUILD`, and builds with `cmake --build BUILD`: a program is its folder's script.
CMAKE = """#!/bin/sh -e
if [ "$1" = -S ]; then mkdir -p "$4"; echo "CMAKE_HOME_DIRECTORY:INTERNAL=$2" > "$4/CMakeCache.txt"; exit; fi
source=$(sed s/.*=// "$2/CMakeCache.txt")
if [ -e "$source/broken" ]; then echo "error: no compiler today"; exit 2; fi
for script in "$source"/tests/*/*.sh; do
    folder=$2/tests/$(basename "$(dirname "$script")")
    mkdir -p "$folder"
    cp "$script" "$folder/$(basename "$script" .sh)"
done
"""


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def source(tmp_path):
    """A source with the ten programs."""
    script(tmp_path / "bin/git", f"#!/bin/sh\n[ $4 = --quiet ] && [ $5 = {COMMIT} ]\n")
    script(tmp_path / "bin/cmake", CMAKE)
    source = tmp_path / "source"
    (source / ".git").mkdir(parents=True)
    for name, right in RIGHT.items():
        folder = source / "tests" / HMM.get(name, name)
        needs = "grep -q seen_by_both main.cpp || exit 8\n" if name in HMM else ""
        script(folder / f"{name}.sh", f"#!/bin/sh\ncat kernel.cubin || exit 9\n{needs}printf '{right}\\n'\n")
        (folder / "kernel.cubin").write_text("kernel")
        (folder / "main.cpp").write_text(MAIN)
    return source


def run(source, path=None):
    env = {**os.environ, "PATH": path or f"{source.parent}/bin:{os.environ['PATH']}"}
    done = subprocess.run([sys.executable, str(RUNNER), "--source", str(source)], env=env, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_the_scripts_stand_in_for_all():
    assert RIGHT.keys() == PROGRAMS.keys()


def test_programs_pass_by_what_they_print(source):
    status, out = run(source)
    assert status == 0, out
    assert "test_write_float: passed" in out and "test_memcopy (its arrays are memory of the GPU): passed" in out
    assert "10 of 10 programs passed; 3 of them need HMM" in out


@pytest.mark.parametrize("lines,says", [
    ("echo 'Dst value (post exec): 7'", "it does not print"),
    ("echo 'Dst value (post exec): 419.31415'; exit 3", "exit status 3"),
    ("echo 'Dst value (post exec): 419.31415'; echo '[CUDA ERROR] at' >&2", "it says 'CUDA ERROR'"),
    (None, "it was not built"),
])
def test_a_wrong_program_fails_the_run(source, lines, says):
    path = source / "tests/test_write_float/test_write_float.sh"
    path.unlink() if lines is None else script(path, f"#!/bin/sh\n{lines}\n")
    status, out = run(source)
    assert status == 1 and "test_write_float: FAILED, " + says in out and "9 of 10 programs passed" in out, out


def test_a_program_that_became_another_one_is_noticed(source):
    (source / "tests/memcopy/main.cpp").write_text("int main() { return 0; }")
    status, out = run(source)
    assert status == 1 and "the program is not as this script knows it" in out


def test_a_source_that_cannot_be_built_fails(source):
    (source / "broken").touch()
    status, out = run(source)
    assert status == 1 and "error: no compiler today" in out and "FAILED, LibreCUDA cannot be built" in out


def test_a_source_that_cannot_be_had_is_a_sentence(source, tmp_path):
    script(tmp_path / "bin/git", "#!/bin/sh\necho 'fatal: no way to the host' >&2\nexit 128\n")
    (source / ".git").rmdir()
    assert run(source) == (0, "test-librecuda: SKIPPED, LibreCUDA's source cannot be had: fatal: no way to the host\n")


def test_without_cmake_there_is_a_sentence(source, tmp_path):
    (tmp_path / "bin/cmake").unlink()
    assert run(source, path=f"{tmp_path}/bin") == (0, "test-librecuda: SKIPPED, there is no cmake\n")
