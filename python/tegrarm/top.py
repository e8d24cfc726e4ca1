"""``tegrarm top`` shows load, clocks, memory and temperature of the GPU, and the processes that use this library, live.

All values are read from files, so that the GPU is not asked. Below ``tegrarm-sim run`` these are the files of its board. If each process
has its own virtual Orin, there are no such files, and only processes are shown. Launches are counted by the library or by the virtual
GPU: see :mod:`tegrarm.counts`.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import itertools
import os
import pathlib
import re
import sys
import time
from collections.abc import Container

from . import counts, say, where

# The names of descriptors of a process. /proc/PID/fd shows the names that the drivers give.
DESCRIPTORS = {"channels": r"nv(?:host|gpu)-[\w.]*-fd\d+", "groups": r"nv(?:host|gpu)-tsg-fd\d+", "spaces": r"nv(?:host|gpu)-as-fd\d+",
               "buffers": r"dmabuf"}
OTHERS = re.compile(r"-(?:tsg|as|nvmap|dbg|prof|sched|nvsched|ctxsw)-fd\d+")
# Seconds between two looks at most, and before the first one that is printed, because a rate is a difference of two looks.
LONGEST_DELAY, FIRST_DELAY = 86400.0, 0.25


@dataclasses.dataclass
class Files:
    """The files of a machine. Tests use other directories."""

    root: pathlib.Path = pathlib.Path("/")

    def text(self, name: str) -> str | None:
        """The text of a file. It is None if there is no such file, or if it cannot be read."""
        try:
            return (self.root / name.lstrip("/")).read_text(errors="replace").strip("\0\n ")
        except OSError:
            return None

    def number(self, name: str) -> int | None:
        """The number in a file."""
        text = self.text(name)
        return int(text) if text and re.fullmatch(r"-?\d{1,19}", text, re.ASCII) else None

    def below(self, name: str, pattern: str) -> list[pathlib.Path]:
        """The entries of a directory."""
        return sorted((self.root / name.lstrip("/")).glob(pattern))


def gpu(files: Files) -> dict:
    """Load in thousandths, clocks in hertz, and temperature in thousandths of a degree. Unknown values are None."""
    places = files.below("/sys/class/devfreq", "*.gpu") + files.below("/sys/class/devfreq", "*.g[av][0-9][0-9]b")
    name = f"/sys/class/devfreq/{places[0].name}" if places else "/sys/class/devfreq/none"
    zones = (zone for zone in files.below("/sys/class/thermal", "thermal_zone*")
             if "gpu" in (files.text(f"/sys/class/thermal/{zone.name}/type") or "").lower())
    zone = next(zones, None)
    return {
        "load_permille": files.number(f"{name}/device/load"),
        "clock_hz": files.number(f"{name}/cur_freq"),
        "clock_min_hz": files.number(f"{name}/min_freq"),
        "clock_max_hz": files.number(f"{name}/max_freq"),
        "temperature_millicelsius": files.number(f"/sys/class/thermal/{zone.name}/temp") if zone else None,
    }


def running(files: Files) -> list[str]:
    """What channels of the virtual Orin do that has taken long, in sentences. A board does not tell it."""
    places = files.below("/sys/class/devfreq", "*.gpu/device/tegra_sim_faults")
    text = "\n".join(filter(None, (files.text(str(pathlib.Path("/") / place.relative_to(files.root))) for place in places)))
    return re.findall(r"^channel=\d+\tstate=waits\ttext=(.*)$", text, re.M)


def memory(files: Files) -> dict:
    """The memory of the system in bytes, which the GPU shares."""
    found = dict(re.findall(r"^(\w+): +(\d{1,18}) kB$", files.text("/proc/meminfo") or "", re.M))
    sizes = {"total_bytes": "MemTotal", "available_bytes": "MemAvailable"}
    return {name: int(found[key]) << 10 if key in found else None for name, key in sizes.items()}


def descriptors(place: pathlib.Path) -> collections.Counter:
    """The descriptors of the GPU that a process holds."""
    found: collections.Counter = collections.Counter()
    for entry in place.glob("fd/*"):
        try:
            target = os.readlink(entry)
        except OSError:
            continue
        for what, pattern in DESCRIPTORS.items():
            if re.search(pattern, target) and not (what == "channels" and OTHERS.search(target)):
                found[what] += 1
    return found


def processes(files: Files, only: Container[int] | None = None) -> list[dict]:
    """Processes that have loaded the library, or that hold channels without it. Other users' processes are seen only with rights.

    ``only`` are the processes that are looked at, if not all.
    """
    found = []
    for place in files.below("/proc", "[0-9]*"):
        if only is not None and int(place.name) not in only:
            continue
        held = descriptors(place)
        try:
            loaded = "libtegrarm.so" in (place / "maps").read_text(errors="replace")
        except OSError:
            loaded = False
        if not loaded and not held["channels"]:
            continue
        status = files.text(f"/proc/{place.name}/status") or ""
        launches, counted_by = counts.of_process(place, status) or (None, None)
        rss = re.search(r"^VmRSS:\s+(\d{1,18}) kB", status, re.M)
        found.append({
            "pid": int(place.name),
            "name": (re.search(r"^Name:\t(.*)", status, re.M) or [None, "?"])[1],
            "library": loaded,
            "memory_bytes": int(rss[1]) << 10 if rss else None,
            **{what: held[what] for what in DESCRIPTORS},
            "launches": launches,
            "counted_by": counted_by,
            "launches_per_second": None,
        })
    return sorted(found, key=lambda p: (-p["channels"], p["pid"]))


def look(files: Files, kind: str) -> dict:
    """Reads all values once. A rate needs an earlier look: see :class:`Watch`."""
    simulated = kind == "tegrarm-sim run"
    known = where.census() if simulated else None
    executed = counts.of_supervisor() if simulated else None
    found = processes(files, executed)  # the other programs of this machine have other boards
    for process in found if executed is not None else ():
        launches = executed.get(process["pid"], 0)
        if launches or process["launches"] is None:  # 0: a program may have a virtual GPU in its own process
            process.update(launches=launches, counted_by=counts.NAMES[counts.GPU])
    return {"kind": kind, "gpu": gpu(files), "memory": memory(files), "kernel": known, "running": running(files), "processes": found}


class Watch:
    """Looks again and again, and knows what has changed since the look before."""

    def __init__(self, files: Files, kind: str):
        self.files, self.kind, self.before, self.at = files, kind, [], 0.0

    def look(self, clock=time.monotonic) -> dict:
        """Reads all values, with the launches per second since the look before."""
        seen, now = look(self.files, self.kind), clock()
        counts.rates(self.before, seen["processes"], now - self.at)
        self.before, self.at = seen["processes"], now
        return seen


def shown(value: int | None, unit: str, scale: float = 1, digits: int = 0) -> str:
    """A figure with its unit, or a dash if it is unknown."""
    return "-" if value is None else f"{value / scale:.{digits}f} {unit}"


def rate(process: dict) -> str:
    """The launches per second of a process, or a dash if they are not known."""
    value = process["launches_per_second"]
    return "-" if value is None else f"{value:.0f}" if value >= 10 or not value else f"{value:.1f}"


def text(seen: dict) -> str:
    """The values as text for people."""
    of_gpu, of_memory = seen["gpu"], seen["memory"]
    lines = [
        say.paint(f"{where.KINDS[seen['kind']]}", "bold"),
        f"load {shown(of_gpu['load_permille'], '%', 10, 1)}   clock {shown(of_gpu['clock_hz'], 'MHz', 1e6)} "
        f"({shown(of_gpu['clock_min_hz'], 'to', 1e6)} {shown(of_gpu['clock_max_hz'], 'MHz', 1e6)})   "
        f"temperature {shown(of_gpu['temperature_millicelsius'], '°C', 1e3, 1)}   "
        f"memory {shown(of_memory['available_bytes'], 'MiB', 1 << 20)} of {shown(of_memory['total_bytes'], 'MiB', 1 << 20)} free",
    ]
    if kernel := seen["kernel"]:
        lines.append("kernel  " + "  ".join(f"{name} {value}" for name, value in kernel.items()))
    lines += [f"GPU  {sentence}" for sentence in seen["running"]]
    lines += ["", f"{'PID':>8}  {'program':20} {'channels':>8} {'groups':>7} {'spaces':>7} {'buffers':>8} {'launches/s':>10} "
                  f"{'memory':>10}"]
    lines += [f"{p['pid']:>8}  {p['name']:20.20} {p['channels']:>8} {p['groups']:>7} {p['spaces']:>7} {p['buffers']:>8} "
              f"{rate(p):>10} {shown(p['memory_bytes'], 'MiB', 1 << 20):>10}" for p in seen["processes"]]
    if not seen["processes"]:
        lines.append("          no process uses the library now")
    return "\n".join(lines)


def escaped(label: str) -> str:
    """The value of a label, in quotation marks."""
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def prometheus(seen: dict) -> str:
    """The values in the text format of Prometheus, as the textfile collector of its node exporter reads it."""
    lines = []

    def gauge(name: str, helping: str, samples: list[tuple[str, float | None]], kind: str = "gauge") -> None:
        known = [(labels, value) for labels, value in samples if value is not None]
        if known:
            lines.extend([f"# HELP tegrarm_{name} {helping}", f"# TYPE tegrarm_{name} {kind}"])
            lines.extend(f"tegrarm_{name}{labels} {value}" for labels, value in known)

    def scaled(value: int | None, by: float) -> float | None:
        return None if value is None else value / by

    of_gpu = seen["gpu"]
    gauge("gpu_load_ratio", "Share of the time that the GPU was busy.", [("", scaled(of_gpu["load_permille"], 1000))])
    gauge("gpu_clock_hertz", "The GPU's clock.", [("", of_gpu["clock_hz"])])
    gauge("gpu_temperature_celsius", "The GPU's temperature.", [("", scaled(of_gpu["temperature_millicelsius"], 1000))])
    gauge("memory_available_bytes", "Memory that is free, which CPU and GPU share.", [("", seen["memory"]["available_bytes"])])

    def samples(what: str) -> list[tuple[str, float | None]]:
        return [(f'{{pid="{p["pid"]}",name="{escaped(p["name"])}"}}', p[what]) for p in seen["processes"]]

    for what in DESCRIPTORS:
        gauge(f"process_{what}", f"What a process holds: {what}.", samples(what))
    gauge("process_launches_total", "Kernels that a process has launched.", samples("launches"), "counter")
    gauge("process_launches_per_second", "Kernels that a process launches in a second.", samples("launches_per_second"))
    return "\n".join(lines)


def top(args) -> int:
    """Shows the values again and again. --json prints one object per line, and --prometheus prints the values once."""
    if not 0 < args.delay <= LONGEST_DELAY:
        raise say.Refused(f"top --delay: wants more than no seconds, and at most {LONGEST_DELAY:.0f}")
    if args.times < 0:
        raise say.Refused("top --times: wants the number of looks; 0 is without end")
    watch = Watch(Files(), where.kind())
    watched = sys.stdout.isatty() and not args.json and not args.prometheus
    times = args.times or (0 if watched or args.json else 1)
    try:
        if not watched:
            watch.look()
            time.sleep(min(args.delay, FIRST_DELAY))
        if args.prometheus:
            print(prometheus(watch.look()))
            return say.OK
        with screen() if watched else contextlib.nullcontext() as show:
            for count in itertools.count(1):
                seen = watch.look()
                if watched:
                    show(seen)
                elif args.json:
                    say.as_line(seen)
                else:
                    print(text(seen), flush=True)
                if count == times:
                    break
                time.sleep(args.delay)
    except KeyboardInterrupt:
        pass
    return say.OK


@contextlib.contextmanager
def screen():
    """The terminal's other screen, which is left as it was at the end. Gives a function that shows a look there."""
    from rich.live import Live

    from . import dashboard
    with Live(auto_refresh=False, screen=True) as live:
        yield lambda seen: live.update(dashboard.view(seen), refresh=True)
