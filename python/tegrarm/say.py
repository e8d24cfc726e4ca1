"""The output of the command line: exit statuses, one sentence for bad input, colour on terminals only, and JSON for programs."""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import sys

# The exit statuses. docs/cli.md describes them for users.
OK, PROBLEM, WRONG, NOT_STARTED, INTERRUPTED = 0, 1, 2, 127, 130

COLOURS = {"ok": "32", "problem": "31", "note": "33", "skipped": "2", "bold": "1"}

# Every variable that is a setting. docs/settings.md says what they mean, and crates/tegrarm-output/src/settings.rs has them for Rust.
SETTINGS = (
    "TEGRARM_BACKEND", "TEGRARM_COMPILED", "TEGRARM_CPU_CACHE", "TEGRARM_HEAP_SIZE", "TEGRARM_LEAKS", "TEGRARM_LIB", "TEGRARM_LOG",
    "TEGRARM_PRINTF_SIZE", "TEGRARM_RECORD", "TEGRARM_REPORT", "TEGRARM_SIM_CHECK", "TEGRARM_SIM_CHECK_EXIT", "TEGRARM_SIM_CHIP",
    "TEGRARM_SIM_CLOCK", "TEGRARM_SIM_CLOCK_RAMP_MS", "TEGRARM_SIM_FAULTS", "TEGRARM_SIM_HOST_LAUNCH_US", "TEGRARM_SIM_L4T",
    "TEGRARM_SIM_NVMAP", "TEGRARM_SIM_POWER", "TEGRARM_SIM_PROFILE", "TEGRARM_SIM_RUN", "TEGRARM_SIM_SCHEDULES",
    "TEGRARM_SIM_SEED", "TEGRARM_SIM_STATS", "TEGRARM_SIM_STEP", "TEGRARM_SIM_STRICT", "TEGRARM_SIM_TRANSLATE", "TEGRARM_SUPPRESSIONS",
    "TEGRARM_TOLD", "TEGRARM_TRACE_NAMES")


class Refused(Exception):
    """The request cannot be fulfilled as it was given. It has a sentence for the user and an exit status."""

    def __init__(self, sentence: str, status: int = WRONG):
        super().__init__(sentence)
        self.status = status


def open_streams() -> None:
    """Gives a process whose standard output or error is closed one that goes nowhere."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))


def silence() -> None:
    """Nobody reads standard output any more. What is left of it goes nowhere, so that the end of Python does not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def written():
    """Around a call that writes standard output: a disk that is full refuses the command. A closed pipe is for the caller."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        silence()
        raise Refused(f"standard output: {error.strerror}") from error


def wrong_letters(name: str, known: str) -> int:
    """How many letters of two names differ. Two that have changed places count as one."""
    same = difflib.SequenceMatcher(None, name, known, autojunk=False).get_matching_blocks()
    return max(len(name), len(known)) - sum(block.size for block in same)


def unknown_settings(names) -> dict[str, str]:
    """The names that look like settings and are none, each with the setting that was probably meant, or nothing."""
    found = {}
    for name in sorted(names):
        nearest = difflib.get_close_matches(name.upper(), SETTINGS, 1, 0.85)
        forgotten = [known for known in SETTINGS if name.startswith("TEGRARM_") and known.endswith(name[len("TEGRARM"):])]
        # Of names with another beginning, only those with one letter wrong are meant: other programs have variables that begin with TEGRA.
        misspelt = bool(nearest) and wrong_letters(name.upper(), nearest[0]) <= 1
        ours = name.startswith("TEGRARM_") and not name.startswith("TEGRARM_TEST_") and name != "TEGRARM_WHEEL_PLATFORM"
        if name not in SETTINGS and (ours or (misspelt and not name.startswith("TEGRARM_"))):
            found[name] = next(iter((forgotten if len(name) > len("TEGRARM_") else []) + nearest), "")
    return found


def tell_unknown_settings(environ=os.environ) -> None:
    """Says once of each variable that looks like a setting that it is none. The library and the programs that we start then keep quiet."""
    told = list(filter(None, environ.get("TEGRARM_TOLD", "").split(",")))
    for name, meant in unknown_settings(environ).items():
        if name not in told:
            more = f": is {meant} meant?" if meant else " (docs/settings.md lists them all)"
            print(f"tegrarm: there is no setting {name}, so it changes nothing{more}", file=sys.stderr)
            told.append(name)
    if told:
        environ["TEGRARM_TOLD"] = ",".join(told)


def flush() -> None:
    """Writes what is left of the output. A reader that has closed the pipe is no error, and a disk that is full is one."""
    try:
        with written():
            sys.stdout.flush()
    except BrokenPipeError:
        silence()


def of_system(error: OSError) -> str:
    """The sentence about an error of the system: what it is about, and its reason."""
    return ": ".join(filter(None, [error.filename and os.fsdecode(error.filename), error.strerror or str(error)]))


class Printed:
    """Standard output of a command. If it cannot be written, the command ends with a sentence about that."""

    def __init__(self, stream):
        self.stream = stream

    def write(self, text: str) -> int:
        """Writes, as the stream does."""
        with written():
            return self.stream.write(text)

    def flush(self) -> None:
        """Flushes, as the stream does."""
        with written():
            self.stream.flush()

    def __getattr__(self, name: str):
        return getattr(self.stream, name)


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
