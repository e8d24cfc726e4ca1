"""Differences between a machine and the simulator: of answers, of results of instructions by value, and of kernel calls by field."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
import re

from . import instructions, note, rules

# Measurements, which a simulator's have nothing to do with.
MEASURED = re.compile(r"_(ns|hz|permille|millicelsius|bytes_per_s|ops_per_s|name)$")
# Numbers that a board counts on from process to process: they are shown, and a difference is expected.
COUNTED = re.compile(r"(^|\.)(handle|id|syncpoint\w*|channel_id|tsgid)$")
# The GPU's own number is another one on each board. The bytes are compared field by field.
NOT_COMPARED = frozenset({"characteristics.per_device_identifier", "characteristics.bytes"})
IDENTIFYING = "per_device_identifier"
ABSENT = "no answer"
RECORDING = "calls.jsonl"
KEPT_VALUES = 16  # of a column of results that differs


@dataclasses.dataclass(frozen=True)
class Difference:
    """One thing that is not the same."""

    step: str
    what: str
    machine: str
    simulator: str
    rule: str
    # An answer, a kernel call, or a number that a board counts on.
    kind: str


def answers(step: str, machine: dict, simulator: dict) -> list[Difference]:
    """Differences of the answers of a step. Measurements are left out."""
    found = []
    for key in dict.fromkeys([*machine, *simulator]):
        ours, theirs = machine.get(key, ABSENT), simulator.get(key, ABSENT)
        if ours != theirs and key not in NOT_COMPARED and not MEASURED.search(key):
            found.append(Difference(step, key, said(ours), said(theirs), rules.of_answer(step, key), kind(key, "answer")))
    return found


def kind(name: str, otherwise: str) -> str:
    """Whether a number is one that a board counts on."""
    return "counted" if COUNTED.search(name) else otherwise


def said(value) -> str:
    """A value as text."""
    return value if isinstance(value, str) else json.dumps(value)


def results(machine: pathlib.Path, simulator: pathlib.Path) -> list[dict]:
    """Where the results of instructions differ: for each column how many items, and the first of them with their inputs."""
    found = []
    for opened, name in instructions.everything():
        ours, theirs = machine / f"{name}.out", simulator / f"{name}.out"
        if not (ours.exists() and theirs.exists()):
            continue
        about = json.loads(opened.read(f"{name}.json"))
        given, words = instructions.given(opened, name, about), 4 * about["words"]
        mine, other = ours.read_bytes(), theirs.read_bytes()
        for form, at, width in instructions.columns(about):
            places = [(i, at + i * width) for i in range(about["items"])]
            different = [(i, p) for i, p in places if mine[p:p + width] != other[p:p + width]]
            if different:
                first = [{"item": i, "input": given[i * words:(i + 1) * words].hex(), "machine": number(mine, p, width),
                          "simulator": number(other, p, width)} for i, p in different[:KEPT_VALUES]]
                found.append({"family": name, "form": form, "different": len(different), "of": about["items"], "first": first})
    return found


def number(data: bytes, at: int, width: int) -> str:
    """A result in hexadecimal digits."""
    return hex(int.from_bytes(data[at:at + width], "little"))


FIELD = re.compile(r"(?:(?P<name>.*?): )?recorded (?P<machine>.*), now (?P<simulator>.*)", re.S)


SM_RECORD = (("global_esr", 0, 4), ("warp_esr", 4, 4), ("global_esr_report_mask", 16, 4), ("warp_esr_report_mask", 20, 4))


def sm_records(recording: pathlib.Path) -> list[bytes]:
    """The errors that SMs have reported in a recording. SMs without an error are left out."""
    found = []
    for line in recording.read_text().splitlines(keepends=True)[1:] if recording.exists() else ():
        call = json.loads(line) if line.endswith("}\n") else {}
        if "SM_ERROR_STATE" in call.get("name", "") and "out" in call:
            records = (bytes.fromhex(memory["bytes"]) for memory in call["out"].get("memory", {}).values())
            found += [record for record in records if any(record)]
    return found


def records(step: str, machine: pathlib.Path, simulator: pathlib.Path) -> list[Difference]:
    """Differences between the errors that SMs reported. A replay does not show them, because in a replay the GPU does no work."""
    ours, theirs = sm_records(machine), sm_records(simulator)
    rule = rules.of_call("NVGPU_TSG_IOCTL_READ_SINGLE_SM_ERROR_STATE", "record")
    found = []
    if len(ours) != len(theirs):
        found.append(Difference(step, "number of SMs that reported an error", str(len(ours)), str(len(theirs)), rule, "answer"))
    for index, (mine, other) in enumerate(zip(ours, theirs, strict=False)):
        for name, at, size in SM_RECORD:
            a, b = (record[at:at + size] for record in (mine, other))
            if a != b:
                what = f"SM record {index}: {name}"
                found.append(Difference(step, what, "0x" + a[::-1].hex(), "0x" + b[::-1].hex(), rule, "answer"))
    return found


def calls(step: str, told: list[dict]) -> list[Difference]:
    """Differences between kernel calls, from `tegrarm-sim replay --all --json`. Each has its line of the recording."""
    found = []
    for difference in told:
        call = difference["call"].split(" on ")[0]
        for text in difference["fields"]:
            field = FIELD.fullmatch(text)
            name, ours, theirs = (field["name"] or "result", field["machine"], field["simulator"]) if field else ("bytes", text, "")
            if name.startswith("memory behind"):
                found += memory(step, difference, call, name, ours, theirs)
            else:
                what = f"line {difference['line']}: {difference['call']}: {name}"
                found.append(Difference(step, what, ours, theirs, rules.of_call(call, name), kind(name, "call")))
    return found


def memory(step: str, difference: dict, call: str, name: str, ours: str, theirs: str) -> list[Difference]:
    """Differences of the bytes behind a pointer: field by field for the characteristics, by runs of bytes elsewhere."""
    rule, where = rules.of_call(call, name), f"line {difference['line']}: {difference['call']}"
    try:
        mine, other = bytes.fromhex(ours), bytes.fromhex(theirs)
    except ValueError:
        return [Difference(step, f"{where}: {name}", ours, theirs, rule, "call")]
    found = []
    if len(mine) != len(other):
        found.append(Difference(step, f"{where}: size of the {name}", str(len(mine)), str(len(other)), rule, "call"))
    for field, at, size in fields(difference["recorded"], mine, other):
        a, b = mine[at:at + size], other[at:at + size]
        if a != b and field != IDENTIFYING:
            found.append(Difference(step, f"{where}: {field}", "0x" + a[::-1].hex(), "0x" + b[::-1].hex(), rule, "call"))
    return found


def fields(recorded: dict, mine: bytes, other: bytes) -> list:
    """The fields of memory behind a pointer; words of four bytes where they are not known."""
    from .identity import layouts
    if recorded.get("name", "").endswith("GET_CHARACTERISTICS"):
        size = recorded["fields"]["gpu_characteristics_buf_size"]
        written = int(size[-1] if isinstance(size, list) else size, 0)
        if written in layouts():
            return layouts()[written]
    return [(f"bytes {at} to {at + 3}", at, 4) for at in range(0, min(len(mine), len(other)), 4)]


def by_rule(found: list[Difference]) -> dict[str, list[Difference]]:
    """The differences of each rule, those that a board's counting explains last."""
    grouped: dict[str, list[Difference]] = {}
    for difference in sorted(found, key=lambda d: d.kind == "counted"):
        grouped.setdefault(difference.rule, []).append(difference)
    return grouped


def text(found: list[Difference], most: int = 6) -> str:
    """The differences by rule, as text."""
    lines = []
    for rule, some in by_rule(found).items():
        lines.append(f"{rules.short(rule)}: {len(some)}")
        lines += [f"    {d.step}: {d.what}: {shorter(d.machine)}, the simulator {shorter(d.simulator)}"
                  + (" (a number that a board counts on)" if d.kind == "counted" else "") for d in some[:most]]
        if len(some) > most:
            lines.append(f"    and {len(some) - most} more")
    return "\n".join(lines) or "no differences"


def shorter(text: str, most: int = 72) -> str:
    """A value that fits into a line."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"


def step(name: str, machine: pathlib.Path, simulator: pathlib.Path) -> list[Difference]:
    """The differences of the answers of a step that both have made."""
    recordings = (side / RECORDING for side in (machine, simulator))
    return answers(name, note.answers(machine), note.answers(simulator)) + records(name, *recordings)


def digest(found: list[Difference]) -> str:
    """A hash of what differs, without the lines of the recordings."""
    lines = sorted(f"{d.step} {re.sub(r'^line [0-9]+: ', '', d.what)} {d.rule}" for d in found if d.kind != "counted")
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]
