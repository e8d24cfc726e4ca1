"""libtegrarm.so: it is found and loaded here. What it declares is in ``_header``, which is generated from include/tegrarm.h.

This module does not interpret results. :mod:`tegrarm.rm` turns an NV_STATUS into an exception.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import pathlib

from . import plainly
from ._checked import Function
from ._header import *  # noqa: F403
from ._header import SIGNATURES

LIBRARY = "libtegrarm.so"


class Library:
    """The loaded library. Its attributes are the functions of the header; each refuses a number that its argument cannot hold."""

    def __init__(self, path: str):
        try:
            handle = ctypes.CDLL(path)
        except OSError as error:
            raise LibraryNotFound(f"{path} cannot be loaded: {error}. It is another file, or of another architecture: "
                                  "`make build`.") from None
        self.path = path
        for name, (result, arguments) in SIGNATURES.items():
            if (function := getattr(handle, name, None)) is None:
                raise LibraryNotFound(f"{path} has no function {name}: it is no libtegrarm, or one of another version than this package. "
                                      "Build it with `make build`, or point TEGRARM_LIB at the right one.")
            setattr(self, name, Function(name, function, result, arguments))

    def __getattr__(self, name: str) -> Function:
        raise AttributeError(f"include/tegrarm.h declares no function {name!r}")

    def __repr__(self) -> str:
        return f"<tegrarm library {self.path}>"


class LibraryNotFound(ImportError):
    """libtegrarm.so was not found, or the file that was found is another library or has another version."""

    def __init__(self, sentence: str):
        super().__init__(sentence)
        plainly.promise()


def candidates() -> list[pathlib.Path]:
    """The places where the library is looked for. The first match is used, and the search path of the system's loader comes last."""
    if path := os.environ.get("TEGRARM_LIB"):
        return [pathlib.Path(path)]
    here = pathlib.Path(__file__).resolve().parent
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", here.parents[1] / "target"))
    return [here / LIBRARY, target / "release" / LIBRARY]


def find() -> str:
    """The path of the library, or its bare name for the system's loader. Raises LibraryNotFound."""
    tried = candidates()
    for path in tried:
        if path.is_file():
            return str(path)
    if "TEGRARM_LIB" not in os.environ and (system := ctypes.util.find_library("tegrarm")):
        return system
    places = "\n  ".join(str(p) for p in tried)
    raise LibraryNotFound(f"{LIBRARY} not found; looked at\n  {places}\nBuild it with `make build`, or point TEGRARM_LIB at it.")


@functools.cache
def lib() -> Library:
    """The loaded library with all of its functions. Loading it opens no device."""
    return Library(find())


def version() -> str:
    """The version of the loaded library, for example ``0.1.0``."""
    return lib().tegrarm_version().decode()


def status_name(status: int) -> str:
    """The name of an NV_STATUS, for example ``NV_ERR_INVALID_CLASS``."""
    return lib().tegrarm_status_name(status).decode()


def last_error() -> str:
    """A sentence that says what went wrong in the last failing call of this thread. It is empty if no call has failed."""
    needed = lib().tegrarm_last_error(None, 0)
    if needed <= 1:
        return ""
    text = ctypes.create_string_buffer(needed)
    lib().tegrarm_last_error(text, needed)
    return text.value.decode(errors="replace")
