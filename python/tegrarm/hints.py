"""Hints for a user who waits. On the virtual Orin, a search for fast kernels ranks simulated work, and long kernels are slow."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator

from . import where

PATIENCE = 20.0  # seconds until something is said
BEAM = ("BEAM ranks kernels by the time that the virtual Orin needs on this computer, which says little about a board: search on the "
        "board, and use BEAM=0 here, or TEGRARM_SIM_CLOCK=model to rank by a model of the module's time")
MODELLED = ("BEAM ranks kernels by a model of the module's time (TEGRARM_SIM_CLOCK=model): the same order on every computer, but nobody "
            "has compared it with a board")
SLOW = ("still running: the virtual Orin executes each instruction of each thread on this computer, and the first run also compiles. "
        "TEGRARM_SIM_STATS=1 prints at the end what each kernel cost")


def simulated() -> bool:
    """Whether the GPU is simulated."""
    return where.chosen() != "" and where.kind() in ("in-process", "tegrarm-sim run")


def say(text: str) -> None:
    """Prints one line for the user that is not a part of the program's output."""
    print(f"tegrarm: {text}", file=sys.stderr, flush=True)


def modelled(environ: dict[str, str] | os._Environ = os.environ) -> bool:
    """Whether the GPU is simulated and its time is modelled, so that it says nothing about the time that passes here."""
    return environ.get("TEGRARM_SIM_CLOCK") == "model" and simulated()


def of_beam(environ: dict[str, str] | os._Environ = os.environ) -> str:
    """The hint for a search for fast kernels. It is empty if no search is asked for, or on a board."""
    asked = environ.get("BEAM", "0")
    if asked in ("", "0") or not simulated():
        return ""
    return MODELLED if modelled(environ) else BEAM


@contextlib.contextmanager
def while_running(patience: float = PATIENCE) -> Iterator[None]:
    """Says once that a long run on the simulator is not a hang. It does so only if standard error is a terminal."""
    if text := of_beam():
        say(text)
    if not (simulated() and sys.stderr.isatty()):
        yield
        return
    timer = threading.Timer(patience, say, (SLOW,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
