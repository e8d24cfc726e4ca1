"""tinygrad's profile of the device TEGRA: ``PROFILE=1``, ``VIZ=1``."""

from __future__ import annotations

import dataclasses
import decimal
import itertools
from typing import TYPE_CHECKING

from tinygrad.device import Compiled, ProfileDeviceEvent, ProfileProgramEvent
from tinygrad.helpers import ProfileRangeEvent

if TYPE_CHECKING:
    from .device import TegraDevice
    from .program import TegraProgram

TAGS = itertools.count()


def _known(event: type, **fields) -> dict:
    """The fields that the event of this release has."""
    names = {field.name for field in dataclasses.fields(event)}
    return {name: value for name, value in fields.items() if name in names}


def program(loaded: TegraProgram) -> int:
    """Reports that a kernel was loaded."""
    tag = next(TAGS)
    fields = _known(ProfileProgramEvent, device=loaded.dev.device, name=loaded.name, lib=loaded.lib,
                    base=loaded.attributes.code_address, tag=tag, profile_key=loaded.profile_key)
    Compiled.profile_events.append(ProfileProgramEvent(**fields))
    return tag


def ran(dev: TegraDevice, name: str, start_ns: int, end_ns: int, key: bytes | None) -> None:
    """Reports that something ran on the GPU between two times of the CPU's clock."""
    start, end = decimal.Decimal(start_ns) / 1000, decimal.Decimal(end_ns) / 1000
    fields = _known(ProfileRangeEvent, device=dev.device, name=name, st=start, en=end, profile_key=key)
    Compiled.profile_events.append(ProfileRangeEvent(**fields))


def describe(dev: TegraDevice) -> None:
    """Describes the clock of the events. It is the CPU's, so that tinygrad subtracts nothing."""
    properties = {"name": dev.gpu.name.decode(), "arch": dev.arch, "compute_units": dev.gpu.compute_units}
    fields = _known(ProfileDeviceEvent, device=dev.device, tdiff=decimal.Decimal(0), props=properties)
    Compiled.profile_events.append(ProfileDeviceEvent(**fields))
