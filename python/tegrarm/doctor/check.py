"""What a check answers, and how the answers are shown."""

from __future__ import annotations

import dataclasses

from .. import say

OK, PROBLEM, NOTE, SKIPPED = "ok", "problem", "note", "skipped"


@dataclasses.dataclass(frozen=True)
class Check:
    """One line of the report: a problem keeps the main job from running, a note does not."""

    name: str
    state: str
    says: str
    todo: str = ""


def ok(name: str, says: str) -> Check:
    """All is well."""
    return Check(name, OK, says)


def problem(name: str, says: str, todo: str) -> Check:
    """Nothing runs before this is repaired."""
    return Check(name, PROBLEM, says, todo)


def note(name: str, says: str, todo: str = "") -> Check:
    """Something is missing that not everybody needs."""
    return Check(name, NOTE, says, todo)


def skipped(name: str, says: str) -> Check:
    """There is nothing to look at, for this reason."""
    return Check(name, SKIPPED, says)


def lines(check: Check) -> str:
    """A check as text: what was seen, and below it what to do."""
    head = f"{say.paint(f'{check.state:8}', check.state)} {check.name:11} {check.says}"
    return "\n".join([head, *(f"{'':20} {line}" for line in check.todo.splitlines())])
