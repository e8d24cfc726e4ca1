"""The TEGRA interface for tinygrad's NV backend: ``import tegrarm.tinygrad``, then ``DEV=TEGRA+NV``.

The installed tinygrad is not changed. Importing this module adds :class:`TEGRAIface` to the interfaces that its NV device tries. A device
that opens through it becomes a :class:`TegraDevice`, and each of its overrides says why it is needed. Devices with other interfaces keep
tinygrad's own behaviour. RM structures and numbers are those that tinygrad has generated.
"""

from __future__ import annotations

import ctypes
import gc
import inspect
import os
import struct
import time
import warnings
import weakref

from tinygrad.helpers import round_up, to_mv
from tinygrad.runtime import ops_nv
from tinygrad.runtime.ops_nv import NVAllocator, NVComputeQueue, NVDevice, nv_gpu
from tinygrad.runtime.support.hcq import FileIOInterface, HCQBuffer, MMIOInterface, hcq_filter_visible_devices
from tinygrad.runtime.support.system import System

from .. import rm
from . import copies
from .sampling import NO_SAMPLING

# tinygrad 0.12 has no list of interfaces to which one could be added. It has NV=1 NV_IFACE=TEGRA in place of DEV=TEGRA+NV.
NAMES_INTERFACES_IN_CALL = not hasattr(NVDevice, "ifaces")
PAGE = 0x1000
BIG_PAGE = 2 << 20
REACH = 1 << 40  # GPU addresses have 40 bits
USERMODE_SIZE = 0x10000
# Values of mmap and mremap that are the same on every Linux on which tinygrad runs.
MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE, MAP_FIXED_NOREPLACE = 2, 0x20, 0x4000, 0x100000
MREMAP_MAYMOVE, MREMAP_FIXED = 1, 2
# The codes that nvgpu writes into info32 of an error notifier.
MMU_FAULT = 31
NOTIFIER_CODES = {
    8: "channel watchdog or preemption timeout", 11: "copy engine error", 13: "SM exception or graphics engine error",
    24: "semaphore acquire timeout", 25: "illegal method or notify", MMU_FAULT: "MMU fault", 32: "pushbuffer (PBDMA) error",
    37: "unimplemented firmware method", 43: "channel reset", 80: "pushbuffer checksum mismatch",
}


class Memory:
    """The ``meta`` of a buffer, as tinygrad calls it: the RM object of the buffer."""

    def __init__(self, handle: int):
        self.hMemory = handle


class Pages(Memory):
    """Pages of this process as the GPU sees them, perhaps at another address."""

    def __init__(self, handle: int, moved: int):
        super().__init__(handle)
        self.moved = moved  # the GPU's address minus the address by which the pages were given


def _remap() -> ctypes._CFuncPtr:
    """The function ``mremap``. If it is told that an old mapping has no pages, it maps the shared pages a second time."""
    call = ctypes.CDLL(None, use_errno=True).mremap
    call.restype, call.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    return call


def _show_again(address: int, at: int, size: int) -> None:
    """Maps the shared pages at ``address`` to ``at`` as well, which must be free."""
    reserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE
    FileIOInterface.anon_mmap(at, size, 0, reserved, 0)
    if _remap()(address, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) == ctypes.c_void_p(-1).value:
        error = OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        FileIOInterface.munmap(at, size)
        what = f"the {size:#x} bytes at {address:#x} are no shared memory, and the GPU does not reach that high"
        raise RuntimeError(f"{what}: {error}") from error


class Notifier:
    """The error notifier of a channel: 16 bytes that the kernel writes when it stops the channel."""

    def __init__(self, buffer: HCQBuffer):
        self.buffer = buffer

    def text(self) -> str:
        """What the notifier says. It is empty if the channel has no error."""
        _timestamp, code, _info16, status = struct.unpack("<QIHH", self.buffer.cpu_view()[:16])
        if not status:
            return ""
        where = ", the address is in the kernel's log: dmesg, or standard error on the virtual Orin" if code == MMU_FAULT else ""
        return f"channel stopped: error notifier {code} ({NOTIFIER_CODES.get(code, 'see nvgpu_error.h')}{where})"


class _ParentsMemory:
    """What a forked child has in place of the GPU's memory: each use of it is an exception."""

    def __init__(self, parent: int):
        self._parent = parent

    def _refuse(self, *_args):
        what = f"process {os.getpid()} was forked from process {self._parent}, whose GPU memory it does not have"
        raise RuntimeError(f"{what}: open the device in the child, or start it with multiprocessing's method spawn")

    __getitem__ = __setitem__ = __getattr__ = _refuse


class GPUView(MMIOInterface):
    """Memory of the GPU as the processor sees it. A forked child sees none of its parent's."""

    def view(self, offset: int = 0, size: int | None = None, fmt: str | None = None) -> GPUView:
        """As tinygrad's, of this class."""
        self.mv.nbytes  # noqa: B018 - in a child, an exception
        return GPUView(self.addr + offset, self.nbytes - offset if size is None else size, fmt=fmt or self.fmt)


def _forget_views() -> None:
    """In a forked child: the mappings were the parent's, and an access would end the process."""
    gone = _ParentsMemory(os.getppid())
    for view in gc.get_objects():
        if type(view) is GPUView:
            view.mv = gone


class TEGRAIface:
    """Does with libtegrarm's object door what tinygrad's NVKIface does on the device nodes of a desktop driver.

    The library places every buffer so that its GPU virtual address is also the CPU's pointer to it.
    """

    # There is one client per process, because RM clients do not survive a fork. It is never closed: at exit Python still finalizes graphs
    # that read their signals after tinygrad has finalized the device. The kernel frees everything when the process ends.
    client: rm.Client | None = None

    def __init__(self, dev: NVDevice, device_id: int):
        devices = list(range(self.count))
        if "device" in inspect.signature(hcq_filter_visible_devices).parameters:
            devices = hcq_filter_visible_devices(devices, "NV")
        if device_id >= len(devices):
            raise RuntimeError(f"no device NV:{device_id}: libtegrarm has {len(devices)} visible GPU(s)")
        if TEGRAIface.client is None or TEGRAIface.client.pid != os.getpid():
            TEGRAIface.client = rm.Client()
        self.rm, self.dev, self.gpu_instance = TEGRAIface.client, dev, devices[device_id]
        self.profile = rm.device_profile(self.gpu_instance)
        self.notifiers: list[Notifier] = []
        _ensure_fence()
        dev.__class__ = TegraDevice

    @property
    def root(self) -> int:
        """The handle of the RM client."""
        return self.rm.root

    @property
    def count(self) -> int:
        """The number of GPUs of the library's backend."""
        return rm.device_count()

    # *** object tree ***

    def rm_alloc(self, parent: int, clss: int, params=None, root=None) -> int:
        """Allocates an RM object and returns its handle."""
        if clss == nv_gpu.FERMI_VASPACE_A:
            # The library manages this address space, because no UVM is used, and knows its limits. tinygrad's range is for desktop GPUs.
            params = nv_gpu.NV_VASPACE_ALLOCATION_PARAMETERS()
        return self.rm.alloc(parent, clss, params)

    def rm_control(self, obj: int, cmd: int, params=None, **_kwargs):
        """Makes an RM control call. Returns ``params``, which is filled in."""
        return self.rm.control(obj, cmd, params)

    def setup_usermode(self) -> tuple[int, MMIOInterface]:
        """Chooses the classes that this GPU has, and maps the doorbell page."""
        classes = self._class_list()

        def first(*wanted):
            return next(c for c in wanted if c in classes)

        self.usermode_class, self.gpfifo_class = first(nv_gpu.TURING_USERMODE_A), first(nv_gpu.AMPERE_CHANNEL_GPFIFO_A)
        self.compute_class, self.dma_class = first(nv_gpu.AMPERE_COMPUTE_B), first(nv_gpu.AMPERE_DMA_COPY_B)
        self.viddec_class = None  # NVDEC is not an engine of the Tegra GPU
        usermode = self.rm.alloc(self.dev.subdevice, self.usermode_class)
        return usermode, GPUView(self.rm.map(self.dev.subdevice, usermode, USERMODE_SIZE), USERMODE_SIZE, fmt="I")

    def _class_list(self) -> set[int]:
        size = self.rm.control(self.dev.nvdevice, nv_gpu.NV0080_CTRL_CMD_GPU_GET_CLASSLIST,
                               nv_gpu.NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS(numClasses=0)).numClasses
        classes = (ctypes.c_uint32 * size)()
        self.rm.control(self.dev.nvdevice, nv_gpu.NV0080_CTRL_CMD_GPU_GET_CLASSLIST,
                        nv_gpu.NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS(numClasses=size, classList=ctypes.addressof(classes)))
        return set(classes)

    def setup_vm(self, vaspace: int) -> None:
        """Makes the mapper with which buffers are mapped into the address space of the channels."""
        # tinygrad's own NV01_MEMORY_VIRTUAL is for the device's default address space, but buffers belong in that of the channels.
        self.vaspace = vaspace
        self.mapper = self.rm.alloc(self.dev.nvdevice, nv_gpu.NV01_MEMORY_VIRTUAL,
                                    nv_gpu.NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS(hVASpace=vaspace))

    def setup_gpfifo_vm(self, gpfifo: int) -> None:
        """Does nothing. On a desktop this tells UVM about the channel. Here the channel is bound to its address space already."""

    # *** memory ***

    def alloc(self, size: int, host=False, uncached=False, cpu_access=False, cpu_addr=None, **_kwargs) -> HCQBuffer:
        """A buffer that the CPU and the GPU see at one address. Its contents are zero, because nvmap clears pages before it gives them out.
        """
        if cpu_addr is not None:
            return self._wrap_pages(cpu_addr, size)
        if (notifier := uncached and not cpu_access and not host):
            size = PAGE  # tinygrad reserves the 48 MiB that desktop RM uses, but nvgpu writes 16 bytes
        page = BIG_PAGE if size >= 4 * BIG_PAGE else PAGE
        whole = round_up(size, page)
        # Control structures that the CPU writes and the GPU reads are write-combined. Data that both read and write is cached.
        control = (cpu_access or host or uncached) and os.environ.get("TEGRARM_CPU_CACHE", "wc") != "inner"
        coherency = nv_gpu.NVOS32_ATTR_COHERENCY_WRITE_COMBINE if control else nv_gpu.NVOS32_ATTR_COHERENCY_CACHED
        params = nv_gpu.NV_MEMORY_ALLOCATION_PARAMS(
            owner=self.root, size=whole, limit=whole - 1, alignment=page, attr=coherency << 29,
            type=nv_gpu.NVOS32_TYPE_NOTIFIER if uncached else nv_gpu.NVOS32_TYPE_IMAGE)
        memory = self.rm.alloc(self.dev.nvdevice, nv_gpu.NV1_MEMORY_SYSTEM if uncached else nv_gpu.NV1_MEMORY_USER, params)
        try:
            va = self.rm.map_dma(self.dev.nvdevice, self.mapper, memory, whole)
            pointer = self.rm.map(self.dev.nvdevice, memory, whole)
        except RuntimeError:
            self.rm.free(memory)
            raise
        buffer = HCQBuffer(va, size, meta=Memory(memory), view=GPUView(pointer, size), owner=self.dev)
        if notifier:
            self.notifiers.append(Notifier(buffer))
        return buffer

    def _wrap_pages(self, address: int, size: int) -> HCQBuffer:
        """Maps pages of this process for the GPU. They get their own address, or an address that both can reach if the GPU cannot reach
        their own. tinygrad writes one address for all devices into copies, so that the process sees the pages there too.
        """
        flags = (nv_gpu.NVOS02_FLAGS_PHYSICALITY_NONCONTIGUOUS << 4) | (nv_gpu.NVOS02_FLAGS_COHERENCY_CACHED << 12) \
            | (nv_gpu.NVOS02_FLAGS_MAPPING_NO_MAP << 30)
        memory = self.rm.alloc_os_memory(self.dev.nvdevice, nv_gpu.NV01_MEMORY_SYSTEM_OS_DESCRIPTOR, flags, address, size)
        whole = round_up(size, PAGE)
        fits = address + whole <= REACH
        try:
            fixed = (nv_gpu.NVOS46_FLAGS_DMA_OFFSET_FIXED_TRUE << 15, address) if fits else (0, 0)
            va = self.rm.map_dma(self.dev.nvdevice, self.mapper, memory, size, *fixed)
            if not fits:
                _show_again(address, va, whole)
        except (RuntimeError, OSError):
            self.rm.free(memory)
            raise
        buffer = HCQBuffer(va, size, meta=Pages(memory, va - address), view=MMIOInterface(address, size), owner=self.dev)
        # tinygrad does not always unmap what it has mapped, so that the mapping ends with the buffer.
        buffer.meta.release = weakref.finalize(buffer, self._release, self.rm, memory, 0 if fits else va, whole)
        buffer.meta.release.atexit = False
        return buffer

    @staticmethod
    def _release(client: rm.Client, memory: int, alias: int, size: int) -> None:
        if client.pid == os.getpid():
            client.free(memory)
        if alias:
            FileIOInterface.munmap(alias, size)

    def free(self, mem: HCQBuffer) -> None:
        """Frees a buffer. The memory object's mappings for the GPU and the CPU are freed with it."""
        if mem.owner is not self.dev:
            return
        if isinstance(mem.meta, Pages):
            mem.meta.release()
        elif self.rm.pid == os.getpid():
            self.rm.free(mem.meta.hMemory)

    def map(self, mem: HCQBuffer) -> HCQBuffer | None:
        """Maps another device's buffer for this GPU."""
        if mem.owner is not None and mem.owner._is_cpu():
            return self._wrap_pages(mem.va_addr, mem.size)
        raise RuntimeError(f"buffer {mem.va_addr:#x} belongs to {mem.owner.device}; a Jetson has one GPU and cannot map it")

    # *** errors and waiting ***

    def fault(self) -> str:
        """What the error notifiers of the channels say. It is empty if there is no error."""
        # One fault stops every channel of the group, and all notifiers say the same.
        return "\n".join(sorted({text for n in self.notifiers if (text := n.text())}))

    def sleep(self, _milliseconds: int) -> None:
        """tinygrad calls this while it waits for a late signal. It reports a dead channel at once, and gives the CPU to other threads."""
        if text := self.fault():
            raise RuntimeError(text)
        time.sleep(0.001)


class TegraComputeQueue(NVComputeQueue):
    """A compute queue that releases signals from the pushbuffer."""

    def signal(self, signal, value=0):
        """Does what tinygrad's method does, but never through the launch descriptor."""
        # The memory of a QMD is written again for the next launch of a graph, and on Tegra the CPU may do so before the GPU has read it. A
        # release in the QMD could then have the value of the next launch. Each submit has its own words in the pushbuffer.
        self.active_qmd = None
        return super().signal(signal, value)


class TegraAllocator(NVAllocator):
    """Copies are plain copies of memory. The CPU and the GPU share the memory, so that a staging buffer would only add a second copy."""

    def __init__(self, dev: NVDevice):
        super().__init__(dev, batch_cnt=0, supports_copy_from_disk=False)

    def map(self, buf: HCQBuffer) -> None:
        """Maps another device's buffer for this GPU. tinygrad 0.12 and 0.13 call this."""
        super().map(buf)
        self._within_reach(buf)

    def _map(self, buf: HCQBuffer) -> HCQBuffer | None:
        """Maps another device's buffer for this GPU. tinygrad 0.14 calls this, and in older releases it is a part of :meth:`map`."""
        mapped = super()._map(buf)
        self._within_reach(buf)
        return mapped

    def _within_reach(self, buf: HCQBuffer) -> None:
        """Names the pages of a buffer by the address that the GPU can reach. Views of the buffer are passed separately."""
        mapped = buf.mappings.get(self.dev)
        if mapped is not None and buf.va_addr + buf.size > REACH:
            buf.va_addr += mapped.meta.moved

    def _bytes(self, buf: HCQBuffer) -> memoryview:
        return to_mv(buf.cpu_view().addr, buf.size)

    def _as_buffer(self, src: HCQBuffer) -> memoryview:
        self.dev.synchronize()
        return self._bytes(src)

    def _copyin(self, dest: HCQBuffer, src: memoryview) -> None:
        self.dev.synchronize()  # a running kernel may still read dest
        with copies.into(self.dev.device):
            self._bytes(dest)[:src.nbytes] = src.cast("B")

    def _copyout(self, dest: memoryview, src: HCQBuffer) -> None:
        self.dev.synchronize()  # a running kernel may still write src
        with copies.out_of(self.dev.device):
            dest.cast("B")[:] = self._bytes(src)[:dest.nbytes]


class _Fixed:
    """An attribute that tinygrad's constructor sets for a desktop GPU and that has another value here."""

    def __init__(self, value):
        self.value = value

    def __get__(self, dev, _owner=None):
        return self if dev is None else self.value(dev)

    def __set__(self, dev, value):
        pass


class TegraDevice(NVDevice):
    """An NV device whose interface is TEGRA. Its constructor is never called: opening a TEGRAIface turns the NVDevice into one."""

    hw_compute_queue_t = _Fixed(lambda dev: TegraComputeQueue)
    # tinygrad's windows (from 0x7293_0000_0000) are outside the GPU's address space of 40 bits. The library keeps two ranges free.
    local_mem_window = _Fixed(lambda dev: dev.iface.profile.local_window)
    shared_mem_window = _Fixed(lambda dev: dev.iface.profile.shared_window)

    def _ensure_has_local_memory(self, required: int) -> None:
        # tinygrad frees the old local memory before it allocates a larger one, but running kernels still use the old one.
        if self.slm_per_thread < required:
            self.synchronize()
        super()._ensure_has_local_memory(required)

    def finalize(self) -> None:
        """At the end of the process: as tinygrad's. A forked child has nothing to wait for."""
        if self.iface.rm.pid == os.getpid():
            super().finalize()

    def on_device_hang(self) -> None:
        """Raises RuntimeError with everything that is known about why the GPU stopped."""
        # tinygrad's report would show an MMU fault with an address and an access of zero, because nvgpu does not tell them.
        records = self.iface.rm_control(
            self.debugger, nv_gpu.NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES,
            nv_gpu.NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS(hTargetChannel=self.debug_channel, numSMsToRead=100))
        report = [self.iface.fault()] + [
            f"SM {sm}: global esr {r.hwwGlobalEsr:#x}, warp esr {r.hwwWarpEsr:#x}, pc {r.hwwWarpEsrPc64:#x}"
            for sm, r in enumerate(records.smErrorStateArray) if r.hwwGlobalEsr or r.hwwWarpEsr]
        raise RuntimeError("\n".join(filter(None, report)) or "the GPU stopped answering; the kernel has recorded no fault")

    @property
    def pma_enabled(self) -> bool:
        """Whether PC sampling runs. It never does."""
        return False

    @pma_enabled.setter
    def pma_enabled(self, wanted: bool) -> None:
        if wanted:
            warnings.warn(NO_SAMPLING, stacklevel=2)


def _allocator(dev: NVDevice) -> NVAllocator:
    return (TegraAllocator if isinstance(dev, TegraDevice) else NVAllocator)(dev)


def _ensure_fence() -> None:
    """tinygrad uses libatomic for a fence before it rings the doorbell. Without that library it would stop with an AttributeError."""
    if not hasattr(System, "memory_barrier") or ctypes.util.find_library("atomic"):
        return
    raise RuntimeError("libatomic.so.1 is missing: tinygrad needs its fence before the doorbell (Debian: apt install libatomic1)")


def install() -> None:
    """Adds the TEGRA interface to tinygrad. Importing the module does this, and doing it twice changes nothing."""
    if ops_nv.NVAllocator is _allocator:
        return
    ops_nv.NVAllocator = _allocator
    os.register_at_fork(after_in_child=_forget_views)
    if NAMES_INTERFACES_IN_CALL:
        select = NVDevice._select_iface
        NVDevice._select_iface = lambda self, *ifaces: select(self, TEGRAIface, *ifaces)
    else:
        NVDevice.ifaces.insert(0, TEGRAIface)


install()
__all__ = ["TEGRAIface", "TegraDevice", "install"]
