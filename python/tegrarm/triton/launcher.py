"""Launches Triton's kernels. Triton passes all arguments of a function; the machine code has no parameters for constants."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from typing import Any

from ..array import Array
from ..kernels import Kernel, Launch

# The formats of module `struct` for the types of scalars in Triton's signatures.
FORMATS = {"i1": "?", "i8": "b", "i16": "h", "i32": "i", "i64": "q", "u1": "?", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
           "fp16": "e", "fp32": "f", "f32": "f", "fp64": "d"}
THREADS_OF_WARP = 32


def _flat(type_: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """The types and values of a parameter. A tuple is passed item by item."""
    if isinstance(type_, tuple):
        for inner, item in zip(type_, value, strict=True):
            yield from _flat(inner, item)
    elif type_.startswith("tensordesc"):
        yield from _descriptor(type_, value)
    elif type_ != "constexpr":
        yield type_, value


def _descriptor(type_: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a tensor descriptor. An Orin has no unit that reads descriptors (TMA), so the compiler makes parameters of the parts:
    the address, sizes and strides, how items outside are filled, and then sizes and strides again.
    """
    yield f"*{type_.partition('<')[2].partition('[')[0]}", value.base
    yield from (("i64", number) for number in (*value.shape, *value.strides))
    yield "i1", value.padding == "nan"
    yield "i1", value.round_f32_to_tf32
    yield from (("i32", number) for number in value.shape)
    yield from (("i64", number) for number in value.strides)


def packed(type_: str, value: Any) -> bytes:
    """An argument in the form in which the machine code reads it."""
    if type_.startswith("*"):
        if isinstance(value, Array):
            return struct.pack("<Q", value.address)
        if value is None:
            return bytes(8)
        raise TypeError(f"an argument of type {type_} is a {type(value).__name__}: make arrays with tegrarm.triton.device()")
    if type_ == "bf16":
        bits, = struct.unpack("<I", struct.pack("<f", value))
        return struct.pack("<H", (bits + 0x7fff + (bits >> 16 & 1)) >> 16)
    if type_ not in FORMATS:
        raise TypeError(f"a kernel on this device cannot have an argument of type {type_}: {value!r}")
    return struct.pack(f"<{FORMATS[type_]}", value)


class Launcher:
    """The function that Triton calls with the sizes of the grid, a kernel and its arguments."""

    def __init__(self, src: Any, metadata: Any):
        self.types = list(src.signature.values())
        self.metadata = metadata
        self.scratch: list[Array] = []

    def __call__(self, x: int, y: int, z: int, _stream: int, kernel: Kernel, _packed: Any, metadata: Any, enter: Any, leave: Any,
                 *arguments: Any) -> None:
        """Launches the kernel, after the work that was given before."""
        if x * y * z == 0:
            return
        flat = [pair for type_, value in zip(self.types, arguments, strict=True) for pair in _flat(type_, value)]
        if any(isinstance(value, Array) and value.device is not kernel.device for _, value in flat):
            raise ValueError(f"an argument of {kernel.name} is an array of another device than {kernel.device!r}")
        values = [packed(*pair) for pair in flat]
        self.scratch = []  # releases the scratch memory of the launch before, which is freed when that launch is done
        block = self._block(kernel, values, x * y * z)
        if enter is not None:
            enter(metadata)
        m = self.metadata
        cooperative = bool(getattr(m, "launch_cooperative_grid", False))
        Launch(kernel, (x, y, z), m.num_warps * THREADS_OF_WARP, m.shared, None, cooperative).submit(block)
        if leave is not None:
            leave(metadata)

    def _block(self, kernel: Kernel, values: list[bytes], blocks: int) -> Any:
        """The block of all parameters. After the arguments, the compiler adds pointers to scratch memory and tells its size."""
        values = [*values, *self._scratch(kernel, len(kernel.parameters) - len(values), blocks)]
        block = ctypes.create_string_buffer(max(kernel.attributes.parameter_size, 1))
        for value, (offset, size) in zip(values, kernel.parameters, strict=True):
            if len(value) != size:
                raise TypeError(f"{kernel.name}: an argument of {len(value)} bytes for a parameter of {size}")
            ctypes.memmove(ctypes.addressof(block) + offset, value, size)
        return block

    def _scratch(self, kernel: Kernel, count: int, blocks: int) -> Iterator[bytes]:
        sizes = [getattr(self.metadata, name, 0) or 0 for name in ("global_scratch_size", "profile_scratch_size")]
        for size in sizes[:count]:
            if not size:
                yield bytes(8)
                continue
            memory = kernel.device.empty(size * blocks * getattr(self.metadata, "num_ctas", 1), "uint8")
            self.scratch.append(memory)
            yield struct.pack("<Q", memory.address)
