"""Code in the CUDA library: fat binaries by NVIDIA's nvFatbin, links, libraries, kernels, cooperative launches, occupancy."""

import ctypes
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import cuda
import cuda_driver as driver
import numpy
import pytest
from cuda_driver import array, call, code, out, read

from tegrarm import compile as compiler

N = 1000
DATA = numpy.arange(N, dtype=numpy.float32)
INVALID_IMAGE, NO_BINARY, INVALID_PTX, NOT_FOUND = 200, 209, 218, 500
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
