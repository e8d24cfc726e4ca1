"""Profiles: the start and the end of each kernel, copy and fill."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _ffi
from .calls import call
from .rm import RmError

if TYPE_CHECKING:
    from .device import Device

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
def profile(device: Device) -> Iterator[list[Record]]:
    """Fills a list while a ``with`` block lasts. Ctrl-C ends the wait for the end of the work."""
    records: list[Record] = []

    def ran(record: Any, _user: int | None) -> None:
        r = record.contents
        records.append(Record(KINDS.get(r.kind, str(r.kind)), (r.name or b"").decode(), r.queue, r.bytes, r.start_ns, r.end_ns))

    callback = _ffi.ProfileCallback(ran)
    call("profile_start", device.handle, callback, None)
    try:
        yield records
        device.wait()
    except BaseException:
        with contextlib.suppress(RmError):
            device.settle()
        raise
    finally:
        call("profile_stop", device.handle)  # this waits, and Ctrl-C does not end it
