"""Parameters of kernels: up to 32,764 bytes of them, by every way to launch, and pointers to parameters."""

import ctypes

import checked
import cuda
import numpy
import pytest

import tegrarm
from tegrarm import _ffi
from tegrarm.rm import RmError

# CUDA's limit is 4,096 bytes up to 12.0 and 32,764 bytes from 12.1 on. The compiler changes the layout above 4,352 bytes.
WORDS = [1, 1020, 1021, 1024, 1025, 1083, 1084, 1085, 1086, 2048, 5000, 8187]
KERNELS = "".join(f"""
struct B{n} {{ unsigned v[{n}]; }};
extern "C" __global__ void k{n}(const __grid_constant__ B{n} b, unsigned *out, unsigned i) {{
    unsigned n = threadIdx.x, h = b.v[{n} - 1] * 3 + b.v[i % {n}];
    for (unsigned m = n; m < {n}; m += blockDim.x) h = h * 31 + b.v[m];
    out[n] = h;
}}
extern "C" __global__ void generic{n}(const __grid_constant__ B{n} b, unsigned *out, int which) {{
    const unsigned *from = which ? b.v : out + 32;
    out[threadIdx.x] = from[threadIdx.x % {n}] + from[{n} - 1];
}}
""" for n in WORDS)


def words(n):
    return (numpy.arange(n, dtype=numpy.uint32) + n) * numpy.uint32(2654435761)


def struct(values):
    """An argument with these bytes: an item of numpy, which the launch passes as it is."""
    return numpy.void(values.tobytes())


def wanted(values, i, threads=32):
    """What `kN` computes."""
    n, h = len(values), numpy.full(threads, (int(values[-1]) * 3 + int(values[i % len(values)])) & 0xffffffff, numpy.uint64)
    for thread in range(threads):
        for value in values[thread:n:threads].tolist():
            h[thread] = (int(h[thread]) * 31 + value) & 0xffffffff
    return h.astype(numpy.uint32)


@pytest.fixture(params=cuda.TRIED)
def way(request):
    return request.param


def test_every_size_arrives(gpu, way):
    module = gpu.module(cuda.compiled(KERNELS, way))
    for n in WORDS:
        kernel, out = ctypes.c_void_p(), numpy.zeros(32, numpy.uint32)
        cuda.call("tegrarm_module_kernel", module, b"k%d" % n, ctypes.byref(kernel))
        gpu.launch(kernel, 1, 32, struct(words(n)), out, numpy.uint32(n // 2 + 7))
        assert (out == wanted(words(n), n // 2 + 7)).all(), n


def test_a_parameter_has_an_address(gpu, way):
    """Code that may read a parameter or memory through one pointer finds the address of the parameter's bank at c[0][0x40]."""
    module = gpu.module(cuda.compiled(KERNELS, way))
    for n in WORDS:
        kernel = ctypes.c_void_p()
        cuda.call("tegrarm_module_kernel", module, b"generic%d" % n, ctypes.byref(kernel))
        for which, values in enumerate((words(n) ^ 0x5a5a5a5a, words(n))):
            out = numpy.concatenate([numpy.zeros(32, numpy.uint32), words(n) ^ 0x5a5a5a5a])
            gpu.launch(kernel, 1, 32, struct(words(n)), out, numpy.int32(which))
            assert (out[:32] == values[numpy.arange(32) % n] + values[-1]).all(), (n, which)


def test_other_sizes_of_arguments_are_refused_by_name(gpu):
    kernel = gpu.kernel(cuda.compiled(KERNELS), "k8187")
    with pytest.raises(RmError, match="argument 0 has 32752 bytes, the parameter 32748"):
        gpu.launch(kernel, 1, 32, struct(words(8188)), numpy.zeros(32, numpy.uint32), numpy.uint32(0))


def test_python_passes_structures_and_queues_take_them():
    with tegrarm.Device() as device:
        module = device.load(cuda.compiled(KERNELS, "13"))
        out, kernel = device.zeros(32, "uint32"), module["k5000"]
        assert [size for _, size in kernel.parameters] == [20000, 8, 4]
        kernel[1, 32]((ctypes.c_uint32 * 5000)(*words(5000).tolist()), out, 5).wait()
        assert out.numpy().tolist() == wanted(words(5000), 5).tolist()
        with device.queue() as queue:
            kernel[1, 32, 0, queue](words(5000)[::-1].tobytes(), out, 5).wait()
        assert out.numpy().tolist() == wanted(words(5000)[::-1], 5).tolist()


def test_a_replay_changes_the_argument_after_a_large_one(gpu):
    kernel, replay, out = gpu.kernel(cuda.compiled(KERNELS), "k8187"), ctypes.c_void_p(), numpy.zeros(32, numpy.uint32)
    cuda.call("tegrarm_replay_create", gpu.handle, ctypes.byref(replay))
    values, index, launch = words(8187), numpy.uint32(1), ctypes.c_uint32()
    with gpu.lent(out) as address:
        taken = [struct(values).tobytes(), address.tobytes(), index.tobytes()]
        kept = [ctypes.create_string_buffer(t, len(t)) for t in taken]
        pointers = (ctypes.c_void_p * 3)(*[ctypes.addressof(k) for k in kept])
        config = cuda.launch_config(cuda.triple(1), cuda.triple(32), 0)
        cuda.call("tegrarm_replay_launch", replay, kernel, ctypes.byref(config), pointers, 3, ctypes.byref(launch))
        cuda.call("tegrarm_replay_argument", replay, launch, 2, 0)
        cuda.call("tegrarm_replay_run", replay, (ctypes.c_uint64 * 1)(8000), 1, _ffi.TEGRARM_WAIT_FOREVER)
    cuda.call("tegrarm_replay_destroy", replay)
    assert (out == wanted(values, 8000)).all()


POINTERS = 1000
MANY = 'extern "C" __global__ void many(' + ", ".join(f"int *p{i}" for i in range(POINTERS)) + ", int n) { " + "".join(
    f"p{i}[threadIdx.x] = {i} + n; " for i in range(0, POINTERS, 37)) + f"p{POINTERS - 1}[threadIdx.x] = n; }}"


def test_a_kernel_of_dev_tegra_takes_a_thousand_buffers(python, tmp_path):
    (tmp_path / "many.cubin").write_bytes(cuda.compiled(MANY))
    python(f"""
import pathlib, types
import tegrarm.tinygrad
from tinygrad import Device, dtypes
from tinygrad.device import Buffer
from tegrarm.tinygrad.program import TegraProgram
d = Device["TEGRA"]
image = pathlib.Path({str(tmp_path / "many.cubin")!r}).read_bytes()
program = TegraProgram(d, types.SimpleNamespace(name="many", lib=image, profile_key=None))
buffers = [Buffer("TEGRA", 32, dtypes.int).allocate() for _ in range({POINTERS})]
program(*[b._buf for b in buffers], local_size=(32, 1, 1), vals=(5,), wait=True)
last = {POINTERS} - 1
for i in [*range(0, last, 37), last]:
    assert buffers[i].as_memoryview().cast("i").tolist() == [5 if i == last else 5 + i] * 32, i
""", env={"DEV": "TEGRA"})


def test_the_checker_has_nothing_to_say():
    kernels = [(f"{kernel}{n}", KERNELS, f"{kernel}{n}", 1, 32, arguments, {}) for n in (1, 1085, 8187) for kernel, arguments in (
        ("k", (("struct", n), ("unwritten", 32), 5)), ("generic", (("struct", n), ("int32", n + 32), 1)))]
    found, text = checked.run(kernels, "memory,init,race,sync")
    assert found == {name: [] for name, *_ in kernels} and "stopped" not in text, text
