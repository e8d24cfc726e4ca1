"""The environment in which the loader loads ``libtegrarm_preload.so`` into a program."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping

from . import _ffi
from .say import Refused

NAME = "libtegrarm_preload.so"


def library() -> pathlib.Path:
    """The preload library beside the library that is used. The file need not be there."""
    return pathlib.Path(_ffi.find()).with_name(NAME)


def environment(environ: Mapping[str, str], file: pathlib.Path) -> dict[str, str]:
    """The variables that load a file in front of what the environment loads already.

    The loader splits ``LD_PRELOAD`` at spaces and colons, and has no way to quote them. A library in a folder with a space in its name is
    given by its name alone, and its folder in ``LD_LIBRARY_PATH``, which is split at colons and semicolons.
    """
    folder, whole = str(file.parent), str(file)
    if ":" in folder or (";" in folder and any(letter.isspace() for letter in whole)):
        raise Refused(f"run --preload: the loader of programs splits the path {whole} at colons, and with a space in it at semicolons: "
                      "put the library into a folder without them")
    spaced = any(letter.isspace() for letter in whole)

    def first(variable: str, value: str) -> dict[str, str]:
        others = environ.get(variable)
        return {variable: f"{value}:{others}" if others else value}

    return first("LD_PRELOAD", file.name) | first("LD_LIBRARY_PATH", folder) if spaced else first("LD_PRELOAD", whole)
