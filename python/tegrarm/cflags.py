"""``tegrarm cflags``: what a C compiler needs to find the headers and the library of this installation.

A wheel has the headers and the files for pkg-config and CMake, but no links, because an archive of that kind cannot have any. The first
call makes those that the linker and the loader look for: beside the library if that can be written, and in the user's cache otherwise.
"""

from __future__ import annotations

import os
import pathlib
import shlex

from . import _ffi, info, say

PACKAGE = pathlib.Path(__file__).resolve().parent
HEADER = "include/tegrarm.h"
SONAME = "libtegrarm.so.0"


def places() -> tuple[pathlib.Path, pathlib.Path, pathlib.Path | None]:
    """The folder of the headers, that of the library, and the prefix for pkg-config and CMake, if there is one."""
    library = pathlib.Path(_ffi.find())
    if not library.is_absolute() and not library.is_file():
        raise say.Refused(f"cflags: {library} is the system's own, and so are its headers: pkg-config --cflags --libs tegrarm")
    library = library.resolve()
    if (PACKAGE / HEADER).is_file() and library.parent == PACKAGE:
        prefix = linked(library)
        return prefix / "include", prefix / "lib", prefix
    tree = next((folder for folder in library.parents if (folder / HEADER).is_file()), None)
    if tree is None:
        raise say.Refused(f"cflags: there are no headers for {library}: `make install`, the wheel and the package libtegrarm-dev have them")
    return tree / "include", library.parent, None


def linked(library: pathlib.Path) -> pathlib.Path:
    """A prefix with the names that linkers, loaders and CMake look for."""
    names = ("libtegrarm.so", SONAME, f"libtegrarm.so.{info.package_version()}")
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tegrarm" / f"sdk-{info.package_version()}"
    for prefix in (PACKAGE, cache):
        try:
            for name in names:
                link(prefix / "lib" / name, library)
            if prefix == cache:
                for folder in ("include", "lib/pkgconfig", "lib/cmake"):
                    link(prefix / folder, PACKAGE / folder)
            return prefix
        except OSError as error:
            refused = error
    raise say.Refused(f"cflags: neither {PACKAGE} nor {cache} can be written: {refused.strerror}")


def link(name: pathlib.Path, target: pathlib.Path) -> None:
    """Makes a link, or corrects one of an earlier installation."""
    if name.is_symlink() and name.resolve() == target:
        return
    name.parent.mkdir(parents=True, exist_ok=True)
    fresh = name.with_name(f".{name.name}.{os.getpid()}")
    fresh.symlink_to(target)
    fresh.replace(name)


def cflags(args) -> int:
    """Prints the options, or the prefix."""
    headers, library, prefix = places()
    if args.prefix and prefix is None:
        raise say.Refused("cflags --prefix: this is a checkout, which has none: `make install PREFIX=…` makes one")
    options = [f"-I{headers}", f"-L{library}", f"-Wl,-rpath,{library}", "-ltegrarm"]
    if args.json:
        say.as_json({"include": str(headers), "library": str(library), "prefix": str(prefix) if prefix else None, "options": options})
    else:
        print(prefix if args.prefix else shlex.join(options))
    return say.OK
