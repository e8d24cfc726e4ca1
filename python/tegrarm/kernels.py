"""Kernels: machine code on a device. A launch looks like a call of the kernel."""

from __future__ import annotations

import ctypes
import numbers
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from . import _ffi, cubin
from ._checked import array, sizes
from .argtypes import ArgType, argtype, other_kind
from .array import Array
from .calls import call, launch_config, made
from .dtypes import FLOAT
from .memory import Handle
from .queues import Fence, Queue

if TYPE_CHECKING:
    from .device import Device

Size = int | Sequence[int]
INTEGERS = {1: "bB", 2: "hH", 4: "iI", 8: "qQ"}  # signed and unsigned, by size
FLOATS = {2: "e", 4: "f", 8: "d"}


def _triple(what: str, size: Size) -> Any:
    found = sizes(size, 3, f"the {what}")
    if not found:
        raise ValueError(f"the {what} has no sizes: it has x, or x and y, or x, y and z")
    return array(ctypes.c_uint32, (*found, *[1] * (3 - len(found))), f"the {what}")


class Module:
    """Loaded machine code. ``module["name"]`` is a kernel. A module with one kernel can itself be launched like the kernel."""

    def __init__(self, device: Device, image: bytes, types: dict[str, list[str]] | None = None, names: dict[str, str] | None = None):
        self.device, self._image_names = device, cubin.kernels(image)
        self._types, self._names = types or {}, names or {}
        self._handle = Handle(made("module_load", device.handle, image, len(image)), "module_unload", device.gpu)
        self._kernels: dict[str, Kernel] = {}
        device._own(self)

    @property
    def names(self) -> list[str]:
        """The names of the kernels in the machine code."""
        return list(self._image_names)

    def kernel(self, name: str) -> Kernel:
        """A kernel by its name in the source. C++ changes names; the kernel is found if only one name in the machine code fits."""
        if name not in self._kernels:
            found = self._names.get(name) or self._find(name)
            self._kernels[name] = Kernel(self, found, self._types.get(found))
        return self._kernels[name]

    def _find(self, name: str) -> str:
        changed = [n for n in self._image_names if n.startswith((f"_Z{len(name)}{name}", f"_ZN{len(name)}{name}"))]
        if name not in self._image_names and len(changed) == 1:
            return changed[0]
        if name not in self._image_names:
            raise KeyError(f"the module has no kernel {name!r}: it has {', '.join(self._image_names) or 'none'}")
        return name

    @overload
    def __getitem__(self, key: str) -> Kernel: ...
    @overload
    def __getitem__(self, key: tuple[Any, ...]) -> Launch: ...
    def __getitem__(self, key: str | tuple[Any, ...]) -> Kernel | Launch:
        """``module["name"]`` is a kernel. ``module[grid, block]`` is a launch of the only kernel."""
        return self.kernel(key) if isinstance(key, str) else self.only[key]

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.kernel(name)
        except KeyError as error:
            raise AttributeError(error.args[0]) from None

    @property
    def only(self) -> Kernel:
        """The only kernel of the module. It is an error if there are several."""
        if len(self._image_names) != 1:
            raise KeyError(f"the module has {len(self._image_names)} kernels: choose one of {', '.join(self._image_names)}")
        return self.kernel(self._image_names[0])

    def variable(self, name: str) -> tuple[int, int]:
        """The address and the size of a ``__device__`` or ``__constant__`` variable."""
        address, size = ctypes.c_uint64(), ctypes.c_uint64()
        call("module_variable", self._handle.value, name.encode(), ctypes.byref(address), ctypes.byref(size))
        return address.value, size.value

    def write(self, name: str, value: Any) -> None:
        """Sets a variable to the bytes of an object with the buffer protocol."""
        data = bytes(memoryview(value).cast("B"))
        call("module_write", self._handle.value, name.encode(), data, len(data))

    def close(self) -> None:
        """Unloads the machine code when the work that the device has is done. A second call does nothing."""
        if self._handle.open:
            self.device.finish()
            self._handle.close()

    def __enter__(self) -> Module:
        return self

    def __exit__(self, kind: object, *_exc: object) -> None:
        if kind is not None:
            self.device.finish(self.device.settle)
        self.close()


class Kernel:
    """A kernel. ``kernel[grid, block](a, b, 3.0)`` launches it, and returns the fence of the launch.

    An array is passed as a pointer. A number is converted to the type of the parameter, if ``Device.compile`` has told the type. A cubin
    contains only the sizes of parameters; then an int becomes a whole number and a float becomes a floating-point number. Everything else
    is refused with a sentence that names the parameter.

    Machine code does not say what a pointer points at: an array of floats passes for an ``int *``, unless ``argtypes`` says what it is.
    """

    def __init__(self, module: Module, name: str, types: list[str] | None):
        self.name, self.module, self.device, self.types = name, module, module.device, types
        self.handle = made("module_kernel", module._handle.value, name.encode())
        self.attributes = _ffi.KernelAttributes(size=ctypes.sizeof(_ffi.KernelAttributes))
        call("kernel_attributes", self.handle, ctypes.byref(self.attributes))
        self.parameters = [self._parameter(index) for index in range(self.attributes.parameters)]
        self._argtypes: list[ArgType | None] = []

    def _parameter(self, index: int) -> tuple[int, int]:
        offset, size = ctypes.c_uint32(), ctypes.c_uint32()
        call("kernel_parameter", self.handle, index, ctypes.byref(offset), ctypes.byref(size))
        return offset.value, size.value

    def __repr__(self) -> str:
        return f"<tegrarm.Kernel {self.name}, {len(self.parameters)} parameters>"

    @property
    def argtypes(self) -> list[str | None] | None:
        """What the parameters are: ``["int *", "float"]``, with types of C, numpy or ctypes, and None for what is not to be checked."""
        return [None if type_ is None else type_.text for type_ in self._argtypes] or None

    @argtypes.setter
    def argtypes(self, types: Sequence[Any] | None) -> None:
        found = [None if type_ is None else argtype(type_) for type_ in types or ()]
        if types is not None and len(found) != len(self.parameters):
            raise TypeError(f"{self.name} has {len(self.parameters)} parameters, and {len(found)} types were given")
        for index, (type_, (_, size)) in enumerate(zip(found, self.parameters, strict=False)):
            if type_ is not None and type_.size != size:
                raise TypeError(f"parameter {index} of {self.name} has {size} bytes, and {type_.text} has {type_.size}")
        self._argtypes = found

    def __getitem__(self, sizes: tuple[Any, ...]) -> Launch:
        if not isinstance(sizes, tuple) or not 2 <= len(sizes) <= 4:
            raise TypeError("a launch is kernel[grid, block], kernel[grid, block, shared] or kernel[grid, block, shared, queue]")
        return Launch(self, *sizes)

    def launch(self, grid: Size, block: Size, *arguments: Any, shared: int = 0, queue: Queue | None = None,
               cooperative: bool = False) -> Fence:
        """A launch with these sizes. ``shared`` is dynamic shared memory in bytes. In a ``cooperative`` launch all blocks run at the same
        time, so that they can wait for each other."""
        return Launch(self, grid, block, shared, queue, cooperative)(*arguments)

    def occupancy(self, block: Size, shared: int = 0) -> int:
        """How many blocks one SM runs at the same time."""
        blocks = ctypes.c_uint32()
        call("kernel_occupancy", self.handle, _triple("block", block), shared, ctypes.byref(blocks))
        return blocks.value

    def packed(self, arguments: tuple[Any, ...]) -> Any:
        """The arguments in the form in which the kernel reads them."""
        if len(arguments) != len(self.parameters):
            raise TypeError(f"{self.name} has {len(self.parameters)} parameters, and {len(arguments)} arguments were given")
        block = ctypes.create_string_buffer(max(self.attributes.parameter_size, 1))
        for index, (argument, (offset, size)) in enumerate(zip(arguments, self.parameters, strict=True)):
            value = self._bytes(index, argument, size)
            if len(value) != size:
                raise TypeError(f"parameter {index} of {self.name} has {size} bytes, and {type(argument).__name__} has {len(value)}")
            ctypes.memmove(ctypes.addressof(block) + offset, value, size)
        return block

    def _bytes(self, index: int, argument: Any, size: int) -> bytes:
        kind = self.types[index] if self.types else ""
        stated = self._argtypes[index] if self._argtypes else None
        if stated is not None and isinstance(argument, Array) and not stated.accepts(argument.dtype):
            raise TypeError(f"argument {index} of {self.name} is an array of {argument.dtype}, and the parameter is {stated.text}")
        if stated is not None and stated.type is not None and not stated.pointer:
            kind = "float" if stated.type.code == FLOAT else "integer"
        if isinstance(argument, Array):
            if argument.device is not self.device:
                raise ValueError(f"argument {index} of {self.name} is an array of another device, and this device cannot access its memory")
            # In the PTX of most compilers, pointers are integers.
            if kind and (kind, size) not in (("pointer", 8), ("integer", 8)):
                raise TypeError(f"parameter {index} of {self.name} is {kind}, and the argument is an array")
            return struct.pack("<Q", argument.address)
        if isinstance(argument, (bytes, bytearray, ctypes._SimpleCData, ctypes.Structure, ctypes.Array)):
            if (other := other_kind(argument, "pointer" if stated is not None and stated.pointer else kind)):
                raise TypeError(f"argument {index} of {self.name} is {other}")
            return bytes(argument)
        if type(argument).__module__ == "numpy" and getattr(argument, "shape", None) == ():
            if not kind:
                return bytes(argument.tobytes())
            argument = argument.item()
        if not isinstance(argument, numbers.Real):
            raise TypeError(f"argument {index} of {self.name} is a {type(argument).__name__}: arguments are numbers, arrays of the device "
                            "(Device.array makes one of another library's) and objects of ctypes")
        try:
            return _number(argument, kind if kind in ("float", "integer") else "float" if isinstance(argument, float) else "integer", size)
        except (KeyError, struct.error, OverflowError, ValueError) as error:
            raise TypeError(f"argument {index} of {self.name}, {argument!r}, is no {kind or 'value'} of {size} bytes: {error}") from None


def _number(value: Any, kind: str, size: int) -> bytes:
    """A number of Python as bytes of a number of C. A fraction is not cut off, and a number that is too large is an error."""
    if kind == "float":
        return struct.pack(f"<{FLOATS[size]}", value)
    if value != int(value):
        raise ValueError("it has a fraction")
    return struct.pack(f"<{INTEGERS[size][value >= 0]}", int(value))


class Launch:
    """A kernel and the sizes of a launch. Call it with the arguments."""

    def __init__(self, kernel: Kernel, grid: Size, block: Size, shared: int = 0, queue: Queue | None = None, cooperative: bool = False):
        self.kernel, self.queue = kernel, queue
        self._sizes = array(ctypes.c_size_t, [size for _, size in kernel.parameters], "the sizes", least=1)
        self.config = launch_config(_triple("grid", grid), _triple("block", block), shared, sizes=self._sizes, cooperative=cooperative)

    def __call__(self, *arguments: Any) -> Fence:
        """Launches the kernel, and returns at once."""
        return self.submit(self.kernel.packed(arguments))

    def submit(self, values: Any) -> Fence:
        """Launches the kernel with a block of arguments, which is an array of ctypes in the form in which the kernel reads it."""
        kernel, fence = self.kernel, ctypes.c_uint64()
        at, count = ctypes.addressof(values), len(kernel.parameters)
        pointers = (ctypes.c_void_p * max(count, 1))(*[at + offset for offset, _ in kernel.parameters])
        queue = None if self.queue is None else self.queue.handle
        call("launch", queue, kernel.handle, ctypes.byref(self.config), pointers, count, ctypes.byref(fence))
        return Fence(kernel.device, fence.value)
