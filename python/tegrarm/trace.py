"""Reads a recording (``TEGRARM_RECORD``) and shows which kernel calls each RM call made, as a table, a timeline or a page."""

from __future__ import annotations

import collections
import html
import json
import os
import pathlib
import sys
from collections.abc import Iterable, Iterator

from . import _ffi, say, timeline

TEMPLATE = pathlib.Path(__file__).with_name("page.html")
WIDTH = 46


def read(path: str) -> Iterator[dict]:
    """The kernel calls of a recording in their order. The first line describes the recording and is left out."""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                entry = json.loads(line)
            except ValueError:
                raise say.Refused(f"{path}: line {number} is cut off: the program was ended, or the disk is full") from None
            if "call" in entry:
                yield entry


def count(calls: Iterable[dict]) -> dict[str, collections.Counter]:
    """For each RM call, how often it made each kernel call. Calls outside of any RM call are under ``(library)``."""
    table: dict[str, collections.Counter] = {}
    for call in calls:
        table.setdefault(call.get("rm") or "(library)", collections.Counter())[timeline.title(call)] += 1
    return table


def table(calls: Iterable[dict]) -> str:
    """The counts as text, with one block for each RM call, in the order in which they first came."""
    lines = []
    for rm_call, made in count(calls).items():
        if len(rm_call) > WIDTH:
            lines.append(rm_call)
        for number, (kernel_call, times) in enumerate(made.items()):
            lines.append(f"{rm_call if number == 0 and len(rm_call) <= WIDTH else '':{WIDTH}} {kernel_call:46} {times:6}")
    return "\n".join(lines)


def page(spans: list[timeline.Span], counts: dict[str, collections.Counter], timed: bool) -> str:
    """A run as one page with a timeline, details and a table of calls, which needs no other file.

    ``timed`` says whether the spans have real times or only an order.
    """
    tracks = list(dict.fromkeys(span.track for span in spans))
    data = {
        "tracks": tracks,
        "timed": timed,
        "spans": [[tracks.index(s.track), s.name, round(s.start, 3), round(s.length, 3), s.details] for s in spans],
    }
    rows = [f"<tr><td>{html.escape(rm) if first else ''}</td><td>{html.escape(kernel)}</td><td class=n>{times}</td></tr>"
            for rm, made in counts.items() for first, (kernel, times) in zip([True] + [False] * len(made), made.items(), strict=False)]
    # The text "</" could end the script, so that it must not occur in names of kernels and files.
    made = json.dumps(data, ensure_ascii=False).replace("</", "<\\/")
    unit = "microseconds" if timed else "calls, in their order: a recording has no clock"
    return TEMPLATE.read_text(encoding="utf-8").replace("@DATA@", made).replace("@ROWS@", "\n".join(rows)).replace("@UNIT@", unit)


def marks(library: str) -> dict[str, str]:
    """The variable with which NVTX, with which programs mark ranges, finds a library to tell of them. One that is set already stays."""
    return {"NVTX_INJECTION64_PATH": os.environ.get("NVTX_INJECTION64_PATH") or os.path.abspath(library)}


def below_the_simulator(path: str, command: list[str]) -> list[str] | None:
    """The command that runs a script below ``tegrarm-sim run``, which sees the GPU's work. It is None if a board is used."""
    from . import sim, where
    if where.kind() != "in-process":
        return None
    try:
        simulator = sim.program()
    except say.Refused:
        return None
    os.environ.update(TEGRARM_BACKEND="nvgpu", TEGRARM_RECORD=path, TEGRARM_TRACE_NAMES=f"{path}.names")
    os.environ.update(marks(_ffi.find()))
    pathlib.Path(f"{path}.names").unlink(missing_ok=True)
    return [simulator, "run", "--trace", f"{path}.timeline", "--", sys.executable, "-m", "tegrarm", "run", *command]


def write(option: str, path: str, text: str) -> None:
    """Writes a file that the user asked for."""
    try:
        pathlib.Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise say.Refused(f"trace {option}: {path}: {error.strerror}") from None


def show(path: str, page_file: str | None, perfetto: str | None, in_json: bool, kept: bool) -> None:
    """Prints the table of a recording, and writes the files that the user asked for. The recording itself may be one that nobody keeps."""
    calls = list(read(path))
    spans = []
    if page_file or perfetto:
        simulator = timeline.read(f"{path}.timeline") if os.path.exists(f"{path}.timeline") else []
        spans = timeline.build(calls, simulator, timeline.read_names(f"{path}.names"))
    if page_file:
        write("--html", page_file, page(spans, count(calls), timed=os.path.exists(f"{path}.timeline")))
    if perfetto:
        write("--perfetto", perfetto, json.dumps(timeline.perfetto(spans, "the program")))
    if in_json:
        say.as_json({"recording": path if kept else None, "html": page_file, "perfetto": perfetto, "calls": count(calls)}, sys.stderr)
        return
    print(table(calls), file=sys.stderr)
    for what, where in (("every call", path if kept else "-o FILE keeps them"), ("the page", page_file), ("for Perfetto", perfetto)):
        if where:
            print(f"{what}: {where}", file=sys.stderr)
