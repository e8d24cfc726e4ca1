"""The TEGRA interface for tinygrad's NV device: ``import tegrarm.tinygrad``, then ``DEV=TEGRA+NV``.

It is tinygrad's own interface to the desktop driver, ``NVKIface``, whose files are those of the library's file door. Objects, channels,
queues and buffers are tinygrad's own. Different are the addresses, which a Tegra's GPU has fewer of, the memory of the process, which
gets an address of the GPU, and waiting, which looks at the error notifiers. A device that opens through it becomes a
:class:`TegraDevice`, and each of its overrides says why it is needed. The installed tinygrad is not changed, and devices with other
interfaces keep tinygrad's own behaviour.
"""

from __future__ import annotations

import ctypes.util
import os
import time
import warnings
from dataclasses import replace
from typing import Any

from tinygrad.runtime import ops_nv
from tinygrad.runtime.ops_nv import NVDevice, NVKIface, nv_gpu
from tinygrad.runtime.support import system

from ... import rm
from .. import fit
from ..sampling import NO_SAMPLING
from . import protection, views
from .addresses import PAGE, Addresses
from .door import DoorFile, failed
from .notifiers import Notifier
from .protection import Fixed

# tinygrad 0.12 has no list of interfaces to which one could be added. It has NV=1 NV_IFACE=TEGRA in place of DEV=TEGRA+NV.
NAMES_INTERFACES_IN_CALL = not hasattr(NVDevice, "ifaces")
REACH = 1 << 40  # GPU addresses have 40 bits
# The interface of tinygrad 0.13 and 0.14. Since then a buffer is `BufferStorage`, and the CPU and the GPU may have two addresses for it.
IS_HCQ = hasattr(ops_nv, "HCQBuffer")


class TEGRAIface(NVKIface):
    """tinygrad's interface to the desktop driver, on the library."""

    owner = 0  # the process that has the RM client
    addresses = Addresses()

    def __init__(self, dev: Any, device_id: int):
        if UNPROTECTED:
            raise fit.say("TEGRA+NV", UNPROTECTED)
        self.notifiers: list[Notifier] = []
        self.dev, self.pid = dev, os.getpid()
        if not rm.device_count():
            raise RuntimeError("libtegrarm has no GPU")
        _ensure_fence()
        if TEGRAIface.owner != self.pid:
            NVKIface.root, TEGRAIface.addresses = None, Addresses()  # RM clients do not survive a fork
        DoorFile.is_open = True
        try:
            super().__init__(dev, device_id)
        except BaseException as error:
            if TEGRAIface.owner != self.pid:
                DoorFile.is_open, NVKIface.root = False, None  # the next interface that is tried has other files
            if isinstance(error, fit.MISSING):
                raise fit.say("TEGRA+NV", error) from error
            raise
        TEGRAIface.owner = self.pid
        self.profile = rm.device_profile(self.gpu_instance)
        dev.__class__ = TegraDevice

    def rm_alloc(self, *args: Any, **kwargs: Any) -> int:
        """As tinygrad's, in the process that opened the device."""
        if os.getpid() != self.pid:
            views.refuse(self.pid)
        return super().rm_alloc(*args, **kwargs)

    def rm_control(self, *args: Any, **kwargs: Any) -> Any:
        """As tinygrad's, in the process that opened the device."""
        if os.getpid() != self.pid:
            views.refuse(self.pid)
        return super().rm_control(*args, **kwargs)

    # *** memory ***

    def _alloc_gpu_vaddr(self, size: int, alignment: int = PAGE, force_low: bool = False) -> int:
        return TEGRAIface.addresses.alloc(size, alignment)

    def alloc(self, size: int, *args: Any, host: bool = False, uncached: bool = False, cpu_access: bool = False, **kwargs: Any) -> Any:
        """As tinygrad's. The CPU can read a notifier, and with hcq every buffer, because the CPU and the GPU share the memory."""
        if os.getpid() != self.pid:
            views.refuse(self.pid)
        is_notifier = uncached and not cpu_access and not host
        if is_notifier:
            size, cpu_access = PAGE, True  # tinygrad reserves the 48 MiB that desktop RM uses, but nvgpu writes 16 bytes
        buffer = super().alloc(size, *args, host=host, uncached=uncached, cpu_access=cpu_access, **kwargs)
        if is_notifier:
            self.notifiers.append(Notifier(buffer.view if IS_HCQ else buffer.host))
        if IS_HCQ:
            if not host and not cpu_access:
                # The GPU's mapping comes first. The library then knows the memory as data, which both cache.
                self._gpu_map_to_cpu(buffer.meta.hMemory, buffer.size, target=buffer.va_addr)
            # A view of a buffer has as many bytes as were asked for. tinygrad's own has whole pages.
            buffer.size, buffer.view = size, ops_nv.MMIOInterface(buffer.va_addr, size, fmt="B")
        return buffer

    def free(self, mem: Any) -> None:
        """Frees a buffer, and takes its address back."""
        if os.getpid() != self.pid or IS_HCQ and mem.owner is not self.dev:
            return
        if release := getattr(mem.meta, "release", None):
            release()  # pages of the process
            return
        if IS_HCQ:
            mem.size = mem.meta.length  # whole pages, for tinygrad's munmap
        super().free(mem)
        TEGRAIface.addresses.release(mem.va_addr if IS_HCQ else mem.buf)

    def map(self, mem: Any) -> Any:
        """Maps memory of the process for this GPU. It keeps its address where the GPU reaches it, and otherwise gets another."""
        if IS_HCQ:
            if mem.owner is None or not mem.owner._is_cpu():
                raise RuntimeError(f"buffer {mem.va_addr:#x} belongs to {mem.owner.device}; a Jetson has one GPU and cannot map it")
            address, size = mem.va_addr, mem.size
        else:
            if mem.device.split(":")[0] not in ("CPU", "PYTHON", "NPY"):
                raise RuntimeError(f"{mem.device}: a Jetson has one GPU and cannot map a buffer of another device")
            address, size = mem.get_storage().host.addr, mem.nbytes
            if address % PAGE:
                raise RuntimeError(f"memory of {mem.device} at {address:#x} does not start with a page")
        return self.pages(address, size)

    def pages(self, address: int, size: int) -> Any:
        """A buffer of whole pages of this process, which begin at ``address``. It has the memory of the pages, and nothing is copied."""
        size = -(-size // PAGE) * PAGE
        mapping = self._map_pages(address, size)
        if IS_HCQ:
            from .hcq import mapped_pages
            return mapped_pages(self, mapping, address, size)
        return replace(mapping, meta=(mapping.meta, True))  # tinygrad's `unmap` frees a mapping with a range of its own

    def _map_pages(self, address: int, size: int) -> Any:
        flags = (nv_gpu.NVOS02_FLAGS_PHYSICALITY_NONCONTIGUOUS << 4) | (nv_gpu.NVOS02_FLAGS_COHERENCY_CACHED << 12) \
            | (nv_gpu.NVOS02_FLAGS_MAPPING_NO_MAP << 30)
        NVKIface.host_object_enumerator += 1
        made = nv_gpu.nv_ioctl_nvos02_parameters_with_fd(fd=-1, params=nv_gpu.NVOS02_PARAMETERS(
            hRoot=self.root, hObjectParent=self.dev.nvdevice, hObjectNew=NVKIface.host_object_enumerator, flags=flags, limit=size - 1,
            hClass=nv_gpu.NV01_MEMORY_SYSTEM_OS_DESCRIPTOR, pMemory=address))
        ops_nv.nv_iowr(self.fd_dev, nv_gpu.NV_ESC_RM_ALLOC_MEMORY, made)
        if made.params.status != 0:
            raise RuntimeError(str(failed(f"registering {size:#x} bytes at {address:#x}")))
        va = address if address + size <= REACH else TEGRAIface.addresses.alloc(size)
        try:
            return self._gpu_uvm_map(va, size, made.params.hObjectNew)
        except RuntimeError:
            self._free_object(made.params.hObjectNew)
            TEGRAIface.addresses.release(va)
            raise

    def _free_object(self, handle: int) -> None:
        freed = nv_gpu.NVOS00_PARAMETERS(hRoot=self.root, hObjectParent=self.dev.nvdevice, hObjectOld=handle)
        ops_nv.nv_iowr(self.fd_ctl, nv_gpu.NV_ESC_RM_FREE, freed)

    def forget_pages(self, va: int, size: int, handle: int) -> None:
        """Ends the mapping of pages of the process, and frees their object. tinygrad itself never frees such an object."""
        if os.getpid() == self.pid:
            self._free_object(handle)
            self.uvm(nv_gpu.UVM_FREE, nv_gpu.UVM_FREE_PARAMS(base=va, length=size))
            TEGRAIface.addresses.release(va)

    def unmap(self, mapping: Any) -> None:
        """Ends a mapping of pages of the process. tinygrad 0.14 and older call :meth:`free`."""
        made, _ = mapping.meta
        self.forget_pages(mapping.buf, made.length, made.hMemory)

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


class TegraDevice(NVDevice):
    """An NV device whose interface is TEGRA. Its constructor is never called: opening a TEGRAIface turns the NVDevice into one."""

    # tinygrad's windows (from 0x7293_0000_0000) are outside the GPU's address space of 40 bits. The library keeps two ranges free.
    local_mem_window = Fixed(lambda dev: dev.iface.profile.local_window)
    shared_mem_window = Fixed(lambda dev: dev.iface.profile.shared_window)

    def _ensure_has_local_memory(self, required: int) -> None:
        # tinygrad frees the old local memory before it allocates a larger one, but running kernels still use the old one.
        if self.slm_per_thread and self.slm_per_thread < required:
            self.synchronize()
        super()._ensure_has_local_memory(required)

    def finalize(self) -> None:
        """At the end of the process: as tinygrad's. A forked child has nothing to wait for."""
        if self.iface.pid == os.getpid():
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


def _ensure_fence() -> None:
    """tinygrad uses libatomic for a fence before it rings the doorbell. Without that library it would stop with an AttributeError."""
    if not hasattr(getattr(system, "System", None), "memory_barrier") or ctypes.util.find_library("atomic"):
        return
    raise RuntimeError("libatomic.so.1 is missing: tinygrad needs its fence before the doorbell (Debian: apt install libatomic1)")


UNPROTECTED = protection.install(TegraDevice)


def install() -> None:
    """Adds the TEGRA interface to tinygrad. Importing the module does this, and doing it twice changes nothing."""
    if ops_nv.FileIOInterface is DoorFile:
        return
    ops_nv.FileIOInterface, ops_nv.MMIOInterface = DoorFile, views.GPUView
    os.register_at_fork(after_in_child=views.forget)
    if IS_HCQ:
        from . import hcq
        hcq.install(TegraDevice)
    if NAMES_INTERFACES_IN_CALL:
        select = NVDevice._select_iface
        NVDevice._select_iface = lambda self, *ifaces: select(self, TEGRAIface, *ifaces)
    else:
        NVDevice.ifaces.insert(0, TEGRAIface)


install()
__all__ = ["TEGRAIface", "TegraDevice", "install"]
