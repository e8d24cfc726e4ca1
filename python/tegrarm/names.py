"""The addresses of kernels in a tinygrad process, for its timeline: the GPU knows addresses and no names."""

from __future__ import annotations

import json
from collections.abc import Callable


def note(path: str) -> None:
    """From this call on, writes a line to ``path`` for each program that tinygrad loads to its NV device or to TEGRA."""
    for find in (_of_nv, _of_tegra):
        try:
            program, place = find()
        except (ImportError, AttributeError):
            continue  # this release of tinygrad has no such device
        _watch(program, place, path)


def _of_nv() -> tuple[type, Callable]:
    from tinygrad.runtime.ops_nv import NVProgram
    return NVProgram, lambda made: (made.lib_gpu.va_addr, made.lib_gpu.size)


def _of_tegra() -> tuple[type, Callable]:
    from .tinygrad.program import TegraProgram
    return TegraProgram, lambda made: (made.attributes.code_address, made.attributes.code_size)


def _watch(program: type, place: Callable, path: str) -> None:
    before = program.__init__

    def make(self, *args, **kwargs):
        before(self, *args, **kwargs)
        address, size = place(self)
        with open(path, "a", encoding="utf-8") as file:
            print(json.dumps({"name": self.name, "address": address, "size": size}), file=file)

    program.__init__ = make


def read(path: str) -> list[dict]:
    """Reads the lines that :func:`note` wrote."""
    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


def of(address: int, known: list[dict]) -> str:
    """The kernel at an address. It is empty if none is known. The latest line counts, because addresses are used again."""
    return next((k["name"] for k in reversed(known) if k["address"] <= address < k["address"] + k["size"]), "")
