"""The sentence of a fault: the place in the program, the thread and the address. The virtual Orin reports more than a board's kernel."""

import ctypes
import os
import re
import subprocess
import sys

import cuda
import numpy
import pytest
from conftest import TEGRARM_SIM

from tegrarm import _ffi
from tegrarm.rm import RmError

LINES = "--generate-line-info"
SOURCE = """
extern "C" __global__ void touch(int *p, long long at, int wanted, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i == wanted)
        out[0] = *(volatile int *)((char *)p + at);
    out[1] = 1;
}
extern "C" __global__ void beyond(int at) {
    extern __shared__ int dynamic[];
    __shared__ int own[96];
    own[threadIdx.x] = threadIdx.x;
    __syncthreads();
    ((volatile int *)dynamic)[at + own[threadIdx.x]] = 1;
}
extern "C" __global__ void never(int *out) {
    if (threadIdx.x < 64) asm volatile("bar.sync 1, 128;");
    else asm volatile("bar.sync 2, 128;");
    out[0] = 1;
}
extern "C" __global__ void trap() { if (threadIdx.x == 33) __trap(); }
"""


@pytest.fixture(params=["12", "13"])
def kernel(request, gpu):
    return lambda name, *more: gpu.kernel(cuda.compiled(SOURCE, request.param, *more), name)


class Buffer:
    """Memory that the test frees itself."""

    def __init__(self, gpu, size):
        self.handle, address, pointer = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
        cuda.call("tegrarm_buffer_alloc", gpu.handle, size, 0, ctypes.byref(self.handle))
        cuda.call("tegrarm_buffer_address", self.handle, ctypes.byref(pointer), ctypes.byref(address))
        self.size, self.address = size, address.value

    def free(self):
        cuda.call("tegrarm_buffer_free", self.handle)


def fault(gpu, *what, **how):
    """The sentence of the fault that stops the device. The wait that fails must have the same sentence."""
    with pytest.raises(RmError) as e:
        gpu.launch(*what, **how)
    sentence = gpu.fault().sentence.decode()
    assert sentence in str(e.value)
    return sentence


def touched(gpu, kernel, address, wanted=37, grid=3, block=32):
    return fault(gpu, kernel, grid, block, numpy.uint64(0), numpy.int64(address), numpy.int32(wanted), numpy.zeros(2, numpy.int32))


def past_the_end(gpu, buffer, kernel):
    """Loads from addresses further and further after a buffer until an access fails. Returns the sentence and the address."""
    for far in (12, *(12 + (4096 << n) for n in range(16))):
        try:
            address = buffer.address + buffer.size + far
            gpu.launch(kernel, 1, 32, numpy.uint64(0), numpy.int64(address), numpy.int32(5), numpy.zeros(2, numpy.int32))
        except RmError:
            return gpu.fault().sentence.decode(), address
    raise AssertionError("everything behind the buffer is mapped")


def test_past_the_end_of_a_buffer(gpu, kernel):
    buffer = Buffer(gpu, 4096)
    sentence, address = past_the_end(gpu, buffer, kernel("touch"))
    assert f" at {address:#x}, " in sentence
    far, size, start = re.search(r"([\d,]+) bytes past the end of the ([\d,]+)-byte buffer at (0x[0-9a-f]+)", sentence).groups()
    assert int(start, 16) + int(size.replace(",", "")) + int(far.replace(",", "")) == address


def test_who_and_where(gpu, kernel):
    sentence = touched(gpu, kernel("touch", LINES), 0x1234_5678_9000)
    assert re.match(r"in kernel touch\+0x[0-9a-f]+ \(.*test\.cu:5\); the simulated GPU knows: ", sentence)
    assert "LDG.E" in sentence and "block (1, 0, 0), thread (5, 0, 0) (warp 0, lanes 0x00000020)" in sentence
    assert " at 0x123456789000, outside all buffers of the device" in sentence
    assert "was stopped by an MMU fault (nvgpu code 31); SM " in sentence and "access refused by the MMU" in sentence
    assert "; the kernel's log: [MMU FAULT] " in sentence and "dmesg" not in sentence


def test_without_lines_there_is_the_offset(gpu, kernel):
    sentence = touched(gpu, kernel("touch"), 0x1234_5678_9000)
    offset = int(re.match(r"in kernel touch\+0x([0-9a-f]+); ", sentence)[1], 16)
    pc = int(re.search(r"at pc 0x([0-9a-f]+)", sentence)[1], 16)
    assert offset % 16 == 0 and 0 < offset < 0x1000 and gpu.fault().pc == pc


def test_a_null_pointer(gpu, kernel):
    assert "at 0x8, which is a null pointer plus an offset" in touched(gpu, kernel("touch"), 8)


def test_memory_that_was_freed(gpu, kernel):
    first, second, touch = Buffer(gpu, 64), Buffer(gpu, 1 << 20), kernel("touch")
    # Memory is freed when all earlier work has finished, and loading the module is work, too. This launch waits for it.
    gpu.launch(touch, 1, 32, numpy.uint64(0), numpy.int64(first.address), numpy.int32(5), numpy.zeros(2, numpy.int32))
    first.free()
    second.free()
    sentence = touched(gpu, touch, second.address + 0x3_0000)
    # The launch has also freed its own array, which was the first call.
    assert f"in the 1,048,576-byte buffer at {second.address:#x}, which was freed by call #3 of tegrarm_buffer_free" in sentence


def test_a_misaligned_address_says_what_was_wanted(gpu, kernel):
    buffer = Buffer(gpu, 4096)
    sentence = touched(gpu, kernel("touch", LINES), buffer.address + 6)
    assert f"of 4 bytes at {buffer.address + 6:#x}, misaligned by 2, in the 4,096-byte buffer" in sentence
    assert "test.cu:5" in sentence and "misaligned address (0xf)" in sentence and "thread (5, 0, 0)" in sentence


def test_beyond_shared_memory(gpu, kernel):
    sentence = fault(gpu, kernel("beyond", LINES), 2, 96, numpy.int32(10000), shared=256)
    assert "STS" in sentence and "test.cu:13" in sentence
    found = re.search(r"the block has ([\d,]+) bytes of shared memory and the kernel's own arrays use ([\d,]*\d)", sentence)
    allocated, used = found.groups()
    assert used == "384" and int(allocated.replace(",", "")) == 384 + 256 + 1024


def test_a_trap(gpu, kernel):
    sentence = fault(gpu, kernel("trap", LINES), 4, 64)
    assert "was stopped by a trap" in sentence and "test.cu:20" in sentence and "thread (33, 0, 0)" in sentence
    assert gpu.fault().cause == _ffi.TEGRARM_FAULT_TRAP


def test_an_illegal_instruction(gpu, kernel):
    """The instruction that ends the kernel is replaced by one that does not exist."""
    cubin = bytearray(cuda.compiled('extern "C" __global__ void k(int *p) { *p = 1; }'))
    at = cubin.index((0x794D).to_bytes(8, "little"))  # EXIT
    cubin[at:at + 2] = b"\xff\x7f"
    with pytest.raises(RmError):
        gpu.launch(gpu.kernel(bytes(cubin), "k"), 1, 32, numpy.zeros(1, numpy.int32))
    sentence = gpu.fault().sentence.decode()
    assert "illegal instruction encoding (0x9)" in sentence and sentence.startswith("in kernel k+0x")
    assert gpu.fault().cause == _ffi.TEGRARM_FAULT_SM


def test_a_barrier_that_half_the_block_never_reaches(gpu, kernel):
    sentence = fault(gpu, kernel("never", LINES), 1, 128, numpy.zeros(1, numpy.int32))
    for warp, barrier, line in ((0, 1, 16), (1, 1, 16), (2, 2, 17), (3, 2, 17)):
        assert re.search(rf"warp {warp}: lanes 0xffffffff of 0xffffffff wait at barrier {barrier} for warps or lanes that never come "
                         rf"at pc 0x[0-9a-f]+ \(kernel never\+0x[0-9a-f]+ \([^)]*test\.cu:{line}\)\)", sentence), sentence


JUMPS = """
typedef int (*function)(int);
__device__ int plus(int x) { return x + 1; }
__device__ function functions[2] = {plus, 0};
__device__ __noinline__ int caller(function f, int x) { return f(x) + 2; }
extern "C" __global__ void jumps(int *p, int n) { p[threadIdx.x] = caller(functions[n], threadIdx.x); }
"""


@pytest.mark.parametrize("way", ["12-debug", "13-debug"])
def test_a_null_pointer_to_a_function_names_the_kernel_and_the_caller(gpu, way):
    """In debug code it is a jump to address 0. In other code a pointer to a function is a number from which NVRTC looks up a distance."""
    kernel = gpu.kernel(cuda.compiled(JUMPS, way, "--generate-line-info"), "jumps")
    sentence = fault(gpu, kernel, 1, 32, numpy.zeros(32, numpy.int32), numpy.int32(1))
    assert re.match(r"in function \S*caller\S*\+0x[0-9a-f]+ \(.*test\.cu:5\), called by kernel jumps; ", sentence), sentence
    jump = "; a jump to address 0x0, where there is no code: a pointer to a function is null or was never set; the simulated"
    assert jump in sentence, sentence


TORN = """
extern "C" __global__ void torn(int *p, volatile int *flag) {
    if (threadIdx.x < 16) {
        p[threadIdx.x] = 1;
        __syncthreads();
    } else {
        while (!*flag);
    }
}
"""


def test_a_wait_says_that_half_a_warp_waits_at_a_barrier(gpu):
    kernel = gpu.kernel(cuda.compiled(TORN, "12", "--generate-line-info"), "torn")
    with gpu.lent(numpy.zeros(32, numpy.int32)) as p, gpu.lent(numpy.zeros(1, numpy.int32)) as flag:
        fence, values = ctypes.c_uint64(), [p, flag]
        pointers = (ctypes.c_void_p * 2)(*[a.ctypes.data for a in values])
        config = cuda.launch_config(cuda.triple(1), cuda.triple(32))
        cuda.call("tegrarm_launch", None, kernel, ctypes.byref(config), pointers, 2, ctypes.byref(fence))
        place = r"pc 0x[0-9a-f]+ \(kernel torn\+0x[0-9a-f]+ \([^()]*test\.cu:\d\)\)"
        says = (f"lanes 0x0000ffff of warp 0 wait at WARPSYNC at {place} for the other lanes of it, "
                "of which 0xffff0000 have not come and are at ")
        sentence = ""
        for _ in range(1000):  # Until the simulated GPU has noticed.
            with pytest.raises(RmError) as why:
                cuda.call("tegrarm_wait", gpu.handle, fence, 20_000_000)
            sentence = str(why.value)
            if re.search(says + place, sentence):
                break
        # The buffers can be freed only when the kernel has ended.
        stopped = ctypes.c_uint32()
        cuda.call("tegrarm_device_stop", gpu.handle, ctypes.byref(stopped))
        gpu.recover()
    assert re.search(says + place, sentence) and "reports no fault" in sentence, sentence


DIES = f"""
import sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import cuda, numpy
gpu = cuda.Gpu()
try:
    kernel = gpu.kernel(cuda.compiled('extern "C" __global__ void k(int *p) {{ *p = 1; }}'), "k")
    for _ in range(3):
        gpu.launch(kernel, 1, 32, numpy.uint64(0))
except Exception as e:
    print("refused:", e)
"""


@pytest.mark.parametrize(("faults", "times"), [("1", 1), ("0", 0)])
def test_a_dead_channel_is_told_once(faults, times):
    environment = {k: v for k, v in os.environ.items() if k != "TEGRARM_LOG"} | {"TEGRARM_SIM_FAULTS": faults}
    out = subprocess.run([sys.executable, "-c", DIES], env=environment, capture_output=True, text=True, check=True)
    assert "refused:" in out.stdout and out.stderr.count("[MMU FAULT]") == times


BELOW = "test_kernels_faults_below"


@pytest.mark.skipif(BELOW in os.environ, reason="this is the run that this test starts")
@pytest.mark.skipif(not TEGRARM_SIM.exists(), reason="no tegrarm-sim: make sim")
def test_every_sentence_is_the_same_below_the_simulator():
    """Out of process the details come from a file of the supervisor, which must be that of this fault and of no earlier one."""
    environment = os.environ | {"TEGRARM_BACKEND": "nvgpu", BELOW: "1"}
    run = [TEGRARM_SIM, "run", "--", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not told_once", __file__]
    done = subprocess.run(run, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-5000:]
