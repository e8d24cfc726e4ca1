"""What ``tegrarm top`` shows on a terminal: bars for load, clock and memory, and a table of processes. Drawn by rich."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from . import where
from .top import DESCRIPTORS, rate, shown

HOT, WARM = 85_000, 70_000  # thousandths of a degree


def bar(share: float | None) -> RenderableType:
    """Draws a share as a bar, or a dash if the share is not known."""
    return Text("-", style="dim") if share is None else ProgressBar(total=1.0, completed=max(0.0, min(share, 1.0)), width=40)


def share(value: int | None, whole: int | None) -> float | None:
    """The share that a part has of a whole. It is None if one of the two is not known."""
    return value / whole if value is not None and whole else None


def gauges(seen: dict) -> Table:
    """Load, clock, memory, temperature."""
    gpu, memory = seen["gpu"], seen["memory"]
    total, free = memory["total_bytes"], memory["available_bytes"]
    used = total - free if total is not None and free is not None else None
    table = Table.grid(padding=(0, 2))
    table.add_row("load", bar(share(gpu["load_permille"], 1000)), shown(gpu["load_permille"], "%", 10, 1))
    clock = f"{shown(gpu['clock_hz'], 'MHz', 1e6)} of {shown(gpu['clock_max_hz'], 'MHz', 1e6)}"
    table.add_row("clock", bar(share(gpu["clock_hz"], gpu["clock_max_hz"])), clock)
    table.add_row("memory", bar(share(used, total)), f"{shown(free, 'MiB', 1 << 20)} of {shown(total, 'MiB', 1 << 20)} free")
    heat = gpu["temperature_millicelsius"]
    style = "" if heat is None else "red" if heat > HOT else "yellow" if heat > WARM else "green"
    table.add_row("temperature", Text(shown(heat, "°C", 1e3, 1), style=style), "")
    return table


def processes(seen: dict) -> Table:
    """A row for each process that uses the GPU."""
    table = Table(expand=True, box=None, header_style="bold", pad_edge=False)
    table.add_column("PID", justify="right")
    table.add_column("program", ratio=1)
    for name in (*DESCRIPTORS, "launches/s", "memory"):
        table.add_column(name, justify="right")
    for p in seen["processes"]:
        held = (str(p[name]) for name in DESCRIPTORS)
        table.add_row(str(p["pid"]), p["name"], *held, rate(p), shown(p["memory_bytes"], "MiB", 1 << 20))
    return table


def view(seen: dict) -> RenderableType:
    """The whole screen."""
    parts: list[RenderableType] = [Panel(gauges(seen), title=where.KINDS[seen["kind"]], title_align="left")]
    if kernel := seen["kernel"]:
        parts.append(Text("kernel  " + "  ".join(f"{name} {value}" for name, value in kernel.items()), style="dim"))
    parts += [Text(f"GPU  {sentence}") for sentence in seen["running"]]
    parts.append(processes(seen) if seen["processes"] else Text("no process uses the library now", style="dim"))
    parts.append(Text("Ctrl-C ends it", style="dim"))
    return Group(*parts)
