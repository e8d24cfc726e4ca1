"""tinygrad on the library: ``import tegrarm.tinygrad``, then ``DEV=TEGRA`` or ``DEV=TEGRA+NV``.

``DEV=TEGRA`` is a device of its own that only uses the C interface (:mod:`.device`). It needs tinygrad 0.13 or newer. ``DEV=TEGRA+NV`` is
tinygrad's NV device on the library's Resource Manager (:mod:`.nv`). Older releases have only this one. The installed tinygrad is not
changed: its search path for devices gets one more folder.
"""

from __future__ import annotations

import os
import pathlib
from typing import TYPE_CHECKING, Any

from .wheels import use_wheels

use_wheels()  # this must happen before tinygrad reads the environment, which it does once

import tinygrad.runtime  # noqa: E402

if TYPE_CHECKING:
    from .nv import NAMES_INTERFACES_IN_CALL, REACH, TegraDevice, TEGRAIface, install

FOUND = str(pathlib.Path(__file__).with_name("found"))
if FOUND not in tinygrad.runtime.__path__:
    tinygrad.runtime.__path__.append(FOUND)  # `Device["TEGRA"]` looks for ops_tegra there

# What the adapter for the NV device defines. The adapter uses internal parts of that device. If tinygrad has moved them, the adapter is
# missing, and the device TEGRA still works.
NV_ADAPTER = ("NAMES_INTERFACES_IN_CALL", "REACH", "TEGRAIface", "TegraDevice", "install")
NV_MISSING: Exception | None = None
try:
    from . import nv
except (ImportError, AttributeError) as error:
    NV_MISSING = error
    if "TEGRA+NV" in os.environ.get("DEV", "").upper():
        raise


def __getattr__(name: str) -> Any:
    if name not in NV_ADAPTER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if NV_MISSING is not None:
        raise ImportError(f"the interface TEGRA+NV does not fit this tinygrad: {NV_MISSING}; use DEV=TEGRA") from NV_MISSING
    return getattr(nv, name)


__all__ = ["NAMES_INTERFACES_IN_CALL", "NV_MISSING", "REACH", "TEGRAIface", "TegraDevice", "install"]
