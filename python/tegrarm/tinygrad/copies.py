"""Copies in tinygrad's profile (``PROFILE=1``, ``VIZ=1``). The CPU makes these copies, so that the GPU has no times for them."""

from __future__ import annotations

import contextlib
import inspect

from tinygrad.helpers import cpu_profile

# tinygrad 0.12 marks an event as a copy. Since 0.13 copies are in a row of the device.
MARKS_COPIES = "is_copy" in inspect.signature(cpu_profile).parameters


def into(device: str) -> contextlib.AbstractContextManager:
    """A copy into a device's memory, with the name and the row of tinygrad's own copies by the CPU."""
    return _profiled(device, f"TINY -> {device}")


def out_of(device: str) -> contextlib.AbstractContextManager:
    """A copy out of a device's memory, with the name and the row of tinygrad's own copies by the CPU."""
    return _profiled(device, f"{device} -> TINY")


def _profiled(device: str, name: str) -> contextlib.AbstractContextManager:
    return cpu_profile(name, device, is_copy=True) if MARKS_COPIES else cpu_profile(name, f"{device}:COPY")
