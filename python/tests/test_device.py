"""`tegrarm.Device`: arrays, kernels, queues and clocks from Python, against numpy."""

import array
import ctypes
import gc
import os
import select
import threading
import time

import numpy as np
import pytest

import tegrarm

SCALE = """
extern "C" __global__ void scale(float *x, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}
"""
ADD = """
__global__ void add(const float *a, const float *b, float *c) { int i = threadIdx.x; c[i] = a[i] + b[i]; }
"""
MANY = """
#include <cuda_fp16.h>
struct Pair { int a; float b; };
extern "C" __global__ void many(double *out, char c, unsigned short s, long long l, double d, __half h, Pair p, bool b) {
  out[0] = c; out[1] = s; out[2] = l; out[3] = d; out[4] = __half2float(h); out[5] = p.a; out[6] = p.b; out[7] = b;
}
template <typename T> __global__ void twice(T *x) { x[threadIdx.x] += x[threadIdx.x]; }
"""
SPIN = """
extern "C" __global__ void spin(volatile int *flag) { while (*flag == 0) { } }
extern "C" __global__ void bad(int *where) { *where = 1; }
"""


@pytest.fixture(scope="module")
def dev():
    with tegrarm.Device() as device:
        yield device


@pytest.fixture(scope="module")
def scale(dev):
    return dev.compile(SCALE)["scale"]


def floats(*shape):
    return np.random.default_rng(0).random(shape, dtype=np.float32)


# *** kernels ***


def test_a_kernel_is_called_with_arrays_and_numbers(dev, scale):
    x = floats(100)
    a = dev.array(x)
    fence = scale[4, 32](a, 3.0, 100)
    fence.wait()
    assert fence.done
    np.testing.assert_array_equal(a.numpy(), x * np.float32(3))


def test_numbers_get_the_type_of_the_parameter(dev, scale):
    a = dev.array(np.ones(4, np.float32))
    scale[1, 4](a, 2, 4)  # an int for a float, as in C
    scale[1, 4](a, np.float32(2), np.int32(4))
    assert a.tolist() == [4.0] * 4
    with pytest.raises(TypeError, match="argument 2 of scale, 4.5, .*fraction"):
        scale[1, 4](a, 2.0, 4.5)
    with pytest.raises(TypeError, match="argument 2 of scale"):
        scale[1, 4](a, 2.0, 1 << 40)
    with pytest.raises(TypeError, match="parameter 1 of scale is float, and the argument is an array"):
        scale[1, 4](a, a, 4)
    with pytest.raises(TypeError, match="3 parameters, and 2 arguments"):
        scale[1, 4](a, 2.0)
    with pytest.raises(TypeError, match="argument 0 of scale is a ndarray"):
        scale[1, 4](np.ones(4, np.float32), 2.0, 4)


def test_every_kind_of_argument(dev):
    class Pair(ctypes.Structure):
        _fields_ = [("a", ctypes.c_int), ("b", ctypes.c_float)]

    module = dev.compile(MANY, kernels=["twice<int>"])
    out = dev.zeros(8, "float64")
    module["many"][1, 1](out, -3, 65535, -(1 << 40), 0.5, 1.5, Pair(7, 0.25), True)
    assert out.tolist() == [-3.0, 65535.0, -float(1 << 40), 0.5, 1.5, 7.0, 0.25, 1.0]
    with pytest.raises(TypeError, match="parameter 6 of many has 8 bytes, and c_int has 4"):
        module["many"][1, 1](out, -3, 1, 1, 0.5, 1.5, ctypes.c_int(3), True)
    x = dev.array([1, 2, 3], "int32")
    module["twice<int>"][1, 3](x)
    assert x.tolist() == [2, 4, 6]


def test_a_cubin_has_sizes_and_no_types(dev):
    from tegrarm import compile
    image = compile.compiled(SCALE.encode(), "scale.cu")
    with dev.load(image) as module:
        assert module.names == ["scale"]
        a = dev.array(np.ones(4, np.float32))
        module[1, 4](a, 3.0, 4)  # the only kernel
        module.scale[1, 4](a, np.float32(2), 4)
        assert a.tolist() == [6.0] * 4
    with pytest.raises(tegrarm.RmError, match="NV_ERR_INVALID_ARGUMENT"):
        dev.load(b"no cubin")


def test_what_is_no_image_and_what_objects_look_like(dev, scale):
    for wrong in ("kernel.cubin", 5, None):
        with pytest.raises(TypeError, match="takes the bytes of a cubin"):
            dev.load(wrong)
    assert repr(dev.fence()).startswith("<tegrarm.Fence ")
    assert repr(dev.queue().fence()).endswith(f" of queue {dev.queue().number - 1}>")
    assert "registers=" in repr(scale.attributes) and "sm_version=2055" in repr(dev.properties)
    assert tegrarm.__version__ == tegrarm.version()
    closed = dev.zeros(2)
    closed.close()
    for look in (closed.tolist, closed.item, closed.numpy, closed.copy, lambda: closed.address):
        with pytest.raises(ValueError, match="array is closed|has 2 items"):
            look()
    other = tegrarm.Device()
    array, queue, fence = other.zeros(2), other.default_queue, other.fence()
    other.close()
    for use in (array.tolist, queue.fence, fence.wait, other.wait, other.memory, lambda: fence.done):
        with pytest.raises(ValueError, match="is closed"):
            use()


def test_names_of_cxx_are_found(dev):
    module = dev.compile(ADD)
    a, b, c = dev.array(floats(8)), dev.array(floats(8)), dev.empty(8)
    module.add[1, 8](a, b, c)
    np.testing.assert_array_equal(c.numpy(), a.numpy() + b.numpy())
    with pytest.raises(KeyError, match="no kernel 'sub': it has _Z3add"):
        _ = module["sub"]
    assert not hasattr(module, "sub")


def test_what_the_compiler_objects_to_is_its_log(dev):
    with pytest.raises(tegrarm.CompileError, match="undefined") as caught:
        dev.compile("__global__ void f(int *x) { x[0] = undefined; }", name="f.cu")
    assert "f.cu(1)" in caught.value.log


def test_attributes_occupancy_and_cooperation(dev, scale):
    assert scale.attributes.registers > 0 and scale.attributes.max_threads >= 1024
    assert [size for _, size in scale.parameters] == [8, 4, 4]
    assert scale.occupancy(256) == 6  # an SM has 1,536 threads
    a = dev.zeros(4)
    scale.launch(1, 4, a, 1.0, 4, cooperative=True).wait()
    with dev.queue(priority="high") as queue:
        scale.launch(1, 4, a, 1.0, 4, cooperative=True, queue=queue).wait()
    with pytest.raises(tegrarm.RmError, match="cooperative launch.*room"):
        scale.launch(1 << 20, 1024, a, 1.0, 4, cooperative=True)


def test_variables_of_a_module(dev):
    module = dev.compile('__constant__ int offset; extern "C" __global__ void f(int *x) { x[threadIdx.x] = offset + threadIdx.x; }')
    module.write("offset", np.int32(40))
    x = dev.zeros(3, "int32")
    module.f[1, 3](x)
    assert x.tolist() == [40, 41, 42] and module.variable("offset")[1] == 4


# *** arrays ***


@pytest.mark.parametrize("name", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32",
                                  "float64", "complex64", "complex128"])
def test_views_of_numpy_are_the_memory(dev, name):
    x = np.arange(6).reshape(2, 3).astype(name)
    a = dev.array(x)
    for view in (a.numpy(), np.asarray(a), np.from_dlpack(a), np.asarray(memoryview(a))):
        assert view.dtype == x.dtype and view.shape == (2, 3) and view.ctypes.data == a.pointer
        np.testing.assert_array_equal(view, x)
    a.numpy()[1, 2] = 1
    assert np.asarray(a)[1, 2] == 1
    assert a.dtype == x.dtype and a.dtype == name and a.nbytes == x.nbytes and a.itemsize == x.itemsize and len(a) == 2
    again = dev.from_dlpack(a)
    assert again.address == a.address


def test_bfloat16_has_no_view_but_its_bits(dev):
    a = dev.zeros(4, "bfloat16")
    with pytest.raises(AttributeError, match="view"):
        _ = a.__array_interface__
    assert a.view("uint16").numpy().dtype == np.uint16


def test_the_buffer_protocol(dev):
    a = dev.array(np.arange(6, dtype=np.int32).reshape(2, 3))
    view = memoryview(a)
    assert (view.format, view.shape, view.strides, view.nbytes, view.readonly) == ("i", (2, 3), (12, 4), 24, False)
    view[1, 2] = 9
    assert a.tolist() == [[0, 1, 2], [3, 4, 9]] and bytes(a) == np.array([0, 1, 2, 3, 4, 9], np.int32).tobytes()
    assert array.array("i", view.cast("B").cast("i")).tolist() == [0, 1, 2, 3, 4, 9]


def test_a_view_outlives_its_array_and_the_device():
    with tegrarm.Device() as device:
        a = device.array(np.arange(4, dtype=np.float32))
        view, pack, kept = a.numpy(), np.from_dlpack(a), memoryview(a)
        a.close()
        with pytest.raises(ValueError, match="closed"):
            _ = a.address
        assert view.tolist() == [0, 1, 2, 3]
        b = device.array(np.arange(3, dtype=np.float32)).numpy()
    gc.collect()
    assert view.tolist() == pack.tolist() == kept.tolist() == [0, 1, 2, 3] and b.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="closed"):
        device.empty(3)


def test_dlpack_of_both_ages_and_a_capsule_that_nobody_takes(dev):
    from tegrarm import dlpack
    a = dev.array(floats(4))
    before = len(dlpack._given)
    old, new = a.__dlpack__(), a.__dlpack__(max_version=(1, 2))
    assert '"dltensor"' in repr(old) and '"dltensor_versioned"' in repr(new) and len(dlpack._given) == before + 2
    del old, new
    assert len(dlpack._given) == before

    class Old:
        """A library from before DLPack 1.0."""

        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, stream=None):
            return a.__dlpack__()

    b = np.from_dlpack(a)
    assert b.ctypes.data == a.pointer
    c = dev.from_dlpack(Old())
    assert c.pointer == a.pointer and c.tolist() == a.tolist()
    c.close()
    del b, c
    gc.collect()
    assert len(dlpack._given) == before
    for refused in ({"stream": 1}, {"dl_device": (2, 0)}, {"copy": True}):
        with pytest.raises(BufferError):
            a.__dlpack__(**refused)


def test_memory_of_numpy_without_a_copy(dev, scale):
    for give in (dev.from_dlpack, dev.wrap):
        x = floats(1000)[3:]  # not at the start of a page
        want = x * np.float32(2)
        a = give(x)
        assert a.pointer == x.ctypes.data
        scale[8, 128](a, 2.0, 997).wait()
        np.testing.assert_array_equal(x, want)
        a.close()
    with pytest.raises(BufferError):
        dev.wrap(b"only read")
    with pytest.raises(BufferError, match="follow each other in memory"):
        dev.from_dlpack(floats(4, 4)[:, 1])
    reads = floats(4)
    reads.flags.writeable = False
    with pytest.raises(BufferError, match="read"):
        dev.from_dlpack(reads)


def test_the_cuda_array_interface_says_the_gpus_address(python):
    """In a process of its own: the attribute is missing where another test has loaded a libcuda.so.1."""
    python("""
import tegrarm
with tegrarm.Device() as dev:
    a = dev.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype="float32")
    interface = a.__cuda_array_interface__
    assert interface["data"] == (a.address, False) and interface["shape"] == (2, 3) and interface["typestr"] == "<f4", interface
""")


def test_parts_are_views(dev):
    x = floats(4, 5, 6)
    a = dev.array(x)
    for key in (1, -1, slice(1, 3), (2, 3), (0, slice(1, 4)), (3, 2, 5), (slice(1, 2), slice(None)), ...):
        np.testing.assert_array_equal(a[key].numpy(), x[key])
        assert a[key].pointer == a.pointer + x[key].ctypes.data - x.ctypes.data if x[key].shape else True
    for key in ((slice(0, 2), 1), slice(0, 4, 2), (slice(0, 2), slice(0, 1))):
        with pytest.raises(IndexError, match="follow each other in memory"):
            _ = a[key]
    with pytest.raises(IndexError, match="axis 0 has 4 items"):
        _ = a[4]
    a[1] = np.zeros((5, 6), np.float32)
    a[2, 1:3] = 7
    x[1], x[2, 1:3] = 0, 7
    np.testing.assert_array_equal(a.numpy(), x)
    np.testing.assert_array_equal(a.reshape(20, -1).numpy(), x.reshape(20, 6))
    assert a[0, 0, 0].item() == float(a[0, 0, 0]) == x[0, 0, 0]
    assert [part.shape for part in a] == [(5, 6)] * 4


def test_arrays_of_lists_and_fills(dev):
    assert dev.array([[1, 2], [3, 4]]).dtype == "int64" and dev.array([1.5]).tolist() == [1.5]
    assert dev.array([[1, 2], [3, 4]], "float16").tolist() == [[1.0, 2.0], [3.0, 4.0]]
    with pytest.raises(TypeError, match="same length"):
        dev.array([[1], [2, 3]])
    for name, value in (("float32", 0.1), ("float64", 0.1), ("float64", 0), ("int64", 5), ("uint8", 200), ("float16", -2), ("bool", True)):
        np.testing.assert_array_equal(dev.full((3, 5), value, name).numpy(), np.full((3, 5), value, name))
    assert dev.empty((0, 3)).tolist() == [] and dev.empty(()).shape == ()
    with pytest.raises(ValueError):
        dev.empty(-1)
    with pytest.raises(TypeError, match="float17"):
        dev.empty(3, "float17")
    with pytest.raises(ValueError, match="12 bytes of float32, and this one 24 of float64"):
        dev.empty(3, "float64").copy_from(np.zeros(3, np.float32))
    into = np.zeros((2, 2), np.float32)
    dev.full((2, 2), 3).copy_to(into)
    assert into.tolist() == [[3, 3], [3, 3]]


def test_a_dmabuf_goes_out_and_comes_back(dev, scale):
    a = dev.array(floats(64))
    descriptor, offset = a[32:].export()
    try:
        b = dev.import_dmabuf(descriptor, 32, "float32", offset)
    finally:
        os.close(descriptor)
    want = a.numpy()[32:] * np.float32(5)
    scale[1, 32](b, 5.0, 32).wait()
    np.testing.assert_array_equal(a.numpy()[32:], want)


# *** work ***


def test_queues_wait_for_each_other(dev, scale):
    with dev.queue("copy") as copies, dev.queue(priority="high") as compute:
        a, b = dev.array(floats(64)), dev.empty(64)
        copied = copies.copy(b, a)
        compute.after(copied)
        done = scale[1, 64, 0, compute](b, 2.0, 64)
        done.wait()
        np.testing.assert_array_equal(b.numpy(), a.numpy() * np.float32(2))
        assert {copies.number, compute.number, 0} == {0, copies.number, compute.number} and copies.number != compute.number
    with pytest.raises(ValueError, match="'compute', 'copy'"):
        dev.queue("display")


def test_a_fence_is_polled_and_calls_back(dev, scale):
    a, told, ready = dev.zeros(4), [], threading.Event()
    fence = scale[1, 4](a, 1.0, 4)
    fence.then(lambda error: (told.append(error), ready.set()))
    assert select.select([fence], [], [], 60)[0] == [fence]
    assert ready.wait(60) and told == [None]
    with pytest.raises(tegrarm.RmError):
        tegrarm.Fence(dev, 1 << 40).then(print)


def test_the_gpu_says_how_long_it_took(dev, scale):
    a = dev.zeros(1024)
    with dev.timer() as timer:
        scale[8, 128](a, 1.0, 1024)
    assert timer.ns > 0 and timer.seconds == timer.ns / 1e9
    with dev.profile() as records:
        scale[8, 128](a, 1.0, 1024).wait()
        a.fill(1)
    assert [(r.kind, r.name) for r in records] == [("kernel", "scale"), ("fill", "fill")]
    assert all(r.end_ns > r.start_ns for r in records)
    gpu, cpu, off_by = dev.time()
    assert abs(records[0].start_ns - gpu) < 60e9 and cpu > 0 and off_by >= 0


def test_a_wait_ends_in_time_and_with_ctrl_c(python):
    out = python(f"""
import os, signal, threading, tegrarm
# A job that a shell started in the background ignores the signal, and its programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
dev = tegrarm.Device()
spin = dev.compile({SPIN!r})["spin"]
flag = dev.zeros(1, "int32")
view = flag.memoryview()
fence = spin[1, 1](flag)
try: fence.wait(timeout=0.01)
except TimeoutError as error: assert isinstance(error, tegrarm.RmTimeout), error
else: raise SystemExit("the kernel ended by itself")
try:
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    dev.wait()
except KeyboardInterrupt: print("interrupted")
view[0] = 1
dev.wait()
print("ended")
""")
    assert out.split() == ["interrupted", "ended"]


def test_a_fault_is_an_error_and_the_device_recovers(scale):
    with tegrarm.Device() as device:
        bad = device.compile(SPIN)["bad"]
        a = device.array([1.0, 2.0], "float32")
        with pytest.raises(tegrarm.RmError, match="NV_ERR_RESET_REQUIRED"):
            bad[1, 1](ctypes.c_uint64(0x1234567000)).wait()
        assert device.fault().text
        assert device.recover() == 1 and device.fault() is None
        device.compile(SCALE)["scale"][1, 2](a, 2.0, 2)
        assert a.tolist() == [2.0, 4.0]


def test_arrays_belong_to_their_device(dev, scale):
    with tegrarm.Device() as other:
        with pytest.raises(ValueError, match="another device"):
            scale[1, 1](other.zeros(1), 1.0, 1)
    assert "closed" in repr(other)


def test_triton_says_how_to_install_it(python):
    code = "import sys; sys.modules['triton'] = None\ntry: import tegrarm.triton\nexcept ImportError as error: print(error)"
    assert "pip install tegrarm[triton]" in python(code)


def test_the_device_says_what_it_is(dev):
    assert dev.arch == "sm_87" and dev.name and "sm_87" in repr(dev)
    available, total = dev.memory()
    assert 0 < available <= total
    assert dev.state().max_clock_hz >= dev.state().clock_hz


def test_the_load_is_there_while_the_gpu_works_and_then_it_is_not(dev, scale):
    a = dev.zeros(1 << 16)
    working = ((scale[1 << 9, 128](a, 1.0, 1 << 16), dev.state().load)[1] for _ in range(10000))
    assert 0 < next(filter(None, working)) <= 1000
    assert any(dev.state().load == 0 or time.sleep(0.01) for _ in range(10000))


def test_syncpoints_and_sync_files(dev):
    with dev.queue() as first, dev.queue() as second:
        a = dev.zeros(4, "uint8")
        number, threshold = first.fence().syncpoint()
        second.after_syncpoint(number, threshold + 1)
        fence = a.fill(3, queue=second)
        file = fence.sync_file()
        try:
            assert not select.select([file], [], [], 0)[0] and not fence.done
            dev.default_queue.after_sync_file(file)
            last = a.fill(4)
            assert first.fence().syncpoint() == (number, threshold + 1)
            last.wait(60)
            assert select.select([file], [], [], 60)[0] and a.tolist() == [4] * 4
        finally:
            os.close(file)


def test_nothing_is_left_behind(python):
    """In a process without another device: an open one keeps some descriptors for the buffers that were mapped last."""
    python(f"""
import gc, os, numpy as np, tegrarm

def everything():
    with tegrarm.Device() as device, device.compile({SCALE!r}) as module, device.queue() as queue:
        a = device.array(np.ones(64, np.float32))
        module.scale[1, 64, 0, queue](a, 2.0, 64).wait()
        device.from_dlpack(a.numpy().copy())
        with device.timer() as timer:
            pass
        return timer.ns

def held():
    gc.collect()
    return len(os.listdir("/proc/self/fd")), open("/proc/self/maps").read().count("memfd")

everything()
before = held()
for _ in range(3): everything()
assert held() == before, (held(), before)
""")


def test_a_forked_child_ends_nothing_of_its_parents(dev):
    a = dev.array(floats(4))
    if (child := os.fork()) == 0:
        a.close()
        gc.collect()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert len(a.tolist()) == 4


@pytest.mark.parametrize(("header", "module", "wheel"), [
    ("cooperative_groups.h", "nvidia.cuda_cccl", "nvidia-cuda-cccl-cu12"), ("cuda/atomic", "nvidia.cuda_cccl", "nvidia-cuda-cccl-cu12"),
    ("mma.h", "nvidia.cuda_nvcc", "nvidia-cuda-nvcc-cu12"), ("curand_kernel.h", "nvidia.curand", "nvidia-curand-cu12")])
def test_headers_of_wheels_are_found_or_named(dev, header, module, wheel, monkeypatch):
    source = f'#include <{header}>\nextern "C" __global__ void k(int *p) {{ *p = 1; }}'
    if tegrarm.compile.installed(module):
        dev.compile(source)
    found = tegrarm.compile.installed
    monkeypatch.setattr(tegrarm.compile, "installed", lambda name: [] if name == module else found(name))
    with pytest.raises(tegrarm.CompileError, match=f"pip install {wheel}$"):
        dev.compile(source)


def test_a_header_of_the_host_is_named(dev):
    with pytest.raises(tegrarm.CompileError, match="<stdint.h> is a header of the host's C library"):
        dev.compile("#include <stdint.h>")
