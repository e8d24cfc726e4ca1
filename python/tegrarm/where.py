"""The kernel that the library uses: a board, the virtual Orin in this process, or that of ``tegrarm-sim run``. It is never guessed."""

from __future__ import annotations

import os
import pathlib

from .say import Refused

BOARD = pathlib.Path("/dev/nvgpu")
# Only a supervisor answers at this path, and only if it is opened for reading and writing. No listing shows the path.
SUPERVISOR = "/dev/tegrarm-sim/census"
NO_BACKEND = "this machine has no /dev/nvgpu. Set TEGRARM_BACKEND=sim to use the virtual Orin."
KINDS = {
    "board": "a board",
    "in-process": "the virtual Orin, in this process: a simulator, no GPU",
    "tegrarm-sim run": "the virtual Orin, of tegrarm-sim run: a simulator, no GPU",
    "recording": "a recording, which is replayed",
}


def chosen() -> str:
    """The backend that is selected or that exists. It is empty if there is none."""
    return os.environ.get("TEGRARM_BACKEND") or ("nvgpu" if BOARD.exists() else "")


def backend() -> str:
    """The same backend. If there is none, raises Refused with a sentence that says what to type."""
    if name := chosen():
        return name
    raise Refused(NO_BACKEND)


def census() -> dict[str, int] | None:
    """What is alive in the kernel of ``tegrarm-sim run``. It is None if no supervisor runs this process."""
    try:
        fd = os.open(SUPERVISOR, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd) as file:
        return {name: int(value) for name, value in (line.split() for line in file)}


def supervisor() -> dict[str, str] | None:
    """What ``tegrarm-sim run`` says about itself (version, module, l4t, memory). It is None outside of it."""
    if census() is None:
        return None
    return dict(pair.split("=", 1) for pair in os.environ.get("TEGRARM_SIM_RUN", "").split() if "=" in pair)


def kind() -> str:
    """One of the keys of KINDS."""
    parts = [part.strip().split(":")[0] for part in backend().split(",")]
    if "sim" in parts:
        return "in-process"
    if "replay" in parts:
        return "recording"
    return "board" if supervisor() is None else "tegrarm-sim run"
