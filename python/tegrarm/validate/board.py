"""The other side: ``make replay-board FILE=orin-….tar.zst``.

Checks the file, makes its recorded calls again on the simulator of this tree, runs the same scripts there, prints the differences by
rule, and files the recording beside those of other boards, where a test makes its calls again from then on. ``docs/validated-on.md``
is made from what is filed.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import pathlib
import sys
import tempfile

from .. import say
from . import collect, compare, evidence, note, report, runner
from .steps import BY_NAME

TREE = pathlib.Path(__file__).resolve().parents[3]
ACCEPTED = TREE / "tests" / "data" / "boards"
PAGE = TREE / "docs" / "validated-on.md"
BEGIN, END = "<!-- accepted files: begin -->", "<!-- accepted files: end -->"
ABOUT, KNOWN = "about.json", "differences.json"


@dataclasses.dataclass
class Replayed:
    """What the simulator of this source tree makes of a file."""

    about: dict
    members: dict[str, bytes]
    differences: list[compare.Difference]


def unpacked(members: dict[str, bytes], work: pathlib.Path) -> None:
    """Writes the answers and recordings of the machine into a folder, in the same way as the runner leaves them."""
    for name, data in members.items():
        if name.startswith(f"{runner.MACHINE}/"):
            path = work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)


def replay(about: dict, members: dict[str, bytes], scripts: bool = True) -> Replayed:
    """Makes the calls of a file again, and runs its scripts if ``scripts`` is true. The board is the one that is most like the machine."""
    with tempfile.TemporaryDirectory() as place:
        work = pathlib.Path(place)
        unpacked(members, work)
        chip, l4t = board_of(about, work)
        found: list[compare.Difference] = []
        for step in (s["name"] for s in about["steps"] if s["name"] in BY_NAME):
            folder = runner.folder_of(work, runner.MACHINE, step)
            if scripts and not BY_NAME[step].alone and (folder / note.NAME).exists():
                outcome = runner.on_the_simulator(BY_NAME[step], work, chip, l4t)
                if outcome.state != runner.NOT_RUN:
                    found += compare.step(step, folder, runner.folder_of(work, runner.SIMULATOR, step))
            if (recording := folder / runner.RECORDING).exists():
                found += collect.replayed(step, recording, chip, l4t)
    return Replayed(about, members, found)


def board_of(about: dict, work: pathlib.Path) -> tuple[str, str]:
    """The virtual board for a file: the one that it was compared with, or the one that is most like the machine."""
    beside = about["simulator"]
    return (beside["module"], beside["l4t"]) if beside else runner.like(work, "board")


def file_it(path: pathlib.Path, result: Replayed, into: pathlib.Path) -> pathlib.Path:
    """Stores the scrubbed recordings and answers of a board, with the differences that are known from now on."""
    place = into / path.name.removesuffix(".tar.zst")
    place.mkdir(parents=True, exist_ok=True)
    for name, data in result.members.items():
        if name.startswith(f"{runner.MACHINE}/") and not name.endswith("messages.txt"):
            target = place / (name + ".zst" if name.endswith(runner.RECORDING) else name)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(evidence.compressed(data) if name.endswith(runner.RECORDING) else data)
    about = {key: result.about[key] for key in ("kind", "steps", "simulator")}
    (place / ABOUT).write_text(json.dumps({**about, "machine": report.machine_of(result.members)}, indent=1) + "\n")
    known = [dataclasses.asdict(d) for d in result.differences]
    (place / KNOWN).write_text(json.dumps(known, indent=1) + "\n")
    return place


def filed(place: pathlib.Path) -> tuple[dict, dict[str, bytes]]:
    """Reads what is stored of a board, in the form that a file has."""
    members = {}
    for path in sorted(place.rglob("*")):
        if path.is_file() and path.name not in (ABOUT, KNOWN):
            name, data = str(path.relative_to(place)), path.read_bytes()
            members[name.removesuffix(".zst")] = evidence.decompressed(data, name) if name.endswith(".zst") else data
    return json.loads((place / ABOUT).read_text()), members


def regression(place: pathlib.Path, scripts: bool = True) -> list[str]:
    """The new differences from a stored board, and the known differences that no longer exist."""
    about, members = filed(place)
    now = replay(about, members, scripts).differences
    then = [compare.Difference(**d) for d in json.loads((place / KNOWN).read_text())]
    if not scripts:
        then = [d for d in then if d.what.startswith("line ")]
    new, gone = [d for d in now if d not in then], [d for d in then if d not in now]
    return [f"new: {sentence(d)}" for d in new] + [f"gone: {sentence(d)}" for d in gone]


def sentence(d: compare.Difference) -> str:
    """A difference as one line of text."""
    return f"{compare.rules.short(d.rule)}: {d.step}: {d.what}: {compare.shorter(d.machine)}, the simulator {compare.shorter(d.simulator)}"


def table(into: pathlib.Path) -> str:
    """The generated part of the page: one row for each file that is stored."""
    places = sorted(p for p in into.glob("orin-*") if p.is_dir()) if into.is_dir() else []
    if not places:
        return "**Nothing was seen on a board yet.**"
    rows = ["| file | module | release | steps | differences from the virtual Orin, by rule |", "|---|---|---|---|---|"]
    for place in places:
        about, known = json.loads((place / ABOUT).read_text()), json.loads((place / KNOWN).read_text())
        done = sum(step["state"] == runner.DONE for step in about["steps"])
        grouped = compare.by_rule([compare.Difference(**d) for d in known])
        found = "<br>".join(f"{link(rule)}: {len(some)}" for rule, some in grouped.items()) or "none"
        machine = about["machine"]
        release = compare.said((machine["release"] or [machine["interface"]])[0])
        rows.append(f"| `{place.name}` | {report.plain(str(machine['module']))} | {report.plain(release)} | {done} of "
                    f"{len(about['steps'])} | {found} |")
    return "\n".join(rows)


def link(rule: str) -> str:
    """Makes a link from the page to a rule."""
    return f"[{compare.rules.short(rule).replace('.md', '')}]({rule.removeprefix('docs/')})"


def page_with(text: str, generated: str) -> str:
    """Replaces the generated part of the page."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{generated}\n{END}{rest.split(END)[1]}"


def main(argv: list[str] | None = None) -> int:
    """The command behind ``make replay-board``."""
    parser = argparse.ArgumentParser(prog="make replay-board", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", help="what `tegrarm validate` wrote; without it only docs/validated-on.md is written anew")
    parser.add_argument("--into", type=pathlib.Path, default=ACCEPTED, help="where it is filed (default: tests/data/boards)")
    parser.add_argument("--look", action="store_true", help="print the differences and file nothing")
    parser.add_argument("--recordings-only", action="store_true", help="do not run the scripts again: seconds instead of minutes")
    parser.add_argument("--simulated", action="store_true", help="also file a simulator's file, for tests")
    args = parser.parse_args(argv)
    try:
        return go(args)
    except say.Refused as refused:
        print(f"replay-board: {refused}", file=sys.stderr)
        return refused.status


def go(args) -> int:
    """Does what the command line asks for."""
    if args.file:
        path = pathlib.Path(args.file)
        about, members = evidence.unpack(path)
        print(report.summary(about, members))
        result = replay(about, members, not args.recordings_only)
        print(f"\nOn the simulator of this tree:\n{compare.text(result.differences)}")
        if args.look:
            return say.OK
        if about["kind"] != "board" and not args.simulated:
            raise say.Refused(f"{path} is of a simulator, not of a board: it is not filed (--look prints without filing)")
        print(f"\nFiled: {file_it(path, result, args.into)}")
    if args.into == ACCEPTED:
        PAGE.write_text(page_with(PAGE.read_text(), table(ACCEPTED)))
        print(f"Written: {PAGE.relative_to(TREE)}")
    return say.OK


if __name__ == "__main__":
    sys.exit(main())
