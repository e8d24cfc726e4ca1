"""How the command line speaks: exit statuses, one sentence for bad input, colour on a terminal only, JSON for programs."""

from __future__ import annotations

import json
import os
import sys

# Exit statuses; docs/cli.md has them for users.
OK, PROBLEM, WRONG, NOT_STARTED = 0, 1, 2, 127

COLOURS = {"ok": "32", "problem": "31", "note": "33", "skipped": "2", "bold": "1"}


class Refused(Exception):
    """What was asked for cannot be done as it was given: a sentence for whoever typed it, and an exit status."""

    def __init__(self, sentence: str, status: int = WRONG):
        super().__init__(sentence)
        self.status = status


def paint(text: str, colour: str, stream=None) -> str:
    """The text in a colour, where a person looks at it and has not asked for none (NO_COLOR)."""
    watched = (stream or sys.stdout).isatty() and "NO_COLOR" not in os.environ
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if watched else text


def as_json(value, stream=None) -> None:
    """One JSON value, with a newline behind it."""
    print(json.dumps(value, indent=None if stream is sys.stderr else 2), file=stream or sys.stdout)


def as_line(value) -> None:
    """One JSON value on one line, for who reads them as they come."""
    print(json.dumps(value), flush=True)
