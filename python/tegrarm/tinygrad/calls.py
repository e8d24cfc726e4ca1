"""The calls of the C interface that the device makes: handles are ``c_void_p``, a bad status is an exception."""

from __future__ import annotations

import ctypes

from .. import _ffi
from ..rm import NV_ERR_TIMEOUT, check

SLICE_NS = 200_000_000  # a wait returns to Python this often, so that Ctrl-C is seen


def call(name: str, *arguments) -> None:
    """Calls ``tegrarm_NAME``; raises :class:`tegrarm.RmError` where it fails."""
    check(f"tegrarm_{name}", getattr(_ffi.lib(), f"tegrarm_{name}")(*arguments))


def made(name: str, *arguments) -> ctypes.c_void_p:
    """Calls ``tegrarm_NAME``, whose last argument is where a new handle goes, and returns the handle."""
    handle = ctypes.c_void_p()
    call(name, *arguments, ctypes.byref(handle))
    return handle


def wait(name: str, *arguments, timeout_ns: int = _ffi.TEGRARM_WAIT_FOREVER) -> None:
    """Calls ``tegrarm_NAME``, whose last argument is a time limit, again and again until the work is done or the limit over."""
    function = getattr(_ffi.lib(), f"tegrarm_{name}")
    left = timeout_ns
    while (status := function(*arguments, min(SLICE_NS, left))) == NV_ERR_TIMEOUT and left > SLICE_NS:
        left -= SLICE_NS if timeout_ns != _ffi.TEGRARM_WAIT_FOREVER else 0
    check(f"tegrarm_{name}", status)
