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
import polybench
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


def test_a_sample_of_numbas_own_tests(python) -> None:
    if not (numba := ROOT / ".cache/numba-sample/bin/python").exists():
        pytest.skip("`make pytest` downloads Numba")
    command = [str(numba), "python/suite/numbas.py", "-n", "1", "cudadrv.test_events", "cudapy.test_sync"]
    said = python(["-m", "tegrarm", "run", "--cuda", "--", *command], env={"TEGRARM_LOG": "off"})
    assert "0 fail here, 0 fail and are not listed: 100.0 %" in said and int(said.split("numba-cuda: ")[1].split()[0]) > 10, said


def test_a_sample_of_tritons_kernels(python) -> None:
    """With Triton's own driver and launcher."""
    if not (triton := ROOT / ".cache/triton/bin/python").exists():
        pytest.skip("`make test-triton` downloads Triton")
    command = [str(triton), "-m", "pytest", "-c", "python/pyproject.toml", "--rootdir", "python", "python/tests/triton/test_triton.py"]
    said = python(["-m", "tegrarm", "run", "--cuda", "--", *command, "-k", "add or softmax"], env={"TEGRARM_TEST_TRITON": "cuda"})
    assert "4 passed" in said, said


def test_the_table_of_samples_keeps_what_did_not_run() -> None:
    page = "\n".join(["before", *samples.TABLE, "after"])
    passed, refused = samples.Row("passed", "", "1.5", "90 %"), samples.Row("refused", "two GPUs")
    failed = samples.Row("failed", "a wrong sum", "7.0")
    first = {"one": passed, "two": passed, "three": refused, "old": passed}
    page = samples.with_table(page, first, set(first))
    page = samples.with_table(page, {"two": failed}, {"one", "two", "three"})
    assert samples.recorded(page) == {"one": passed, "two": failed, "three": refused}
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
    assert {name: recorded[name][:2] for name in samples.KNOWN} == samples.KNOWN
    assert f"Of {len(recorded)} samples: {sum(row.state == 'passed' for row in recorded.values())} passed" in page
    wrong = [name for name, row in recorded.items() if (row.state != "passed") != bool(row.why) or re.search(r"/(work|home|tmp)/", row.why)]
    assert not wrong


def test_the_figures_of_the_engine_are_not_what_a_sample_says() -> None:
    table = "       kernel at   launches  warp instructions     engine s kernel\n     0x1ffe10000          1          40     0.000120 add\n"
    said = f"one\n{table}             all          1          40     0.500000\ntwo\n"
    assert samples.figures(said) == ("one\ntwo\n", 0.5)
    assert samples.figures("Test passed\n") == ("Test passed\n", 0)


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


@pytest.mark.parametrize("status,said,errors,outcome", [
    (0, "Non-Matching CPU-GPU Outputs Beyond Error Threshold of 0.05 Percent: 0\n", "", ("passed", "")),
    (0, "Number of misses: 0\nNumber of misses: 3\n", "", ("failed", "3 elements differ from those of the CPU")),
    (1, "Number of misses: 0\n", "", ("failed", "status 1")),
    (0, "GPU Time in seconds:\n", "", ("failed", "status 0, and it compares nothing")),
    (0, "Number of misses: 0\n", "libcudart of libtegrarm: cudaThing is refused: why\n", ("refused", "cudaThing is refused: why")),
])
def test_a_program_of_polybench_passes_if_all_elements_agree(status: int, said: str, errors: str, outcome: tuple[str, str]) -> None:
    assert polybench.verdict(status, said, errors) == outcome


def test_the_table_of_polybench_says_what_its_runner_knows() -> None:
    recorded = samples.recorded((ROOT / "docs/cudart.md").read_text(), polybench.TABLE)
    assert len(recorded) == 21
    assert {name for name, row in recorded.items() if row.state != "passed"} == set(polybench.KNOWN)
    assert not [name for name, row in recorded.items() if polybench.judged(name, row, "STANDARD") != (row, "")]
    assert polybench.judged("mvt", samples.Row("passed"), "MINI")[1]
    assert polybench.judged("mvt", samples.Row("not built", "an error"), "MINI")[1]
    assert not polybench.judged("adi", samples.Row("passed"), "SMALL")[1] and polybench.judged("adi", samples.Row("passed"), "LARGE")[1]
    assert polybench.judged("adi", recorded["adi"], "SMALL")[1]
