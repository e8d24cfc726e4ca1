"""The error notifiers of channels: what the kernel writes when it stops a channel."""

from __future__ import annotations

import struct
from typing import Any

# The codes that nvgpu writes into info32 of an error notifier.
MMU_FAULT = 31
CODES = {
    8: "channel watchdog or preemption timeout", 11: "copy engine error", 13: "SM exception or graphics engine error",
    24: "semaphore acquire timeout", 25: "illegal method or notify", MMU_FAULT: "MMU fault", 32: "pushbuffer (PBDMA) error",
    37: "unimplemented firmware method", 43: "channel reset", 80: "pushbuffer checksum mismatch",
}


class Notifier:
    """The error notifier of a channel: 16 bytes of memory."""

    def __init__(self, view: Any):
        self.view = view

    def text(self) -> str:
        """What the notifier says. It is empty if the channel has no error."""
        _timestamp, code, _info16, status = struct.unpack("<QIHH", self.view[:16])
        if not status:
            return ""
        where = ", the address is in the kernel's log: dmesg, or standard error on the virtual Orin" if code == MMU_FAULT else ""
        return f"channel stopped: error notifier {code} ({CODES.get(code, 'see nvgpu_error.h')}{where})"
