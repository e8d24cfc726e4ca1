"""Reads names of kernels from cubins and types of parameters from PTX, for :mod:`tegrarm.kernels`."""

from __future__ import annotations

import re
import struct

CONSTANTS = ".nv.constant0."  # every kernel has such a section, with its parameters
TYPES = {"f": "float", "u": "integer", "s": "integer", "b": "integer"}


def kernels(image: bytes) -> list[str]:
    """The kernels of a cubin, which is an ELF file of 64 bits. A file that is not a cubin has none; the library reports the error."""
    if image[:5] != b"\x7fELF\x02" or len(image) < 64:
        return []
    table, = struct.unpack_from("<Q", image, 40)
    size, count, names = struct.unpack_from("<HHH", image, 58)
    try:
        sections = [struct.unpack_from("<IIQQQQ", image, table + size * index) for index in range(count)]
        strings = sections[names][4]
        every = [_text(image, strings + section[0]) for section in sections]
    except (struct.error, IndexError, ValueError):
        return []
    return [name.removeprefix(CONSTANTS) for name in every if name.startswith(CONSTANTS)]


def _text(image: bytes, at: int) -> str:
    return image[at:image.index(b"\0", at)].decode()


def parameter_types(ptx: str) -> dict[str, list[str]]:
    """The types of the parameters of each kernel in PTX: "pointer", "float", "integer" or "bytes"."""
    found: dict[str, list[str]] = {}
    for name, parameters in re.findall(r"\.entry\s+([\w$]+)\s*\(([^)]*)\)", ptx):
        found[name] = [_type(p) for p in re.findall(r"\.param([^,]*?)\s+[\w$]+(\[\d*\])?\s*(?:,|$)", parameters, re.M)]
    return found


def _type(parameter: tuple[str, str]) -> str:
    words, length = parameter
    if length:
        return "bytes"
    if ".ptr" in words:
        return "pointer"
    kind = re.search(r"\.([fusb])(\d+)", words)
    return TYPES[kind[1]] if kind else "bytes"
