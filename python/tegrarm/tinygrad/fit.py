"""Which releases of tinygrad are known, and the sentence about one that does not fit."""

from __future__ import annotations

import functools
import importlib.metadata
import sys

# What each of our devices was run on. `tegrarm doctor` and docs/python.md say the same.
KNOWN = {"TEGRA+NV": ("0.12", "0.13", "0.14"), "TEGRA": ("0.13", "0.14")}
# What an import or an attribute that is not there raises.
MISSING = (ImportError, AttributeError, TypeError, StopIteration)


@functools.cache
def found() -> str:
    """The release of tinygrad that is installed."""
    try:
        return importlib.metadata.version("tinygrad")
    except importlib.metadata.PackageNotFoundError:
        return "of a folder without a release number"


def known(device: str) -> str:
    """The releases that a device was run on, in words."""
    *most, last = KNOWN[device]
    return f"{', '.join(most)} and {last}"


def sentence(device: str, why: object) -> str:
    """What does not fit, what is known, and the way out."""
    what = str(why).splitlines()[0] if str(why) else type(why).__name__
    return f"DEV={device} does not fit this tinygrad ({found()}): {what}. It is known to work with tinygrad {known(device)}. "\
        "Every release runs unchanged through the preload door: DEV=NVK+NV tegrarm run --preload -- python SCRIPT"


class Misfit(ImportError):
    """A release of tinygrad does not have what an adapter uses. The message is the whole explanation."""


def say(device: str, why: object) -> Misfit:
    """The exception with the sentence."""
    return Misfit(sentence(device, why))


def only_the_sentence() -> None:
    """If a misfit ends the program, its sentence alone is printed: the names of tinygrad's insides in a traceback help nobody."""
    before = sys.excepthook

    def hook(kind, error, trace):
        for inner in (error, *getattr(error, "exceptions", ())):
            if isinstance(inner, Misfit):
                print(inner, file=sys.stderr)
                return
        before(kind, error, trace)

    sys.excepthook = hook
