"""What the device nodes answer to calls that change nothing: queries, calls without an argument, numbers that do not exist.

These are ioctls on device nodes, made here and not by the library. On the simulator they need ``tegrarm-sim run``.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import errno
import os
from collections.abc import Iterator

from .. import _checked
from .note import Note

CTRL, NVMAP, TSG, AS = "/dev/nvgpu/igpu0/ctrl", "/dev/nvmap", "/dev/nvgpu/igpu0/tsg", "/dev/nvgpu/igpu0/as"
READ_WRITE, NOTHING = 3, 0


def number(magic: str, nr: int, size: int, direction: int = READ_WRITE) -> int:
    """An ioctl's number, as _IOC() makes it."""
    return direction << 30 | size << 16 | ord(magic) << 8 | nr


@dataclasses.dataclass(frozen=True)
class Probe:
    """One call: its name, its number, and the bytes of its argument. None is a null pointer."""

    name: str
    node: str
    request: int
    argument: bytes | None
    # Shows the bytes that came back, and not the result alone.
    shows: bool = False


def space(flags: int, end: int) -> bytes:
    """The argument of ALLOC_AS: an address space from 2 MiB to an end."""
    head = b"".join(value.to_bytes(4, "little") for value in (0, 0, flags, 0))
    return head + (2 << 20).to_bytes(8, "little") + end.to_bytes(8, "little") + bytes(32)


UNIFIED = 2
PROBES = (
    Probe("GET_CHARACTERISTICS of nothing", CTRL, 0xC0104705, bytes(16), True),
    Probe("GET_CHARACTERISTICS of a null pointer", CTRL, 0xC0104705, None),
    Probe("GET_CHARACTERISTICS into a bad pointer", CTRL, 0xC0104705, (1024).to_bytes(8, "little") + (1).to_bytes(8, "little")),
    Probe("ZCULL_GET_CTX_SIZE", CTRL, 0x80044701, bytes(4), True),
    Probe("ZCULL_GET_INFO", CTRL, 0x80284702, bytes(40), True),
    Probe("NUM_VSMS", CTRL, 0xC0084712, bytes(8), True),
    Probe("GET_ENGINE_INFO of nothing", CTRL, 0xC010471A, bytes(16), True),
    Probe("GET_TPC_MASKS of nothing", CTRL, 0xC010470A, bytes(16), True),
    Probe("GET_FBP_L2_MASKS of nothing", CTRL, 0xC0104726, bytes(16), True),
    Probe("CLK_GET_RANGE of nothing", CTRL, 0xC010471C, bytes(16), True),
    Probe("GET_VOLTAGE", CTRL, 0xC0104722, bytes(16)),
    Probe("GET_CURRENT", CTRL, 0xC0104723, bytes(16)),
    Probe("GET_POWER", CTRL, 0xC0104724, bytes(16)),
    Probe("GET_TEMPERATURE", CTRL, 0xC0104725, bytes(16)),
    Probe("WAIT_FOR_PAUSE of nothing", CTRL, 0xC0084710, bytes(8)),
    Probe("ALLOC_AS with unknown flags", CTRL, 0xC0404708, space(0xFFFFFFFF, 0xFF00000000)),
    Probe("ALLOC_AS that ends at 0xff00000000", CTRL, 0xC0404708, space(UNIFIED, 0xFF00000000)),
    Probe("ALLOC_AS that ends at 0xffffe00000", CTRL, 0xC0404708, space(UNIFIED, 0xFFFFE00000)),
    Probe("ALLOC_AS that ends at 2^40", CTRL, 0xC0404708, space(UNIFIED, 1 << 40)),
    Probe("ALLOC_AS that ends at 2^47", CTRL, 0xC0404708, space(UNIFIED, 1 << 47)),
    Probe("OPEN_TSG with unknown flags", CTRL, 0xC0184709, bytes(4) + b"\xff" * 4 + bytes(16)),
    Probe("a number that is not known", CTRL, number("G", 99, 16), bytes(16)),
    Probe("a known number of another size", CTRL, number("G", 5, 24), bytes(24)),
    Probe("another node's number", CTRL, number("H", 128, 104), bytes(104)),
    Probe("GET_AVAILABLE_HEAPS", NVMAP, 0x80084E19, bytes(8), True),
    Probe("GET_AVAILABLE_HEAPS of a null pointer", NVMAP, 0x80084E19, None),
    Probe("CREATE of 0 bytes", NVMAP, 0xC0084E00, bytes(8)),
    Probe("ALLOC of handle 0", NVMAP, 0x40144E03, bytes(4) + (1 << 30).to_bytes(4, "little") + bytes(12)),
    Probe("GET_FD of handle 0", NVMAP, 0xC0084E0F, bytes(8)),
    Probe("FROM_FD of descriptor -1", NVMAP, 0xC0084E10, b"\xff" * 4 + bytes(4)),
    Probe("PARAM of handle 0", NVMAP, 0xC0104E08, bytes(16)),
    Probe("FREE of 0", NVMAP, 0x00004E04, b"", True),
    Probe("a number that is not known", NVMAP, number("N", 108, 16), bytes(16)),
    Probe("another node's number", NVMAP, number("G", 5, 16), bytes(16)),
    Probe("BIND_CHANNEL of descriptor -1", TSG, 0x40045401, b"\xff" * 4),
    Probe("GET_TIMESLICE", TSG, 0x8008540A, bytes(8), True),
    Probe("CREATE_SUBCONTEXT without a space", TSG, 0xC0105412, bytes(16)),
    Probe("a number that is not known", TSG, number("T", 99, 16), bytes(16)),
)


def probe(note: Note) -> None:
    """Makes all calls of the table, and opens the nodes."""
    libc = ctypes.CDLL(None, use_errno=True)
    for node in (CTRL, NVMAP, TSG, AS):
        note.begin(node)
        with opened(note, node) as fd:
            for row in PROBES if fd is not None else ():
                if row.node == node:
                    note.put(row.name, answer(libc, fd, row))


@contextlib.contextmanager
def opened(note: Note, node: str) -> Iterator[int | None]:
    """Opens a node. Whether that works is noted as an answer."""
    try:
        fd = os.open(node, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        note.put("open", errno.errorcode.get(error.errno or 0, str(error.errno)))
        yield None
        return
    note.put("open", "success")
    try:
        yield fd
    finally:
        os.close(fd)


def answer(libc: ctypes.CDLL, fd: int, row: Probe) -> str:
    """Makes a call. The result says how it ended, and which bytes came back."""
    buffer = ctypes.create_string_buffer(row.argument, max(len(row.argument), 1)) if row.argument is not None else None
    plain = row.request >> 30 == NOTHING
    result = libc.ioctl(fd, _checked.number(ctypes.c_ulong, row.request, "the request"), ctypes.c_ulong(0) if plain else buffer)
    if result < 0:
        code = ctypes.get_errno()
        return errno.errorcode.get(code, str(code))
    after = f" {buffer.raw.hex()}" if row.shows and row.argument and buffer else ""
    return f"{result}{after}"
