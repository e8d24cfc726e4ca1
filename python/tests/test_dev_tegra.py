"""``DEV=TEGRA``: tinygrad's device made of the C interface alone. Each test is a fresh process."""

import pytest
from conftest import AS_NUMPY

TARGETS = ["TEGRA:NVRTC", "TEGRA:PTX", "TEGRA:NAK"]
OPEN = """
import tegrarm.tinygrad
from tinygrad import Tensor, Device, TinyJit, Variable, dtypes
from tinygrad.device import Buffer, BufferSpec
import ctypes, mmap, numpy as np
d = Device["TEGRA"]
"""


def env(target="TEGRA", **more):
    return {"DEV": target, **more}


@pytest.mark.parametrize("target", TARGETS)
def test_computes_what_numpy_computes(python, target):
    python(OPEN + AS_NUMPY + "assert Tensor(np.arange(7, dtype=np.uint8)).cast(dtypes.half).sum().numpy() == 21", env=env(target))


def test_it_touches_neither_the_nv_device_nor_its_queues(python):
    """With tinygrad's NV device and its command queues gone, the device works, and the other interface says why it does not."""
    out = python("""
import sys
gone = ["tinygrad.runtime." + name for name in ("ops_nv", "support.hcq", "support.hcq2", "graph.hcq")]
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name in gone:
            raise ImportError(f"{name} has moved")
sys.meta_path.insert(0, Gone())
import tegrarm.tinygrad
from tinygrad import Tensor, Device, TinyJit
@TinyJit
def step(x): return ((x + 1).contiguous() * 2).contiguous().realize()
for i in range(4): assert step(Tensor([i, i + 1]).realize()).tolist() == [2 * (i + 1), 2 * (i + 2)]
print(type(Device["TEGRA"]).__module__)
try: tegrarm.tinygrad.TEGRAIface
except ImportError as e: print(e)
""", env=env())
    assert out.splitlines()[0] == "tegrarm.tinygrad.device"
    assert "DEV=TEGRA+NV does not fit this tinygrad (" in out and "): tinygrad.runtime.ops_nv has moved. It is known to work with" in out
    assert "DEV=NVK+NV tegrarm run --preload -- python SCRIPT" in out


def test_a_release_that_names_interfaces_in_the_call_hears_the_sentence_too(python):
    """tinygrad 0.12 has no list of interfaces. It knew nothing of ours there, and said that no exception is no group of exceptions."""
    out = python("""
from tinygrad.helpers import select_first_inited
from tinygrad.runtime import ops_nv
del ops_nv.NVAllocator
for kind in ops_nv.NVDevice.__mro__:
    if "ifaces" in vars(kind): del kind.ifaces
def select(self, *ifaces):
    wanted = [iface for iface in ifaces if iface.__name__.startswith("TEGRA")]
    return select_first_inited([lambda: iface(self, 0) for iface in wanted], "No interface")
ops_nv.NVDevice._select_iface = select
import tegrarm.tinygrad
assert tegrarm.tinygrad.NV_MISSING is not None
device = object.__new__(ops_nv.NVDevice)
try: device._select_iface(ops_nv.NVKIface, ops_nv.PCIIface)
except ImportError as e: print(e)
""", env=env())
    assert "DEV=TEGRA+NV does not fit this tinygrad (" in out and "NVAllocator" in out


def test_the_nv_device_is_loaded_when_it_is_asked_for(python):
    """Loading it takes longer than everything else before the first kernel. It has the interface whenever it is loaded."""
    python("""
import sys
import tegrarm.tinygrad
from tinygrad import Tensor, Device
assert (Tensor([1, 2]) + 1).tolist() == [2, 3]
loaded = [name for name in sys.modules if name.startswith(("tinygrad.runtime.ops_nv", "tinygrad.runtime.autogen.nv_"))]
assert not loaded, loaded
assert (Tensor([1, 2], device="NV") + 1).tolist() == [2, 3]
assert type(Device["NV"]) is tegrarm.tinygrad.TegraDevice and tegrarm.tinygrad.NV_MISSING is None
from tinygrad.runtime import ops_nv
assert [i.__name__ for i in ops_nv.NVDevice.ifaces].count("TEGRAIface") == 1
""", env=env())
    python("""
import tinygrad.runtime.ops_nv as early
import tegrarm.tinygrad
assert early.NVDevice.ifaces[0].__name__ == "TEGRAIface"
""", env=env())


def test_a_look_for_the_nv_device_does_not_use_up_its_interface(python):
    python("""
import importlib.util
import tegrarm.tinygrad
assert importlib.util.find_spec("tinygrad.runtime.ops_nv")
from tinygrad.runtime import ops_nv
assert ops_nv.NVDevice.ifaces[0].__name__ == "TEGRAIface"
""", env=env())


def test_python_has_no_number_of_the_resource_manager():
    """The device's own modules reach the GPU by functions of the C interface, and by nothing else."""
    import pathlib
    import re

    import tegrarm
    from tegrarm import _ffi

    folder = pathlib.Path(tegrarm.__file__).parent / "tinygrad"
    modules = [*folder.glob("*.py"), *folder.glob("found/*.py")]
    assert len(modules) > 8
    for path in modules:
        text = path.read_text()
        assert not re.search(r"ioctl|nv_gpu|ops_nv\b.*import|support\.hcq|rm_alloc|rm_control|0x20[0-9a-f]{6}", text), path
        for name in re.findall(r'(?:call|made|wait)\("(\w+)"', text):
            assert f"tegrarm_{name}" in _ffi.SIGNATURES, f"{path}: {name}"


def test_a_device_that_is_not_there_is_named(python):
    out = python(OPEN + "Device['TEGRA:3']", env=env(), status=1)
    assert "no device TEGRA:3: libtegrarm has 1 GPU(s)" in out


def test_an_unknown_compiler_is_named(python):
    out = python(OPEN + "Tensor([1]).contiguous().add(1).realize()", env=env("TEGRA:ICC"), status=1)
    assert "TEGRA has no renderer 'ICC'" in out


# *** memory ***


def test_memory_is_seen_by_both_without_a_copy(python):
    python(OPEN + """
t = Tensor(np.arange(1, 1001, dtype=np.int32)).realize()
view = t.uop.buffer.as_memoryview(force_zero_copy=True).cast("i")
assert view[999] == 1000
view[999] = 5
assert t.numpy()[999] == 5 and (t + 1).numpy()[999] == 6
""", env=env())


def test_every_buffer_option_gives_usable_cleared_memory(python):
    python(OPEN + """
options = [{}, *({name: True} for name in ("host", "uncached", "cpu_access", "nolru", "zero"))]
for spec in (BufferSpec(**option) for option in options):
    b = Buffer("TEGRA", 5000, dtypes.uint8, options=spec).allocate()
    assert bytes(b.as_memoryview(force_zero_copy=True)) == bytes(5000), spec
    b.as_memoryview(force_zero_copy=True)[:] = bytes(range(250)) * 20
    del b
b = Buffer("TEGRA", 4096, dtypes.uint8, options=BufferSpec(zero=True)).allocate()
assert bytes(b.as_memoryview(force_zero_copy=True)) == bytes(4096), "memory that must be zero was recycled"
""", env=env())


def test_the_gpu_uses_memory_of_this_process(python):
    """`external_ptr`: numpy's memory, which starts anywhere in a page, and a part of a buffer of the device."""
    python(OPEN + """
a = np.arange(3000, dtype=np.float32)[7:]
t = Tensor.from_blob(a.ctypes.data, (2993,), dtype=dtypes.float, device="TEGRA")
assert ((t + 1).numpy() == a + 1).all()
t.assign(t * 2).realize(); d.synchronize()
assert a[0] == 14 and a[-1] == 5998
own = Tensor(np.arange(100, dtype=np.int32)).realize()
inside = Tensor.from_blob(own.uop.buffer._buf.pointer + 40, (10,), dtype=dtypes.int, device="TEGRA")
assert inside.numpy().tolist() == list(range(10, 20))
del inside, t
assert own.numpy().tolist() == list(range(100))
""", env=env())


def test_buffers_of_the_cpu_are_mapped_and_not_copied(python):
    python(OPEN + """
cpu = Buffer("CPU", 3000, dtypes.int32).allocate()
cpu.as_memoryview(force_zero_copy=True).cast("i")[:] = memoryview(np.arange(3000, dtype=np.int32))
mapped = cpu.get_buf("TEGRA")
assert mapped.bytes().cast("i")[2999] == 2999 and mapped.pointer == cpu._buf.va_addr
view = cpu.view(10, dtypes.int32, 400).ensure_allocated()
assert view.get_buf("TEGRA").bytes().cast("i")[0] == 100
out = Tensor(np.zeros(3000, dtype=np.int32)).realize()
d.allocator._transfer(out.uop.buffer._buf, mapped, 12000, d, d)  # the GPU reads the CPU's pages
assert out.numpy().tolist() == list(range(3000))
memory = mmap.mmap(-1, 8192)
memory[4096:4100] = b"abcd"
assert bytes(d.allocator._map(memoryview(memory)).bytes()[4096:4100]) == b"abcd"
try: d.allocator._map(object())
except RuntimeError as e: assert "no address in this process" in str(e)
else: raise SystemExit("mapped what has no address")
""", env=env())


def test_views_and_copies_on_the_gpu(python):
    python(OPEN + """
base = Tensor(np.arange(4096, dtype=np.int32)).realize()
part = base[1024:2048].contiguous().realize()
assert part.numpy().tolist() == list(range(1024, 2048))
copy = Buffer("TEGRA", 4096, dtypes.int32).allocate()
d.allocator._transfer(copy._buf, base.uop.buffer._buf, 16384, d, d)
assert copy.as_memoryview().cast("i")[4095] == 4095
""", env=env())


def test_memory_goes_back_to_the_system(python):
    python(OPEN + """
import os
Tensor.ones(64).contiguous().realize()
d.synchronize()  # buffers are freed when the work that was given before them has ended
def count(): return len(os.listdir('/proc/self/fd')), sum(1 for _ in open('/proc/self/maps'))
before = count()
for _ in range(50): d.allocator.free(d.allocator.alloc(1 << 20), 1 << 20); d.allocator.free_cache()
fds, maps = count()
assert fds <= before[0] and maps <= before[1] and not [s for s in d.allocator.made.values() if s.size == 1 << 20], (before, fds, maps)
""", env=env())


def test_no_memory_is_a_memory_error(python):
    out = python(OPEN + "Buffer('TEGRA', 1 << 50, dtypes.uint8).allocate()", env=env(), status=1)
    assert "MemoryError: Allocation of" in out and "NV_ERR_NO_MEMORY" in out


def test_reads_a_file(python, tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(bytes(range(256)) * 64)
    python(OPEN + f"""
import pathlib
assert Tensor(pathlib.Path({str(path)!r})).to('TEGRA').realize().numpy().tobytes() == bytes(range(256)) * 64
""", env=env())


# *** programs ***


@pytest.mark.parametrize("target", TARGETS)
def test_values_are_arguments_of_a_kernel(python, target):
    """Integers after the buffers, negative ones too."""
    python(OPEN + """
for n in (1, 5, 10):
    i = Variable("i", -20, 20)
    assert (Tensor.arange(10).contiguous().realize() + Tensor(i.bind(n - 8))).numpy().tolist() == [k + n - 8 for k in range(10)]
    j = Variable("j", 1, 10).bind(n)
    assert Tensor.ones(10).contiguous().realize()[:j].sum().item() == n
""", env=env(target))


def test_a_kernel_that_needs_scratch_memory_gets_it(python):
    """NAK addresses what does not fit into registers from 0 on; NVIDIA's compilers have a stack."""
    python(OPEN + """
from tegrarm.tinygrad import cubin
from tinygrad.codegen.opt import Opt, OptOps, heuristic
seen = []
original = cubin.sections
cubin.sections = lambda kernel: seen.append(kernel.scratch) or original(kernel)
def wide(k):
    for axis in (0, 1): k.apply_opt(Opt(OptOps.UPCAST, axis, 16))
    return k
heuristic.hand_coded_optimizations = wide  # 256 sums, and 255 registers
a, b = np.random.default_rng(1).standard_normal((2, 64, 64), dtype=np.float32)
np.testing.assert_allclose((Tensor(a) @ Tensor(b)).numpy(), a @ b, rtol=1e-3, atol=1e-3)
assert max(seen) > 0, seen
""", env=env("TEGRA:NAK", CACHELEVEL="0"))


@pytest.mark.parametrize("target", TARGETS)
def test_float32_is_never_multiplied_as_tf32(python, target):
    python(OPEN + """
from tinygrad.helpers import Context
cores = lambda: [c.dtype_in for c in d.renderer.tensor_cores]
assert dtypes.float not in cores()
a = (np.random.default_rng(0).random((64, 64)) + 1).astype(np.float32)
np.testing.assert_allclose((Tensor(a) @ Tensor(a)).numpy(), a @ a, rtol=2e-6)
with Context(ALLOW_TF32=1): assert (dtypes.float in cores()) == ("NAK" not in type(d.renderer).__name__)
""", env=env(target, TC="1"))


@pytest.mark.parametrize("target", TARGETS)
def test_half_uses_tensor_cores(python, target):
    python(OPEN + """
import itertools
assert dtypes.half in [c.dtype_in for c in d.renderer.tensor_cores]
made, compile = [], type(d.renderer.compiler).compile
type(d.renderer.compiler).compile = lambda self, source: made.append(compile(self, source)) or made[-1]
def has_hmma(code): return any(int.from_bytes(code[at:at + 2], "little") & 0xfff == 0x23c for at in range(0, len(code), 16))
sizes = (64, 64, 64), (16, 8, 8), (32, 24, 40), (128, 32, 16)
for into, (rows, columns, depth) in itertools.product((dtypes.float, dtypes.half), sizes):
    a, b = [np.random.default_rng(depth).integers(-4, 5, shape).astype(np.float16) for shape in ((rows, depth), (depth, columns))]
    made.clear()
    product = Tensor(a).realize().matmul(Tensor(b).realize(), dtype=into).numpy()
    np.testing.assert_array_equal(product, (a.astype(np.float32) @ b.astype(np.float32)).astype(product.dtype))
    assert any(map(has_hmma, made)), (into, rows, columns, depth)
""", env=env(target, TC="1", TC_OPT="2", CACHELEVEL="0"))


def test_a_launch_that_cannot_be_is_refused(python):
    out = python(OPEN + """
from tinygrad.engine import realize
x = (Tensor(np.arange(64, dtype=np.int32)).realize() + 1).realize()
p, b = list(realize.runtime_cache.values())[-1], x.uop.buffer._buf
try: p(*[b] * len(p.sizes), global_size=(1, 1, 1), local_size=(2048, 1, 1))
except RuntimeError as e: print(e)
try: p(*[b] * (len(p.sizes) + 1), global_size=(1, 1, 1), local_size=(1, 1, 1))
except Exception as e: print(type(e).__name__, e)
""", env=env())
    assert "NV_ERR_INVALID_ARGUMENT" in out and "2048" in out and out.count("\n") >= 2


def test_waiting_gives_the_time(python):
    python(OPEN + """
from tinygrad.engine import realize
x = (Tensor(np.arange(1 << 16, dtype=np.int32)).realize() * 3).realize()
p = list(realize.runtime_cache.values())[-1]
b = [x.uop.buffer._buf] * len(p.sizes)
assert p(*b, global_size=(64, 1, 1), local_size=(32, 1, 1)) is None
took = p(*b, global_size=(64, 1, 1), local_size=(32, 1, 1), wait=True)
from tegrarm.calls import call
elapsed = ctypes.c_int64()
call("event_elapsed", *d.clock.events, ctypes.byref(elapsed))
assert round(took * 1e9) == elapsed.value > 0, "it is not the GPU that says how long it took"
for limit in (0, 60_000):
    assert p(*b, global_size=(64, 1, 1), local_size=(32, 1, 1), wait=True, timeout=limit) > 0, "0 ms is no limit"
""", env=env())


def test_beam_search_times_kernels(python):
    python(OPEN + """
a = np.random.default_rng(0).random((32, 32), dtype=np.float32)
np.testing.assert_allclose((Tensor(a) @ Tensor(a)).numpy(), a @ a, rtol=1e-4)
""", env=env(BEAM="1", PARALLEL="0", CACHELEVEL="0"))


# *** profile and faults ***


def test_the_profiler_sees_every_kernel(python):
    python(OPEN + """
from tinygrad.device import Compiled
from tinygrad.helpers import ProfileRangeEvent
@TinyJit
def step(x): return ((x + 1).contiguous() * 2).contiguous().realize()
for i in range(4): assert step(Tensor([i]).realize()).tolist() == [2 * i + 2]
ran = [e for e in Compiled.profile_events if isinstance(e, ProfileRangeEvent) and e.device == "TEGRA"]
assert len(ran) == 8 and all(e.en > e.st for e in ran) and all(a.en <= b.st for a, b in zip(ran, ran[1:]))
assert {e.name for e in ran} <= {e.name for e in Compiled.profile_events if type(e).__name__ == "ProfileProgramEvent"}
d._at_profile_finalize()
assert any(type(e).__name__ == "ProfileDeviceEvent" and e.device == "TEGRA" for e in Compiled.profile_events)
import os; os._exit(0)  # the viewer is not wanted
""", env=env(PROFILE="1"))


@pytest.mark.parametrize("way", ["kernel", "graph"])
def test_a_fault_is_an_exception_that_says_what_happened(python, way):
    out = python(OPEN + f"""
way = {way!r}
x = Tensor(np.arange(64, dtype=np.int32)).realize()
from tinygrad.engine import realize
if way == "kernel":
    (x + 1).realize()
    p = list(realize.runtime_cache.values())[-1]
    bad = x.uop.buffer._buf.part(0, 256); bad.va = 0x12_3456_7000
    p(bad, bad, global_size=(2, 1, 1), local_size=(16, 1, 1))
else:
    @TinyJit
    def step(x): return ((x + 1).contiguous() * 2).contiguous().realize()
    for _ in range(3): step(x)
    other = Tensor(np.arange(64, dtype=np.int32)).realize()
    other.uop.buffer._buf.va = 0x12_3456_7000
    step(other)
try: d.synchronize()
except RuntimeError as e: raise SystemExit(f"told: {{e}}")
""", env=env(), status=1)
    assert "told: " in out and "NV_ERR_RESET_REQUIRED" in out and "MMU" in out, out


def test_ctrl_c_ends_a_wait(python):
    python(OPEN + """
import os, signal
from tegrarm import calls
waits = []
class Library:
    def __getattr__(self, name): return self.wait
    def wait(self, *_):
        waits.append(None)
        if len(waits) == 3: os.kill(os.getpid(), signal.SIGINT)
        if len(waits) > 1000: os._exit(4)
        return calls.NV_ERR_TIMEOUT
calls._ffi = type("ffi", (), {"lib": lambda: Library(), "TEGRARM_WAIT_FOREVER": (1 << 64) - 1})
# A job that a shell started in the background ignores the signal, and its programs inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
try: calls.wait("wait", None)
except KeyboardInterrupt: os._exit(0 if len(waits) == 3 else 3)
os._exit(4)
""", env=env())
