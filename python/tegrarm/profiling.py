"""Profiles: the start and the end of each kernel, copy and fill."""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
from collections.abc import Iterator
from typing import Any

from . import _ffi
from .calls import call

KINDS = {_ffi.TEGRARM_PROFILE_KERNEL: "kernel", _ffi.TEGRARM_PROFILE_COPY: "copy", _ffi.TEGRARM_PROFILE_FILL: "fill"}


@dataclasses.dataclass(frozen=True)
class Record:
    """A piece of work that has finished. Times are nanoseconds of the GPU's clock."""

    kind: str
    name: str
    queue: int
    bytes: int
    start_ns: int
    end_ns: int


@contextlib.contextmanager
def profile(handle: ctypes.c_void_p) -> Iterator[list[Record]]:
    """Fills a list while a ``with`` block lasts."""
    records: list[Record] = []

    def ran(record: Any, _user: int | None) -> None:
        r = record.contents
        records.append(Record(KINDS.get(r.kind, str(r.kind)), (r.name or b"").decode(), r.queue, r.bytes, r.start_ns, r.end_ns))

    callback = _ffi.ProfileCallback(ran)
    call("profile_start", handle, callback, None)
    try:
        yield records
    finally:
        call("profile_stop", handle)
