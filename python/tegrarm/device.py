"""An open GPU: its memory, compilers, kernels, queues and clocks, on the C interface."""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from . import _ffi, compile, cubin, rm
from .array import Array, room, shape_of
from .calls import call, made
from .dlpack import Imported
from .dtypes import dtype
from .items import converted, is_list, is_number, packed
from .kernels import Module
from .memory import PAGE, Handle, Memory
from .profiling import Record, profile
from .queues import Event, Fence, Queue, Timer

PATIENCE = 10.0  # seconds that work still has after an exception or Ctrl-C
CACHES = {True: _ffi.TEGRARM_BUFFER_CACHED, False: _ffi.TEGRARM_BUFFER_WRITE_COMBINED}


class Device:
    """An open GPU, of a board or of the virtual Orin. It is a context manager.

    Work runs in the order in which it is given. The calls return before it is done; :meth:`wait` waits. Any thread may use a device.
    """

    def __init__(self, index: int = 0):
        self.index, self.properties = index, rm.device_profile(index)
        self._gpu: Handle | None = Handle(made("device_open", index), "device_close")
        self._owned: weakref.WeakSet[Any] = weakref.WeakSet()  # arrays, modules and queues, closed with the device
        self.default_queue = Queue(self, Handle(made("device_queue", self.handle), ""))
        self._queues: weakref.WeakSet[Queue] = weakref.WeakSet([self.default_queue])

    def _own(self, part: Any) -> None:
        self._owned.add(part)

    # *** properties ***

    @property
    def gpu(self) -> Handle:
        """The open device. There is none after it was closed."""
        if self._gpu is None:
            raise ValueError("the device is closed")
        return self._gpu

    @property
    def handle(self) -> ctypes.c_void_p:
        """The handle for the C interface."""
        return self.gpu.value

    @property
    def name(self) -> str:
        """The GPU's name."""
        return str(self.properties.name.decode())

    @property
    def arch(self) -> str:
        """The name of the architecture for compilers, for example ``sm_87``."""
        return f"sm_{self.properties.sm_version >> 8}{self.properties.sm_version & 0xff}"

    def __repr__(self) -> str:
        return f"<tegrarm.Device {self.index}: {self.name}, {self.arch}{'' if self._gpu else ', closed'}>"

    def memory(self) -> tuple[int, int]:
        """How many bytes can still be allocated, and how many there are in all."""
        available, total = ctypes.c_uint64(), ctypes.c_uint64()
        call("device_memory", self.handle, ctypes.byref(available), ctypes.byref(total))
        return available.value, total.value

    def state(self) -> _ffi.DeviceState:
        """The clocks, the load, the temperature and the power mode."""
        state = _ffi.DeviceState(size=ctypes.sizeof(_ffi.DeviceState))
        call("device_state", self.handle, ctypes.byref(state))
        return state

    # *** arrays ***

    def empty(self, shape: int | Sequence[int], dtype: Any = "float32", *, cached: bool = True) -> Array:
        """A new array of zeros. ``cached=False`` makes it faster for data that the CPU writes and does not read."""
        type_, sizes = _dtype(dtype), shape_of(shape)
        return Array(self, Memory.new(self.gpu, room(sizes, type_), CACHES[cached]), 0, sizes, type_)

    def zeros(self, shape: int | Sequence[int], dtype: Any = "float32") -> Array:
        """A new array of zeros."""
        array = self.empty(shape, dtype)
        # Memory is zero at first. Where a checker looks for values that were never written, a store to each page says that these are meant.
        if array.nbytes and os.environ.get("TEGRARM_SIM_CHECK"):
            memoryview((ctypes.c_ubyte * array.nbytes).from_address(array.pointer)).cast("B")[::PAGE] = bytes(-(-array.nbytes // PAGE))
        return array

    def full(self, shape: int | Sequence[int], value: float, dtype: Any = "float32") -> Array:
        """A new array whose items are all ``value``."""
        array = self.empty(shape, dtype)
        array.fill(value)
        return array

    def array(self, items: Any, dtype: Any = None) -> Array:
        """A copy of items: of nested lists, or of anything with the buffer protocol, such as an array of numpy."""
        if is_list(items) or is_number(items) and not hasattr(items, "dtype"):
            shape, data, type_ = packed(items, None if dtype is None else _dtype(dtype), self.memory()[1])
            array = self.empty(shape, type_)
            ctypes.memmove(array.pointer, data, len(data))
            return array
        if dtype is not None and hasattr(items, "astype"):
            items = converted(items, _dtype(dtype))
        try:
            view = memoryview(items)
        except TypeError:
            raise TypeError(f"an array cannot be made of a {type(items).__name__}: it is made of numbers, of nested lists of numbers, or "
                            "of an object with the buffer protocol, such as an array of numpy") from None
        if not view.c_contiguous:
            view = memoryview(items.copy() if hasattr(items, "copy") else view.tobytes())
        if dtype is not None and _dtype(dtype) != _dtype(view.format):
            raise TypeError(f"{type(items).__name__} has items of {_dtype(view.format)}, and it cannot convert them to {_dtype(dtype)}")
        array = self.empty(view.shape or (), view.format)
        array.copy_from(view)
        return array

    def from_dlpack(self, other: Any) -> Array:
        """An array in the memory of another library's array, without a copy. The GPU can access the whole pages around it."""
        if isinstance(other, Array) and other.device is self:
            return other.view(other.dtype)
        source = Imported(other)
        memory, offset = Memory.of_pages(self.gpu, source.pointer, source.nbytes, source)
        return Array(self, memory, offset, source.shape, source.dtype)

    def wrap(self, other: Any) -> Array:
        """An array in the memory of a writable object with the buffer protocol, such as an array of numpy or a bytearray. No copy."""
        view = memoryview(other)
        if view.readonly or not view.c_contiguous:
            raise BufferError("the items must be writable and must follow each other in memory: make a copy with Device.array")
        flat = (ctypes.c_uint8 * view.nbytes).from_buffer(view.cast("B"))
        memory, offset = Memory.of_pages(self.gpu, ctypes.addressof(flat), view.nbytes, flat)
        return Array(self, memory, offset, view.shape or (), _dtype(view.format))

    def import_dmabuf(self, descriptor: int, shape: int | Sequence[int], dtype: Any = "uint8", offset: int = 0, *,
                      read_only: bool = False, pointer: bool = True) -> Array:
        """An array in memory of a camera, an encoder or another process, without a copy. The caller keeps the descriptor."""
        flags = (_ffi.TEGRARM_BUFFER_GPU_READ_ONLY if read_only else 0) | (0 if pointer else _ffi.TEGRARM_BUFFER_NO_POINTER)
        sizes, type_ = shape_of(shape), _dtype(dtype)
        # The library checks that the items lie in the memory.
        part = Memory.of_dmabuf(self.gpu, descriptor, flags).part(self.gpu, offset, room(sizes, type_))
        return Array(self, part, 0, sizes, type_)

    # *** machine code ***

    def compile(self, source: str | bytes, *, name: str = "source.cu", options: Sequence[str] = (), kernels: Sequence[str] = ()) -> Module:
        """Compiles CUDA C++ with NVRTC (``pip install tegrarm[nvrtc]``) and loads the machine code.

        ``kernels`` are instances of templates, such as ``"scale<float>"``. If the compiler refuses the source, this raises
        :class:`tegrarm.CompileError` with the compiler's log.
        """
        text = source.encode() if isinstance(source, str) else source
        every = [f"--include-path={place}" for place in compile.headers()] + ["-default-device", *options]
        program = compile.program(text, name, self.arch, tuple(every), tuple(kernels))
        return Module(self, program.cubin, cubin.parameter_types(program.ptx), program.names)

    def load(self, image: bytes) -> Module:
        """Loads a cubin, which is machine code for exactly this GPU."""
        if not isinstance(image, (bytes, bytearray, memoryview)):
            raise TypeError(f"Device.load takes the bytes of a cubin, and not a {type(image).__name__}: for a file, "
                            "pathlib.Path(name).read_bytes()")
        return Module(self, bytes(image))

    # *** work ***

    def queue(self, kind: str = "compute", *, priority: str | None = None, timeslice_us: int = 0) -> Queue:
        """Makes another queue: ``"compute"``, or ``"copy"`` for copies only. The priority is "low", "medium" or "high"."""
        queue = Queue.make(self, kind, priority, timeslice_us)
        self._queues.add(queue)
        self._own(queue)
        return queue

    def fence(self) -> Fence:
        """A fence at the end of the work that the default queue has now."""
        return self.default_queue.fence()

    def wait(self, timeout: float | None = None) -> None:
        """Waits until all work of all queues is done, at most ``timeout`` seconds for each queue. Ctrl-C ends the wait."""
        for queue in self._used():
            queue.wait(timeout)

    synchronize = wait

    def _used(self) -> list[Queue]:
        _ = self.gpu  # a closed device says so
        return [queue for queue in self._queues if queue.open]

    def event(self) -> Event:
        """An event: a point in the work of a queue, and the GPU's time at that point."""
        return Event(self)

    def timer(self, queue: Queue | None = None) -> Timer:
        """``with device.timer() as t:`` measures on the GPU how long the work of the block takes. ``t.ns`` waits for its end."""
        return Timer(self, queue)

    def profile(self) -> contextlib.AbstractContextManager[list[Record]]:
        """``with device.profile() as records:`` fills a list with the start and the end of each kernel, copy and fill of the block."""
        return profile(self)

    def time(self) -> tuple[int, int, int]:
        """The GPU's clock, CLOCK_MONOTONIC at the same moment, and the largest possible error. All three are nanoseconds."""
        gpu, cpu, off_by = ctypes.c_uint64(), ctypes.c_uint64(), ctypes.c_uint64()
        call("device_time", self.handle, ctypes.byref(gpu), ctypes.byref(cpu), ctypes.byref(off_by))
        return gpu.value, cpu.value, off_by.value

    # *** faults ***

    def fault(self) -> _ffi.Fault | None:
        """The fault that stopped a queue, or None."""
        fault = _ffi.Fault(size=ctypes.sizeof(_ffi.Fault))
        call("device_fault", self.handle, ctypes.byref(fault))
        return fault if fault.cause != _ffi.TEGRARM_FAULT_NONE else None

    def recover(self) -> int:
        """Makes stopped queues usable again, and returns their number. Their unfinished work is lost; everything else stays."""
        recovered = ctypes.c_uint32()
        call("device_recover", self.handle, ctypes.byref(recovered))
        return recovered.value

    def stop(self) -> int:
        """Ends work that has not finished, such as a kernel that never ends. Its queues work again, and their number is returned.

        The work is lost, as after a fault: its fences raise an RmError. Everything else stays.
        """
        stopped = ctypes.c_uint32()
        call("device_stop", self.handle, ctypes.byref(stopped))
        if stopped.value:
            self.recover()
        return stopped.value

    def settle(self) -> None:
        """Waits ten seconds (:data:`tegrarm.device.PATIENCE`) for the work of all queues, and then stops what still runs.

        This is what happens at the end of a ``with`` block that an exception ends, so that Ctrl-C ends a program whose kernel does not.
        """
        until = time.monotonic() + PATIENCE
        for queue in self._used():
            try:
                queue.wait(max(until - time.monotonic(), 0))
            except rm.RmTimeout:
                stopped = self.stop()
                warnings.warn(f"{stopped} queue{'s' if stopped > 1 else ''} still had work after {PATIENCE:g} seconds; it was stopped, "
                              "and what it had not finished is lost", RuntimeWarning, stacklevel=3)
                return

    def finish(self, wait: Callable[[], object] | None = None) -> None:
        """Waits until no work uses memory any more that is about to be freed. In C this wait could not be ended by Ctrl-C."""
        if self._gpu is not None:
            with contextlib.suppress(rm.RmError):
                (wait or self.wait)()

    # *** the end ***

    def close(self) -> None:
        """Waits for all work, and closes the device with its arrays, modules and queues. A second call does nothing.

        Ctrl-C ends the wait and stops the work. Memory that a view still uses is freed when the view is gone.
        """
        self._close(self.wait)

    def _close(self, finish: Callable[[], object]) -> None:
        if self._gpu is None:
            return
        try:
            finish()
        except rm.RmError:
            pass  # the device is closed also after a fault, and after the library was shut down
        except BaseException:
            with contextlib.suppress(rm.RmError):
                self.stop()
            self._close_parts()
            raise
        self._close_parts()

    def _close_parts(self) -> None:
        for part in [*self._owned]:
            part.close()
        self._gpu = None

    def __enter__(self) -> Device:
        return self

    def __exit__(self, kind: object, *_exc: object) -> None:
        self._close(self.wait if kind is None else self.settle)


_dtype = dtype  # methods that have an argument `dtype` call the function by this name
