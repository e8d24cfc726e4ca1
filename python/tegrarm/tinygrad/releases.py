"""The differences between the releases of tinygrad with which the device works: 0.13, 0.14, and what comes after, where memory is a
``BufferStorage`` and an opaque value is the GPU's address. No other module looks at the release.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import tinygrad.device

if TYPE_CHECKING:
    from .device import TegraDevice

# 0.14 gives a program as one object, and 0.13 as a name, machine code and keywords.
HAS_TINYELF = hasattr(tinygrad.device, "TinyELF")
# 0.14 synchronizes a device before it asks for a view of its memory.
SYNCHRONIZES_FIRST = HAS_TINYELF
# After 0.14 memory is an object with the GPU's address, what belongs to it, and the CPU's view of it.
HAS_STORAGE = hasattr(tinygrad.device, "BufferStorage")


def address(buffer: Any) -> int:
    """The GPU's address of a ``Buffer``."""
    return buffer._buf if HAS_STORAGE else buffer._buf.va


def memory(buffer: Any) -> Any:
    """The TegraBuffer behind a ``Buffer``. A storage has that of its base."""
    if not HAS_STORAGE:
        return buffer._buf
    base = buffer.meta
    return base.part(buffer._buf - base.va, buffer.nbytes)


def addresses(bufs: Any) -> Any:
    """The GPU's addresses of the opaque values of buffers."""
    return bufs if HAS_STORAGE else [b.va for b in bufs]


def runtime(program: type) -> Any:
    """The value that `Compiled` gets: a class in 0.14, and in 0.13 something that is called without the device."""
    return program if HAS_TINYELF else None


def bind(dev: TegraDevice, program: type) -> None:
    """For 0.13, makes the device's own `runtime`."""
    if not HAS_TINYELF:
        dev.runtime = functools.partial(_of_parts, dev, program)  # type: ignore[method-assign]


def _of_parts(dev: TegraDevice, program: type, name: str, lib: bytes, *_aux: Any, prg: Any = None, **_more: Any) -> Any:
    return program(dev, Parts(name, lib, prg.key if prg is not None else None))


class Parts:
    """The fields of 0.14's TinyELF that a program needs."""

    def __init__(self, name: str, lib: bytes, profile_key: bytes | None):
        self.name, self.lib, self.profile_key = name, lib, profile_key
