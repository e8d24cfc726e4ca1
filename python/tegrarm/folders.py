"""Libraries with the names of NVIDIA's. They lie in folders of their own, so that they never take the place of a system's by accident."""

from __future__ import annotations

import os
import pathlib

from . import _ffi
from .say import Refused


def folder(kind: str, name: str) -> pathlib.Path:
    """The folder with a library: beside libtegrarm in a wheel and a build, and below ``tegrarm`` in a system."""
    library = pathlib.Path(_ffi.find())
    for place in (library.parent / kind, library.parent / "tegrarm" / kind):
        if (place / name).exists():
            return place
    raise Refused(f"run --{kind}: there is no {name} near {library}; `make build` makes it")


def environment(first: pathlib.Path) -> dict[str, str]:
    """The variables with which a program finds the libraries of a folder before any other."""
    others = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": f"{first}:{others}" if others else str(first), "TEGRARM_LIB": _ffi.find()}
