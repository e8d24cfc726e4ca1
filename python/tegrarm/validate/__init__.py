"""``tegrarm validate``: what a board does, in one file, beside what the virtual Orin does for the same questions.

* :mod:`steps` lists what is done, from harmless to risky.
* :mod:`child` runs one step in a process of its own, :mod:`runner` all of them, each with a deadline.
* :mod:`compare` finds the differences, and :mod:`rules` names the rule of ``docs/hardware`` that each is about.
* :mod:`evidence` writes and checks the file, :mod:`report` shows it, :mod:`scrub` hides what identifies a machine.
* :mod:`board` is the other side, ``make replay-board``: it makes the recorded calls again and files the recording.
"""

from __future__ import annotations

from .cli import validate

__all__ = ["validate"]
