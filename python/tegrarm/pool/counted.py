"""Runs one part of a model in its own process, so that the simulator's counts at the end are those of the part: see ``virtual``."""

from __future__ import annotations

import pathlib
import pickle
import sys
from typing import Any

from .stage import Part


def main(request: str, answer: str) -> None:
    """Reads from one file what to run, and writes the outputs to another file."""
    from ray import cloudpickle

    factory, place, inputs, calls, session = cloudpickle.loads(pathlib.Path(request).read_bytes())
    stage = factory(Part(*place))
    memory: dict[str, Any] | None = {} if session else None
    outputs = [stage(data, memory) for data in inputs[:calls]]
    pathlib.Path(answer).write_bytes(pickle.dumps(outputs))


if __name__ == "__main__":
    main(*sys.argv[1:3])
