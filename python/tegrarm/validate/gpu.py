"""The runtime, as the scripts use it: a device, buffers, kernels, launches, and what stopped a device."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.resources
from collections.abc import Iterator

from .. import _ffi
from .._checked import number
from ..calls import launch_config
from ..rm import check

SECOND = 1_000_000_000
PATIENCE = 30 * SECOND


def call(name: str, *arguments) -> None:
    """Calls a function of the library. If the library refuses the call, this raises :class:`tegrarm.rm.RmError`."""
    check(name, getattr(_ffi.lib(), name)(*arguments))


def data(name: str) -> bytes:
    """A file that comes with the package."""
    return importlib.resources.files(__package__).joinpath("data", name).read_bytes()


class Buffer:
    """Memory of the device, with its address for the GPU and its address for the CPU."""

    def __init__(self, handle: ctypes.c_void_p, size: int):
        self.handle, self.size = handle, size
        pointer, address = ctypes.c_void_p(), ctypes.c_uint64()
        call("tegrarm_buffer_address", handle, ctypes.byref(pointer), ctypes.byref(address))
        self.pointer, self.address = pointer.value or 0, address.value

    @property
    def bytes(self) -> bytes:
        """The contents as the CPU reads them."""
        return ctypes.string_at(self.pointer, self.size)

    def words(self) -> ctypes.Array:
        """The memory as an array of 32-bit words. The array is not a copy."""
        return (ctypes.c_uint32 * (self.size // 4)).from_address(self.pointer)

    def fill(self, contents: bytes) -> None:
        """Lets the CPU write contents to the beginning of the memory."""
        ctypes.memmove(self.pointer, contents, len(contents))

    def free(self) -> None:
        """Frees the memory."""
        call("tegrarm_buffer_free", self.handle)


class Gpu:
    """An open device."""

    def __init__(self):
        self.handle = ctypes.c_void_p()
        call("tegrarm_device_open", 0, ctypes.byref(self.handle))
        self.default_queue = ctypes.c_void_p()
        call("tegrarm_device_queue", self.handle, ctypes.byref(self.default_queue))

    def __enter__(self) -> Gpu:
        return self

    def __exit__(self, *_exc) -> None:
        call("tegrarm_device_close", self.handle)

    def buffer(self, size: int, flags: int = 0) -> Buffer:
        """Allocates memory."""
        handle = ctypes.c_void_p()
        call("tegrarm_buffer_alloc", self.handle, size, flags, ctypes.byref(handle))
        return Buffer(handle, size)

    def imported(self, pages: int, size: int, flags: int = 0) -> Buffer:
        """Makes a buffer of the process's own pages."""
        handle = ctypes.c_void_p()
        call("tegrarm_buffer_import_pages", self.handle, pages, size, flags, ctypes.byref(handle))
        return Buffer(handle, size)

    def kernel(self, cubin: bytes, name: str) -> ctypes.c_void_p:
        """Loads machine code and finds a kernel in it."""
        module, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        call("tegrarm_module_load", self.handle, cubin, len(cubin), ctypes.byref(module))
        call("tegrarm_module_kernel", module, name.encode(), ctypes.byref(kernel))
        return kernel

    def probe(self, name: str) -> ctypes.c_void_p:
        """Loads a kernel of probe.cu."""
        return self.kernel(data("probe.cubin"), name)

    def launch(self, kernel: ctypes.c_void_p, grid: int, block: int, *arguments, queue: ctypes.c_void_p | None = None) -> int:
        """Starts a kernel. Arguments are buffers (their addresses) or ctypes values. Returns the fence."""
        values = [number(ctypes.c_uint64, a.address, "the address") if isinstance(a, Buffer) else a for a in arguments]
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        config, fence = launch_config((grid, 1, 1), (block, 1, 1)), ctypes.c_uint64()
        call("tegrarm_launch", queue, kernel, ctypes.byref(config), pointers, len(values), ctypes.byref(fence))
        return fence.value

    def wait(self, fence: int, nanoseconds: int = PATIENCE) -> None:
        """Waits for a fence."""
        call("tegrarm_wait", self.handle, fence, nanoseconds)

    def run(self, kernel: ctypes.c_void_p, grid: int, block: int, *arguments) -> None:
        """Runs a kernel and waits until it ends."""
        self.wait(self.launch(kernel, grid, block, *arguments))

    def copy(self, to: Buffer, source: Buffer, size: int) -> None:
        """Lets the GPU copy bytes and waits until it has finished."""
        fence = ctypes.c_uint64()
        call("tegrarm_copy", None, to.handle, 0, source.handle, 0, size, ctypes.byref(fence))
        self.wait(fence.value)

    @contextlib.contextmanager
    def queue(self, kind: int, priority: int = 0) -> Iterator[ctypes.c_void_p]:
        """Makes a queue that is destroyed at the end of the ``with`` block."""
        options = _ffi.QueueOptions(ctypes.sizeof(_ffi.QueueOptions), kind, priority, 0, 0)
        handle = ctypes.c_void_p()
        call("tegrarm_queue_create", self.handle, ctypes.byref(options), ctypes.byref(handle))
        try:
            yield handle
        finally:
            call("tegrarm_queue_destroy", handle)

    def code_address(self, kernel: ctypes.c_void_p) -> int:
        """The address of the first instruction of a kernel."""
        attributes = _ffi.KernelAttributes(size=ctypes.sizeof(_ffi.KernelAttributes))
        call("tegrarm_kernel_attributes", kernel, ctypes.byref(attributes))
        return attributes.code_address

    def fault(self) -> _ffi.Fault:
        """The fault that stopped the device."""
        fault = _ffi.Fault(size=ctypes.sizeof(_ffi.Fault))
        call("tegrarm_device_fault", self.handle, ctypes.byref(fault))
        return fault

    def state(self) -> _ffi.DeviceState:
        """The clocks, the load, the temperature and the power mode."""
        state = _ffi.DeviceState(size=ctypes.sizeof(_ffi.DeviceState))
        call("tegrarm_device_state", self.handle, ctypes.byref(state))
        return state
