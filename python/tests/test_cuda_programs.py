"""Programs with ``<<<…>>>``, without nvcc: clang compiles for the CPU, NVRTC for the GPU, and ours are the libraries under both.

clang registers kernels, variables and the fat binary as nvcc does, with code of its own. `make test-cudart` has nvcc, and
`make test-samples` has NVIDIA's programs.
"""

import pathlib
import shutil
import subprocess

import cuda
import pytest
from conftest import ROOT
from test_cuda_door import LIBRARY

from tegrarm import compile as compiler

SOURCE = ROOT / "python/tests/programs.cu"
PROGRAMS = ("adds", "symbols", "products", "transposes", "counts", "sums", "meets", "streams", "graphs", "parameters")
MAJORS = {"12": "cuda_runtime/include", "13": "cu13/include"}
# A name of C++ that nothing in the file for the GPU asks for by itself.
INSTANCES = ("transpose<double>",)
# The headers of clang that stand in front of those of C++ expect an installation of CUDA, so that clang's own come last. The launch of CUDA
# 9.2 and later is that of all runtimes here, and 11.5 is a release that every clang knows.
CLANG = ("-x", "cuda", "--cuda-host-only", "-nocudainc", "-nocudalib", "-nobuiltininc", "-std=c++17", "-Werror", "-Xclang",
         "-target-sdk-version=11.5", "-c")


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
