"""The result of a check, and how results are shown."""

from __future__ import annotations

import dataclasses

from .. import say

OK, PROBLEM, NOTE, SKIPPED = "ok", "problem", "note", "skipped"


@dataclasses.dataclass(frozen=True)
class Check:
    """One line of the report. With a problem no program can use the GPU. A note is less severe."""

    name: str
    state: str
    says: str
    todo: str = ""


def ok(name: str, says: str) -> Check:
    """The result of a check that found no fault."""
    return Check(name, OK, says)


def problem(name: str, says: str, todo: str) -> Check:
    """The result of a check that found a fault which must be repaired before any program can use the GPU."""
    return Check(name, PROBLEM, says, todo)


def note(name: str, says: str, todo: str = "") -> Check:
    """The result of a check that misses something which only some programs need."""
    return Check(name, NOTE, says, todo)


def skipped(name: str, says: str) -> Check:
    """The result of a check that had nothing to look at. The text says why."""
    return Check(name, SKIPPED, says)


def lines(check: Check) -> str:
    """The result as text: what was seen, and below it what to do."""
    head = f"{say.paint(f'{check.state:8}', check.state)} {check.name:11} {check.says}"
    return "\n".join([head, *(f"{'':20} {line}" for line in check.todo.splitlines())])
