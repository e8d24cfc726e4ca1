"""Triton on the library: after ``import tegrarm.triton``, ``@triton.jit`` functions run on arrays of a :class:`tegrarm.Device`.

Triton's wheel contains an assembler for sm_87. So it needs no CUDA, and on the virtual Orin no GPU.
"""

from __future__ import annotations

from ..device import Device

try:
    from .driver import TegraDriver, active
except ModuleNotFoundError as error:
    if (error.name or "").partition(".")[0] != "triton":
        raise
    raise ImportError("tegrarm.triton needs Triton: pip install tegrarm[triton]") from error

__all__ = ["TegraDriver", "device", "use"]


def device() -> Device:
    """The device of Triton's kernels. The first call opens it, unless :func:`use` was called before."""
    return active().device


def use(device: Device) -> Device:
    """From now on Triton's kernels run on this device."""
    active(device)
    return device


active()
