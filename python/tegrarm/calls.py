"""The calls of the C interface that Python makes. Handles are ``c_void_p``, and a status that is an error becomes an exception."""

from __future__ import annotations

import ctypes
from typing import Any

from . import _ffi
from .rm import NV_ERR_TIMEOUT, check

SLICE_NS = 200_000_000  # a wait returns to Python after this time, so that it notices Ctrl-C


def call(name: str, *arguments: Any) -> None:
    """Calls ``tegrarm_NAME``. Raises :class:`tegrarm.RmError` if it fails."""
    check(f"tegrarm_{name}", getattr(_ffi.lib(), f"tegrarm_{name}")(*arguments))


def made(name: str, *arguments: Any) -> ctypes.c_void_p:
    """Calls ``tegrarm_NAME``, whose last argument is the place for a new handle. Returns the handle."""
    handle = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(handle))
    return handle


def wait(name: str, *arguments: Any, timeout_ns: int = _ffi.TEGRARM_WAIT_FOREVER) -> None:
    """Calls ``tegrarm_NAME``, whose last argument is a time limit, until the work is done or the limit is over."""
    function = getattr(_ffi.lib(), f"tegrarm_{name}")
    left = timeout_ns
    while (status := function(*arguments, min(SLICE_NS, left))) == NV_ERR_TIMEOUT and left > SLICE_NS:
        left -= SLICE_NS if timeout_ns != _ffi.TEGRARM_WAIT_FOREVER else 0
    check(f"tegrarm_{name}", status)
