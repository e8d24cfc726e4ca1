"""Arrays in memory that the CPU and the GPU share. numpy and other libraries can use the same memory without a copy."""

from __future__ import annotations

import ctypes
import math
import os
import struct
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import dlpack
from ._checked import shown, sizes, whole, within
from .calls import call
from .dtypes import DType, dtype
from .exporter import Exported, Exporter
from .items import AXES, bytes_of, is_number, one
from .memory import Memory
from .queues import Fence, Queue

if TYPE_CHECKING:
    from .device import Device

Shape = tuple[int, ...]
LARGEST = (1 << 63) - 1  # the sizes of the buffer protocol are signed


def shape_of(shape: int | Sequence[int]) -> Shape:
    """The shape as a tuple. A single number is the shape of one axis."""
    found = sizes(shape, AXES, "the shape")
    if any(size < 0 for size in found):
        raise ValueError(f"an array cannot have the shape {found}: a size is negative")
    return found


def room(shape: Shape, type_: DType) -> int:
    """The number of bytes of an array. It is an error if no process could address them."""
    # As numpy does, axes without items do not count: the steps from item to item would not fit.
    most = math.prod(size for size in shape if size) * type_.itemsize
    within(most, 0, LARGEST, f"the size in bytes of {'x'.join(map(shown, shape)) or 'one'} items of {type_}")
    return math.prod(shape) * type_.itemsize


class Array(Exporter):
    """Items of one type that follow each other in memory; the last axis varies fastest. Arrays do not compute: kernels do.

    A kernel gets ``address``. A program looks at the items with ``numpy()``, ``memoryview(a)``, DLPack or ``a[i]``; each of these waits
    for the work that the device has. If you keep such a view, call :meth:`Device.wait` before you look at it again.
    """

    def __init__(self, device: Device, memory: Memory, offset: int, shape: Shape, type_: DType):
        room(shape, type_)
        self.device, self.shape, self.dtype = device, shape, type_
        self._memory: Memory | None = memory
        self._offset = offset
        device._own(self)

    # *** what it is ***

    @property
    def size(self) -> int:
        """How many items there are."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """The size of an item in bytes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all items in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def memory(self) -> Memory:
        """The memory. There is none after the array was closed."""
        if self._memory is None:
            raise ValueError("the array is closed")
        return self._memory

    @property
    def address(self) -> int:
        """The address of the first item for the GPU."""
        return self.memory.address + self._offset

    @property
    def pointer(self) -> int:
        """The address of the first item for the CPU."""
        if not self.memory.pointer:
            raise BufferError("the memory was made without a pointer (TEGRARM_BUFFER_NO_POINTER): only the GPU sees it")
        return self.memory.pointer + self._offset

    def _ready(self) -> None:
        """Waits until the CPU may look at the items. A closed array says so first."""
        _ = self.memory
        self.device.wait()

    def data_ptr(self) -> int:
        """The same as ``address``, under the name that Triton asks for."""
        return self.address

    def element_size(self) -> int:
        """The same as ``itemsize``, under the name that Triton asks for."""
        return self.itemsize

    def __repr__(self) -> str:
        where = f"at {self.memory.address + self._offset:#x}" if self._memory else "closed"
        return f"<tegrarm.Array {'x'.join(map(str, self.shape)) or 'item'} {self.dtype}, {where}>"

    # *** views of others, without a copy ***

    def _exported(self) -> Exported:
        if not self.dtype.format:
            raise BufferError(f"the buffer protocol has no items of type {self.dtype}")
        self._ready()
        return Exported(self.memory, self.pointer, self.shape, self.dtype)

    def memoryview(self) -> memoryview:
        """The memory as a memoryview of Python. ``memoryview(a)`` gives the same."""
        return memoryview(self)

    def numpy(self) -> Any:
        """The memory as an array of numpy."""
        import numpy
        return numpy.asarray(memoryview(self))

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if not self.dtype.typestr:
            raise AttributeError(f"numpy has no items of type {self.dtype}: .view('uint16') shows the bits")
        interrupt, self._interrupt = self._interrupt, None
        if interrupt is not None:  # numpy has asked for the buffer before, and dropped the exception
            raise interrupt
        return {"version": 3, "shape": self.shape, "typestr": self.dtype.typestr, "data": memoryview(self)}

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """For libraries that know this interface and launch their kernels through this library.

        The attribute is missing if CUDA's own driver is in the process. A library that reads the attribute would then take the address for
        an address of CUDA's context, which is another address space.
        """
        if _cuda_is_loaded():
            raise AttributeError("libcuda.so is loaded in this process, and CUDA's context does not have the array's address")
        if not self.dtype.typestr:
            raise AttributeError(f"the interface has no items of type {self.dtype}")
        return {"version": 3, "shape": self.shape, "typestr": self.dtype.typestr, "data": (self.address, False), "strides": None,
                "stream": None}

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None, dl_device: tuple[int, int] | None = None,
                   copy: bool | None = None) -> Any:
        if stream is not None:
            raise BufferError("the memory is given out as memory of the processor, which has no streams: stream must be None")
        if dl_device not in (None, self.__dlpack_device__()):
            raise BufferError(f"the array is in memory of the processor and the GPU, and not of DLPack's device {dl_device}")
        if copy:
            raise BufferError("an array gives out its own memory: make a copy with Device.array")
        self._ready()
        versioned = max_version is not None and max_version >= dlpack.VERSION
        return dlpack.export(self.memory, self.pointer, self.shape, self.dtype, versioned)

    def __dlpack_device__(self) -> tuple[int, int]:
        return dlpack.CPU, 0

    def export(self) -> tuple[int, int]:
        """A new dmabuf descriptor of the memory, and the offset of the first item. The caller closes the descriptor (``os.close``)."""
        descriptor, offset = self.memory.export()
        return descriptor, offset + self._offset

    # *** parts ***

    def reshape(self, *shape: Any) -> Array:
        """The same items in another shape, given as sizes or as a sequence of sizes. One size may be -1 and is then computed."""
        wanted = list(sizes(shape[0] if len(shape) == 1 else shape, AXES, "the shape"))
        if wanted.count(-1) == 1:
            wanted[wanted.index(-1)] = self.size // max(-math.prod(wanted), 1)
        if math.prod(shape_of(wanted)) != self.size:
            raise ValueError(f"{self.size} items cannot have the shape {tuple(wanted)}")
        return Array(self.device, self.memory, self._offset, shape_of(wanted), self.dtype)

    def view(self, type_: Any) -> Array:
        """The same bytes as items of another type."""
        wanted = dtype(type_)
        last = (self.shape[-1] if self.shape else 1) * self.itemsize
        if last % wanted.itemsize:
            raise ValueError(f"rows of {last} bytes cannot be divided into items of {wanted.itemsize} bytes")
        shape = (*self.shape[:-1], last // wanted.itemsize) if self.shape else () if last == wanted.itemsize else (last // wanted.itemsize,)
        return Array(self.device, self.memory, self._offset, shape, wanted)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Array]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, key: int | slice | tuple[Any, ...]) -> Array:
        """A part whose items follow each other in memory. The index has numbers, then at most one range with step 1, then nothing."""
        keys, shape, offset = key if isinstance(key, tuple) else (key,), list(self.shape), 0
        keys = () if keys == (Ellipsis,) else keys
        if len(keys) > len(shape):
            raise IndexError(f"{len(keys)} indices for {len(shape)} axes")
        left: list[int] = []
        for axis, at in enumerate(keys):
            step = math.prod(shape[axis + 1:]) * self.itemsize
            if isinstance(at, slice):
                start, stop, stride = at.indices(shape[axis])
                whole = (start, stop) == (0, shape[axis])
                if stride != 1 or (left and not whole):
                    raise IndexError("the items of the part do not follow each other in memory: numpy() takes any index")
                offset, left = offset + start * step, [*left, max(stop - start, 0)]
            elif left:
                raise IndexError("the items of the part do not follow each other in memory: numpy() takes any index")
            else:
                offset += _index(at, shape[axis], axis) * step
        return Array(self.device, self.memory, self._offset + offset, (*left, *shape[len(keys):]), self.dtype)

    def __setitem__(self, key: int | slice | tuple[Any, ...], value: Any) -> None:
        part = self[key]
        if is_number(value):
            part.fill(value)
        else:
            part.copy_from(value)

    # *** contents ***

    def item(self) -> Any:
        """The only item of the array, as a number of Python."""
        if self.size != 1:
            raise ValueError(f"the array has {self.size} items, but item() needs exactly one")
        self._ready()
        values: tuple[Any, ...] = struct.unpack(f"<{self._format()}", ctypes.string_at(self.pointer, self.itemsize))
        return values[0]

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def tolist(self) -> Any:
        """The items as nested lists of Python."""
        self._ready()
        flat = struct.unpack(f"<{self.size}{self._format()}", ctypes.string_at(self.pointer, self.nbytes))
        return _nested(flat, self.shape)

    def _format(self) -> str:
        if len(self.dtype.format) != 1:
            raise TypeError(f"Python has no type for items of type {self.dtype}")
        return self.dtype.format

    def copy(self) -> Array:
        """A new array with the same items. The CPU copies, after the work that the device has."""
        return self.device.empty(self.shape, self.dtype).copy_from(self)

    def copy_from(self, source: Any) -> Array:
        """Copies the items of another array into this one. It may be of any library, with the same type and count. The CPU copies."""
        view = bytes_of(source, self.nbytes, self.dtype)
        self._ready()
        ctypes.memmove(self.pointer, view.pointer, self.nbytes)
        return self

    def copy_to(self, target: Any) -> None:
        """Copies the items into another array, which must be writable. The CPU copies."""
        view = bytes_of(target, self.nbytes, self.dtype)
        if view.readonly:
            raise BufferError("the target is read-only")
        self._ready()
        ctypes.memmove(view.pointer, self.pointer, self.nbytes)

    def fill(self, value: float, queue: Queue | None = None) -> Fence | None:
        """Sets all items to ``value``. The GPU does it after earlier work; the fence says when it is done."""
        size, bits = self.itemsize, one(value, self.dtype)
        while size > 1 and bits[:size // 2] == bits[size // 2:size]:
            size //= 2
        if size > 4:  # the GPU repeats 4 bytes at most
            self._ready()
            ctypes.memmove(self.pointer, bits * self.size, self.nbytes)
            return None
        where = (queue or self.device.default_queue)
        fence = ctypes.c_uint64()
        word = int.from_bytes(bits[:size], "little")
        call("fill", where.handle, self.memory.handle.value, self._offset, self.nbytes, word, size, ctypes.byref(fence))
        return Fence(self.device, fence.value)

    # *** the end ***

    def close(self) -> None:
        """Releases the memory. It is freed when no other array and no view uses it. A second call does nothing."""
        if self._memory is not None and self._memory.source is not None:
            self.device.finish()  # the pages belong to somebody else again
        self._memory = None

    def __enter__(self) -> Array:
        return self

    def __exit__(self, kind: object, *_exc: object) -> None:
        if kind is not None:
            self.device.finish(self.device.settle)
        self.close()


def _cuda_is_loaded() -> bool:
    try:
        ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except OSError:
        return False
    return True


def _index(at: Any, size: int, axis: int) -> int:
    number = whole(at, f"the index of axis {axis}")
    if not -size <= number < size:
        raise IndexError(f"axis {axis} has {size} items, and not one of number {number}")
    return int(number % size)


def _nested(flat: tuple[Any, ...], shape: Shape) -> Any:
    if len(shape) < 2:
        return list(flat) if shape else flat[0]
    step = len(flat) // shape[0] if shape[0] else 0
    return [_nested(flat[row * step:(row + 1) * step], shape[1:]) for row in range(shape[0])]
