"""Both devices on stand-ins of tinygrad's next release, which cannot be installed yet. Each test is a fresh process."""

import pathlib

import pytest

TESTS = str(pathlib.Path(__file__).parent)
NEXT = f"""
import sys
sys.path.insert(0, {TESTS!r})
import tinygrad
from next_tinygrad import memory
memory.put_in()
"""
DEVICE = NEXT + """
import types
import tegrarm.tinygrad
from tinygrad import dtypes
from tinygrad.device import Device, BufferSpec
from next_tinygrad.memory import Buffer, copy
d = Device["TEGRA"]
def floats(*values):
    import struct
    return struct.pack(f"{len(values)}f", *values)
def filled(data, device="TEGRA"):
    buffer = Buffer(device, len(data), dtypes.uint8).ensure_allocated()
    buffer.host[:] = data
    return buffer
"""
ADD = """
SOURCE = 'extern "C" __global__ void add(float *out, const float *in, int n) { out[threadIdx.x] = in[threadIdx.x] + n; }'
program = d.runtime(types.SimpleNamespace(lib=d.compiler.compile(SOURCE), name="add", profile_key=None))
"""


def test_a_kernel_runs_on_addresses(python):
    python(DEVICE + ADD + """
x, out = filled(floats(1, 2, 3, 4)), Buffer("TEGRA", 16, dtypes.uint8)
assert isinstance(x._buf, int) and x._buf == x.get_buf("TEGRA") == x.meta.va
program(out.get_buf("TEGRA"), x.get_buf("TEGRA"), global_size=(1, 1, 1), local_size=(4, 1, 1), vals=(10,))
d.synchronize()
assert bytes(out.host[:]) == floats(11, 12, 13, 14)
part = x.view(2, dtypes.float32, 8)
assert part._buf == x._buf + 8 and bytes(part.ensure_allocated().host[:]) == floats(3, 4)
program(out.get_buf("TEGRA"), part.get_buf("TEGRA"), global_size=(1, 1, 1), local_size=(2, 1, 1), vals=(1,))
d.synchronize()
assert bytes(out.host[:]) == floats(4, 5, 13, 14)
""", env={"DEV": "TEGRA:NVRTC"})


def test_what_a_jit_captured_is_one_replay(python):
    """The next release has neither graphs nor their cache: kernels, views of inputs, and copies that are stores are in its list."""
    python(NEXT + """
from next_tinygrad import jit
jit.put_in()
""" + DEVICE.removeprefix(NEXT) + """
import struct
from tinygrad.codegen import to_program
from tinygrad.engine.jit import CapturedJit
from tinygrad.helpers import Context
from tinygrad.uop.ops import KernelInfo, Ops, UOp
from tegrarm.tinygrad.program import TegraProgram
from tegrarm.tinygrad.recording import Recording
runs, launches, start, launch = [], [], Recording.start, TegraProgram.__call__
Recording.start = lambda self: runs.append(dict(self.slots)) or start(self)
TegraProgram.__call__ = lambda self, *a, **k: launches.append(self.name) or launch(self, *a, **k)
def ints(n): return Buffer("TEGRA", n, dtypes.int32).ensure_allocated()
def given(*values):
    buffer = ints(len(values))
    buffer.host[:] = struct.pack(f"{len(values)}i", *values)
    return jit.place(buffer)
def param(slot, n=4): return UOp.param(slot, dtypes.int32, (n,), "TEGRA")
def program(name, value):
    r = UOp.range(4, 0)
    sink = param(0).index(r).store(value(param(1).index(r).load(), param(2).index(r).load())).end(r).sink(arg=KernelInfo(name))
    return to_program(sink, d.renderer)
total, scaled, result = ints(4), ints(4), ints(4)
T, S, R = map(jit.place, (total, scaled, result))
x = param(0, 8)
halves = [x.shrink(((0, 4),)), x.shrink(((4, 8),))]
add = program("add", lambda a, b: a + b).call(T, *halves)
scale = program("scale", lambda a, b: a * b).call(S, T, param(1))
store = add.replace(src=(UOp(Ops.STORE, src=(param(0), param(1))), R, S))
def check(captured, out):
    for k in range(3):
        captured([given(*range(k, k + 8)), given(1, 2, 3, k)], {})
        d.synchronize()
        assert struct.unpack("4i", bytes(out.host[:])) == tuple((2 * (k + i) + 4) * (1, 2, 3, k)[i] for i in range(4))
check(CapturedJit(UOp(Ops.LINEAR, src=(add.after(scale), scale, store))), result)
plain = CapturedJit(UOp(Ops.LINEAR, src=(add, scale)))
check(plain, scaled)
assert plain._fast_plan is None and not launches, launches
assert len(runs) == 6 and set(runs[0]) == {(0, 0), (0, 16), (1, 0)}, runs
plain.free_intermediates()
check(plain, scaled)
with Context(DEBUG=2): check(plain, scaled)
assert len(runs) == 9 and launches == ["add", "scale"] * 3
""", env={"DEV": "TEGRA:NVRTC"})


def test_a_tinygrad_without_a_way_to_replays_says_so_once(python):
    out = python(NEXT + "from tinygrad.engine import jit\ndel jit.run_linear\n" + DEVICE.removeprefix(NEXT) + "Device['TEGRA']",
                 env={"DEV": "TEGRA", "DEBUG": "1"})
    assert out.count("TEGRA: a TinyJit runs without replays on this tinygrad (") == 1, out
    assert "cannot import name 'GraphRunner'" in out and "cannot import name 'run_linear'" in out, out


def test_copies_go_through_the_views_and_freed_memory_is_used_again(python):
    python(DEVICE + """
data = bytes(range(250)) * 40
there = Buffer("TEGRA", len(data), dtypes.uint8).ensure_allocated()
here = filled(data, "CPU")
copy(there, here)
back = filled(bytes(len(data)), "CPU")
copy(back, there)
assert bytes(back.host[:]) == data
address, handles = there._buf, len(d.allocator.made)
there.deallocate()
assert Buffer("TEGRA", len(data), dtypes.uint8)._buf == address, "kept"
own = Buffer("TEGRA", 64, dtypes.uint8, options=BufferSpec(nolru=True)).ensure_allocated()
assert len(d.allocator.made) == handles + 1
own.deallocate()
assert len(d.allocator.made) == handles
""", env={"DEV": "TEGRA"})


def test_memory_of_the_process_is_seen_by_a_kernel(python):
    python(DEVICE + ADD + """
import ctypes
here = filled(floats(1, 2) + bytes(4088), "CPU")
out = filled(bytes(8))
program(out.get_buf("TEGRA"), here.get_buf("TEGRA"), global_size=(1, 1, 1), local_size=(2, 1, 1), vals=(5,))
d.synchronize()
assert bytes(out.host[:]) == floats(6, 7)
memory = (ctypes.c_float * 2)(8, 9)
external = Buffer("TEGRA", 8, dtypes.uint8, options=BufferSpec(external_ptr=ctypes.addressof(memory)))
program(out.get_buf("TEGRA"), external.get_buf("TEGRA"), global_size=(1, 1, 1), local_size=(2, 1, 1), vals=(1,))
d.synchronize()
assert bytes(out.host[:]) == floats(9, 10)
assert bytes(external.host[:]) == floats(8, 9)
here._base, storage = None, here.get_storage()
here.options = BufferSpec(nolru=True)
here.deallocate()
""", env={"DEV": "TEGRA:NVRTC"})


NV = NEXT.replace("import tinygrad\n", "import tinygrad.runtime.ops_nv\n") + """
from next_tinygrad import nv
nv.put_in()
from tinygrad import dtypes
from tinygrad.device import BufferSpec, Device
from tinygrad.runtime import ops_nv
from next_tinygrad.memory import Buffer
"""
OPENED = NV + """
import tegrarm.tinygrad
d = Device["NV"]
"""
NV_ENV = {"DEV": "TEGRA+NV"}


def test_the_interface_follows_the_next_release(python):
    out = python(OPENED + """
assert type(d.iface).__mro__[1] is nv.NVKIface and type(d).__mro__[1] is nv.NVDevice
print(type(d).__name__, type(d.iface).__name__, hex(d.local_mem_window), hex(d.shared_mem_window), len(d.iface.notifiers))
d.fifos
assert [n.text() for n in d.iface.notifiers] == ["", ""]
""", env=NV_ENV)
    assert out == "TegraDevice TEGRAIface 0xfd00000000 0xfe00000000 0\n"


def test_staging_of_the_process_is_copied_in_both_directions(python):
    """Python's mmap lies above the GPU's addresses. The GPU has it at another address, and the process keeps its own."""
    python(OPENED + """
SIZE = 1 << 20
staging, there = Buffer("CPU", 2 * SIZE, dtypes.uint8).ensure_allocated(), Buffer("NV", SIZE, dtypes.uint8)
signal = Buffer("NV", 16, dtypes.uint8, options=BufferSpec(host=True, uncached=True, cpu_access=True)).ensure_allocated()
data = bytes(range(251)) * (SIZE // 251 + 1)
staging.host[:SIZE] = data[:SIZE]
address = staging.get_buf("NV")
assert address < 1 << 40 < staging._buf, (hex(address), hex(staging._buf))
assert staging.get_buf("NV") == address and staging.view(8, dtypes.uint8, 64).get_buf("NV") == address + 64
q = ops_nv.NVQueue(d)
q.copy(there.get_buf("NV"), address, SIZE)
q.copy(address + SIZE, there.get_buf("NV"), SIZE)
q.release(signal._buf, 1 << 32 | 7)
q.submit()
d.wait(signal.host.view(0, 8, fmt="Q"), 1 << 32 | 7)
assert bytes(staging.host[SIZE:2 * SIZE]) == data[:SIZE]
staging.options = BufferSpec(nolru=True)
staging.deallocate()
again = Buffer("CPU", 2 * SIZE, dtypes.uint8)
assert again.get_buf("NV") == address, "a GPU address that was given back is given out again"
""", env=NV_ENV)


def test_a_signal_is_never_released_by_a_launch_descriptor(python):
    python(OPENED + """
signal = Buffer("NV", 16, dtypes.uint8, options=BufferSpec(host=True, uncached=True, cpu_access=True)).ensure_allocated()
q, launch = ops_nv.NVComputeQueue(d), nv.QMD()
q.prev_qmd = launch
q.release(signal._buf, 9)
assert launch.releases == [] and q.prev_qmd is None
q.submit()
d.wait(signal.host.view(0, 8, fmt="Q"), 9)
class Other: pass
other, launch = ops_nv.NVComputeQueue(Other()), nv.QMD()
other.prev_qmd = launch
other.release(1, 2)
assert launch.releases == [(1, 2)], "a device with another interface is tinygrad's own affair"
""", env=NV_ENV)


def test_a_queue_that_cannot_be_protected_stays_closed(python):
    out = python(NV + """
def release(self, addr, value, timestamp=False):
    self.last_launch.take(addr, value)
nv.NVComputeQueue.release = release
import tegrarm.tinygrad
try: Device["NV"]
except Exception as e: print([str(inner) for inner in getattr(e, "exceptions", [e])])
""", env=NV_ENV)
    assert "DEV=TEGRA+NV does not fit this tinygrad (" in out and "releases of signals through launch descriptors" in out
    assert "DEV=NVK+NV tegrarm run --preload" in out


@pytest.mark.parametrize("dev", ["TEGRA+NV", "TEGRA"])
def test_a_missing_name_is_one_sentence(python, dev):
    """What both adapters cannot do without is gone. A program that does not catch the error prints a sentence and no traceback."""
    out = python(f"""
import tinygrad.device
from tinygrad.runtime import ops_nv
if {dev!r} == "TEGRA":
    del tinygrad.device.BufferSpec
else:
    del ops_nv.NVKIface
import tegrarm.tinygrad
from tinygrad.device import Device
Device[Device.DEFAULT]
""", env={"DEV": dev}, status=1)
    assert "Traceback" not in out and len(out.strip().splitlines()) == 1, out
    assert out.startswith(f"DEV={dev} does not fit this tinygrad (") and "cannot import name" in out, out
