"""Measures the engine's speed against an older engine in one run, and how many host instructions its handlers take.

Both engines execute the same kernels: those in `crates/sm87/tests/sm/data/kernels.hex` that say how to launch them. They take turns, so
that other load on the machine affects both. The figure of a kernel is the median of the ratios of all turns.
"""

import os
import pathlib
import re
import shutil
import statistics
import subprocess
import tarfile
from collections import defaultdict
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
KERNELS = ROOT / "crates" / "sm87" / "tests" / "sm" / "data" / "kernels.hex"
PROGRAM = ROOT / "crates" / "sm87" / "examples" / "engine.rs"
BUILT = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "engines"
OLD = "d6bd72d"  # The engine of the first measurement against gpuocelot.
TURNS = 9
UNDISTURBED = 60  # Of so many launches, one finds its cores free. Other programs lengthen a launch on two cores more than on one.
EXPENSIVE = 200  # a handler that takes more host instructions than this for a warp is listed


def cargo(source: pathlib.Path, target: pathlib.Path, flags: str = "") -> pathlib.Path:
    """Builds the program that measures, with the engine of one source tree."""
    env = {**os.environ, "RUSTFLAGS": flags} if flags else None
    subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "-p", "sm87", "--example", "engine", "--target-dir", target],
                   cwd=source, env=env, check=True)
    return target / "release" / "examples" / "engine"


def old_engine() -> pathlib.Path | None:
    """The same program with the engine of `OLD`, if the repository's history contains it."""
    source = BUILT / OLD / "source"
    if not source.exists():
        archive = BUILT / f"{OLD}.tar"
        archive.parent.mkdir(parents=True, exist_ok=True)
        if subprocess.run(["git", "archive", "-o", archive, OLD], cwd=ROOT, capture_output=True, check=False).returncode:
            return None
        with tarfile.open(archive) as tar:
            tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2, Debian 12's, has no argument for it
            tar.extractall(source)
    shutil.copy(PROGRAM, source / PROGRAM.relative_to(ROOT))
    return cargo(source, BUILT / OLD / "target")


def kernels() -> list[str]:
    """The kernels of which the file says how to launch them."""
    sections = KERNELS.read_text().split("\nkernel ")
    return [section.partition("\n")[0] for section in sections if "\n# launch " in section]


def run(program: pathlib.Path, threads: int, rounds: int, names: list[str], *before: str) -> dict[str, tuple[int, str, int]]:
    """The warp instructions, the checksum of the result and the nanoseconds of each kernel."""
    done = subprocess.run([*before, program, str(threads), str(rounds), KERNELS, *names], capture_output=True, text=True, check=True)
    rows = (text.split() for text in done.stdout.splitlines())
    return {name: (int(count), sum_, int(ns)) for name, count, sum_, ns in rows}


def spread(ratios: list[float]) -> str:
    return f"{statistics.median(ratios):.2f} x ({min(ratios):.2f} to {max(ratios):.2f})"


def ratios(line) -> None:
    """The speed compared with the old engine on one core, and the speed of two cores compared with one."""
    new, old, names = cargo(ROOT, BUILT / "new"), old_engine(), kernels()
    faster, doubled = defaultdict(list), defaultdict(list)
    pinned = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    for _ in range(TURNS):
        ours = run(new, 1, UNDISTURBED, names, *pinned)
        for name, (_, bits, ns) in (run(old, 1, UNDISTURBED, names, *pinned) if old else {}).items():
            faster[name].append(ns / ours[name][2])
            if bits != ours[name][1]:
                line(f"{name}: the results of the old engine and of this one", "DIFFER")
        two = run(new, 2, UNDISTURBED, names)
        for name in two:
            doubled[name].append(ours[name][2] / two[name][2])
    if not old:
        line(f"the engine of {OLD}", "not in this history")
    for name, (instructions, _, ns) in ours.items():
        line(f"{name}, warp instructions per second of a core", f"{instructions / ns * 1e3:.0f} M")
        if name in faster:
            line(f"  against the engine of {OLD}", spread(faster[name]), "never below 1 x")
        line("  two cores against one", spread(doubled[name]))


def costs(path: pathlib.Path) -> Iterator[tuple[str, str, int, int]]:
    """The lines of a file of callgrind that have instructions: the function, what it calls, how often, and how many instructions that took.
    Those that the function has executed itself are in lines that call nothing, 0 times.
    """
    names, here, callee, calls = {}, "", "", 0
    for text in path.read_text().splitlines():
        if found := re.match(r"(c?fn)=\((\d+)\)(?: (.*))?$", text):
            kind, number, name = found.groups()
            names.setdefault(number, name)
            here, callee = (names[number], callee) if kind == "fn" else (here, names[number])
        elif found := re.match(r"calls=(\d+)", text):
            calls = int(found[1])
        elif found := re.match(r"[-+*\d]\S* (\d+)$", text):
            yield here, callee if calls else "", calls, int(found[1])
            calls = 0


def edges(path: pathlib.Path) -> Iterator[tuple[str, str, int, int]]:
    """The calls in a file of callgrind: the caller, the function, how often it was called, and how many instructions it took."""
    return (cost for cost in costs(path) if cost[2])


def own_cost(path: pathlib.Path, parts: tuple[str, ...]) -> int:
    """The instructions that functions have executed themselves, of those whose name has one of these parts, in a file of callgrind."""
    return sum(taken for here, _, calls, taken in costs(path) if not calls and any(part in here for part in parts))


def readable(name: str) -> str:
    """The parts of a mangled name. Only mangled names contain generic arguments."""
    name = re.sub(r"Cs[0-9A-Za-z]+_(?=\d)", "C", name)  # a crate, and the number that tells it from others of its name
    words, at = [], 0
    while found := re.compile(r"(?<![0-9])([1-9]\d*)_?").search(name, at):
        word = name[found.end() : found.end() + int(found[1])]
        ok = len(word) == int(found[1]) and re.fullmatch(r"[A-Za-z_]\w*", word)
        words += [word] if ok and word not in ("sm87", "exec", "ops") else []
        at = found.end() + (int(found[1]) if ok else 0)
    return " ".join(words)


def handlers(line) -> None:
    """The handlers that take many host instructions for a warp, in all kernels together."""
    program = cargo(ROOT, BUILT / "profiled", "-C symbol-mangling-version=v0")
    out = BUILT / "callgrind.out"
    tool = ["valgrind", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={out}", "--quiet"]
    run(program, 1, 1, kernels(), *tool)
    calls, costs = defaultdict(int), defaultdict(int)
    for caller, callee, count, cost in edges(out):
        if "6interp" in caller or "8straight7execute" in caller:
            calls[callee] += count
            costs[callee] += cost
    total = sum(costs.values())
    print("handlers of more than 200 host instructions for a warp: instructions, times, share of all")
    for name in sorted(costs, key=costs.get, reverse=True):
        if costs[name] / calls[name] > EXPENSIVE and calls[name] >= 100:
            line(f"  {readable(name)[:54]}", f"{costs[name] / calls[name]:.0f}", f"{calls[name]}, {100 * costs[name] / total:.1f} %")
