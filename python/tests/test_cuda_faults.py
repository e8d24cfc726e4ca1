"""Errors of the CUDA library: what stops a kernel has CUDA's result for it, stays until the context ends, and is said in words."""

import ctypes
import os
import pathlib
import subprocess
import sys
import threading

import cuda
import cuda_driver as driver
import numpy
import pytest
from cuda_driver import array, call, code, out, read

SOURCE = """
extern "C" __global__ void outside(char *p) { *(volatile int *)(p + (1ull << 40)) = 1; }
extern "C" __global__ void misaligned(char *p) { *(volatile int *)(p + 2) = 1; }
extern "C" __global__ void asserts(char *p) { assert(p == nullptr); }
extern "C" __global__ void traps(char *) { __trap(); }
extern "C" __global__ void past_shared(char *p) { extern __shared__ int s[]; ((volatile int *)s)[100000 + (p == nullptr)] = 1; }
extern "C" __global__ void illegal(int *p) { *p = 1; }
"""
# In debug code, a call through a pointer is a jump to the address that it has. Instructions are at multiples of 16.
JUMPS = """
typedef int (*function)(int);
__device__ __noinline__ int caller(function f, int x) { return f(x) + 2; }
extern "C" __global__ void jumps(long long *p) { *p = caller((function)(*p + 8), 1); }
"""
EXIT = (0x794D).to_bytes(8, "little")


def illegal() -> bytes:
    """The instruction that ends a kernel is replaced by one that does not exist."""
    cubin = bytearray(cuda.compiled('extern "C" __global__ void illegal(int *p) { *p = 1; }'))
    cubin[cubin.index(EXIT) : cubin.index(EXIT) + 2] = b"\xff\x7f"
    return bytes(cubin)


CASES = {"outside": 700, "misaligned": 716, "asserts": 710, "traps": 719, "past_shared": 700, "illegal": 715, "jumps": 718}


def broken(name: str) -> int:
    """A kernel that fails."""
    image = {"illegal": illegal, "jumps": lambda: cuda.compiled(JUMPS, "12-debug")}.get(name, lambda: cuda.compiled(SOURCE))()
    return driver.function(out("cuModuleLoadData", image), name)


@pytest.mark.parametrize("name,result", CASES.items())
def test_a_fault_has_cudas_result_until_its_context_ends(name: str, result: int) -> None:
    with driver.context():
        memory = array(numpy.zeros(4, numpy.int32))
        driver.launch(broken(name), 1, 32, 0, memory)
        assert code("cuCtxSynchronize") == result
        # Every later call says so, and the first fault is the one.
        assert code("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), 64) == result
        assert code("cuMemcpyDtoH_v2", numpy.zeros(4, numpy.int32), memory, 16) == result
        assert code("cuStreamQuery", 0) == result and code("cuCtxSynchronize") == result
    with driver.context():
        assert (read(array(numpy.arange(4)), numpy.zeros(4, int)) == numpy.arange(4)).all(), "another context works"


def test_a_kernel_without_end_is_stopped_when_another_context_waits() -> None:
    """It is nvgpu's context-switch timeout. A kernel that nobody waits for is not stopped, on a Jetson or here."""
    with driver.context() as first:
        endless = driver.function(driver.module('extern "C" __global__ void spins(volatile int *p) { while (!*p); }'), "spins")
        driver.launch(endless, 1, 32, 0, array(numpy.zeros(1, numpy.int32)))
        with driver.context():
            memory = array(numpy.zeros(4, numpy.float32))
            driver.launch(driver.function(driver.module(), "add"), 1, 4, 0, memory, 1.0, ctypes.c_int(4))
            assert (read(memory, numpy.zeros(4, numpy.float32)) == 1).all(), "the other context goes on"
        call("cuCtxSetCurrent", first)
        assert code("cuCtxSynchronize") == 702
        assert code("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), 64) == 702


def said(program: str, level: str | None) -> str:
    """What a program of its own writes to standard error. It must end with status 0."""
    env = {name: value for name, value in os.environ.items() if name != "TEGRARM_LOG"} | ({"TEGRARM_LOG": level} if level else {})
    done = subprocess.run([sys.executable, "-c", program], cwd=pathlib.Path(__file__).parent, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stderr


FAULT = """
import cuda_driver as driver
import numpy
from test_cuda_faults import broken
with driver.context():
    driver.launch(broken("misaligned"), 1, 32, 0, driver.array(numpy.zeros(4, numpy.int32)))
    assert driver.code("cuCtxSynchronize") == 716
"""


def test_the_log_has_the_sentence_of_a_fault() -> None:
    text = said(FAULT, "error")
    assert "libcuda of libtegrarm: cuCtxSynchronize: CUDA_ERROR_MISALIGNED_ADDRESS: in kernel misaligned+0x" in text, text
    assert "misaligned by 2" in text
    assert "misaligned" not in said(FAULT, "off")


REFUSED = """
import ctypes
import cuda_driver as driver
with driver.context():
    for turn in range(3):
        assert driver.code("cuIpcGetMemHandle", ctypes.create_string_buffer(64), 0) == 801
"""


def test_a_refused_function_says_why_once() -> None:
    sentence = "cuIpcGetMemHandle is refused (CUDA_ERROR_NOT_SUPPORTED): a Tegra's memory goes to other processes as a dma-buf"
    assert said(REFUSED, None).count(sentence) == 1
    assert sentence not in said(REFUSED, "off")


TEXTURES = """
import ctypes
import cuda
import cuda_driver as driver
fetches = 'extern "C" __global__ void fetches(cudaTextureObject_t from, float *to) { *to = tex1Dfetch<float>(from, 7); }'
writes = 'extern "C" __global__ void writes(cudaSurfaceObject_t to, float *from) { surf1Dwrite(*from, to, 4); }'
with driver.context():
    for source in (fetches, writes):
        assert driver.code("cuModuleLoadData", ctypes.byref(ctypes.c_uint64()), cuda.compiled(source)) == 200
    assert driver.code("cuTexObjectCreate", ctypes.byref(ctypes.c_uint64()), bytes(200), bytes(200), None) == 801
    assert driver.code("cuSurfObjectCreate", ctypes.byref(ctypes.c_uint64()), bytes(200)) == 801
"""


def test_textures_and_surfaces_are_refused_by_name() -> None:
    text = said(TEXTURES, None)
    for sentence in ("'fetches' has the instruction TLD at offset", "'writes' has the instruction SUST at offset",
                     "cuTexObjectCreate is refused (CUDA_ERROR_NOT_SUPPORTED): textures are not executed",
                     "cuSurfObjectCreate is refused (CUDA_ERROR_NOT_SUPPORTED): surfaces are not executed"):
        assert text.count(sentence) == 1, text


def test_private_tables_and_profilers_of_nvidias_are_not_there() -> None:
    with driver.context():
        table = ctypes.c_uint64(7)
        assert code("cuGetExportTable", ctypes.byref(table), bytes(16)) == 500 and table.value == 0
        # Since CUDA 12.0, NVIDIA's own driver answers so as well.
        assert code("cuProfilerInitialize", b"", b"", ctypes.c_uint(0)) == 801
        call("cuProfilerStart")
        call("cuProfilerStop")


def test_many_threads_share_a_context_and_have_streams_of_their_own() -> None:
    """Each thread allocates, copies, launches, records and frees. No thread sees the memory or the work of another one."""
    with driver.context() as context:
        add, rounds, n = driver.function(driver.module(), "add"), 6, 1000
        wrong: list[str] = []

        def work(number: int) -> None:
            call("cuCtxSetCurrent", context)
            data = numpy.full(n, number, numpy.float32)
            stream = out("cuStreamCreate", ctypes.c_uint(1)) if number % 3 else 2  # Some use the default stream of their thread.
            event = out("cuEventCreate", ctypes.c_uint(2))
            for turn in range(rounds):
                memory = array(data)
                for _ in range(4):
                    driver.launch(add, 8, 128, stream, memory, 1.0, ctypes.c_int(n))
                call("cuEventRecord", event, stream)
                call("cuEventSynchronize", event)
                result = read(memory, data)
                if not (result == number + 4).all():
                    wrong.append(f"thread {number}, turn {turn}: {result[:3]}")
                call("cuMemFree_v2", memory)
            call("cuEventDestroy_v2", event)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        call("cuCtxSynchronize")


def test_contexts_are_a_stack_of_each_thread_and_the_primary_one_is_counted() -> None:
    def current() -> int:
        return out("cuCtxGetCurrent")

    driver.library()
    device, flags = ctypes.c_int(0), ctypes.c_uint(0)
    assert current() == 0 and code("cuCtxPopCurrent_v2", None) == 201
    first, second = (out("cuCtxCreate_v2", flags, device) for _ in range(2))
    assert current() == second and out("cuCtxPopCurrent_v2") == second and current() == first
    call("cuCtxPushCurrent_v2", second)
    elsewhere: list[int] = []

    def look() -> None:
        elsewhere.append(current())
        call("cuCtxSetCurrent", first)  # The top of this thread's own stack.
        elsewhere.append(current())

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert elsewhere == [0, first] and current() == second
    call("cuCtxDestroy_v2", second)
    assert current() == first, "the context that was destroyed was on top"
    call("cuCtxDestroy_v2", first)
    assert current() == 0
    # The primary context is the same one for everybody, until the last user releases it.
    active = ctypes.c_int(7)

    def state() -> tuple[int, int]:
        call("cuDevicePrimaryCtxGetState", device, ctypes.byref(flags), ctypes.byref(active))
        return flags.value, active.value

    if state()[1]:
        call("cuDevicePrimaryCtxReset_v2", device)
    call("cuDevicePrimaryCtxSetFlags_v2", device, ctypes.c_uint(4))
    assert state() == (4, 0)
    primary = out("cuDevicePrimaryCtxRetain", device)
    assert primary == out("cuDevicePrimaryCtxRetain", device) and state() == (4, 1) and current() == 0
    assert code("cuCtxDestroy_v2", primary) == 201
    call("cuCtxSetCurrent", primary)
    memory = array(numpy.arange(8))
    call("cuDevicePrimaryCtxRelease_v2", device)
    assert (read(memory, numpy.zeros(8, int)) == numpy.arange(8)).all(), "one user is left"
    call("cuDevicePrimaryCtxRelease_v2", device)
    assert state() == (4, 0) and code("cuDevicePrimaryCtxRelease_v2", device) == 201
    assert code("cuMemcpyDtoH_v2", numpy.zeros(8, int), memory, 64) != 0
    call("cuCtxSetCurrent", 0)
    call("cuDevicePrimaryCtxSetFlags_v2", device, ctypes.c_uint(0))
