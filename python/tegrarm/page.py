"""``tegrarm trace --html`` shows a run as one page with a timeline, details and a table of calls. The page needs no other file."""

from __future__ import annotations

import collections
import html
import json
import pathlib

from .timeline import Span

TEMPLATE = pathlib.Path(__file__).with_name("page.html")


def text(spans: list[Span], counts: dict[str, collections.Counter], timed: bool) -> str:
    """The text of the page. ``timed`` says whether the spans have real times or only an order."""
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
