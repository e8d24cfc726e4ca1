"""The differences between the releases of tinygrad with which the device works, 0.13 and 0.14. No other module looks at the release."""

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
