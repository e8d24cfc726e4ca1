"""Unpatched tinygrad computes through the library. Each test is a fresh process, because tinygrad opens a device once."""

import os
import re

import pytest
from conftest import AS_NUMPY

TARGETS = ["TEGRA+NV:CUDA", "TEGRA+NV:NAK"]
OPEN = "import tegrarm.tinygrad\nfrom tinygrad import Tensor, Device, TinyJit, dtypes\nimport numpy as np\n"


def env(target="TEGRA+NV:CUDA", **more):
    return {"DEV": target, **more}


@pytest.mark.parametrize("target", TARGETS)
def test_adds(python, target):
    assert python(OPEN + "print((Tensor([1,2,3]) + Tensor([4,5,6])).numpy())", env=env(target)) == "[5 7 9]\n"


@pytest.mark.parametrize("target", TARGETS)
def test_computes_what_numpy_computes(python, target):
    python(OPEN + AS_NUMPY, env=env(target))


def test_device_is_the_tegra_interface(python):
    out = python(OPEN + """
d = Device['NV']
print(type(d).__name__, type(d.iface).__name__, d.arch, hex(d.local_mem_window), len(d.allocator.b))
""", env=env())
    assert out == "TegraDevice TEGRAIface sm_87 0xfd00000000 0\n"


def test_jit_replays_with_new_inputs(python):
    """A graph rewrites its launch descriptors between runs, and every signal must have the value of its own run."""
    python(OPEN + """
@TinyJit
def step(x): return ((x + 1).contiguous() * 2).contiguous().realize()
for i in range(40):
    assert step(Tensor([i, i + 1]).realize()).tolist() == [2 * (i + 1), 2 * (i + 2)], i
""", env=env())


def test_local_memory_grows_between_kernels(python):
    python(OPEN + """
d = Device['NV']
d._ensure_has_local_memory(0x400); first = d.shader_local_mem.size
d._ensure_has_local_memory(0x2000)
assert d.slm_per_thread >= 0x2000 and d.shader_local_mem.size > first
assert (Tensor.arange(1000).sum()).item() == 499500
""", env=env())


def test_copies_need_no_staging_and_keep_bytes(python):
    python(OPEN + """
data = np.random.default_rng(0).integers(0, 255, 5_000_001, dtype=np.uint8)
t = Tensor(data).realize()
assert (t.numpy() == data).all()
""", env=env())


def test_kernels_and_copies_are_in_the_profile_with_names_and_times(python):
    python(OPEN + """
from tinygrad.helpers import ProfileRangeEvent, cpu_events
from tinygrad.device import Buffer, Compiled
d = Device['NV']
buffer = Buffer('NV', 1024, dtypes.float32).ensure_allocated()
d.allocator._copyin(buffer._buf, memoryview(bytearray(4096)))
d.allocator._copyout(memoryview(bytearray(4096)), buffer._buf)
(Tensor([1, 2, 3]) + 1).realize()
d.synchronize()
events = [e for e in [*Compiled.profile_events, *cpu_events] if isinstance(e, ProfileRangeEvent) and e.device.startswith('NV')]
names = [str(e.name) for e in events]
assert 'TINY -> NV' in names and 'NV -> TINY' in names, names
assert any(name.startswith('E_') for name in names), names
assert all(e.en > e.st for e in events), events
copies = {e.device for e in events if ' -> ' in str(e.name)}
assert copies == {'NV:COPY'}, copies
""", env=env(PROFILE="1"))


@pytest.mark.parametrize("dev", ["TEGRA+NV", "TEGRA"])
@pytest.mark.parametrize("wish", [{"PROFILE": "1", "PMA": "1"}, {"VIZ": "2"}, {"PROFILE": "1"}])
def test_pc_sampling_is_refused_with_a_sentence(python, tmp_path, dev, wish):
    out = python(OPEN + """
import warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter('always')
    d = Device[Device.DEFAULT]
print([str(w.message) for w in said if 'PMA' in str(w.message)], getattr(d, 'pma_enabled', False), (Tensor([1]) + 1).item())
""", env={**env(**wish), "DEV": dev, "TMPDIR": str(tmp_path)})
    sentence = "PC sampling (PMA) stays off on TEGRA: its samplers need streaming credits and registers of desktop GPUs"
    assert out.startswith(f"{[] if wish == {'PROFILE': '1'} else [sentence]} False 2\n")


def test_reaches_pages_above_the_gpus_addresses(python):
    """The buffers of a process lie above 2^40. Copies name them by an address at which the CPU and the GPU see the same pages."""
    python(OPEN + """
import tegrarm.tinygrad as tegra
d, cpu = Device['NV'], Device['CPU']
seen = lambda va: any(line.startswith(f'{va:08x}-') for line in open('/proc/self/maps'))
to, pages = d.allocator.alloc(10000), cpu.allocator.alloc(10000)
high, late = pages.va_addr, pages.offset(4096)
assert high >= tegra.REACH
pages.cpu_view()[:] = bytes(range(250)) * 40
for buf in (pages, late): d.allocator._map(buf)
assert pages.va_addr + 4096 == late.va_addr < tegra.REACH and seen(pages.va_addr)
q = d.hw_copy_queue_t().wait(d.timeline_signal, d.timeline_value - 1)
q.copy(to, late, 5000).signal(d.timeline_signal, d.next_timeline()).submit(d)
d.synchronize()
assert to.cpu_view()[:5000] == (bytes(range(250)) * 40)[4096:9096]
alias = pages.va_addr
del pages, late, buf
assert not seen(alias)
""", env=env())


def test_private_pages_out_of_reach_are_refused(python):
    out = python(OPEN + """
import mmap
from tinygrad.device import BufferSpec
from tinygrad.helpers import mv_address
d, cpu = Device['NV'], Device['CPU']
private = mmap.mmap(-1, 8192, mmap.MAP_ANON | mmap.MAP_PRIVATE)
buf = cpu.allocator.alloc(8192, BufferSpec(external_ptr=mv_address(private)))
try: d.allocator._map(buf)
except RuntimeError as e: raise SystemExit(f'told of {mv_address(private):#x}: {e}')
""", env=env(), status=1)
    assert re.search("told of (0x[0-9a-f]+): the 0x2000 bytes at \\1 are no shared memory", out), out


def test_reads_a_file(python, tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(bytes(range(256)) * 64)
    python(OPEN + f"""
import pathlib
assert Tensor(pathlib.Path({str(path)!r})).to('NV').realize().numpy().tobytes() == bytes(range(256)) * 64
""", env=env())


def test_freed_buffers_come_back(python):
    python(OPEN + """
import os
d = Device['NV']; Tensor.ones(64).contiguous().realize()
def count(): return len(os.listdir('/proc/self/fd')), sum(1 for _ in open('/proc/self/maps'))
before = count()
for _ in range(50): d.allocator.free(d.allocator.alloc(1 << 20), 1 << 20); d.allocator.free_cache()
fds, maps = count()
assert fds <= before[0] and maps <= before[1], (before, fds, maps)
""", env=env())


def test_a_fault_names_its_cause(python):
    """A copy goes to an address where nothing is mapped. The error says MMU fault, the kernel's log has the address, and there is no
    timeout.
    """
    out = python(OPEN + """
from tinygrad.runtime.support.hcq import HCQBuffer
d = Device['NV']
b = d.allocator.alloc(4096)
q = d.hw_copy_queue_t().wait(d.timeline_signal, d.timeline_value - 1)
q.copy(HCQBuffer(0x12_3456_7000, 4096), b, 4096).signal(d.timeline_signal, d.next_timeline()).submit(d)
try: d.synchronize()
except RuntimeError as e: raise SystemExit(f'told: {e}')
""", env=env(TEGRARM_LOG="warn"), status=1)
    assert "told: channel stopped: error notifier 31 (MMU fault" in out and "0x1234567000" in out, out


def test_an_sm_exception_names_its_program_counter(python):
    """A kernel consists of instructions that do not exist. The error has the record of the SM."""
    out = python(OPEN + """
d = Device['NV']
from tinygrad.runtime import ops_nv
load = d.allocator._copyin
def corrupt(dest, src): load(dest, memoryview(b'\\xff\\x7f' * (len(src.cast('B')) // 2)))
x = Tensor([1, 2, 3]).realize()
d.allocator._copyin = corrupt
try: (x + 1).realize(); d.synchronize()
except RuntimeError as e: raise SystemExit(f'told: {e}')
""", env=env(), status=1)
    assert "told: channel stopped: error notifier 13" in out and "SM 0: " in out and "pc 0x" in out, out


def test_other_interfaces_are_untouched(python):
    python("""
import tegrarm.tinygrad
from tinygrad.runtime import ops_nv
assert [i.__name__ for i in ops_nv.NVDevice.ifaces][:2] == ['TEGRAIface', 'NVKIface']
assert ops_nv.NVDevice._ensure_has_local_memory is not tegrarm.tinygrad.TegraDevice._ensure_has_local_memory
tegrarm.tinygrad.install()
assert sum(i.__name__ == 'TEGRAIface' for i in ops_nv.NVDevice.ifaces) == 1
""")


def test_no_backend_is_a_clear_message(python):
    if os.path.exists("/dev/nvgpu"):
        pytest.skip("this machine has a board")
    out = python(OPEN + "print(Tensor([1]).numpy())", env=env(TEGRARM_BACKEND="nvgpu"), status=1)
    assert "/dev/nv" in out and "TEGRARM_BACKEND=sim" in out


FORKS = """
import os
a = Tensor([1, 2, 3]).realize()
b = (a + 1).realize()
@TinyJit
def step(x): return ((x + 1).contiguous() * 2).contiguous().realize()
for i in range(4): step(Tensor([i, i + 1]).realize())
def refused(what):
    try: what()
    except RuntimeError as e:
        assert "forked" in str(e), e
        return
    os._exit(3)
child = os.fork()
if child == 0:
    refused(lambda: b.numpy())
    refused(lambda: (b + 1).numpy())
    refused(lambda: Tensor([4, 5]).realize())
    refused(lambda: step(a))
    refused(lambda: Device[Device.DEFAULT].synchronize())
    os._exit(0)
ended = os.waitpid(child, 0)[1]
assert ended == 0, ended
assert b.numpy().tolist() == [2, 3, 4] and (b + 1).numpy().tolist() == [3, 4, 5]
"""


@pytest.mark.parametrize("target", ["TEGRA+NV:CUDA"])
def test_a_forked_child_gets_an_exception_for_whatever_it_does(python, target):
    """On a board the child would be ended by SIGSEGV. Here it ends at once, because Python's exit would stop the parent's helpers."""
    python(OPEN + FORKS, env=env(target))
