"""Gathers what the steps have left into the members of a file: answers, recordings, differences; all of it scrubbed."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import subprocess

from .. import sim
from . import compare, note, runner
from .scrub import Scrubber, identifiers

KEPT = (note.NAME, runner.RECORDING, "messages.txt")


@dataclasses.dataclass
class Gathered:
    """The members of a file, and the differences."""

    members: dict[str, bytes]
    differences: list[compare.Difference]


def gather(work: pathlib.Path, steps: list[runner.Outcome], simulated: dict[str, runner.Outcome], board: tuple[str, str]) -> Gathered:
    """Everything that the steps have left. ``board`` is the virtual board's module and release."""
    scrubber = Scrubber(identifiers(), device_of(work))
    members, differences, values = {}, [], []
    for outcome in steps:
        folder = runner.folder_of(work, runner.MACHINE, outcome.name)
        if (recording := folder / runner.RECORDING).exists():
            recording.write_text(calls_alone(recording.read_text(errors="replace")))
        for side in (runner.MACHINE, runner.SIMULATOR):
            members |= kept(work, side, outcome.name, scrubber)
        theirs = simulated.get(outcome.name)
        if theirs and theirs.state != runner.NOT_RUN:
            other = runner.folder_of(work, runner.SIMULATOR, outcome.name)
            differences += compare.step(outcome.name, folder, other)
            values += compare.results(folder, other)
        if theirs and recording.exists():
            differences += replayed(outcome.name, recording, *board)
    members["differences.json"] = scrubbed(scrubber, [dataclasses.asdict(d) for d in differences])
    members["values.json"] = scrubbed(scrubber, values)
    return Gathered(members, differences)


def kept(work: pathlib.Path, side: str, step: str, scrubber: Scrubber) -> dict[str, bytes]:
    """The files of a step that belong into a file."""
    folder = runner.folder_of(work, side, step)
    found = {}
    for name in KEPT:
        path = folder / name
        # The simulator's recordings can be made again anywhere.
        if path.exists() and path.stat().st_size and not (side == runner.SIMULATOR and name == runner.RECORDING):
            found[f"{side}/{step}/{name}"] = scrubber.text(path.read_text(errors="replace")).encode()
    return found


def calls_alone(recording: str) -> str:
    """A recording without the memory that the GPU wrote, because contents of memory do not leave the machine.

    A last line that is cut off, because the step was ended while it was written, is left out, too.
    """
    whole = (line for line in recording.splitlines(keepends=True) if line.endswith("}\n"))
    return "".join(line for line in whole if json.loads(line).get("call") != "memory")


def scrubbed(scrubber: Scrubber, value) -> bytes:
    """A member that is JSON."""
    return scrubber.text(json.dumps(value, indent=1) + "\n").encode()


def device_of(work: pathlib.Path) -> str:
    """The GPU's own number, in hexadecimal digits in the order of memory; empty if it says none."""
    answers = note.answers(runner.folder_of(work, runner.MACHINE, "interface"))
    value = answers.get(f"characteristics.{compare.IDENTIFYING}")
    return int(value, 16).to_bytes(8, "little").hex() if value else ""


def replayed(step: str, recording: pathlib.Path, chip: str, l4t: str) -> list[compare.Difference]:
    """Makes the calls of a recording on a fresh virtual board."""
    command = [sim.program(), "replay", "--all", "--json", "--chip", chip, "--l4t", l4t, str(recording)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return [compare.Difference(step, "the recording", done.stderr.strip(), "cannot be made again", compare.rules.NONE, "call")]
    told, lines = json.loads(done.stdout)["differences"], recording.read_text().splitlines()
    return compare.calls(step, [{**difference, "recorded": json.loads(lines[difference["line"] - 1])} for difference in told])
