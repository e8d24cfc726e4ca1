"""Where a tinygrad process has its kernels, for those who look at its timeline: the GPU knows addresses, not names."""

from __future__ import annotations

import json


def note(path: str) -> None:
    """From now on, writes a line to ``path`` for each program that tinygrad gives to its NV device."""
    from tinygrad.runtime.ops_nv import NVProgram
    made = NVProgram.__init__

    def make(self, *args, **kwargs):
        made(self, *args, **kwargs)
        with open(path, "a", encoding="utf-8") as file:
            print(json.dumps({"name": self.name, "address": self.lib_gpu.va_addr, "size": self.lib_gpu.size}), file=file)

    NVProgram.__init__ = make


def read(path: str) -> list[dict]:
    """What was noted."""
    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


def of(address: int, known: list[dict]) -> str:
    """The kernel at an address, empty if nobody named it. The last one counts: memory is used again."""
    return next((k["name"] for k in reversed(known) if k["address"] <= address < k["address"] + k["size"]), "")
