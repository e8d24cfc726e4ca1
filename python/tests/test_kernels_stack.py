"""The stack of a thread: what a kernel gets that does not say how much it needs, and the limit that changes it."""

import cuda
import numpy
import pytest

from tegrarm.rm import RmError

# Each level of the recursion keeps 16 bytes and more, which it reads after the call.
SOURCE = """
__device__ __noinline__ int down(int n, int x) {
    volatile int kept[4] = {x, x + 1, x + 2, x + 3};
    int r = n ? down(n - 1, x * 3 + n) : x;
    return r ^ kept[x & 3];
}
extern "C" __global__ void k(const int *depth, int *out) { out[threadIdx.x] = down(depth[threadIdx.x], threadIdx.x); }
"""


def down(n, x):
    """The same without a stack, in 32 bits."""
    levels = [x & 0xFFFFFFFF]
    for level in range(n, 0, -1):
        levels.append((levels[-1] * 3 + level) & 0xFFFFFFFF)
    r = levels[-1]
    for x in reversed(levels):
        r ^= (x + (x & 3)) & 0xFFFFFFFF
    return r


def run(gpu, way, depth):
    depths, out = numpy.full(64, depth, numpy.int32) - numpy.arange(64, dtype=numpy.int32) % 4, numpy.zeros(64, numpy.int32)
    gpu.launch(gpu.kernel(cuda.compiled(SOURCE, way), "k"), 1, 64, depths, out)
    assert out.tolist() == [numpy.uint32(down(int(n), x)).astype(numpy.int32) for x, n in enumerate(depths)]


@pytest.fixture
def opened():
    """Opens devices; closes them after the test."""
    devices = []

    def open_(**how):
        devices.append(cuda.Gpu(**how))
        return devices[-1]

    yield open_
    for device in devices:
        device.close()


@pytest.mark.parametrize("way", cuda.TRIED)
def test_a_kernel_that_recurses_has_cudas_1024_bytes(opened, way):
    """NVRTC 12.9 says that such a kernel needs no stack. Other versions say that its stack is unknown. Both get the default."""
    gpu = opened()
    assert gpu.stack() >= 1024
    run(gpu, way, 15)  # frames of at most 64 bytes


@pytest.mark.parametrize("way", cuda.TRIED)
def test_deeper_recursion_needs_the_limit(opened, way):
    # Code for debuggers looks at its stack pointer itself, and traps.
    why = "BPT.TRAP.*stopped by a trap" if way.endswith("debug") else "out of range of shared or local memory"
    with pytest.raises(RmError, match=why):
        run(opened(), way, 200)
    gpu = opened(stack=1 << 14)
    assert gpu.stack() >= 1 << 14
    run(gpu, way, 200)


def test_the_limit_changes_while_kernels_run(opened):
    gpu = opened()
    for stack, depth in ((1 << 12, 50), (1 << 15, 400), (1 << 10, 15), (1 << 18, 3500)):
        gpu.set_stack(stack)
        run(gpu, "12", depth)
