"""Replaces identifiers by hashes. One can then see that two files come from the same machine, but not from which one."""

from __future__ import annotations

import getpass
import hashlib
import os
import pathlib
import re
import socket

SALT = b"tegrarm validate 1:"
# Where a machine's own numbers are. Each word of these files is an identifier.
FILES = ("/etc/machine-id", "/proc/device-tree/serial-number", "/proc/sys/kernel/random/boot_id")
ADDRESSES = "/sys/class/net/*/address"
SHORTEST = 4  # a name of fewer characters would be found in words that have nothing to do with it


def hashed(identifier: str) -> str:
    """A short hash of an identifier."""
    return "#" + hashlib.sha256(SALT + identifier.strip().encode()).hexdigest()[:12]


def hashed_hex(digits: str) -> str:
    """A hash of an identifier in hexadecimal digits. It is as long as the identifier, so that a recording stays valid."""
    return hashlib.sha256(SALT + digits.encode()).hexdigest()[:len(digits)].rjust(len(digits), "0")


def identifiers() -> list[str]:
    """The words that identify this machine and its user, the longest first."""
    found = {socket.gethostname(), str(pathlib.Path.home())}
    try:
        found.add(getpass.getuser())
    except (KeyError, OSError):
        pass  # a user without a name
    for name in FILES:
        try:
            found.update(pathlib.Path(name).read_text(errors="replace").replace("\0", " ").split())
        except OSError:
            continue
    for path in pathlib.Path("/").glob(ADDRESSES.lstrip("/")):
        try:
            found.add(path.read_text().strip())
        except OSError:
            continue
    plain = {"root", "localhost", "/root", "/", "00:00:00:00:00:00", os.sep}
    return sorted((i for i in found - plain if len(i) >= SHORTEST), key=lambda i: (-len(i), i))


class Scrubber:
    """Replaces identifiers in texts. ``device`` is the GPU's own number: 16 hexadecimal digits in the order of memory, or nothing."""

    def __init__(self, names: list[str], device: str = ""):
        self._names = re.compile("|".join(map(re.escape, names))) if names else None
        self._digits = {}
        if device.strip("0"):
            reverse = bytes.fromhex(device)[::-1].hex()
            instead = hashed_hex(device)
            self._digits = {device: instead, reverse: bytes.fromhex(instead)[::-1].hex()}
            # As a number without leading zeros, as decoded fields have it.
            self._digits[f"0x{int(reverse, 16):x}"] = f"0x{int(self._digits[reverse], 16):x}"

    def text(self, text: str) -> str:
        """Replaces the identifiers in a text."""
        for digits, instead in self._digits.items():
            text = text.replace(digits, instead)
        return self._names.sub(lambda m: hashed(m[0]), text) if self._names else text
