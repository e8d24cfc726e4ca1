"""Copies in tinygrad's profile (``PROFILE=1``, ``VIZ=1``): the processor makes them, and the GPU knows nothing of them."""

from __future__ import annotations

import contextlib
import inspect

from tinygrad.helpers import cpu_profile

# A copy is marked as one by tinygrad 0.12; since 0.13 it stands in a row of the device's copies.
MARKS_COPIES = "is_copy" in inspect.signature(cpu_profile).parameters


def into(device: str) -> contextlib.AbstractContextManager:
    """A copy into a device's memory, named and placed as tinygrad's own copies by the processor are."""
    return _profiled(device, f"TINY -> {device}")


def out_of(device: str) -> contextlib.AbstractContextManager:
    """A copy out of it."""
    return _profiled(device, f"{device} -> TINY")


def _profiled(device: str, name: str) -> contextlib.AbstractContextManager:
    return cpu_profile(name, device, is_copy=True) if MARKS_COPIES else cpu_profile(name, f"{device}:COPY")
