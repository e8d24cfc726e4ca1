"""tinygrad on the library: ``import tegrarm.tinygrad``, then ``DEV=TEGRA`` or ``DEV=TEGRA+NV``.

``DEV=TEGRA`` is a device of its own that only uses the C interface (:mod:`.device`). It needs tinygrad 0.13 or newer. ``DEV=TEGRA+NV`` is
tinygrad's NV device on the library's Resource Manager (:mod:`.nv`). Older releases have only this one. The installed tinygrad is not
changed: its search path for devices gets one more folder.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import os
import pathlib
import sys
from typing import TYPE_CHECKING, Any

from . import fit
from .wheels import use_wheels

use_wheels()  # this must happen before tinygrad reads the environment, which it does once

import tinygrad.runtime  # noqa: E402

if TYPE_CHECKING:
    import types
    from collections.abc import Sequence

    NV_MISSING: Exception | None
    from .nv import NAMES_INTERFACES_IN_CALL, REACH, TegraDevice, TEGRAIface, install

FOUND = str(pathlib.Path(__file__).with_name("found"))
if FOUND not in tinygrad.runtime.__path__:
    tinygrad.runtime.__path__.append(FOUND)  # `Device["TEGRA"]` looks for ops_tegra there

fit.only_the_sentence()

# What the adapter for the NV device defines. The adapter uses internal parts of that device. If tinygrad has moved them, the adapter is
# missing, and opening the device through it says so in a sentence.
NV_ADAPTER = ("NAMES_INTERFACES_IN_CALL", "REACH", "TEGRAIface", "TegraDevice", "install")
NV_DEVICE = "tinygrad.runtime.ops_nv"


@functools.cache
def _adapt() -> Exception | None:
    """Adds the interface to tinygrad's NV device. If that is not possible, returns why."""
    try:
        importlib.import_module(".nv", __name__)
    except fit.MISSING as error:
        _refuse_to_open(fit.say("TEGRA+NV", error))
        return error
    return None


def _refuse_to_open(misfit: fit.Misfit) -> None:
    """Adds an interface that says why it cannot be opened. Without it tinygrad would only know that the name is unknown."""
    class TEGRAIface:
        def __init__(self, *_args: Any):
            raise misfit

    device = getattr(sys.modules.get(NV_DEVICE), "NVDevice", None)
    if isinstance(ifaces := getattr(device, "ifaces", None), list):
        ifaces.insert(0, TEGRAIface)
    elif select := getattr(device, "_select_iface", None):  # releases that name the interfaces in the call
        device._select_iface = lambda self, *ifaces: select(self, TEGRAIface, *ifaces)  # type: ignore[union-attr]


class _AdaptWhenLoaded(importlib.abc.MetaPathFinder):
    """Adds the interface when tinygrad loads its NV device, and not before. That device has the structures of three of NVIDIA's drivers,
    and most of the time in which a program on the device TEGRA begins would go into loading them.
    """

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        """Finds the NV device where it would be found anyway."""
        if fullname != NV_DEVICE:
            return None
        others = (finder.find_spec(fullname, path, target) for finder in sys.meta_path if finder is not self)
        spec = next(filter(None, others), None)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_adapt(module: types.ModuleType) -> None:
                load(module)
                _adapt()

            spec.loader.exec_module = load_and_adapt  # type: ignore[method-assign]
        return spec


if "TEGRA+NV" in os.environ.get("DEV", "").upper():
    if missing := _adapt():
        raise fit.say("TEGRA+NV", missing) from None
elif NV_DEVICE in sys.modules:
    _adapt()
else:
    sys.meta_path.insert(0, _AdaptWhenLoaded())


def __getattr__(name: str) -> Any:
    if name not in (*NV_ADAPTER, "NV_MISSING"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    missing = _adapt()
    if name == "NV_MISSING":
        return missing
    if missing is not None:
        raise fit.say("TEGRA+NV", missing) from missing
    return getattr(sys.modules[f"{__name__}.nv"], name)


__all__ = ["NAMES_INTERFACES_IN_CALL", "NV_MISSING", "REACH", "TEGRAIface", "TegraDevice", "install"]
