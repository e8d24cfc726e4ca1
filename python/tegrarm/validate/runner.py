"""Runs the steps on the machine and on the simulator. Each step is a process with a deadline, and is noted before it starts."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from .. import sim
from ..say import Refused
from . import note
from .compare import RECORDING
from .steps import Step

JOURNAL = "journal.jsonl"
MACHINE, SIMULATOR = "machine", "simulator"
# The simulator executes instructions one by one, on whatever computer this is.
SLOWER = 10
GRACE = 10
DONE, FAILED, LATE, STUCK, FROZE, NOT_RUN = "done", "failed", "late", "stuck", "froze", "not run"
SAYS = {DONE: "", FAILED: "ended with an error", LATE: "was ended at its deadline", STUCK: "cannot be ended: the driver holds it",
        FROZE: "the machine did not outlive it", NOT_RUN: "was not run"}


@dataclasses.dataclass
class Outcome:
    """How a step ended."""

    name: str
    state: str
    seconds: float = 0.0
    part: str = ""


class Journal:
    """A file that names each step before it starts. After a freeze it says which step that was."""

    def __init__(self, folder: pathlib.Path):
        self.path = folder / JOURNAL
        self.before = self._read()
        self._file = open(self.path, "a", encoding="utf-8")

    def _read(self) -> list[dict]:
        lines = self.path.read_text(errors="replace").splitlines() if self.path.exists() else []
        found = []
        for line in lines:
            try:
                found.append(json.loads(line))
            except ValueError:
                continue  # the machine stopped while it was written
        return found

    def unfinished(self) -> list[str]:
        """Steps that began on the machine and never ended."""
        ended = {line["step"] for line in self.before if "state" in line}
        return list(dict.fromkeys(line["step"] for line in self.before if "begins" in line and line["step"] not in ended))

    def finished(self) -> dict[str, Outcome]:
        """How the steps of an earlier, unfinished run ended."""
        return {line["step"]: Outcome(line["step"], line["state"], line["seconds"], line["part"])
                for line in self.before if "state" in line}

    def begins(self, step: Step) -> None:
        """The step is on the disk when this returns."""
        self._write({"step": step.name, "begins": True})

    def ends(self, outcome: Outcome) -> None:
        """So is how it ended."""
        self._write({"step": outcome.name, "state": outcome.state, "seconds": outcome.seconds, "part": outcome.part})

    def _write(self, line: dict) -> None:
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """No more steps."""
        self._file.close()


def folder_of(work: pathlib.Path, side: str, step: str) -> pathlib.Path:
    """Where a step's answers are."""
    return work / side / step


def run(step: Step, work: pathlib.Path, side: str, environ: dict[str, str], slower: int = 1, around: tuple[str, ...] = ()) -> Outcome:
    """Runs a step in its own process; it is ended at its deadline."""
    folder = folder_of(work, side, step.name)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    environ = {**environ, "TEGRARM_RECORD": str(folder / RECORDING)}
    if not step.recorded:
        del environ["TEGRARM_RECORD"]
    command = [*around, sys.executable, "-m", f"{__package__}.child", step.name, str(folder)]
    start = time.monotonic()
    with open(folder / "messages.txt", "wb") as messages:
        process = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=messages, stderr=messages,
                                   start_new_session=True)
        state = ended(process, step.seconds * slower)
    return Outcome(step.name, state, round(time.monotonic() - start, 2), note.last_part(folder))


def ended(process: subprocess.Popen, seconds: float) -> str:
    """Waits for a process and ends it, with everything that it started, when its time is over."""
    try:
        return DONE if process.wait(seconds) == 0 else FAILED
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.wait(GRACE)
        return LATE
    except subprocess.TimeoutExpired:
        return STUCK  # in a system call that the driver does not end


def environment(backend: str, more: dict[str, str] | None = None) -> dict[str, str]:
    """The environment of a step: that of this process with a backend, and without what would change its calls."""
    dropped = ("TEGRARM_RECORD", "TEGRARM_REPORT", "TEGRARM_SIM_STATS", "TEGRARM_SIM_STEP", "TEGRARM_SIM_STRICT", "LD_PRELOAD")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    place = str(pathlib.Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [place, os.environ.get("PYTHONPATH")]))
    return {**kept, "TEGRARM_BACKEND": backend, "PYTHONPATH": path, **(more or {})}


def below_the_simulator(chip: str, l4t: str) -> tuple[str, ...] | None:
    """The command around a raw step: `tegrarm-sim run`. None where it cannot run here."""
    try:
        around = (sim.program(), "run", "--chip", chip, "--l4t", l4t, "--")
        works = subprocess.run([*around, "true"], capture_output=True, timeout=60).returncode == 0
    except (Refused, OSError, subprocess.TimeoutExpired):
        return None
    return around if works else None


def on_the_simulator(step: Step, work: pathlib.Path, chip: str, l4t: str, side: str = SIMULATOR) -> Outcome:
    """Runs a step on a fresh virtual board."""
    if step.alone:
        return Outcome(step.name, NOT_RUN)
    board = {"TEGRARM_SIM_CHIP": chip, "TEGRARM_SIM_L4T": l4t}
    if not step.raw:
        return run(step, work, side, environment("sim", board), SLOWER)
    around = below_the_simulator(chip, l4t)
    if around is None:
        return Outcome(step.name, NOT_RUN)
    return run(step, work, side, environment("nvgpu"), SLOWER, around)


# Which virtual board is like a machine: by the model's name, and by the number of its SMs.
CHIPS = (("Orin Nano", "orin-nano"), ("Orin NX", "orin-nx"), ("AGX Orin", "agx-orin"))
RELEASES = {"R35": "r35", "R35_4": "r35.4", "R36": "r36", "R39": "r39"}


def like(work: pathlib.Path, kind: str) -> tuple[str, str]:
    """The chip and the release of the virtual board that is to be compared with."""
    release = note.answers(folder_of(work, MACHINE, "interface")).get("kernel.release")
    l4t = RELEASES.get(release or "", "r36")
    if kind == "in-process":
        return os.environ.get("TEGRARM_SIM_CHIP", "agx-orin"), l4t
    units = note.answers(folder_of(work, MACHINE, "open")).get("profile.compute_units")
    model = note.answers(folder_of(work, MACHINE, "identity")).get("machine.model") or ""
    chip = next((chip for name, chip in CHIPS if name in model), "agx-orin")
    return ("agx-orin-pg" if chip == "agx-orin" and units == 8 else chip), l4t
