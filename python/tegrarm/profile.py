"""``tegrarm profile`` runs a program on the virtual Orin and shows what its kernels did, line by line, as one page and as JSON.

The virtual Orin writes what it has noted as a file for each process (``TEGRARM_SIM_PROFILE``). This module adds what only the host knows,
the names of tinygrad's kernels and the text of the sources, and makes the forms that other programs read.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from typing import Any

from . import _ffi, say, sim, timeline, trace
from .say import Refused

TEMPLATE = pathlib.Path(__file__).with_name("profile.html")
SECTOR = 32  # bytes
WARP = 32  # lanes
WHOLE = 5000  # lines; of a longer file, a profile has only those that code comes from, and those near them
NEAR = 8  # lines
BAD = 2.0  # times the least: from here on, an access is told of
FEW = 16.0  # lanes: with fewer on average, an instruction is told of

# Operations of one lane, by the beginning of an instruction. A multiply-add is two. Products of matrices say their shape in their names.
OPERATIONS = {"FFMA": ("fp32", 2), "FADD": ("fp32", 1), "FMUL": ("fp32", 1), "HFMA2": ("fp16", 4), "HADD2": ("fp16", 2),
              "HMUL2": ("fp16", 2), "DFMA": ("fp64", 2), "DADD": ("fp64", 1), "DMUL": ("fp64", 1)}
# Compilers write the move of a constant as a product of zeros to which the constant is added.
MOVE = re.compile(r"HFMA2\S* \S+, -?RZ, -?RZ,")
MATRIX = re.compile(r"\b(?:HMMA|IMMA)\.(16|8)(8)(\d+)\b[^ ]*")


def number(**more: Any) -> dict:
    """A schema of a number."""
    return {"type": "number", "minimum": 0, **more}


def table(properties: dict, optional: Iterable[str] = ()) -> dict:
    """A schema of an object that has these properties and no others."""
    return {"type": "object", "properties": properties, "required": [key for key in properties if key not in optional],
            "additionalProperties": False}


def listed(items: dict) -> dict:
    """A schema of a list."""
    return {"type": "array", "items": items}


TEXT = {"type": "string"}
MAYBE_TEXT = {"type": ["string", "null"]}
MAYBE_NUMBER = {"type": ["integer", "null"]}
SIZE = {"type": "array", "items": number(), "minItems": 3, "maxItems": 3}
MAYBE_SIZE = {**SIZE, "type": ["array", "null"]}
BY_NAME = {"type": "object", "additionalProperties": number()}
ACCESSES = table({"requests": number(), "taken": number(), "least": number()})
COUNTERS = {"instructions": number(), "mix": BY_NAME, "active_lanes": number(), "cycles": BY_NAME, "operations": BY_NAME,
            "global": ACCESSES, "shared": ACCESSES, "local": ACCESSES, "l1_bytes": number(), "l2_bytes": number(), "dram_bytes": number()}
ROW = {"place": {"type": "integer"}, "text": TEXT, "unit": TEXT, "function": MAYBE_TEXT, "file": MAYBE_NUMBER, "line": MAYBE_NUMBER,
       "issued": number(), "lanes": number(), "cycles": BY_NAME, "share": number(maximum=1), "global": ACCESSES, "shared": ACCESSES,
       "local": ACCESSES, "l2_bytes": number(), "dram_bytes": number(), "notes": listed(TEXT)}
SHAPE = {"grid": SIZE, "block": SIZE, "registers": number(), "shared": number(), "local": number(),
         "occupancy": table({"blocks": number(), "warps": number(), "of": number(), "limit": TEXT})}
KERNEL = {"name": TEXT, "code": TEXT, "process": number(), "launches": number(), "ns": number(), "host_ns": number(),
          "share": number(maximum=1), "bound": TEXT, "shapes": listed(table(SHAPE)), "counters": table(COUNTERS),
          "rows": listed(table(ROW))}
WHEN = {"begun_ns": number(), "ns": number(), "host_begun_ns": number(), "host_ns": number()}
PARTY = {"what": TEXT, "block": MAYBE_SIZE, "thread": MAYBE_SIZE, "pc": TEXT, "place": {"type": "integer"}, "text": MAYBE_TEXT,
         "function": MAYBE_TEXT, "file": MAYBE_TEXT, "line": MAYBE_NUMBER}
BOARD = {"module": TEXT, "clock": TEXT, "sms": number(), "hz": number(), "l2_bytes": number(), "dram_bytes_per_second": number(),
         "moved_per_second": number(), "operations_per_cycle": BY_NAME, "instructions_per_cycle": number()}
SCHEMA = {
    "title": "tegrarm-profile 1",
    **table({
        "format": {"const": "tegrarm-profile"}, "version": {"const": 1}, "command": listed(TEXT), "board": table(BOARD),
        "kernels": listed(table(KERNEL)),
        "launches": listed(table({"kernel": number(), "shape": number(), "queue": number(), **WHEN, "cycles": number(), "bound": TEXT})),
        "queues": listed(TEXT),
        "copies": listed(table({"queue": number(), "bytes": number(), **WHEN})),
        "waits": listed(table({"queue": number(), "semaphore": TEXT, "host_begun_ns": number(), "host_ns": number()})),
        "calls": listed(table({"name": TEXT, "process": number(), "host_begun_ns": number(), "host_ns": number()})),
        "ranges": listed(table({"name": TEXT, "domain": TEXT, "process": number(), "thread": number(), "host_begun_ns": number(),
                                "host_ns": number()})),
        "reports": listed(table({"kind": TEXT, "title": TEXT, "kernel": MAYBE_NUMBER, "parties": listed(table(PARTY))})),
        "files": listed(TEXT),
        "sources": {"type": "object", "additionalProperties": listed({"type": "array", "prefixItems": [number(), TEXT], "minItems": 2})},
        "left_out": BY_NAME,
    }),
}


def operations(text: str, lanes: int, issued: int) -> tuple[str, int]:
    """The kind of numbers with which an instruction calculates, and how many operations it did. They are none if it does not."""
    words = [word for word in text.split() if not word.startswith("@")]
    opcode = words[0] if words else ""
    if shape := MATRIX.match(opcode):
        rows, columns, depth = map(int, shape.groups())
        kind = "tensor int8" if opcode.startswith("IMMA") else "tensor tf32" if ".TF32" in opcode else "tensor fp16"
        return kind, 2 * rows * columns * depth * issued
    kind, each = ("", 0) if MOVE.search(text) else OPERATIONS.get(opcode.split(".")[0], ("", 0))
    return kind, each * lanes


def notes_of(row: dict) -> list[str]:
    """What is worth a look at an instruction, in sentences."""
    found = []
    for memory, unit, what in (("global", "sectors of 32 bytes", "uncoalesced"), ("shared", "passes through the banks", "bank conflict")):
        accesses = row[memory]
        if accesses["requests"] and accesses["taken"] >= BAD * accesses["least"]:
            taken, least = (accesses[key] / accesses["requests"] for key in ("taken", "least"))
            found.append(f"{what}: an access of a warp takes {taken:.3g} {unit}, and its bytes need {least:.3g}")
    if row["issued"] and row["lanes"] / row["issued"] < FEW:
        found.append(f"divergence: {row['lanes'] / row['issued']:.3g} of {WARP} lanes are active")
    return found


def row_of(raw: dict, stalls: list[str]) -> dict:
    """An instruction, from what the virtual Orin noted of it."""
    cycles = {"issue": raw["issued"], "dependency": raw["issued"] * (raw["stall"] - 1), **dict(zip(stalls, raw["waited"], strict=True))}
    row = {**{key: raw[key] for key in ("place", "text", "unit", "function", "file", "line", "issued", "lanes")}, "cycles": cycles,
           **{key: dict(zip(("requests", "taken", "least"), raw[key], strict=True)) for key in ("global", "shared", "local")},
           "l2_bytes": raw["l2"], "dram_bytes": raw["dram"]}
    return {**row, "notes": notes_of(row)}


def summed(dicts: Iterable[dict]) -> dict:
    """The sums of numbers by name."""
    sums: dict[str, int] = {}
    for one in dicts:
        for name, value in one.items():
            sums[name] = sums.get(name, 0) + value
    return sums


def counters_of(rows: list[dict]) -> dict:
    """The counters of a kernel: the sums of those of its instructions."""
    issued, lanes = sum(row["issued"] for row in rows), sum(row["lanes"] for row in rows)
    done = [operations(row["text"], row["lanes"], row["issued"]) for row in rows]
    accesses = {memory: {**ACCESSES_NONE, **summed(row[memory] for row in rows)} for memory in ("global", "shared", "local")}
    return {"instructions": issued, "mix": summed({row["unit"]: row["issued"]} for row in rows),
            "active_lanes": lanes / issued if issued else 0, "cycles": summed(row["cycles"] for row in rows),
            "operations": summed({kind: count} for kind, count in done if count), **accesses,
            "l1_bytes": accesses["global"]["taken"] * SECTOR, "l2_bytes": sum(row["l2_bytes"] for row in rows),
            "dram_bytes": sum(row["dram_bytes"] for row in rows)}


ACCESSES_NONE = {"requests": 0, "taken": 0, "least": 0}


def kernel_of(raw: dict, launches: list[dict], stalls: list[str], known: list[dict]) -> dict:
    """A kernel, with the time of its launches."""
    rows = [row_of(row, stalls) for row in raw["rows"]]
    all_cycles = sum(sum(row["cycles"].values()) for row in rows)
    for row in rows:
        row["share"] = sum(row["cycles"].values()) / all_cycles if all_cycles else 0
    bound = summed({launch["bound"]: launch["ns"]} for launch in launches)
    name = raw["name"] or timeline.name_of(int(raw["code"], 0), known) or f"kernel at {raw['code']}"
    return {"name": name, "code": raw["code"], "process": raw["process"], "launches": raw["launches"],
            "ns": sum(launch["ns"] for launch in launches), "host_ns": sum(launch["host_ns"] for launch in launches), "share": 0,
            "bound": max(bound, key=lambda unit: bound[unit], default=""), "shapes": raw["shapes"], "counters": counters_of(rows),
            "rows": rows}


def one(raw: dict, known: list[dict]) -> dict:
    """The profile of one process."""
    when = ("begun_ns", "ns", "host_begun_ns", "host_ns")
    launches = [{**dict(zip(("kernel", "shape", "queue", *when, "cycles"), launch[:8], strict=True)), "bound": raw["units"][launch[8]]}
                for launch in raw["launches"]]
    of: dict[int, list[dict]] = {}
    for launch in launches:
        of.setdefault(launch["kernel"], []).append(launch)
    kernels = [kernel_of(kernel, of.get(at, []), raw["stalls"], known) for at, kernel in enumerate(raw["kernels"])]
    every = sum(kernel["ns"] for kernel in kernels)
    for kernel in kernels:
        kernel["share"] = kernel["ns"] / every if every else 0
    host = ("host_begun_ns", "host_ns")
    return {"process": raw.get("process", 0), "board": raw["board"], "kernels": kernels, "launches": launches, "queues": raw["queues"],
            "copies": [dict(zip(("queue", "bytes", *when), copy, strict=True)) for copy in raw["copies"]],
            "waits": [{"queue": wait[0], "semaphore": hex(wait[1]), **dict(zip(host, wait[2:], strict=True))} for wait in raw["waits"]],
            "calls": [{"name": raw["names"][call[0]], "process": call[1], **dict(zip(host, call[2:], strict=True))}
                      for call in raw["calls"]],
            "ranges": [dict(zip(("name", "domain", "process", "thread", *host), found, strict=True)) for found in raw["ranges"]],
            "reports": raw["reports"], "files": raw["files"], "left_out": raw["left_out"]}


def merged(profiles: list[dict]) -> dict:
    """The profiles of several processes as one."""
    whole, *others = profiles
    for other in others:
        kernels, files, queues = len(whole["kernels"]), len(whole["files"]), len(whole["queues"])
        for kernel in other["kernels"]:
            for row in kernel["rows"]:
                row["file"] = row["file"] + files if row["file"] is not None else None
        for item in (*other["launches"], *other["reports"]):
            item["kernel"] = item["kernel"] + kernels if item["kernel"] is not None else None
        for item in (*other["launches"], *other["copies"], *other["waits"]):
            item["queue"] += queues
        # Each process has a default queue.
        other["queues"] = [f"{name} of process {other['process']}" for name in other["queues"]]
        for key in ("queues", "kernels", "launches", "copies", "waits", "calls", "ranges", "reports", "files"):
            whole[key] += other[key]
        whole["left_out"] = summed((whole["left_out"], other["left_out"]))
    every = sum(kernel["ns"] for kernel in whole["kernels"])
    for kernel in whole["kernels"]:
        kernel["share"] = kernel["ns"] / every if every else 0
    del whole["process"]
    return whole


def source_of(file: str, noted: dict[str, str], wanted: set[int]) -> list[list]:
    """The lines of a source, with their numbers. It is empty if nobody knows the text."""
    text = next((text for name, text in reversed(noted.items()) if file == name or file.endswith(f"/{name}")), None)
    if text is None:
        try:
            text = pathlib.Path(file).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
    lines = list(enumerate(text.splitlines(), 1))
    if len(lines) > WHOLE:
        lines = [(at, line) for at, line in lines if any(abs(at - line_wanted) <= NEAR for line_wanted in wanted)]
    return [[at, line] for at, line in lines]


def sources(profile: dict, noted: dict[str, str]) -> dict[str, list]:
    """The sources of all lines that code comes from."""
    wanted: dict[str, set[int]] = {}
    for kernel in profile["kernels"]:
        for row in kernel["rows"]:
            if row["file"] is not None and row["line"]:
                wanted.setdefault(profile["files"][row["file"]], set()).add(row["line"])
    found = {file: source_of(file, noted, lines) for file, lines in wanted.items()}
    return {file: lines for file, lines in found.items() if lines}


def build(raws: list[dict], command: list[str], noted: list[dict]) -> dict:
    """The profile of a run, from what the virtual Orin wrote for each process, and what Python noted: names of kernels, and sources."""
    known = [entry for entry in noted if "address" in entry]
    profile = merged([one(raw, known) for raw in raws])
    texts = {entry["file"]: entry["source"] for entry in noted if "source" in entry}
    return {"format": "tegrarm-profile", "version": 1, "command": command, **profile, "sources": sources(profile, texts)}


def page(profile: dict) -> str:
    """The page. It needs no other file."""
    packed = base64.b64encode(gzip.compress(json.dumps(profile, separators=(",", ":")).encode(), mtime=0)).decode()
    return TEMPLATE.read_text(encoding="utf-8").replace("@DATA@", packed)


def spans(profile: dict) -> list[timeline.Span]:
    """The run as spans on tracks, by the clock of the host."""
    every = [item["host_begun_ns"] for key in ("launches", "copies", "waits", "calls", "ranges") for item in profile[key]]
    first = min(every, default=0)

    def span(track: str, name: str, item: dict, details: dict) -> timeline.Span:
        return timeline.Span(track, name, (item["host_begun_ns"] - first) / 1e3, item["host_ns"] / 1e3, details)

    found = [span(f"calls of process {call['process']}", call["name"], call, {}) for call in profile["calls"]]
    found += [span(f"ranges of thread {marked['thread']}", marked["name"], marked, {"domain": marked["domain"]})
              for marked in profile["ranges"]]
    for launch in profile["launches"]:
        kernel = profile["kernels"][launch["kernel"]]
        shape = kernel["shapes"][launch["shape"]]
        details = {"grid": shape["grid"], "block": shape["block"], "modelled ns": launch["ns"], "bound by": launch["bound"]}
        found.append(span(profile["queues"][launch["queue"]], kernel["name"], launch, details))
    found += [span(profile["queues"][copy["queue"]], "copy", copy, {"bytes": copy["bytes"], "modelled ns": copy["ns"]})
              for copy in profile["copies"]]
    return found + [span(profile["queues"][wait["queue"]], "waits", wait, {"semaphore": wait["semaphore"]}) for wait in profile["waits"]]


RULES = {"memory": "An access outside of a buffer, of a shared array or of a frame", "init": "The use of a value that was never written",
         "race": "Two accesses to one place that nothing orders", "sync": "A barrier that is misused",
         "order": "A result that depends on the order of blocks and warps",
         "cpu": "An access of the processor to a buffer that the GPU still uses"}


def place_of(party: dict) -> dict:
    """Where an access is, as SARIF says it."""
    who = f" by thread {party['thread']} of block {party['block']}" if party["thread"] else ""
    where: dict[str, Any] = {"message": {"text": f"{party['what']}{who}" + (f": {party['text']}" if party["text"] else "")},
                             "logicalLocations": [{"fullyQualifiedName": party["function"] or party["pc"], "kind": "function"}]}
    if party["file"]:
        file = os.path.relpath(party["file"]) if os.path.isabs(party["file"]) else party["file"]
        where["physicalLocation"] = {"artifactLocation": {"uri": pathlib.PurePath(file).as_posix()}, "region": {"startLine": party["line"]}}
    return where


def sarif(profile: dict) -> dict:
    """The reports of the checker in SARIF 2.1.0, which shows them at the lines of a pull request."""
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in RULES.items()]
    # A copy and the processor have no line, at which a report could be shown.
    ordered = [(report, sorted(report["parties"], key=lambda party: not party["file"])) for report in profile["reports"]]
    results = [{"ruleId": report["kind"], "level": "error", "message": {"text": report["title"]},
                "locations": [place_of(party) for party in parties[:1]],
                "relatedLocations": [{"id": at, **place_of(party)} for at, party in enumerate(parties[1:], 1)]}
               for report, parties in ordered]
    driver = {"name": "tegrarm-check", "rules": rules}
    return {"version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def environment(args: Any, folder: str) -> dict[str, str]:
    """The variables of a program whose board is in its process."""
    told = {"TEGRARM_SIM_CLOCK": args.clock or "model", **({"TEGRARM_SIM_CHECK": args.check} if args.check else {})}
    files = {"TEGRARM_SIM_PROFILE": os.path.join(folder, "%p.json"), "TEGRARM_TRACE_NAMES": os.path.join(folder, "names")}
    library = _ffi.find()
    return {**os.environ, **told, **files, **trace.marks(library), "TEGRARM_BACKEND": "sim", "TEGRARM_LIB": library}


def start(args: Any, folder: str) -> int:
    """Runs the program, and returns its status."""
    program = [args.script, *args.args]
    env = environment(args, folder)
    if args.nodes:
        options = ["--clock", env["TEGRARM_SIM_CLOCK"], *(["--check", args.check] if args.check else [])]
        program = [sim.program(), "run", "--profile", os.path.join(folder, "nodes.json"), *options, "--", *program]
        env["TEGRARM_BACKEND"] = "nvgpu"
        del env["TEGRARM_SIM_PROFILE"]
    elif args.preload or args.cuda or args.script.endswith(".py"):
        doors = [f"--{door}" for door in ("preload", "cuda") if getattr(args, door)]
        program = [sys.executable, "-m", "tegrarm", "run", *doors, "--", *program]
    try:
        status = subprocess.run(program, env=env).returncode
    except OSError as error:
        raise Refused(f"profile: {program[0]}: {error.strerror}", say.NOT_STARTED) from error
    return status if status >= 0 else 128 - status


def read(path: str | pathlib.Path, form: str = "tegrarm-profile", maker: str = "tegrarm profile --data FILE") -> dict:
    """Reads a file of a form, which a command makes."""
    try:
        with open(path, encoding="utf-8") as file:
            profile = json.load(file)
    except ValueError:
        raise Refused(f"{path} is no profile, or is cut off") from None
    if not isinstance(profile, dict) or (profile.get("format"), profile.get("version")) != (form, 1):
        raise Refused(f"{path} is not what `{maker}` writes")
    return profile


def read_raw(path: str | pathlib.Path) -> dict:
    """Reads what the virtual Orin wrote."""
    return read(path, "tegrarm-profile-raw", "tegrarm run --profile FILE")


def write(option: str, path: str | None, text: Any) -> None:
    """Writes a file that the user asked for. ``text`` makes its content."""
    if path:
        try:
            pathlib.Path(path).write_text(text(), encoding="utf-8")
        except OSError as error:
            raise Refused(f"profile {option}: {path}: {error.strerror}") from None


def duration(ns: float) -> str:
    """A time as people read it."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def summary(profile: dict) -> str:
    """The kernels as a table, the longest first."""
    lines = [f"{'time':>9} {'share':>6} {'launches':>8}  {'bound by':<10} kernel"]
    for kernel in sorted(profile["kernels"], key=lambda kernel: -kernel["ns"]):
        lines.append(f"{duration(kernel['ns']):>9} {kernel['share']:>6.1%} {kernel['launches']:>8}  {kernel['bound']:<10} {kernel['name']}")
    if profile["reports"]:
        lines.append(f"the checker has {len(profile['reports'])} reports")
    return "\n".join([*lines, *(f"{count} {key} came too late for the lists" for key, count in profile["left_out"].items() if count)])


def profile_program(args: Any) -> int:
    """Executes ``tegrarm profile``."""
    if args.schema:
        say.as_json(SCHEMA)
        return say.OK
    if bool(args.script) == bool(args.raw):
        raise Refused("profile: name a program, or files with --from: tegrarm profile -- ./program")
    args.output = args.output or "profile.html"
    for option in ("output", "data", "perfetto", "sarif"):
        if (path := getattr(args, option)) and not pathlib.Path(path).resolve().parent.is_dir():
            raise Refused(f"profile --{option}: there is no directory for {path}")
    with tempfile.TemporaryDirectory(prefix="tegrarm-profile-") as folder:
        status = say.OK if args.raw else start(args, folder)
        written = sorted(pathlib.Path(folder).glob("*.json"))
        raws = [raw for file in args.raw or written if (raw := read_raw(file))["launches"] or raw["copies"]]
        noted = timeline.read_names(os.path.join(folder, "names"))
    if not raws:
        raise Refused("profile: the program has used no GPU of the virtual Orin, or was killed", status or say.PROBLEM)
    command = args.raw or [args.script, *args.args]
    profile = build(raws, command, noted)
    write("--output", args.output, lambda: page(profile))
    write("--data", args.data, lambda: json.dumps(profile))
    write("--perfetto", args.perfetto, lambda: json.dumps(timeline.perfetto(spans(profile), command[0])))
    write("--sarif", args.sarif, lambda: json.dumps(sarif(profile), indent=2))
    if args.json:
        say.as_json({key: getattr(args, key) for key in ("output", "data", "perfetto", "sarif")}
                    | {"status": status, "kernels": len(profile["kernels"]), "reports": len(profile["reports"])}, sys.stderr)
    else:
        print("\n".join([summary(profile), f"the page: {args.output}"]), file=sys.stderr)
    return status


# What a comparison shows of a kernel: the heading, and how the figure is made.
FIGURES = {
    "time": lambda kernel: kernel["ns"],
    "launches": lambda kernel: kernel["launches"],
    "instructions": lambda kernel: kernel["counters"]["instructions"],
    "registers": lambda kernel: max((shape["registers"] for shape in kernel["shapes"]), default=0),
    "DRAM bytes": lambda kernel: kernel["counters"]["dram_bytes"],
    "sectors": lambda kernel: kernel["counters"]["global"]["taken"],
    "bank passes": lambda kernel: kernel["counters"]["shared"]["taken"],
}


def by_name(profile: dict) -> dict[str, dict[str, float]]:
    """The figures of the kernels of a profile. Kernels of one name count together; registers are the most of any."""
    found: dict[str, dict[str, float]] = {}
    for kernel in profile["kernels"]:
        have = found.setdefault(kernel["name"], dict.fromkeys(FIGURES, 0))
        for figure, value in ((figure, make(kernel)) for figure, make in FIGURES.items()):
            have[figure] = max(have[figure], value) if figure == "registers" else have[figure] + value
    return found


def compared(before: dict, after: dict) -> list[dict]:
    """What is different in two profiles, kernel by kernel, the largest change of time first. Equal kernels are left out."""
    old, new = by_name(before), by_name(after)
    rows = [{"kernel": name, "before": old.get(name), "after": new.get(name)} for name in dict.fromkeys([*old, *new])
            if old.get(name) != new.get(name)]
    return sorted(rows, key=lambda row: -abs((row["after"] or {}).get("time", 0) - (row["before"] or {}).get("time", 0)))


def change(figure: str, before: float, after: float) -> str:
    """A figure before and after, as people read it."""
    shown = duration if figure == "time" else lambda value: f"{value:,.0f}"
    part = f" ({after / before - 1:+.1%})" if before else ""
    return f"{figure} {shown(before)} -> {shown(after)}{part}"


def diff(args: Any) -> int:
    """Executes ``tegrarm diff``."""
    before, after = read(args.before), read(args.after)
    rows, times = compared(before, after), [sum(kernel["ns"] for kernel in profile["kernels"]) for profile in (before, after)]
    slower = args.most is not None and times[1] > times[0] * (1 + args.most / 100)
    if args.json:
        say.as_json({"time": times, "kernels": rows, "slower": slower})
        return say.PROBLEM if slower else say.OK
    for row in rows:
        old, new = row["before"], row["after"]
        if old and new:
            changes = [change(figure, old[figure], new[figure]) for figure in FIGURES if old[figure] != new[figure]]
            print(f"{row['kernel']}: {', '.join(changes)}")
        else:
            print(f"{row['kernel']}: only {'after' if new else 'before'}, {duration((old or new)['time'])}")
    print("all kernels: " + (change("time", *times) if rows else f"the same, {duration(times[0])}"))
    return say.PROBLEM if slower else say.OK
