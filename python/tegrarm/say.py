"""The output of the command line: exit statuses, one sentence for bad input, colour on terminals only, and JSON for programs."""

from __future__ import annotations

import json
import os
import sys

# The exit statuses. docs/cli.md describes them for users.
OK, PROBLEM, WRONG, NOT_STARTED = 0, 1, 2, 127

COLOURS = {"ok": "32", "problem": "31", "note": "33", "skipped": "2", "bold": "1"}


class Refused(Exception):
    """The request cannot be fulfilled as it was given. It has a sentence for the user and an exit status."""

    def __init__(self, sentence: str, status: int = WRONG):
        super().__init__(sentence)
        self.status = status


def paint(text: str, colour: str, stream=None) -> str:
    """The text in a colour, if the output is a terminal and NO_COLOR is not set."""
    watched = (stream or sys.stdout).isatty() and "NO_COLOR" not in os.environ
    return f"\x1b[{COLOURS[colour]}m{text}\x1b[0m" if watched else text


def as_json(value, stream=None) -> None:
    """Prints one JSON value and a newline."""
    print(json.dumps(value, indent=None if stream is sys.stderr else 2), file=stream or sys.stdout)


def as_line(value) -> None:
    """Prints one JSON value on one line, for programs that read the lines as they come."""
    print(json.dumps(value), flush=True)
