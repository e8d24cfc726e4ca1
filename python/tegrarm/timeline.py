"""A run as spans on tracks: RM calls above the kernel calls that they made, and the GPU's work.

A recording (``TEGRARM_RECORD``) has the calls in their order, but no clock. ``tegrarm-sim run --trace`` has clocks and the GPU, but knows
no RM calls. Both list the ioctls in the same order, so that the second gives its times to the first. Without it, the timeline shows the
order only.

The GPU knows addresses of kernels and no names. Those of tinygrad, and sources that are in no file, are noted in a file
(``TEGRARM_TRACE_NAMES``).
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable

from . import say

GPU = 0  # the "process" of the GPU in a timeline of tegrarm-sim
PAUSE = 1000.0  # microseconds without a kernel call, after which a call belongs to another RM call of the same name
CLASSES = {0xC7C0: "compute", 0xC7B5: "copy", 0xA140: "inline copy"}


@dataclasses.dataclass
class Span:
    """A span of time on a track, in microseconds from the beginning."""

    track: str
    name: str
    start: float
    length: float
    details: dict


def ring_entry(text: str) -> dict:
    """A GPFIFO entry as text: the address and the length of its pushbuffer, and what it waits for."""
    entry = int(text, 0)
    low, high = entry & 0xFFFFFFFF, entry >> 32
    words = high >> 10 & 0x1FFFFF
    if words == 0:
        return {"control entry": f"opcode {high & 0xFF:#x}", "operand": f"{low:#x}"}
    place = f"{(high & 0xFF) << 32 | low & ~3:#x}"
    return {"pushbuffer": place, "words": words, "subroutine": bool(high >> 9 & 1), "sync": bool(high >> 31)}


def summary(call: dict) -> dict:
    """The fields of a recorded call that are useful to read."""
    if call["call"] != "ioctl":
        return {k: v for k, v in call.items() if k not in ("seq", "rm", "call")}
    fields = {k: " → ".join(map(str, v)) if isinstance(v, list) else v for k, v in call.get("fields", {}).items()}
    said = {k: v for k, v in fields.items() if v not in ("0", "0…") and "reserved" not in k and "padding" not in k}
    return {"on": call["on"], **said, "result": call.get("ret")}


def title(call: dict) -> str:
    """The name of a kernel call as people use it."""
    return call["name"] if call["call"] == "ioctl" else f"{call['call']} {call.get('path') or call.get('on', '').partition('#')[0]}"


def _timed(calls: list[dict], ioctls: list[dict]) -> list[tuple[float, float]]:
    """The start and the length of every recorded call. Calls that are no ioctls lie between their neighbours."""
    times, at, waiting = [], 0.0, iter(ioctls)
    upcoming = next(waiting, None)
    for call in calls:
        if call["call"] == "ioctl" and upcoming and upcoming["name"] == call["name"]:
            at, length = max(at, upcoming["ts"]), upcoming["dur"]
            upcoming = next(waiting, None)
        else:
            length = 1.0
        times.append((at, length))
        at += length
    return times


def of_calls(calls: list[dict], ioctls: list[dict]) -> list[Span]:
    """The kernel calls, and above them the RM calls that made them."""
    spans: list[Span] = []
    previous = None
    for call, (start, length) in zip(calls, _timed(calls, ioctls), strict=True):
        rm = call.get("rm") or "(library)"
        if previous and previous.name == rm and start - previous.start - previous.length < PAUSE:
            previous.length = start + length - previous.start
            previous.details["kernel calls"] += 1
        else:
            previous = Span("RM calls", rm, start, length, {"kernel calls": 1})
            spans.append(previous)
        spans.append(Span("kernel calls", title(call), start, length, summary(call)))
    return spans


def channels(ioctls: list[dict]) -> dict[int, str]:
    """The class of each channel. Its id is the token that SETUP_BIND gives, and its class is set on the same descriptor."""
    tokens: dict[tuple, int] = {}
    found: dict[int, list[str]] = {}
    for ioctl in ioctls:
        args = ioctl["args"]
        where = (ioctl["pid"], args.get("fd"))
        if ioctl["name"].endswith("CHANNEL_SETUP_BIND"):
            tokens[where] = int(args["work_submit_token"], 0) & 0xFFFF
        elif ioctl["name"].endswith("ALLOC_OBJ_CTX") and where in tokens:
            if name := CLASSES.get(int(args.get("class_num", "0"), 0)):
                found.setdefault(tokens[where], []).append(name)
    return {token: ", ".join(dict.fromkeys(classes)) for token, classes in found.items()}


def of_gpu(events: list[dict], used: dict[int, str], kernels: list[dict]) -> list[Span]:
    """The GPU's work, with one track for each channel. The names of queues are events, too: each counts for what follows it, and the first
    one for all in front of it, because a channel has work before it has a name.
    """
    spans = []
    names: dict[int, str] = {}
    for event in reversed(events):
        if event["ph"] == "M" and event["name"] == "thread_name":
            names[event["tid"]] = event["args"]["name"]
    for event in events:
        channel = event["tid"]
        if event["ph"] == "M":
            names.update({channel: event["args"]["name"]} if event["name"] == "thread_name" else {})
            continue
        about = ", ".join(filter(None, (names.get(channel), used.get(channel))))
        track = f"channel {channel}" + (f" ({about})" if about else "")
        args = dict(event.get("args", {}))
        name = event["name"]
        if event.get("cat") == "launch":
            name = name_of(int(args["code"], 0), kernels) or name
            size = "×".join(str(n) for n in args["grid"]) + " blocks of " + "×".join(str(n) for n in args["block"])
            args = {"grid": size, **{k: v for k, v in args.items() if k not in ("grid", "block")}}
        elif event.get("cat") == "gpfifo":
            name, args = "ring entry", {"index": args["index"], **ring_entry(args["entry"])}
        spans.append(Span(track, name, event["ts"], event.get("dur", 0.0), args))
    return spans


def of_ranges(events: list[dict]) -> list[Span]:
    """The parts of their time that programs have marked (NVTX), with one track for each thread."""
    marked = sorted((event for event in events if event.get("cat") == "range"), key=lambda event: event["ts"])
    return [Span(f"ranges of thread {event['tid']}", event["name"], event["ts"], event["dur"], event["args"]) for event in marked]


def build(calls: list[dict], simulator: list[dict], kernels: list[dict]) -> list[Span]:
    """Everything that is known of a run. ``simulator`` is the timeline of tegrarm-sim, and empty if there is none."""
    ioctls = sorted((e for e in simulator if e.get("cat") == "ioctl"), key=lambda e: e["ts"])
    mine = [e for e in ioctls if e["pid"] == ioctls[-1]["pid"]] if ioctls else []
    gpu = [e for e in simulator if e["pid"] == GPU]
    spans = [*of_ranges(simulator), *of_calls(calls, mine), *of_gpu(gpu, channels(ioctls), kernels)]
    first = min((span.start for span in spans if span.track != "RM calls"), default=0.0)
    for span in spans:
        span.start = max(0.0, span.start - first)
    return spans


def perfetto(spans: list[Span], process: str) -> dict:
    """The spans as trace events, which Perfetto and chrome://tracing open."""
    tracks = {track: number for number, track in enumerate(dict.fromkeys(span.track for span in spans), 1)}
    events = [{"name": "process_name", "ph": "M", "pid": 1, "tid": 0, "args": {"name": process}}]
    events += [{"name": "thread_name", "ph": "M", "pid": 1, "tid": number, "args": {"name": track}} for track, number in tracks.items()]
    for span in spans:
        common = {"name": span.name, "cat": span.track, "pid": 1, "tid": tracks[span.track], "ts": span.start, "args": span.details}
        events.append({**common, "ph": "X", "dur": span.length} if span.length else {**common, "ph": "i", "s": "t"})
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def read(path: str) -> list[dict]:
    """Reads a timeline that tegrarm-sim wrote."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except ValueError:
        raise say.Refused(f"{path} is cut off: tegrarm-sim was ended, or the disk is full") from None


def note_kernels(path: str) -> None:
    """From this call on, writes a line to ``path`` for each program that tinygrad loads to its NV device or to TEGRA."""
    for find in (_of_nv, _of_tegra):
        try:
            program, place = find()
        except (ImportError, AttributeError):
            continue  # this release of tinygrad has no such device
        _watch(program, place, path)


def _of_nv() -> tuple[type, Callable]:
    from tinygrad.runtime.ops_nv import NVProgram
    return NVProgram, lambda made: (made.lib_gpu.va_addr, made.lib_gpu.size)


def _of_tegra() -> tuple[type, Callable]:
    from .tinygrad.program import TegraProgram
    return TegraProgram, lambda made: (made.attributes.code_address, made.attributes.code_size)


def _watch(program: type, place: Callable, path: str) -> None:
    before = program.__init__

    def make(self, *args, **kwargs):
        before(self, *args, **kwargs)
        address, size = place(self)
        with open(path, "a", encoding="utf-8") as file:
            print(json.dumps({"name": self.name, "address": address, "size": size}), file=file)

    program.__init__ = make


def note_source(file: str, source: bytes) -> None:
    """Notes the text of a source that is compiled, if anybody has asked for such notes."""
    if path := os.environ.get("TEGRARM_TRACE_NAMES"):
        with open(path, "a", encoding="utf-8") as notes:
            print(json.dumps({"file": file, "source": source.decode(errors="replace")}), file=notes)


def read_names(path: str) -> list[dict]:
    """Reads the lines that :func:`note_kernels` and :func:`note_source` wrote."""
    try:
        with open(path, encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    except FileNotFoundError:
        return []


def name_of(address: int, known: list[dict]) -> str:
    """The kernel at an address. It is empty if none is known. The latest line counts, because addresses are used again."""
    return next((k["name"] for k in reversed(known) if "address" in k and k["address"] <= address < k["address"] + k["size"]), "")
