#!/usr/bin/env python3
"""Runs CUDA C++ programs on the device (CUB, cooperative groups, libcu++, matrix products, algorithms) and kernels of Numba.

usage: corpora [TEXT...] [--way WAY]... [--compiler 12|13] [--jobs N] [--state FILE] [--every N] [--list]

TEXT is a part of a case's name. Ways are "default", "-G" and "fast math". With a --state FILE, a run that was stopped continues where it
was, unless the library or this folder has changed.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import importlib
import json
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "ptx"))
from link import cuda  # noqa: E402

OPTIONS = {"default": (), "-G": ("--device-debug",), "fast math": ("--use_fast_math",)}
MODULES = ("programs", "groups", "gemm", "cub", "numba_kernels")


def cases(wanted, every=1):
    """The cases whose name contains one of the texts."""
    found = [case for module in MODULES for make in importlib.import_module(module).CASES for case in make()]
    return [case for case in found if not wanted or any(text in case.name for text in wanted)][::every]


def judged(name, way, compiler):
    """Runs a case that is compiled in one way. The result is "passed" or a description of the failure."""
    case = next(c for c in cases([name]) if c.name == name)
    gpu = None
    try:
        cubin = case.compiled(way) if hasattr(case, "compiled") else cuda.compiled(case.source, case.compiler or compiler, *OPTIONS[way], *case.options)
        gpu = cuda.Gpu()
        case.execute(gpu, cubin)
        return "passed"
    except Exception as why:  # noqa: BLE001 - every failure is a result of the case
        return f"{type(why).__name__}: {why}".strip()[:1500]
    finally:
        if gpu:
            gpu.close()


def fingerprint():
    """A hash of everything on which the results depend."""
    digest = hashlib.sha256()
    library = os.environ.get("TEGRARM_LIB")
    for path in [*sorted(Path(__file__).parent.glob("*.py")), *([Path(library)] if library else [])]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def kept(path, key):
    """The results of an earlier run, from a file to which this run appends its own."""
    lines = path.read_text().splitlines() if path and path.exists() else []
    if lines and lines[0] == key:
        return {tuple(name): result for name, result in map(json.loads, lines[1:])}
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(key + "\n")
    return {}


def main():
    """Runs the command line that is described above. The status is 1 if a case failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="*", metavar="TEXT")
    parser.add_argument("--way", action="append", choices=OPTIONS)
    parser.add_argument("--compiler", default="12", choices=("12", "13"))
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--state", type=Path)
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    found = cases(given.texts, given.every)
    if given.list:
        print(*(case.name for case in found), sep="\n")
        return 0
    todo = [(case.name, way, given.compiler) for case in found for way in given.way or OPTIONS if way in case.ways]
    done = kept(given.state, fingerprint())
    with concurrent.futures.ProcessPoolExecutor(given.jobs) as pool:
        running = {pool.submit(judged, *what): what for what in todo if what not in done}
        for future in concurrent.futures.as_completed(running):
            done[running[future]] = future.result()
            if given.state:
                with given.state.open("a") as file:
                    file.write(json.dumps([running[future], future.result()]) + "\n")
            failed = sum(done.get(what, "passed") != "passed" for what in todo)
            print(f"\r{sum(what in done for what in todo)} of {len(todo)}, {failed} failed, now {running[future][0]}" + " " * 30, end="", file=sys.stderr,
                  flush=True)
    print(file=sys.stderr)
    return report(todo, done)


def report(todo, done):
    """Prints the failures and the table."""
    table = collections.defaultdict(collections.Counter)
    for what in todo:
        name, way, _ = what
        if done[what] != "passed":
            print(f"FAILED {name} ({way}): {done[what]}")
        table[name.split("/")[0]][way, done[what] == "passed"] += 1
    ways = list(dict.fromkeys(way for _, way, _ in todo))
    print(f"{'corpus':12}" + "".join(f"{way:>14}" for way in ways))
    for corpus, n in table.items():
        print(f"{corpus:12}" + "".join(f"{n[way, True]:>7} of {n[way, True] + n[way, False]:<4}" for way in ways))
    return int(any(done[what] != "passed" for what in todo))


if __name__ == "__main__":
    sys.exit(main())
