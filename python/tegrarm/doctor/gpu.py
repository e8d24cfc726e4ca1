"""Checks that ask the kernel and the GPU for their properties, and whether work on the GPU finishes."""

from __future__ import annotations

import contextlib
import ctypes
import re
from collections.abc import Iterator

from .. import _ffi, rm, where
from .check import Check, ok, problem
from .machine import Machine

ORIN = 0x807  # the number of sm_87
PATIENCE_NS = 60_000_000_000
HALF_BOOTED = ("The driver is there and the GPU is not: sudo dmesg | grep -i -e nvgpu -e firmware. Look for missing files below "
               "/lib/firmware/ga10b and for failed power-on.\nA cold start (power off, not reboot) helps where the GPU has hung.")


def kernel(machine: Machine) -> Iterator[Check]:
    """Checks which release the kernel's interface belongs to."""
    try:
        report = rm.driver_report()
    except (rm.RmError, _ffi.LibraryNotFound) as error:
        yield problem("kernel", sentence(error), advice(error))
        return
    found = re.search(r"nvgpu is that of (\w+)", report)
    if found:
        yield ok("kernel", f"its interface is that of L4T {found[1].lower().replace('_', '.')}")
    else:
        yield problem("kernel", "its interface is that of no release that we know", "Send us the output of `tegrarm doctor --kernel`.")


def device(machine: Machine) -> Iterator[Check]:
    """Checks the GPU with one piece of work."""
    try:
        profile = rm.device_profile()
    except (rm.RmError, _ffi.LibraryNotFound) as error:
        yield problem("device", sentence(error), advice(error))
        return
    if profile.sm_version != ORIN:
        yield problem("device", f"{profile.name.decode()} is a GPU of sm_{profile.sm_version >> 8}{profile.sm_version & 0xff}",
                      "Only the Orin family (sm_87) is supported.")
        return
    yield ok("device", f"{profile.name.decode()}, {where.KINDS[where.kind()]}")
    if where.kind() == "recording":
        return
    try:
        round_trip()
        yield ok("work", "the GPU took a command and answered")
    except rm.RmError as error:
        yield problem("work", sentence(error), advice(error))


def round_trip() -> None:
    """Opens the device, asks for a fence, waits for it, and closes the device."""
    library, handle, queue, fence = _ffi.lib(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    rm.check("tegrarm_device_open", library.tegrarm_device_open(0, ctypes.byref(handle)))
    with contextlib.ExitStack() as closing:
        closing.callback(library.tegrarm_device_close, handle)
        rm.check("tegrarm_device_queue", library.tegrarm_device_queue(handle, ctypes.byref(queue)))
        rm.check("tegrarm_fence", library.tegrarm_fence(queue, ctypes.byref(fence)))
        rm.check("tegrarm_wait", library.tegrarm_wait(handle, fence, PATIENCE_NS))


def sentence(error: Exception) -> str:
    """The text of an error in one line."""
    return " ".join(str(error).split())


def advice(error: Exception) -> str:
    """Advice about an error of the device."""
    text = str(error)
    if "ENODEV" in text or "ENXIO" in text or "RESOURCE_LOST" in text or "TIMEOUT" in text:
        return HALF_BOOTED
    if "NO_MEMORY" in text or "ENOMEM" in text:
        return "End other programs: the GPU's memory is the system's."
    if "EACCES" in text or "EPERM" in text or "permission" in text:
        return "See the lines `node`."
    return "See the lines above; `tegrarm doctor --kernel` has what a report needs."
