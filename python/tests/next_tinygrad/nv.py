"""The NV device of the next release: its interface gives out storages, its channels are made when they are first used, and its compute
queue releases signals through the launch descriptor of the last launch. ``put_in()`` puts it into the installed tinygrad.
"""

from __future__ import annotations

import ctypes
import functools
import struct
import types
from dataclasses import replace
from typing import Any

from tinygrad.runtime import ops_nv

from . import memory
from .memory import BufferStorage

nv_gpu, Published = ops_nv.nv_gpu, ops_nv.NVKIface


def _with_storages(function: Any) -> Any:
    """The published function, whose result is a storage."""
    def storage(va_addr: int, _size: int, meta: Any = None, view: Any = None, owner: Any = None) -> BufferStorage:  # noqa: ARG001
        return BufferStorage(va_addr, meta, view)

    return types.FunctionType(function.__code__, {**function.__globals__, "HCQBuffer": storage}, function.__name__,
                              function.__defaults__, function.__closure__)


class NVKIface(Published):
    """The interface to the desktop driver."""

    _gpu_uvm_map = _with_storages(Published._gpu_uvm_map)

    def free(self, storage: BufferStorage) -> None:
        if storage.meta.hMemory > NVKIface.host_object_enumerator:
            freed = nv_gpu.NVOS00_PARAMETERS(hRoot=self.root, hObjectParent=self.dev.nvdevice, hObjectOld=storage.meta.hMemory)
            ops_nv.nv_iowr(self.fd_ctl, nv_gpu.NV_ESC_RM_FREE, freed)
        self.uvm(nv_gpu.UVM_FREE, nv_gpu.UVM_FREE_PARAMS(base=storage.buf, length=storage.meta.length))
        if storage.host is not None:
            ops_nv.FileIOInterface.munmap(storage.buf, storage.meta.length)

    def map(self, buf: Any) -> BufferStorage:
        mapping = self.alloc(buf.nbytes, host=True, cpu_addr=buf._buf)
        return replace(mapping, meta=(mapping.meta, True))

    def unmap(self, mapping: BufferStorage) -> None:
        meta, owns = mapping.meta
        if owns:
            self.uvm(nv_gpu.UVM_FREE, nv_gpu.UVM_FREE_PARAMS(base=mapping.buf, length=meta.length))


class NVAllocator(memory.Allocator):
    """Memory of the device."""

    def _alloc(self, size: int, options: Any) -> BufferStorage:
        return self.dev.iface.alloc(size, cpu_access=options.cpu_access, host=options.host)

    def _free(self, storage: BufferStorage, options: Any) -> None:
        self.dev.synchronize()
        self.dev.iface.free(storage)

    def _map(self, buf: Any) -> BufferStorage:
        return self.dev.iface.map(buf)

    def _unmap(self, mapping: BufferStorage) -> None:
        self.dev.iface.unmap(mapping)

    def _offset(self, buf: int, size: int, offset: int) -> int:
        return buf + offset


class QMD:
    """A launch descriptor that has room for one release."""

    def __init__(self) -> None:
        self.releases: list[tuple[int, int]] = []

    def set_release(self, addr: int, payload: int, timestamp: bool = False) -> bool:
        if timestamp or self.releases:
            return False
        self.releases.append((addr, payload))
        return True


class NVQueue:
    """Commands, as words."""

    name = "COPY:0"

    def __init__(self, dev: Any):
        self.dev, self.words = dev, []

    def nvm(self, subchannel: int, method: int, *values: int) -> None:
        self.words += [2 << 28 | len(values) << 16 | subchannel << 13 | method >> 2, *values]

    def release(self, addr: int, value: int, timestamp: bool = False) -> None:
        flags = 1 | 1 << 24 | (1 << 25 if timestamp else 0)  # release, 64 bits
        self.nvm(0, nv_gpu.NVC56F_SEM_ADDR_LO, addr & 0xffffffff, addr >> 32, value & 0xffffffff, value >> 32, flags)

    def copy(self, to: int, source: int, size: int) -> None:
        self.nvm(4, nv_gpu.NVC6C0_SET_OBJECT, self.dev.iface.dma_class)
        self.nvm(4, nv_gpu.NVC6B5_OFFSET_IN_UPPER, source >> 32, source & 0xffffffff, to >> 32, to & 0xffffffff)
        self.nvm(4, nv_gpu.NVC6B5_LINE_LENGTH_IN, size)
        self.nvm(4, nv_gpu.NVC6B5_LAUNCH_DMA, 2 | 1 << 7 | 1 << 8)  # not pipelined, both sides in lines

    def submit(self) -> None:
        self.dev.submit(self.name, self.words)


class NVComputeQueue(NVQueue):
    """The queue whose last launch takes a release, if it has room."""

    name = "COMPUTE:0"

    def __init__(self, dev: Any):
        super().__init__(dev)
        self.prev_qmd: QMD | None = None

    def release(self, addr: int, value: int, timestamp: bool = False) -> None:
        if self.prev_qmd is not None and self.prev_qmd.set_release(addr, value, timestamp):
            return
        self.prev_qmd = None
        super().release(addr, value, timestamp)


class NVDevice(memory.Compiled):
    """The device."""

    ifaces = [NVKIface]

    def __init__(self, device: str = ""):
        self.iface = iface = self._select_iface(device)
        self.nvdevice = iface.rm_alloc(iface.root, nv_gpu.NV01_DEVICE_0, nv_gpu.NV0080_ALLOC_PARAMETERS(
            deviceId=iface.gpu_instance, hClientShare=iface.root, vaMode=nv_gpu.NV_DEVICE_ALLOCATION_VAMODE_OPTIONAL_MULTIPLE_VASPACES))
        self.subdevice = iface.rm_alloc(self.nvdevice, nv_gpu.NV20_SUBDEVICE_0, nv_gpu.NV2080_ALLOC_PARAMETERS())
        self.virtmem = iface.rm_alloc(self.nvdevice, nv_gpu.NV01_MEMORY_VIRTUAL,
                                      nv_gpu.NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS(limit=0x1ffffffffffff))
        self.usermode, self.gpu_mmio = iface.setup_usermode()
        flags = nv_gpu.NV_VASPACE_ALLOCATION_FLAGS_ENABLE_PAGE_FAULTING | nv_gpu.NV_VASPACE_ALLOCATION_FLAGS_IS_EXTERNALLY_OWNED
        self.vaspace = iface.rm_alloc(self.nvdevice, nv_gpu.FERMI_VASPACE_A, nv_gpu.NV_VASPACE_ALLOCATION_PARAMETERS(
            vaBase=0x1000, vaSize=0x1fffffb000000, flags=flags))
        iface.setup_vm(self.vaspace)
        self.group = iface.rm_alloc(self.nvdevice, nv_gpu.KEPLER_CHANNEL_GROUP_A,
                                    nv_gpu.NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS(engineType=nv_gpu.NV2080_ENGINE_TYPE_GRAPHICS))
        self.ctxshare = iface.rm_alloc(self.group, nv_gpu.FERMI_CONTEXT_SHARE_A, nv_gpu.NV_CTXSHARE_ALLOCATION_PARAMETERS(
            hVASpace=self.vaspace, flags=nv_gpu.NV_CTXSHARE_ALLOCATION_FLAGS_SUBCONTEXT_ASYNC))
        self.slm_per_thread, self.pma_enabled = 0, False
        self.shared_mem_window, self.local_mem_window = 0x729400000000, 0x729300000000
        super().__init__(device, NVAllocator(self), [], None, arch="sm_87")

    @functools.cached_property
    def fifos(self) -> dict[str, Any]:
        area = self.iface.alloc(3 << 20, contiguous=True, cpu_access=True, force_devmem=True,
                                map_flags=nv_gpu.NVOS33_FLAGS_CACHING_TYPE_WRITECOMBINED << 23)
        made = {"COMPUTE:0": self._fifo(area, 0, self.iface.compute_class), "COPY:0": self._fifo(area, 0x100000, self.iface.dma_class)}
        self.iface.rm_control(self.group, nv_gpu.NVA06C_CTRL_CMD_GPFIFO_SCHEDULE, nv_gpu.NVA06C_CTRL_GPFIFO_SCHEDULE_PARAMS(bEnable=1))
        return made

    def _fifo(self, area: BufferStorage, at: int, engine: int) -> Any:
        entries, notifier = 0x10000, self.iface.alloc(48 << 20, uncached=True)
        channel = self.iface.rm_alloc(self.group, self.iface.gpfifo_class, nv_gpu.NV_CHANNELGPFIFO_ALLOCATION_PARAMETERS(
            gpFifoOffset=area.buf + at, gpFifoEntries=entries, hObjectError=notifier.meta.hMemory, hObjectBuffer=area.meta.hMemory,
            hUserdMemory=(ctypes.c_uint32 * 8)(area.meta.hMemory), userdOffset=(ctypes.c_uint64 * 8)(entries * 8 + at),
            hContextShare=self.ctxshare))
        self.iface.rm_alloc(channel, engine)
        token = self.iface.rm_control(channel, nv_gpu.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN,
                                      nv_gpu.NVC36F_CTRL_CMD_GPFIFO_GET_WORK_SUBMIT_TOKEN_PARAMS(workSubmitToken=-1)).workSubmitToken
        self.iface.setup_gpfifo_vm(channel)
        return types.SimpleNamespace(ring=area.host.view(at, entries * 8, fmt="Q"), entries=entries, token=token, put=0,
                                     gpput=area.host.view(at + entries * 8 + 0x8c, 4, fmt="I"))

    def submit(self, queue: str, words: list[int]) -> None:
        fifo = self.fifos[queue]
        commands = self.iface.alloc(4096, cpu_access=True)  # never freed, as long as this device lives
        commands.host[:4 * len(words)] = struct.pack(f"{len(words)}I", *words)
        fifo.ring[fifo.put % fifo.entries] = commands.buf | len(words) << 42 | 1 << 41
        fifo.put += 1
        fifo.gpput[0] = fifo.put % fifo.entries
        self.gpu_mmio[0x90 // 4] = fifo.token

    def synchronize(self, timeout: int | None = None) -> None:
        pass

    def wait(self, signal: Any, value: int) -> None:
        for _ in range(20_000):
            if signal[0] == value:
                return
            self.iface.sleep(1)
        raise AssertionError(f"the signal is {signal[0]:#x} and not {value:#x}")

    def on_device_hang(self) -> None:
        raise RuntimeError("hang")

    def _ensure_has_local_memory(self, required: int) -> None:
        self.slm_per_thread = required

    def finalize(self) -> None:
        pass


def put_in() -> None:
    """Replaces what the module of the NV device has."""
    for stand_in in (NVKIface, NVAllocator, QMD, NVQueue, NVComputeQueue, NVDevice):
        setattr(ops_nv, stand_in.__name__, stand_in)
    del ops_nv.HCQBuffer
