"""``tegrarm validate --compare``: a sent-in file's measurements, beside those of the virtual Orin in it and what others have published."""

from __future__ import annotations

import json
import pathlib

from . import compare, report, runner

DATA = pathlib.Path(__file__).with_name("data") / "published.json"
STEPS = ("timings", "bandwidth", "rooflines")
# A word of the board's name, and the virtual module whose figures may stand beside it.
MODULES = {"AGX Orin": "agx-orin", "Orin NX": "orin-nx", "Orin Nano": "orin-nano"}
NANOSECONDS = 1e9


def figures() -> list[dict]:
    """Every published figure, with its source and what the figures of the source have in common."""
    sources = json.loads(DATA.read_text())["sources"]
    common = [{key: value for key, value in source.items() if key != "figures"} for source in sources]
    return [{**shared, **figure} for shared, source in zip(common, sources, strict=True) for figure in source["figures"]]


def module_of(model: str | None) -> str:
    """The module for which there may be published figures. Empty if the file names none."""
    return next((name for name in MODULES if name in (model or "")), "")


def of_module(name: str) -> dict[str, dict]:
    """The figures of a module that `tegrarm validate` measures too, by what it calls them."""
    found = [row for row in figures() if row["module"] == MODULES.get(name) and "validate" in row]
    return {row["validate"]: {**row, "value": row["value"] * (NANOSECONDS if row["unit"] == "s" else 1)} for row in found}


def rows(members: dict[str, bytes]) -> list[dict]:
    """One row for each measurement of the file: its value, the virtual Orin's, and the published one with its source."""
    model = report.answers_of(members, runner.MACHINE, "identity").get("machine.model")
    published = of_module(module_of(model))
    found = []
    for step in STEPS:
        ours, theirs = (report.answers_of(members, side, step) for side in (runner.MACHINE, runner.SIMULATOR))
        for key, value in ours.items():
            if compare.MEASURED.search(key) and isinstance(value, (int, float)):
                what = f"{step}: {key}"
                found.append({"what": what, "file": value, "virtual": theirs.get(key), "published": published.get(what)})
    return found


def table(about: dict, members: dict[str, bytes]) -> str:
    """The rows as text, and the sources below them."""
    def shown(key: str, value) -> str:
        return "" if value is None else report.measured(key, value)
    model = report.answers_of(members, runner.MACHINE, "identity").get("machine.model")
    lines = [f"{'measurement':44} {'the file':>16} {'virtual Orin':>16} {'published':>16}"]
    sources = []
    for row in rows(members):
        key, figure = row["what"], row["published"]
        known = shown(key, figure["value"]) if figure else ""
        cells = (shown(key, row["file"]), shown(key, row["virtual"]), known)
        lines.append(f"{compare.MEASURED.sub('', key):44} {' '.join(f'{cell:>16}' for cell in cells)}".rstrip())
        if figure:
            sources.append(f"{compare.MEASURED.sub('', key)}: {figure['name']}, {figure['board']} ({figure['source']}, {figure['date']})")
    if len(lines) == 1:
        lines = ["The file has no measurements: its steps timings, bandwidth and rooflines were not run."]
    lines += ["", *sources] if sources else ["", f"Nothing that can stand beside these is known of {module_of(model) or 'this machine'}."]
    if about["kind"] != "board":
        lines.append("The file is a simulator's: its times are those of the computer on which it ran.")
    return "\n".join(lines)
