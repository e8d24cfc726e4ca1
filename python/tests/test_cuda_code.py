"""Code in the CUDA library: fat binaries by NVIDIA's nvFatbin, links, libraries, kernels, cooperative launches, occupancy."""

import ctypes
import os
import pathlib
import stat
import subprocess
import sys
from collections.abc import Iterator

import cuda
import cuda_driver as driver
import numpy
import pytest
from conftest import ROOT
from cuda_driver import array, call, code, out, read

from tegrarm import compile as compiler

N = 1000
DATA = numpy.arange(N, dtype=numpy.float32)
INVALID_IMAGE, NO_BINARY, INVALID_PTX, NO_COMPILER, NOT_FOUND = 200, 209, 218, 221, 500
HALVES = (r"""
extern __device__ float twice(float);
__device__ float offset = 1;
extern "C" __global__ void both(float *a, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) a[i] = twice(a[i]) + offset; }
""", "__device__ float twice(float x) { return 2 * x; }")
COOPERATIVE = r"""
#include <cooperative_groups.h>
extern "C" __global__ void ring(int *a) {
  auto grid = cooperative_groups::this_grid();
  a[grid.thread_rank()] = grid.thread_rank();
  grid.sync();
  int next = a[(grid.thread_rank() + blockDim.x) % grid.size()];
  grid.sync();
  a[grid.thread_rank()] = next;
}
extern "C" __global__ void shared(int *a) {
  extern __shared__ int s[];
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  a[threadIdx.x] = s[threadIdx.x ^ 1];
}
"""


@pytest.fixture(autouse=True)
def context() -> Iterator[int]:
    with driver.context() as made:
        yield made


def ptx(arch: str, *options: str) -> bytes:
    return compiler.compiled(driver.SOURCE.encode(), "t.cu", arch, options, ptx=True)


def fatbin(major: str, mode: str, parts: list[tuple[str, str, bytes]]) -> bytes:
    """A fat binary that is compressed in a mode. A comment makes PTX so long that it is worth a compression."""
    packed = b"-compress=false" if mode == "none" else b"-compress-all"
    return cuda.fatbin(parts, major, (packed, f"-compress-mode={mode}".encode()))


def check(module: int) -> None:
    """The kernel `add` of a module adds."""
    a = array(DATA)
    driver.launch(driver.function(module, "add"), 8, 128, 0, a, 3.0, ctypes.c_int(N))
    assert (read(a, DATA) == DATA + 3).all()
    call("cuModuleUnload", module)


@pytest.mark.parametrize("major", cuda.NVFATBIN)
@pytest.mark.parametrize("mode", ["none", "default", "size", "balance"])
def test_fat_binaries_of_nvidias_own_tool(major: str, mode: str) -> None:
    own, older = cuda.compiled(driver.SOURCE), compiler.compiled(driver.SOURCE.encode(), "t.cu", "sm_80")
    text = ptx("sm_80") + b"\0"
    both = fatbin(major, mode, [("Cubin", "80", older), ("Cubin", "87", own), ("PTX", "80", text)])
    check(out("cuModuleLoadData", both))
    check(out("cuModuleLoadFatBinary", both))
    check(out("cuModuleLoadData", fatbin(major, mode, [("Cubin", "80", older), ("PTX", "80", text)])))
    # The wrapper that nvcc puts around a fat binary: a magic number, a version, and the address.
    keep = ctypes.create_string_buffer(both)
    check(out("cuModuleLoadData", (ctypes.c_uint64 * 3)(1 << 32 | 0x466243B1, ctypes.addressof(keep), 0)))
    assert code("cuModuleLoadData", ctypes.byref(ctypes.c_uint64()), fatbin(major, mode, [("Cubin", "80", older)])) == NO_BINARY


def test_images_that_are_cut_off_are_refused() -> None:
    whole = fatbin("12", "default", [("Cubin", "87", cuda.compiled(driver.SOURCE))])
    place = ctypes.byref(ctypes.c_uint64())
    # The size of the whole, the kind of the first entry, its size, how much of it is compressed data, and for which GPU it is.
    for at, width in ((8, 8), (16, 2), (24, 8), (32, 4), (44, 4)):
        broken = bytearray(whole)
        broken[at : at + width] = b"\xff" * width
        assert code("cuModuleLoadData", place, bytes(broken)) in (INVALID_IMAGE, NO_BINARY), at
    assert code("cuModuleLoadData", place, b"this is no PTX") == INVALID_IMAGE
    assert code("cuModuleLoadData", place, None) == 1


def test_ptx_with_its_log_and_options() -> None:
    log, size = ctypes.create_string_buffer(4000), 4000
    names = (ctypes.c_uint * 2)(5, 6)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(log), size)
    place = ctypes.c_uint64()
    wrong = b".version 8.0\n.target sm_80\n.address_size 64\nnonsense\n"
    assert code("cuModuleLoadDataEx", ctypes.byref(place), wrong, ctypes.c_uint(2), names, values) == INVALID_PTX
    assert b"nonsense" in log.value or b"syntax" in log.value.lower(), log.value
    call("cuModuleLoadDataEx", ctypes.byref(place), ptx("sm_87"), ctypes.c_uint(2), names, values)
    check(place.value)


def linked(image: bytes, options: dict[int, int], of_input: dict[int, int]) -> bytes:
    """A link of one PTX, with options of the link and of the input."""

    def arrays(chosen: dict[int, int]) -> tuple:
        return (ctypes.c_uint(len(chosen)), (ctypes.c_uint * 9)(*chosen), (ctypes.c_void_p * 9)(*chosen.values()))

    state, cubin, size = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_size_t()
    call("cuLinkCreate_v2", *arrays(options), ctypes.byref(state))
    try:
        call("cuLinkAddData_v2", state.value, ctypes.c_uint(1), image, len(image), b"t", *arrays(of_input))
        call("cuLinkComplete", state.value, ctypes.byref(cubin), ctypes.byref(size))
        return ctypes.string_at(cubin.value, size.value)
    finally:
        call("cuLinkDestroy", state.value)


def registers(cubin: bytes) -> int:
    module = out("cuModuleLoadData", cubin)
    number = ctypes.c_int()
    call("cuFuncGetAttribute", ctypes.byref(number), ctypes.c_int(4), driver.function(module, "many"))
    return number.value


MANY = """extern "C" __global__ void many(float *a) {
    float x[64];
    #pragma unroll
    for (int i = 0; i < 64; i++) x[i] = a[i * 32 + threadIdx.x];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 64; i++) a[i * 32 + threadIdx.x] = x[63 - i] * x[(i * 7) % 64];
}"""


def test_options_of_a_link_and_of_its_input() -> None:
    many = compiler.compiled(MANY.encode(), "t.cu", "compute_87", (), ptx=True)
    target, most = 9, 0  # CU_JIT_TARGET, CU_JIT_MAX_REGISTERS
    assert registers(linked(many, {}, {})) > 40
    assert registers(linked(many, {most: 40}, {})) <= 40
    assert registers(linked(many, {most: 64}, {most: 40})) <= 40, "an input's option is stronger"
    # A link may be for another GPU, whose code this one does not run. The name of the GPU is in the flags of the file.
    image = ptx("compute_75")
    other = linked(image, {target: 80}, {})
    assert other[:4] == b"\x7fELF" and int.from_bytes(other[48:52], "little") & 0xFF == 80
    assert code("cuModuleLoadData", ctypes.byref(ctypes.c_uint64()), other) == NO_BINARY
    values = (ctypes.c_void_p * 1)(80)
    ex = [ctypes.byref(place := ctypes.c_uint64()), image, ctypes.c_uint(1), (ctypes.c_uint * 1)(target), values]
    assert code("cuModuleLoadDataEx", *ex) == NO_BINARY
    values[0] = 87
    call("cuModuleLoadDataEx", *ex)
    check(place.value)
    for number in (99, 87 | 1 << 20):
        with pytest.raises(driver.Failed, match=r": 1$"):
            linked(image, {target: number}, {})


# It has the options of ptxas that the library uses, by the names that ptxas gives them, and compiles with nvJitLink.
# The shell starts Python, because the first line of a program has no room for a path with a space.
PTXAS = """#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
import argparse, ctypes
parser = argparse.ArgumentParser(prefix_chars="-", allow_abbrev=False)
for name in ("arch", "maxrregcount", "o"):
    parser.add_argument("-" + name)
for name in ("O0", "O1", "O2", "O3", "g", "lineinfo", "v"):
    parser.add_argument("-" + name, action="store_true")
parser.add_argument("input")
given = parser.parse_args()
link, size, ptx = ctypes.c_void_p(), ctypes.c_size_t(), open(given.input, "rb").read()
lib, options = ctypes.CDLL({library!r}), [f"-arch={{given.arch}}".encode()]
assert lib.nvJitLinkCreate(ctypes.byref(link), 1, (ctypes.c_char_p * 1)(*options)) == 0
if lib.nvJitLinkAddData(link, 2, ptx, ctypes.c_size_t(len(ptx)), b"t") or lib.nvJitLinkComplete(link):
    raise SystemExit("ptxas fatal   : Ptx assembly aborted due to errors")
lib.nvJitLinkGetLinkedCubinSize(link, ctypes.byref(size))
image = ctypes.create_string_buffer(size.value)
lib.nvJitLinkGetLinkedCubin(link, image)
open(given.o, "wb").write(image.raw)
print("ptxas info    : compiled by the stand-in")
"""
# Without site-packages in the process, the library finds no wheel.
WITHOUT_WHEELS = """
import ctypes, sys
cu, image = ctypes.CDLL(sys.argv[1]), open(sys.argv[2], "rb").read()
context, module, kernel, log = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.create_string_buffer(4000)
assert cu.cuInit(0) == 0 == cu.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
names = (ctypes.c_uint * 6)(0, 7, 13, 12, 3, 4)
values = (ctypes.c_void_p * 6)(40, 3, 1, 1, ctypes.addressof(log), 4000)
status = cu.cuModuleLoadDataEx(ctypes.byref(module), image, 6, names, values)
print(status, cu.cuModuleGetFunction(ctypes.byref(kernel), module, b"add") if status == 0 else "", log.value.decode().strip()[:60])
"""


def without_wheels(tmp_path: pathlib.Path, image: bytes, **env: str) -> subprocess.CompletedProcess[str]:
    """Loads PTX in a process that finds a compiler where `env` says, if at all."""
    (tmp_path / "image.ptx").write_bytes(image)
    base = os.path.realpath(sys.executable)
    kept = {name: value for name, value in os.environ.items() if name.startswith("TEGRARM_") and name != "TEGRARM_LOG"}
    kept["TMPDIR"] = str(tmp_path)
    return subprocess.run([base, "-I", "-S", "-c", WITHOUT_WHEELS, driver.LIBRARY, tmp_path / "image.ptx"], env=kept | env,
                          capture_output=True, text=True, timeout=100)


@pytest.mark.skipif(pathlib.Path("/usr/local/cuda").exists(), reason="a CUDA toolkit is installed where every program finds it")
def test_without_a_compiler_ptx_is_refused_and_ptxas_is_enough(tmp_path: pathlib.Path) -> None:
    done = without_wheels(tmp_path, ptx("compute_87"))
    assert done.stdout.split()[0] == str(NO_COMPILER), done
    assert "pip install nvidia-nvjitlink-cu12" in done.stderr
    (tmp_path / "toolkit/bin").mkdir(parents=True)
    stand_in = tmp_path / "toolkit/bin/ptxas"
    stand_in.write_text(PTXAS.format(python=sys.executable, library=str(cuda.installed("nvjitlink/lib/libnvJitLink.so.12"))))
    stand_in.chmod(stat.S_IRWXU)
    # The first is NVIDIA's own, which `make test-cudart` downloads.
    theirs = next(ROOT.glob(".cache/nvcc/lib/python3*/site-packages/nvidia/cu13"), None)
    for home in filter(None, (theirs, tmp_path / "toolkit")):
        for env in ({"CUDA_HOME": str(home)}, {"PATH": f"{home}/bin"}):
            done = without_wheels(tmp_path, ptx("compute_87"), **env)
            assert done.stdout.startswith("0 0 ptxas info "), done
    wrong = without_wheels(tmp_path, b".version 8.0\n.target sm_80\nnonsense\n", CUDA_HOME=str(tmp_path / "toolkit"))
    assert wrong.stdout.split()[0] == str(INVALID_PTX) and "tegrarm-ptx" not in " ".join(os.listdir(tmp_path)), wrong


def check_linked(state: ctypes.c_uint64) -> None:
    """Completes a link of HALVES and ends it, and looks at what the kernel computes."""
    cubin, size = ctypes.c_uint64(), ctypes.c_size_t()
    call("cuLinkComplete", state.value, ctypes.byref(cubin), ctypes.byref(size))
    module = out("cuModuleLoadData", ctypes.string_at(cubin.value, size.value))
    call("cuLinkDestroy", state.value)
    a = array(DATA)
    driver.launch(driver.function(module, "both"), 8, 128, 0, a, ctypes.c_int(N))
    assert (read(a, DATA) == 2 * DATA + 1).all()


def test_links_of_relocatable_code(tmp_path: pathlib.Path) -> None:
    parts = [compiler.compiled(half.encode(), "half.cu", "sm_87", ("--relocatable-device-code=true",), ptx=True) for half in HALVES]
    objects = [compiler.compiled(half.encode(), "half.cu", "sm_87", ("--relocatable-device-code=true",)) for half in HALVES]
    for kind, images in ((1, parts), (0, objects)):
        state = ctypes.c_uint64()
        call("cuLinkCreate_v2", ctypes.c_uint(0), None, None, ctypes.byref(state))
        call("cuLinkAddData_v2", state.value, ctypes.c_uint(kind), images[0], len(images[0]), b"first", ctypes.c_uint(0), None, None)
        (tmp_path / "second").write_bytes(images[1])
        call("cuLinkAddFile_v2", state.value, ctypes.c_uint(kind), str(tmp_path / "second").encode(), ctypes.c_uint(0), None, None)
        check_linked(state)


def test_links_of_code_that_is_optimized_then() -> None:
    state = ctypes.c_uint64()
    call("cuLinkCreate_v2", ctypes.c_uint(0), None, None, ctypes.byref(state))
    for half in HALVES:
        with compiler._compiled(half.encode(), "half.cu", ("-arch=compute_87", "-dlto", "-rdc=true"), ()) as made:
            ir = compiler._get(made, "LTOIR")
        call("cuLinkAddData_v2", state.value, ctypes.c_uint(5), ir, len(ir), b"half", ctypes.c_uint(0), None, None)
    check_linked(state)


def test_libraries_and_their_kernels(context: int) -> None:
    source = driver.SOURCE + "__device__ int table[4] = {1, 2, 3, 4};"
    library = ctypes.c_uint64()
    image = cuda.compiled(source)
    call("cuLibraryLoadData", ctypes.byref(library), image, None, None, ctypes.c_uint(0), None, None, ctypes.c_uint(0))
    assert out("cuLibraryGetKernelCount", library.value, kind=ctypes.c_uint) == 2
    preserved = [(ctypes.c_uint * 1)(1), None, ctypes.c_uint(1)]
    call("cuLibraryLoadData", ctypes.byref(other := ctypes.c_uint64()), image, None, None, ctypes.c_uint(0), *preserved)
    call("cuLibraryUnload", other.value)
    # cuda.h: the file is not the program's memory. Tables of functions need an attribute that the device has not.
    assert code("cuLibraryLoadFromFile", ctypes.byref(other), b"/none", None, None, ctypes.c_uint(0), *preserved) == 1
    assert out("cuDeviceGetAttribute", ctypes.c_int(129), ctypes.c_int(0), kind=ctypes.c_int) == 0
    preserved[0] = (ctypes.c_uint * 1)(0)
    assert code("cuLibraryLoadData", ctypes.byref(other), image, None, None, ctypes.c_uint(0), *preserved) == 801
    kernels = (ctypes.c_uint64 * 2)()
    call("cuLibraryEnumerateKernels", kernels, ctypes.c_uint(2), library.value)
    kernel = out("cuLibraryGetKernel", library.value, b"add")
    assert code("cuLibraryGetKernel", ctypes.byref(ctypes.c_uint64()), library.value, b"nothing") == NOT_FOUND
    assert kernel in list(kernels) and out("cuKernelGetLibrary", kernel) == library.value
    assert ctypes.string_at(out("cuKernelGetName", kernel)) == b"add"
    assert [size_of(kernel, index) for index in range(3)] == [(0, 8), (8, 4), (12, 4)]
    most = ctypes.c_int()
    call("cuKernelGetAttribute", ctypes.byref(most), ctypes.c_uint(0), kernel, ctypes.c_int(0))
    assert most.value == 1024
    a = array(DATA)
    driver.launch(kernel, 8, 128, 0, a, 1.0, ctypes.c_int(N))  # a kernel is launched like a function
    driver.launch(out("cuKernelGetFunction", kernel), 8, 128, 0, a, 1.0, ctypes.c_int(N))
    assert (read(a, DATA) == DATA + 2).all()
    table, size = ctypes.c_uint64(), ctypes.c_size_t()
    call("cuLibraryGetGlobal", ctypes.byref(table), ctypes.byref(size), library.value, b"table")
    assert size.value == 16 and list(read(table.value, numpy.zeros(4, numpy.int32))) == [1, 2, 3, 4]
    assert driver.function(out("cuLibraryGetModule", library.value), "scale")
    call("cuLibraryUnload", library.value)
    assert code("cuLibraryGetKernel", ctypes.byref(ctypes.c_uint64()), library.value, b"add") == 400


def size_of(kernel: int, index: int) -> tuple[int, int]:
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    call("cuKernelGetParamInfo", kernel, index, ctypes.byref(offset), ctypes.byref(size))
    return offset.value, size.value


def test_cooperative_launches_and_occupancy() -> None:
    module = driver.module(COOPERATIVE)
    ring, shared = driver.function(module, "ring"), driver.function(module, "shared")
    blocks = out("cuOccupancyMaxActiveBlocksPerMultiprocessor", ring, ctypes.c_int(128), 0, kind=ctypes.c_int)
    units = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(units), ctypes.c_uint(16), ctypes.c_int(0))
    assert blocks == 12  # 1,536 threads an SM
    count = 128 * 2 * units.value
    a = array(numpy.zeros(count, numpy.int32))
    driver.launch(ring, 2 * units.value, 128, 0, a, name="cuLaunchCooperativeKernel")
    assert (read(a, numpy.zeros(count, numpy.int32)) == numpy.roll(numpy.arange(count), -128)).all()
    sizes = [ctypes.c_uint(n) for n in (blocks * units.value + 1, 1, 1, 128, 1, 1, 0)]
    assert code("cuLaunchCooperativeKernel", ring, *sizes, 0, driver.values(a)) == 720
    grid, block = ctypes.c_int(), ctypes.c_int()
    call("cuOccupancyMaxPotentialBlockSize", ctypes.byref(grid), ctypes.byref(block), ring, None, 0, ctypes.c_int(0))
    assert (grid.value, block.value) == (2 * units.value, 768)
    sizes = [ctypes.c_uint(n) for n in (1, 1, 1, 64, 1, 1, 100 << 10)]
    assert code("cuLaunchKernel", shared, *sizes, 0, driver.values(a), None) == 1
    call("cuFuncSetAttribute", shared, ctypes.c_uint(8), ctypes.c_int(100 << 10))
    call("cuLaunchKernel", shared, *sizes, 0, driver.values(a), None)
    assert (read(a, numpy.zeros(64, numpy.int32)) == numpy.arange(64) ^ 1).all()
    assert out("cuOccupancyMaxActiveBlocksPerMultiprocessor", shared, ctypes.c_int(64), 100 << 10, kind=ctypes.c_int) == 1
    free = out("cuOccupancyAvailableDynamicSMemPerBlock", shared, ctypes.c_int(2), ctypes.c_int(64), kind=ctypes.c_size_t)
    assert out("cuOccupancyMaxActiveBlocksPerMultiprocessor", shared, ctypes.c_int(64), free, kind=ctypes.c_int) == 2
    assert out("cuOccupancyMaxActiveBlocksPerMultiprocessor", shared, ctypes.c_int(64), free + 1024, kind=ctypes.c_int) == 1


def test_parameters_in_one_buffer() -> None:
    a = array(DATA)
    buffer, size = numpy.zeros(16, numpy.uint8), ctypes.c_size_t(16)
    buffer[:8].view(numpy.uint64)[0] = a
    buffer[8:12].view(numpy.float32)[0] = 5
    buffer[12:].view(numpy.int32)[0] = N
    extra = (ctypes.c_void_p * 5)(1, buffer.ctypes.data, 2, ctypes.addressof(size), 0)
    sizes = [ctypes.c_uint(n) for n in (8, 1, 1, 128, 1, 1, 0)]
    add = driver.function(driver.module(), "add")
    call("cuLaunchKernel", add, *sizes, 0, None, extra)
    assert (read(a, DATA) == DATA + 5).all()
    size.value = 12
    assert code("cuLaunchKernel", add, *sizes, 0, None, extra) == 1


OLD_PTX = b""".version 3.0
.target sm_20
.address_size 64
.entry store(.param .u64 to) { .reg .s32 %r; .reg .s64 %a; ld.param.u64 %a, [to]; mov.u32 %r, %tid.x; st.global.u32 [%a], %r; ret; }
"""


def test_ptx_that_is_older_than_nvjitlink() -> None:
    a = array(numpy.full(1, 9, numpy.int32))
    driver.launch(driver.function(out("cuModuleLoadData", OLD_PTX), "store"), 1, 1, 0, a)
    assert read(a, numpy.zeros(1, numpy.int32))[0] == 0
    assert code("cuModuleLoadData", ctypes.byref(ctypes.c_uint64()), OLD_PTX.replace(b"3.0", b"1.4")) == INVALID_PTX


def test_blocks_that_are_too_large_say_why() -> None:
    bounded = driver.function(driver.module('extern "C" __global__ void __launch_bounds__(128) f(int *a) { *a = 1; }'), "f")
    a = array(numpy.zeros(1, numpy.int32))
    for threads, expected in ((128, 0), (256, 1), (2048, 1)):
        sizes = [ctypes.c_uint(n) for n in (1, 1, 1, threads, 1, 1, 0)]
        assert code("cuLaunchKernel", bounded, *sizes, 0, driver.values(a), None) == expected
    call("cuCtxSynchronize")


def test_code_that_cannot_be_loaded_is_told_without_being_asked_for():
    """A program with <<<...>>> often asks for no result of a launch, and a module is loaded at its first launch."""
    broken = b"\x7fELF\x02\x01\x01" + bytes(120)
    program = f"""
import ctypes
import cuda_driver as driver
with driver.context():
    print(driver.code("cuModuleLoadData", ctypes.byref(ctypes.c_uint64()), {broken!r}))
"""
    env = {name: value for name, value in os.environ.items() if name != "TEGRARM_LOG"}
    done = subprocess.run([sys.executable, "-c", program], cwd=pathlib.Path(__file__).parent, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"{INVALID_IMAGE}\n"), done.stderr
    assert "libcuda of libtegrarm: cuModuleLoadData: CUDA_ERROR_INVALID_IMAGE: " in done.stderr


LOADS = """
import ctypes, sys
import cuda, cuda_driver as driver
from cuda_driver import code, out
library = ctypes.c_uint64()
def load(image):
    return code("cuLibraryLoadData", ctypes.byref(library), image, None, None, ctypes.c_uint(0), None, None, ctypes.c_uint(0))
image = cuda.compiled(driver.SOURCE)
broken = image[:18] + bytes([1, 0]) + image[20:]  # for another machine, which loading finds
driver.library()
mode = out("cuModuleGetLoadingMode", kind=ctypes.c_uint)
early = load(broken)  # there is no context yet
in_a_new_one = code("cuCtxCreate_v2", ctypes.byref(ctypes.c_uint64()), ctypes.c_uint(0), ctypes.c_int(0))
primary = code("cuDevicePrimaryCtxRetain", ctypes.byref(ctypes.c_uint64()), ctypes.c_int(0))
driver.call("cuLibraryUnload", library.value)
with driver.context():
    late = load(broken)
    assert load(image) == 0
    driver.launch(out("cuLibraryGetKernel", library.value, b"add"), 1, 1, 0, driver.array(driver.numpy.zeros(1)), 1.0, ctypes.c_int(1))
    driver.call("cuCtxSynchronize")
print(mode, early, in_a_new_one, primary, late)
"""


@pytest.mark.parametrize("mode,said", [("EAGER", "1 0 200 200 200"), ("LAZY", "2 0 0 0 0"), (None, "2 0 0 0 0")])
def test_libraries_are_loaded_when_they_are_needed_or_at_once(mode: str | None, said: str) -> None:
    """CUDA_MODULE_LOADING decides, as in NVIDIA's driver: at once, broken code is an error of whoever makes the library or the context."""
    env = {name: value for name, value in os.environ.items() if name != "CUDA_MODULE_LOADING"}
    env |= {"TEGRARM_LOG": "off"} | ({"CUDA_MODULE_LOADING": mode} if mode else {})
    done = subprocess.run([sys.executable, "-c", LOADS], cwd=pathlib.Path(__file__).parent, env=env, capture_output=True, text=True)
    assert done.stdout.split() == said.split(), done.stderr
