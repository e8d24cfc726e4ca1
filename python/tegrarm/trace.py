"""Reads a recording (``TEGRARM_RECORD``) and says which kernel calls each RM call made."""

from __future__ import annotations

import collections
import json
from collections.abc import Iterable, Iterator

WIDTH = 46


def read(path: str) -> Iterator[dict]:
    """The kernel calls of a recording, in order; its first line, which says what was recorded, is left out."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if "call" in (entry := json.loads(line)):
                yield entry


def _kernel_call(call: dict) -> str:
    """One kernel call as the table names it: ``NVGPU_GPU_IOCTL_OPEN_TSG``, ``open /dev/nvmap``, ``mmap dmabuf``."""
    if call["call"] == "ioctl":
        return call["name"]
    return f"{call['call']} {call['path'] if 'path' in call else call['on'].partition('#')[0]}"


def count(calls: Iterable[dict]) -> dict[str, collections.Counter]:
    """RM call -> how often each kernel call was made for it. Calls outside any RM call are under ``(library)``."""
    table: dict[str, collections.Counter] = {}
    for call in calls:
        table.setdefault(call.get("rm") or "(library)", collections.Counter())[_kernel_call(call)] += 1
    return table


def table(calls: Iterable[dict]) -> str:
    """The counts as text, one RM call per block, in the order they first came."""
    lines = []
    for rm_call, made in count(calls).items():
        if len(rm_call) > WIDTH:
            lines.append(rm_call)
        for number, (kernel_call, times) in enumerate(made.items()):
            lines.append(f"{rm_call if number == 0 and len(rm_call) <= WIDTH else '':{WIDTH}} {kernel_call:46} {times:6}")
    return "\n".join(lines)
