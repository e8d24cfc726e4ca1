"""Shows what a file contains: as text for the user who has to agree to it, and as a page for readers."""

from __future__ import annotations

import html
import json
import re

from . import compare, note, runner
from .compare import Difference

UNITS = {"ns": (1e3, "µs"), "hz": (1e6, "MHz"), "bytes_per_s": (1e9, "GB/s"), "ops_per_s": (1e9, "Gops/s"),
         "millicelsius": (1e3, "°C"), "permille": (10, "%")}


def answers_of(members: dict[str, bytes], side: str, step: str) -> dict:
    """The answers of a step in a file."""
    text = members.get(f"{side}/{step}/{note.NAME}", b"").decode(errors="replace")
    lines = (json.loads(line) for line in text.splitlines())
    return {line["key"]: line["value"] for line in lines if "key" in line}


def differences_of(members: dict[str, bytes]) -> list[Difference]:
    """The differences in a file."""
    return [Difference(**row) for row in json.loads(members["differences.json"])]


def machine_of(members: dict[str, bytes]) -> dict:
    """The values that say which kind of machine it is."""
    found = answers_of(members, runner.MACHINE, "identity")
    interface = answers_of(members, runner.MACHINE, "interface")
    names = {"module": "machine.model", "release": "machine.release", "kernel": "machine.kernel", "memory": "machine.memory"}
    return {**{name: found.get(key) for name, key in names.items()}, "interface": interface.get("kernel.release")}


def measured(key: str, value) -> str:
    """A measurement with a unit that is easy to read."""
    unit = compare.MEASURED.search(key)
    if unit and unit[1] in UNITS and isinstance(value, (int, float)):
        scale, name = UNITS[unit[1]]
        return f"{value / scale:.2f} {name}"
    return compare.said(value)


def measurements(members: dict[str, bytes]) -> list[tuple[str, str]]:
    """All measurements."""
    found = []
    for step in ("timings", "bandwidth", "rooflines"):
        for key, value in answers_of(members, runner.MACHINE, step).items():
            if compare.MEASURED.search(key):
                found.append((f"{step}: {compare.MEASURED.sub('', key)}", measured(key, value)))
    return found


def table_of_steps(about: dict) -> list[str]:
    """For each step, how it ended."""
    lines = []
    for step in about["steps"]:
        where = f", in {step['part']}" if step["part"] and step["state"] not in (runner.DONE, runner.NOT_RUN) else ""
        lines.append(f"{step['name']:17} {step['state']:8} {step['seconds']:7.1f} s{where}")
    return lines


def summary(about: dict, members: dict[str, bytes]) -> str:
    """A summary of a file in one page of text."""
    machine = "\n".join(f"{name:10} {compare.said(value)}" for name, value in machine_of(members).items())
    figures = "\n".join(f"{name:45} {value}" for name, value in measurements(members))
    beside = about["simulator"]
    compared = f"Compared with the virtual Orin ({beside['module']}, {beside['l4t']})" if beside else "Not compared with the virtual Orin"
    return "\n\n".join(filter(None, [
        f"{'A simulator, no board.' if about['kind'] != 'board' else 'A board.'}\n{machine}", "\n".join(table_of_steps(about)), figures,
        f"{compared}:\n{compare.text(differences_of(members))}"]))


def everything(about: dict, members: dict[str, bytes]) -> str:
    """The text that is shown before a file is written. It has everything that says something about the machine, and a list of the rest."""
    parts = [summary(about, members), "All answers that name the machine or its files:"]
    for step in ("identity", "interface"):
        parts.append("\n".join(f"{key} = {compare.said(value)}" for key, value in answers_of(members, runner.MACHINE, step).items()))
    parts.append("Members of the file:\n" + "\n".join(f"{len(data):9}  {name}" for name, data in sorted(members.items())))
    parts.append("Host name, user, home directory, serial numbers and network addresses are replaced by hashes (#…) wherever they occur.")
    return "\n\n".join(parts)


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; color: #222; background: #fff }
table { border-collapse: collapse; width: 100%; margin: 1em 0 } td, th { text-align: left; vertical-align: top; padding: .2em .6em;
border-bottom: 1px solid #ddd } td { overflow-wrap: anywhere } code { font-size: 90% } .none { color: #666 }
.late, .stuck, .froze, .failed { color: #b00; font-weight: bold }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } td, th { border-color: #444 } }
"""


def row(*cells: str, head: bool = False) -> str:
    """A row of a table."""
    tag = "th" if head else "td"
    return "<tr>" + "".join(f"<{tag}>{cell}</{tag}>" for cell in cells) + "</tr>"


def table(head: tuple[str, ...], rows: list[tuple]) -> str:
    """A table; its cells are text."""
    body = "".join(row(*(html.escape(str(cell)) for cell in cells)) for cells in rows)
    return f"<table>{row(*head, head=True)}{body}</table>" if rows else '<p class="none">None.</p>'


def page(about: dict, members: dict[str, bytes]) -> str:
    """The report as one page that needs no other file."""
    title = compare.said(machine_of(members)["module"] or "virtual Orin")
    steps = "".join(row(html.escape(s["name"]), f'<span class="{s["state"].replace(" ", "-")}">{s["state"]}</span>', f"{s['seconds']} s",
                        html.escape(s["part"] if s["state"] != runner.DONE else "")) for s in about["steps"])
    parts = [f"<h1>tegrarm validate: {html.escape(title)}</h1>",
             "" if about["kind"] == "board" else "<p><strong>This file is of a simulator, not of a board.</strong></p>",
             table(("what", "value"), [(k, compare.said(v)) for k, v in machine_of(members).items()]),
             f"<h2>Steps</h2><table>{row('step', 'ended', 'time', 'in part', head=True)}{steps}</table>",
             "<h2>Differences from the virtual Orin, by rule</h2>"]
    differences = differences_of(members)
    for rule, some in compare.by_rule(differences).items():
        parts.append(f"<h3><code>{html.escape(rule)}</code>: {len(some)}</h3>")
        rows = [(d.step, d.what, d.machine, d.simulator, d.kind) for d in some]
        parts.append(table(("step", "what", "machine", "simulator", "kind"), rows))
    if not differences:
        parts.append('<p class="none">None.</p>')
    values = json.loads(members["values.json"])
    parts.append("<h2>Results of instructions that differ</h2>")
    parts.append(table(("family", "form", "items", "first input", "machine", "simulator"), [
        (v["family"], v["form"], f"{v['different']} of {v['of']}", v["first"][0]["input"], v["first"][0]["machine"],
         v["first"][0]["simulator"]) for v in values]))
    parts.append("<h2>Measurements</h2>" + table(("what", "value"), measurements(members)))
    for step in about["steps"]:
        found = answers_of(members, runner.MACHINE, step["name"])
        if step["name"] not in ("instructions", "kernels") and found:
            theirs = answers_of(members, runner.SIMULATOR, step["name"])
            rows = [(k, measured(k, v), measured(k, theirs[k]) if k in theirs else "") for k, v in found.items()]
            parts.append(f"<h2>{html.escape(step['name'])}</h2>" + table(("answer", "machine", "simulator"), rows))
    head = f'<meta charset="utf-8"><title>tegrarm validate</title><style>{STYLE}</style>'
    return f"<!doctype html>\n<html lang=\"en\"><head>{head}</head><body>{''.join(parts)}</body></html>\n"


def plain(text: str) -> str:
    """A text in which no character has a meaning in a Markdown table."""
    return re.sub(r"[|\n]", " ", text)
