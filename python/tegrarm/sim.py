"""``tegrarm sim`` runs a command on the virtual Orin, or one of the simulator's own tools."""

from __future__ import annotations

import os
import pathlib
import shutil
import sys

from . import _ffi, say
from .say import Refused

TOOLS = ("run", "replay", "decode")


def program() -> str:
    """The path of ``tegrarm-sim``: in the directory of this Python, on the PATH, or in the tree in which it was built."""
    beside = pathlib.Path(sys.executable).with_name("tegrarm-sim")
    if beside.is_file():
        return str(beside)
    if found := shutil.which("tegrarm-sim"):
        return found
    built = [path.with_name("tegrarm-sim") for path in _ffi.candidates()]
    for path in built:
        if path.is_file():
            return str(path)
    raise Refused("there is no tegrarm-sim: the wheel has it, and `make sim` builds it", say.NOT_STARTED)


def start(command: list[str], who: str) -> int:
    """Replaces this process by a command."""
    sys.stdout.flush()
    try:
        os.execvp(command[0], command)
    except OSError as error:
        raise Refused(f"{who}: {command[0]}: {error.strerror}", say.NOT_STARTED) from error


def sim(args) -> int:
    """Runs ``tegrarm-sim run|replay|decode``, or any other command with the simulator in its process."""
    command = args.command
    if command[:1] and command[0] in TOOLS:
        return start([program(), *command[:1], *(["--json"] if args.json and command[0] != "run" else []), *command[1:]], "sim")
    os.environ["TEGRARM_BACKEND"] = "sim"
    command = command[1:] if command[:1] == ["--"] else command
    if not command:
        from .info import info
        return info(args)
    return start(command, "sim")
