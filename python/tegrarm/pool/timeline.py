"""The spans of time of a pipeline (predicted, simulated or measured) as a Gantt picture (SVG) and as a trace for Perfetto."""

from __future__ import annotations

import dataclasses
import html
import json
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any


@dataclasses.dataclass(frozen=True)
class Span:
    """The work of one resource, in seconds since the start."""

    track: str  # a device or a link
    what: str   # "run", "link", "copy", "down"
    micro_batch: int
    start: float
    end: float


# The colours are different for colour-blind people too.
COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#777777")
ROW, LEFT, TOP, WIDTH = 26, 190, 46, 960


def _nice(span: float) -> float:
    """A step of 1, 2 or 5 times a power of ten, which makes about eight marks."""
    step = 10.0 ** -9
    while True:
        for factor in (1, 2, 5):
            if span / (step * factor) <= 8:
                return step * factor
        step *= 10


def _time(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.4g} {unit}"
    return f"{seconds / 1e-9:.4g} ns" if seconds else "0"


def gantt(spans: Sequence[Span], title: str, tracks: Iterable[str] = ()) -> str:
    """A picture of the spans with one row for each track, as the text of an SVG file."""
    rows = list(dict.fromkeys([*tracks, *(s.track for s in spans)]))
    end = max((s.end for s in spans), default=1.0) or 1.0
    scale, height = WIDTH / end, TOP + ROW * len(rows) + 34
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + 20}" height="{height}" '
             'font-family="sans-serif" font-size="12">',
             f'<rect width="100%" height="100%" fill="white"/><text x="8" y="20" font-size="15">{html.escape(title)}</text>']
    for i, name in enumerate(rows):
        y = TOP + i * ROW
        parts.append(f'<rect x="{LEFT}" y="{y}" width="{WIDTH}" height="{ROW - 4}" fill="#f2f2f2"/>'
                     f'<text x="{LEFT - 8}" y="{y + 15}" text-anchor="end">{html.escape(name)}</text>')
    step = _nice(end)
    for k in range(int(end / step) + 1):
        x = LEFT + k * step * scale
        parts.append(f'<line x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{height - 30}" stroke="#bbbbbb" stroke-dasharray="2 3"/>'
                     f'<text x="{x:.1f}" y="{height - 14}" text-anchor="middle" fill="#555555">{_time(k * step)}</text>')
    for s in spans:
        x, y, width = LEFT + s.start * scale, TOP + rows.index(s.track) * ROW, max((s.end - s.start) * scale, 0.4)
        colour = "#000000" if s.what == "down" else COLOURS[s.micro_batch % len(COLOURS)]
        thin = 6 if s.what in ("link", "copy") else 0
        label = f"{s.what}, micro-batch {s.micro_batch}: {_time(s.start)} to {_time(s.end)}"
        parts.append(f'<rect x="{x:.2f}" y="{y + thin}" width="{width:.2f}" height="{ROW - 4 - 2 * thin}" fill="{colour}">'
                     f"<title>{html.escape(label)}</title></rect>")
        if width > 16 and not thin and s.what != "down":
            parts.append(f'<text x="{x + width / 2:.1f}" y="{y + 15}" text-anchor="middle" fill="white">{s.micro_batch}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def perfetto(spans: Sequence[Span], tracks: Iterable[str] = ()) -> dict[str, Any]:
    """The spans in the format of trace events, which ui.perfetto.dev opens."""
    rows = list(dict.fromkeys([*tracks, *(s.track for s in spans)]))
    events: list[dict[str, Any]] = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "pipeline"}}]
    for i, name in enumerate(rows):
        events.append({"ph": "M", "pid": 1, "tid": i, "name": "thread_name", "args": {"name": name}})
        events.append({"ph": "M", "pid": 1, "tid": i, "name": "thread_sort_index", "args": {"sort_index": i}})
    for s in spans:
        events.append({"ph": "X", "pid": 1, "tid": rows.index(s.track), "cat": s.what, "name": f"{s.what} {s.micro_batch}",
                       "ts": s.start * 1e6, "dur": (s.end - s.start) * 1e6, "args": {"micro_batch": s.micro_batch}})
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def write(spans: Sequence[Span], title: str, stem: pathlib.Path, tracks: Iterable[str] = ()) -> tuple[pathlib.Path, pathlib.Path]:
    """Writes ``stem.svg`` and ``stem.json``. Returns both paths."""
    rows = list(tracks)
    picture, trace = stem.with_name(stem.name + ".svg"), stem.with_name(stem.name + ".json")
    picture.write_text(gantt(spans, title, rows))
    trace.write_text(json.dumps(perfetto(spans, rows)))
    return picture, trace
