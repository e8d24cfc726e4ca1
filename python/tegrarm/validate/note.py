"""Writes down the answers of a step, one line of JSON for each answer. Each line is on the disk before the next part begins."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
from collections.abc import Iterator

from ..rm import RmError

NAME = "answers.jsonl"


class Note:
    """The answers of one step."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self._file = open(folder / NAME, "w", encoding="utf-8")
        self._part = ""

    def begin(self, part: str) -> None:
        """Says which part comes next. The line is on the disk when this returns. If the machine freezes, the last line names the part."""
        self._part = part
        self._line({"begin": part})
        os.fsync(self._file.fileno())

    def put(self, key: str, value) -> None:
        """Writes an answer of this part."""
        self._line({"key": f"{self._part}.{key}" if self._part else key, "value": value})

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Runs a part whose status is an answer. It is an answer also if the library refuses the call."""
        self.begin(name)
        try:
            yield
        except RmError as error:
            self.put("status", error.name)
        else:
            self.put("status", "NV_OK")

    def _line(self, value: dict) -> None:
        self._file.write(json.dumps(value) + "\n")
        self._file.flush()

    def close(self) -> None:
        """Makes sure that all answers are on the disk."""
        os.fsync(self._file.fileno())
        self._file.close()


def answers(folder: pathlib.Path) -> dict:
    """Reads the answers of a step, by key. If the last line is cut off, it is left out."""
    return {line["key"]: line["value"] for line in _lines(folder) if "key" in line}


def last_part(folder: pathlib.Path) -> str:
    """The part in which a step ended. It is empty if the step was in no part."""
    parts = [line["begin"] for line in _lines(folder) if "begin" in line]
    return parts[-1] if parts else ""


def _lines(folder: pathlib.Path) -> Iterator[dict]:
    path = folder / NAME
    for line in path.read_text(errors="replace").splitlines() if path.exists() else ():
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                yield value
