"""The calls of the C interface that Python makes. Handles are ``c_void_p``, and a status that is an error becomes an exception."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from . import _ffi
from ._checked import array
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


def launch_config(grid: Sequence[int], block: Sequence[int], shared: int = 0, *, sizes: Any = None, cooperative: bool = False) -> Any:
    """How a kernel is launched: three sizes of the grid and three of a block, and the bytes of dynamic shared memory.

    ``sizes`` is an array of ``c_size_t``: the sizes of the arguments, which the library then compares with those of the parameters. The
    caller keeps the array for as long as it uses the result.
    """
    return _ffi.LaunchConfig(size=ctypes.sizeof(_ffi.LaunchConfig), grid_dim=array(ctypes.c_uint32, grid, "the grid"),
                             block_dim=array(ctypes.c_uint32, block, "the block"), shared_mem_bytes=shared,
                             flags=_ffi.TEGRARM_LAUNCH_COOPERATIVE if cooperative else 0,
                             param_sizes=None if sizes is None else ctypes.addressof(sizes))


def wait(name: str, *arguments: Any, timeout_ns: int = _ffi.TEGRARM_WAIT_FOREVER) -> None:
    """Calls ``tegrarm_NAME``, whose last argument is a time limit, until the work is done or the limit is over."""
    function = getattr(_ffi.lib(), f"tegrarm_{name}")
    left = timeout_ns
    while (status := function(*arguments, min(SLICE_NS, left))) == NV_ERR_TIMEOUT and left > SLICE_NS:
        left -= SLICE_NS if timeout_ns != _ffi.TEGRARM_WAIT_FOREVER else 0
    check(f"tegrarm_{name}", status)
