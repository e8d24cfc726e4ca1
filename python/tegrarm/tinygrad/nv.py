"""The TEGRA interface for tinygrad's NV backend: ``import tegrarm.tinygrad``, then ``DEV=TEGRA+NV``.

tinygrad is left as it was installed. Importing this module adds :class:`TEGRAIface` to the interfaces that its NV device
tries; a device that opens through it becomes a :class:`TegraDevice`, whose few overrides say why they are needed. Devices
on other interfaces keep tinygrad's own behaviour. RM structures and numbers are the ones tinygrad generated.
"""

from __future__ import annotations

import ctypes
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

# tinygrad 0.12: no list of interfaces to add to, and NV=1 NV_IFACE=TEGRA in place of DEV=TEGRA+NV.
NAMES_INTERFACES_IN_CALL = not hasattr(NVDevice, "ifaces")
PAGE = 0x1000
BIG_PAGE = 2 << 20
REACH = 1 << 40  # GPU addresses have 40 bits
USERMODE_SIZE = 0x10000
# Of mmap and mremap, the same on every Linux that tinygrad runs on.
MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE, MAP_FIXED_NOREPLACE = 2, 0x20, 0x4000, 0x100000
MREMAP_MAYMOVE, MREMAP_FIXED = 1, 2
# Codes that nvgpu writes into info32 of an error notifier.
MMU_FAULT = 31
NOTIFIER_CODES = {
    8: "channel watchdog or preemption timeout", 11: "copy engine error", 13: "SM exception or graphics engine error",
    24: "semaphore acquire timeout", 25: "illegal method or notify", MMU_FAULT: "MMU fault", 32: "pushbuffer (PBDMA) error",
    37: "unimplemented firmware method", 43: "channel reset", 80: "pushbuffer checksum mismatch",
}


class Memory:
    """What tinygrad calls ``meta`` of a buffer: the RM object behind it."""

    def __init__(self, handle: int):
        self.hMemory = handle


class Pages(Memory):
    """This process's own pages as the GPU sees them, perhaps at another address."""

    def __init__(self, handle: int, moved: int):
        super().__init__(handle)
        self.moved = moved  # GPU address minus the address they were given by


def _remap() -> ctypes._CFuncPtr:
    """``mremap``, which maps shared pages a second time when it is told that there are none of them."""
    call = ctypes.CDLL(None, use_errno=True).mremap
    call.restype, call.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
    return call


def _show_again(address: int, at: int, size: int) -> None:
    """Maps the shared pages at ``address`` at ``at``, too, which must be free."""
    reserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE
    FileIOInterface.anon_mmap(at, size, 0, reserved, 0)
    if _remap()(address, 0, size, MREMAP_MAYMOVE | MREMAP_FIXED, at) == ctypes.c_void_p(-1).value:
        error = OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        FileIOInterface.munmap(at, size)
        what = f"the {size:#x} bytes at {address:#x} are no shared memory, and the GPU does not reach that high"
        raise RuntimeError(f"{what}: {error}") from error


class Notifier:
    """A channel's error notifier: 16 bytes that the kernel fills when it stops the channel."""

    def __init__(self, buffer: HCQBuffer):
        self.buffer = buffer

    def text(self) -> str:
        """What it says, empty while the channel is well."""
        _timestamp, code, _info16, status = struct.unpack("<QIHH", self.buffer.cpu_view()[:16])
        if not status:
            return ""
        where = ", the address is in the kernel's log: dmesg, or TEGRARM_LOG=warn on the virtual Orin" if code == MMU_FAULT else ""
        return f"channel stopped: error notifier {code} ({NOTIFIER_CODES.get(code, 'see nvgpu_error.h')}{where})"


class TEGRAIface:
    """What tinygrad's NVKIface does on a desktop driver's device nodes, done with libtegrarm's object door.

    The library places every buffer, so that a GPU virtual address is also the CPU's pointer to it.
    """

    # One per process (RM clients do not survive a fork), and never closed: at exit Python still finalizes graphs that look at
    # their signals, after tinygrad has finalized the device. The kernel takes everything back when the process ends.
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
        """The RM client's handle."""
        return self.rm.root

    @property
    def count(self) -> int:
        """GPUs of the library's backend."""
        return rm.device_count()

    # *** object tree ***

    def rm_alloc(self, parent: int, clss: int, params=None, root=None) -> int:
        """Allocates an RM object and returns its handle."""
        if clss == nv_gpu.FERMI_VASPACE_A:
            # The library owns this address space (nothing here is UVM) and knows its limits better than tinygrad's desktop range.
            params = nv_gpu.NV_VASPACE_ALLOCATION_PARAMETERS()
        return self.rm.alloc(parent, clss, params)

    def rm_control(self, obj: int, cmd: int, params=None, **_kwargs):
        """Sends an RM control; ``params`` is filled in and returned."""
        return self.rm.control(obj, cmd, params)

    def setup_usermode(self) -> tuple[int, MMIOInterface]:
        """Picks the classes this GPU has and maps the doorbell page."""
        classes = self._class_list()

        def first(*wanted):
            return next(c for c in wanted if c in classes)

        self.usermode_class, self.gpfifo_class = first(nv_gpu.TURING_USERMODE_A), first(nv_gpu.AMPERE_CHANNEL_GPFIFO_A)
        self.compute_class, self.dma_class = first(nv_gpu.AMPERE_COMPUTE_B), first(nv_gpu.AMPERE_DMA_COPY_B)
        self.viddec_class = None  # NVDEC is not an engine of the Tegra GPU
        usermode = self.rm.alloc(self.dev.subdevice, self.usermode_class)
        return usermode, MMIOInterface(self.rm.map(self.dev.subdevice, usermode, USERMODE_SIZE), USERMODE_SIZE, fmt="I")

    def _class_list(self) -> set[int]:
        size = self.rm.control(self.dev.nvdevice, nv_gpu.NV0080_CTRL_CMD_GPU_GET_CLASSLIST,
                               nv_gpu.NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS(numClasses=0)).numClasses
        classes = (ctypes.c_uint32 * size)()
        self.rm.control(self.dev.nvdevice, nv_gpu.NV0080_CTRL_CMD_GPU_GET_CLASSLIST,
                        nv_gpu.NV0080_CTRL_GPU_GET_CLASSLIST_PARAMS(numClasses=size, classList=ctypes.addressof(classes)))
        return set(classes)

    def setup_vm(self, vaspace: int) -> None:
        """Makes the mapper through which buffers enter the channels' address space."""
        # tinygrad's own NV01_MEMORY_VIRTUAL names the device's default address space; buffers belong in the channels' one.
        self.vaspace = vaspace
        self.mapper = self.rm.alloc(self.dev.nvdevice, nv_gpu.NV01_MEMORY_VIRTUAL,
                                    nv_gpu.NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS(hVASpace=vaspace))

    def setup_gpfifo_vm(self, gpfifo: int) -> None:
        """Nothing to do: on a desktop this tells UVM about the channel, here the channel is already bound to its address space."""

    # *** memory ***

    def alloc(self, size: int, host=False, uncached=False, cpu_access=False, cpu_addr=None, **_kwargs) -> HCQBuffer:
        """A buffer that CPU and GPU see at one address. Contents are zero, as nvmap hands out cleared pages."""
        if cpu_addr is not None:
            return self._wrap_pages(cpu_addr, size)
        if (notifier := uncached and not cpu_access and not host):
            size = PAGE  # tinygrad reserves 48 MiB for what desktop RM puts there; nvgpu writes 16 bytes
        page = BIG_PAGE if size >= 4 * BIG_PAGE else PAGE
        whole = round_up(size, page)
        # Control structures the CPU writes and the GPU reads are write-combined; data both sides read and write is cached.
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
        buffer = HCQBuffer(va, size, meta=Memory(memory), view=MMIOInterface(pointer, size), owner=self.dev)
        if notifier:
            self.notifiers.append(Notifier(buffer))
        return buffer

    def _wrap_pages(self, address: int, size: int) -> HCQBuffer:
        """Maps this process's own pages for the GPU: at their own address, or, if the GPU does not reach that high, at one that
        both reach. tinygrad writes one address for all devices into copies, so the process sees them there, too."""
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
        # tinygrad does not unmap everywhere what it maps: then it ends with the buffer.
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
        """Gives a buffer back; freeing the memory object drops its GPU and CPU mappings with it."""
        if mem.owner is not self.dev:
            return
        if isinstance(mem.meta, Pages):
            mem.meta.release()
        elif self.rm.pid == os.getpid():
            self.rm.free(mem.meta.hMemory)

    def map(self, mem: HCQBuffer) -> HCQBuffer | None:
        """Makes another device's buffer visible to this GPU."""
        if mem.owner is not None and mem.owner._is_cpu():
            return self._wrap_pages(mem.va_addr, mem.size)
        raise RuntimeError(f"buffer {mem.va_addr:#x} belongs to {mem.owner.device}; a Jetson has one GPU and cannot map it")

    # *** life ***

    def fault(self) -> str:
        """What the channels' error notifiers say, empty while all is well."""
        # One fault stops every channel of the group, and each notifier says the same.
        return "\n".join(sorted({text for n in self.notifiers if (text := n.text())}))

    def sleep(self, _milliseconds: int) -> None:
        """tinygrad calls this while it polls a late signal: notice a dead channel at once, and leave the CPU to others."""
        if text := self.fault():
            raise RuntimeError(text)
        time.sleep(0.001)


class TegraComputeQueue(NVComputeQueue):
    """Compute queue that releases signals from the pushbuffer."""

    def signal(self, signal, value=0):
        """As tinygrad's, never through the launch descriptor."""
        # A QMD lives in memory that the next launch of a graph rewrites, and on Tegra the CPU gets there before the GPU has read
        # it: a release stored in the QMD may carry the next launch's value. Every submit has its own pushbuffer words.
        self.active_qmd = None
        return super().signal(signal, value)


class TegraAllocator(NVAllocator):
    """Copies are plain memory copies: CPU and GPU share the memory, so staging buffers would only be a second copy."""

    def __init__(self, dev: NVDevice):
        super().__init__(dev, batch_cnt=0, supports_copy_from_disk=False)

    def map(self, buf: HCQBuffer) -> None:
        """Makes another device's buffer visible to this GPU: tinygrad 0.12 and 0.13."""
        super().map(buf)
        self._within_reach(buf)

    def _map(self, buf: HCQBuffer) -> HCQBuffer | None:
        """The same of tinygrad 0.14; in older ones a part of :meth:`map`."""
        mapped = super()._map(buf)
        self._within_reach(buf)
        return mapped

    def _within_reach(self, buf: HCQBuffer) -> None:
        """Names a buffer's pages by the address that the GPU reaches, too. Views of it come here on their own."""
        mapped = buf.mappings.get(self.dev)
        if mapped is not None and buf.va_addr + buf.size > REACH:
            buf.va_addr += mapped.meta.moved

    def _bytes(self, buf: HCQBuffer) -> memoryview:
        return to_mv(buf.cpu_view().addr, buf.size)

    def _as_buffer(self, src: HCQBuffer) -> memoryview:
        self.dev.synchronize()
        return self._bytes(src)

    def _copyin(self, dest: HCQBuffer, src: memoryview) -> None:
        self.dev.synchronize()  # a kernel in flight may still read dest
        with copies.into(self.dev.device):
            self._bytes(dest)[:src.nbytes] = src.cast("B")

    def _copyout(self, dest: memoryview, src: HCQBuffer) -> None:
        self.dev.synchronize()  # a kernel in flight may still write src
        with copies.out_of(self.dev.device):
            dest.cast("B")[:] = self._bytes(src)[:dest.nbytes]


class _Fixed:
    """An attribute that tinygrad's constructor sets for a desktop GPU and that is something else here."""

    def __init__(self, value):
        self.value = value

    def __get__(self, dev, _owner=None):
        return self if dev is None else self.value(dev)

    def __set__(self, dev, value):
        pass


class TegraDevice(NVDevice):
    """An NV device whose interface is TEGRA. Never constructed: opening a TEGRAIface turns the NVDevice into one."""

    hw_compute_queue_t = _Fixed(lambda dev: TegraComputeQueue)
    # tinygrad's windows (0x7293_0000_0000 and up) lie outside the GPU's 40-bit address space; the library keeps two ranges free.
    local_mem_window = _Fixed(lambda dev: dev.iface.profile.local_window)
    shared_mem_window = _Fixed(lambda dev: dev.iface.profile.shared_window)

    def _ensure_has_local_memory(self, required: int) -> None:
        # tinygrad frees the old local memory before it allocates the larger one; kernels in flight still spill into it.
        if self.slm_per_thread < required:
            self.synchronize()
        super()._ensure_has_local_memory(required)

    def on_device_hang(self) -> None:
        """Raises RuntimeError with everything known about why the GPU stopped."""
        # tinygrad's report would print an MMU fault with the address and access that nvgpu does not tell, as zeros.
        records = self.iface.rm_control(
            self.debugger, nv_gpu.NV83DE_CTRL_CMD_DEBUG_READ_ALL_SM_ERROR_STATES,
            nv_gpu.NV83DE_CTRL_DEBUG_READ_ALL_SM_ERROR_STATES_PARAMS(hTargetChannel=self.debug_channel, numSMsToRead=100))
        report = [self.iface.fault()] + [
            f"SM {sm}: global esr {r.hwwGlobalEsr:#x}, warp esr {r.hwwWarpEsr:#x}, pc {r.hwwWarpEsrPc64:#x}"
            for sm, r in enumerate(records.smErrorStateArray) if r.hwwGlobalEsr or r.hwwWarpEsr]
        raise RuntimeError("\n".join(filter(None, report)) or "the GPU stopped answering; the kernel has recorded no fault")

    @property
    def pma_enabled(self) -> bool:
        """Whether PC sampling runs: never."""
        return False

    @pma_enabled.setter
    def pma_enabled(self, wanted: bool) -> None:
        if wanted:
            text = "PC sampling (PMA) stays off on TEGRA: its samplers need streaming credits and registers of desktop GPUs"
            warnings.warn(text, stacklevel=2)


def _allocator(dev: NVDevice) -> NVAllocator:
    return (TegraAllocator if isinstance(dev, TegraDevice) else NVAllocator)(dev)


def _ensure_fence() -> None:
    """tinygrad fences with libatomic before it rings the doorbell; without that library it would stop with an AttributeError."""
    if not hasattr(System, "memory_barrier") or ctypes.util.find_library("atomic"):
        return
    raise RuntimeError("libatomic.so.1 is missing: tinygrad needs its fence before the doorbell (Debian: apt install libatomic1)")


def install() -> None:
    """Adds the TEGRA interface to tinygrad. Importing the module does it; doing it twice changes nothing."""
    if ops_nv.NVAllocator is _allocator:
        return
    ops_nv.NVAllocator = _allocator
    if NAMES_INTERFACES_IN_CALL:
        select = NVDevice._select_iface
        NVDevice._select_iface = lambda self, *ifaces: select(self, TEGRAIface, *ifaces)
    else:
        NVDevice.ifaces.insert(0, TEGRAIface)


install()
__all__ = ["TEGRAIface", "TegraDevice", "install"]
