"""How many kernels processes launch. The library and the virtual Orin count them, and ``tegrarm top`` makes a rate of two looks.

A process shows its counts as memfds with the name ``tegrarm-counters``, which have four words of 64 bits: ``tegrarm1``, the process, who
counts (1 is the library, 2 the virtual GPU of this process), and the count. The library counts what goes through its own queues and
replays. What a program submits to a channel by itself, as tinygrad's NV device does, only the virtual GPU can count.
"""

from __future__ import annotations

import os
import pathlib
import re
import struct

FILE = "memfd:tegrarm-counters"
WORDS = struct.Struct("<8sQQQ")
MAGIC = b"tegrarm1"
LIBRARY, GPU = 1, 2
NAMES = {LIBRARY: "library", GPU: "virtual GPU"}
# Only a supervisor answers at this path, with a line for each process of its board, and only if it is opened for reading and writing.
SUPERVISOR = "/dev/tegrarm-sim/launches"


def of_process(place: pathlib.Path, status: str) -> tuple[int, str] | None:
    """The launches of a process and who counts them, from its directory in /proc. It is None if nobody counts them."""
    own = re.search(r"^NSpid:.*\t(\d+)$", status, re.M)
    process = int(own[1]) if own else int(place.name)  # its number as it knows it, in a container of its own
    found: dict[int, int] = {}
    for link in place.glob("fd/*"):
        try:
            if FILE not in os.readlink(link):
                continue
            with open(link, "rb") as file:
                magic, owner, source, count = WORDS.unpack(file.read(WORDS.size))
        except (OSError, struct.error):
            continue
        # A forked child has its parent's file, too, which counts what the parent does.
        if magic == MAGIC and owner == process and source in NAMES:
            found[source] = found.get(source, 0) + count
    # The GPU of this process sees also what the library does not.
    return next(((found[source], NAMES[source]) for source in (GPU, LIBRARY) if source in found), None)


def of_supervisor() -> dict[int, int] | None:
    """The processes of this board of ``tegrarm-sim run``, and how many launches of each it has executed. None without a supervisor."""
    try:
        fd = os.open(SUPERVISOR, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd) as file:
        return {int(process): int(count) for process, count in (line.split() for line in file)}


def rates(before: list[dict], now: list[dict], seconds: float) -> None:
    """Writes to each process how many kernels it launched in a second, which is None if that is not known."""
    earlier = {(p["pid"], p["counted_by"]): p["launches"] for p in before}
    for process in now:
        first, last = earlier.get((process["pid"], process["counted_by"])), process["launches"]
        known = first is not None and last is not None and last >= first and seconds > 0
        process["launches_per_second"] = (last - first) / seconds if known else None
