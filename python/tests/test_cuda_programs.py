"""Programs with ``<<<…>>>``, without nvcc: clang compiles for the CPU, NVRTC for the GPU, and ours are the libraries under both.

clang registers kernels, variables and the fat binary as nvcc does, with code of its own. `make test-cudart` has nvcc, and
`make test-samples` has NVIDIA's programs.
"""

import pathlib
import re
import shutil
import subprocess
import sys

import cuda
import pytest
from conftest import ROOT
from test_cuda_door import LIBRARY

from tegrarm import compile as compiler

sys.path.insert(0, str(ROOT / "python/suite"))
import runtime_samples as samples

SOURCE = ROOT / "python/tests/programs.cu"
PROGRAMS = ("adds", "symbols", "products", "transposes", "counts", "sums", "meets", "streams", "graphs", "parameters", "arrays",
            "nodes")
MAJORS = {"12": "cuda_runtime/include", "13": "cu13/include"}
# A name of C++ that nothing in the file for the GPU asks for by itself.
INSTANCES = ("transpose<double>",)
# The headers of clang that stand in front of those of C++ expect an installation of CUDA, so that clang's own come last. The launch of CUDA
# 9.2 and later is that of all runtimes here, and 11.5 is a release that every clang knows. A newer CUDA in PATH would be a warning.
CLANG = ("-x", "cuda", "--cuda-host-only", "-nocudainc", "-nocudalib", "-nobuiltininc", "-std=c++17", "-Werror",
         "-Wno-unknown-cuda-version", "-Xclang", "-target-sdk-version=11.5", "-c")


@pytest.fixture(scope="module", params=MAJORS)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The program, linked with the runtime of a major release."""
    if not (clang := shutil.which("clang++")):
        pytest.skip("no clang++")
    folder, headers = tmp_path_factory.mktemp("programs"), cuda.installed(MAJORS[request.param])
    options = ("--std=c++17", *(f"--include-path={cuda.installed(place)}" for place in cuda.PLACES["13"][1:]))
    code = compiler.program(SOURCE.read_bytes(), SOURCE.name, "sm_87", options, INSTANCES).cubin
    (folder / "code.fatbin").write_bytes(cuda.fatbin([("Cubin", "87", code)]))
    own = subprocess.run([clang, "-print-resource-dir"], check=True, capture_output=True, text=True, timeout=60).stdout.strip()
    embed = ("-Xclang", "-fcuda-include-gpubinary", "-Xclang", folder / "code.fatbin")
    # No wheel here has the folder crt of CUDA 12. Its headers say how a compiler spells attributes, which those of CUDA 13 do for both.
    crt = cuda.installed(MAJORS["13"])
    last = [word for place in (crt, f"{own}/include") for word in ("-idirafter", place)]
    subprocess.run([clang, *CLANG, *embed, f"-I{headers}", *last, SOURCE, "-o", folder / "programs.o"], check=True, timeout=280)
    runtime = LIBRARY.parent / f"libcudart.so.{request.param}"
    subprocess.run([clang, folder / "programs.o", runtime, "-o", folder / "programs"], check=True, timeout=280)
    return folder / "programs"


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_clang_compiled(python, program: pathlib.Path, name: str) -> None:
    assert python(["-m", "tegrarm", "run", "--cuda", "--", str(program), name], env={"TEGRARM_LOG": "off"}) == "right\n"


def test_the_table_of_samples_keeps_what_did_not_run() -> None:
    page = f"before\n{samples.STARTS}\n{samples.ENDS}\nafter"
    first = {"one": ("passed", ""), "two": ("passed", ""), "three": ("refused", "two GPUs"), "old": ("passed", "")}
    page = samples.with_table(page, first, set(first))
    page = samples.with_table(page, {"two": ("failed", "a wrong sum")}, {"one", "two", "three"})
    assert samples.recorded(page) == {"one": ("passed", ""), "two": ("failed", "a wrong sum"), "three": ("refused", "two GPUs")}
    assert "Of 3 samples: 1 passed, 1 refused, 1 failed." in page and page.startswith("before\n") and page.endswith("\nafter")
    with pytest.raises(ValueError, match="there is no table"):
        samples.with_table("before\nafter", first, set(first))


@pytest.mark.parametrize("status,said,outcome", [
    (0, "Test passed\n", "passed"),
    (0, "Test failed!\n", "failed"),
    (2, "Waiving test.\n", "waived"),
    (1, "", "failed"),
    (1, "libcudart of libtegrarm: cudaIpcGetMemHandle is refused (cudaErrorNotSupported): why\n", "refused"),
    # The sample of tessellation with dynamic parallelism asks for no error and ends with status 0.
    (0, "Done!\nlibcuda of libtegrarm: cuLaunchKernel: CUDA_ERROR_INVALID_IMAGE: the code launches kernels itself\n", "failed"),
])
def test_a_sample_passes_only_with_its_kernels(status: int, said: str, outcome: str) -> None:
    assert samples.verdict(status, said)[0] == outcome


def test_a_sample_is_judged_by_its_row() -> None:
    every = [(name, outcome) for name in (*samples.KNOWN, "vectorAdd") for outcome in samples.STATES]
    trouble = {(name, outcome) for name, outcome in every if samples.judged(name, outcome, "it | ends")[2]}
    assert {outcome for name, outcome in trouble if name == "vectorAdd"} == set(samples.STATES) - {"passed", "refused"}
    assert {outcome for name, outcome in trouble if name == "cdpSimplePrint"} == {"passed", "not built", "not ended"}
    assert {outcome for name, outcome in trouble if name == "simpleP2P"} == set(samples.STATES) - {"waived", "refused"}
    assert samples.judged("vectorAdd", "failed", "it | ends")[1] == "it / ends"


def test_the_table_of_samples_says_what_the_runner_knows() -> None:
    page = (ROOT / "docs/cudart.md").read_text()
    recorded = samples.recorded(page)
    assert {name: recorded.get(name) for name in samples.KNOWN} == samples.KNOWN
    assert f"Of {len(recorded)} samples: {sum(state == 'passed' for state, _ in recorded.values())} passed" in page
    assert not [name for name, (state, why) in recorded.items() if (state != "passed") != bool(why) or re.search(r"/(work|home|tmp)/", why)]


def test_a_sample_has_the_folders_of_its_headers(tmp_path: pathlib.Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "one.cu").write_text("// nothing\n")
    (tmp_path / "CMakeLists.txt").write_text("""add_executable(one one.cu)
target_include_directories(one PRIVATE
    inc  # headers of the sample
    ${SOMEWHERE} absent)
""")
    sample = samples.read(tmp_path / "CMakeLists.txt")
    assert sample and (sample.name, sample.options) == ("one", [f"-I{tmp_path}/inc"])
