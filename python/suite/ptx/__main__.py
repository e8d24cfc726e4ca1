#!/usr/bin/env python3
"""Runs every form of PTX for sm_87 on the device, and compares the results with references written from the PTX ISA.

usage: ptx [FAMILY...] [--level O0|O1|O3]... [--every N] [--jobs N] [--state FILE] [--list] [--only TEXT]

Each form is given to NVIDIA's assembler. If the assembler accepts it for sm_87, it becomes kernels of up to four shapes: all operands in
registers, the last operand in a kernel parameter, the last operand a number, and all operands the same for the whole warp. The kernels run
on the device that the library opens.

With a --state FILE, a run that was stopped continues where it was, unless the library or this folder has changed.
"""
import argparse
import collections
import concurrent.futures
import dataclasses
import hashlib
import json
import os
import sys
import zlib
from pathlib import Path

import bench
import table

LEVELS = ("O0", "O1", "O3")
COLUMNS = ("rows", "not for sm_87", "accepted", "executed", "checked", "refused at load", "wrong", "failed")
machine = bench.Machine()


def work(family, first, every, only, levels):
    """Runs a chunk of a family. The result is the list of its verdicts."""
    rows = chosen(family, every, only)[first:first + bench.CHUNK]
    try:
        return [dataclasses.asdict(v) for v in bench.judged(machine, rows, levels)]
    except Exception as why:  # noqa: BLE001 - the rows of the chunk have failed, and the other chunks continue
        machine.close()
        return [dataclasses.asdict(bench.Verdict(r.text, "", "", "failed", f"{type(why).__name__}: {why}"[:400])) for r in rows]


def chosen(family, every, only):
    """The rows of a family that the command line asks for. A sample is taken by the rows' hashes: a row of every tenth, say, could always
    have the same modifier."""
    return [r for r in table.rows(family) if only in r.text and not zlib.crc32(r.text.encode()) % every]


class State:
    """The chunks that are done, in a file. It is valid only for the same library and the same table."""

    def __init__(self, path, key):
        self.path, self.done = path, {}
        if path and path.exists():
            lines = path.read_text().splitlines()
            if lines and lines[0] == key:
                self.done = {tuple(json.loads(name)): found for name, found in (json.loads(line) for line in lines[1:])}
        if path and not self.done:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(key + "\n")

    def add(self, name, verdicts):
        """Writes the verdicts of a chunk to the file."""
        self.done[name] = verdicts
        if self.path:
            with self.path.open("a") as file:
                file.write(json.dumps([json.dumps(name), verdicts]) + "\n")


def fingerprint(*more):
    """A hash of everything on which the verdicts depend."""
    digest = hashlib.sha256(repr(more).encode())
    library = os.environ.get("TEGRARM_LIB")
    for path in [*sorted(Path(__file__).parent.glob("*.py")), *([Path(library)] if library else [])]:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def summary(families, every, only, verdicts):
    """For each family, how many rows have which verdict."""
    found = {}
    for family in families:
        by_row = collections.defaultdict(list)
        for v in verdicts[family]:
            by_row[v["row"]].append(v["result"])
        n = collections.Counter({"rows": len(chosen(family, every, only))})
        for results in by_row.values():
            taken = [r for r in results if r != "not for sm_87"]
            n["not for sm_87"] += not taken
            n["accepted"] += bool(taken)
            n["executed"] += bool(taken) and all(r in ("right", "wrong", "ran") for r in taken)
            n["checked"] += bool(taken) and all(r == "right" for r in taken)
            n["refused at load"] += "refused" in taken
            n["wrong"] += "wrong" in taken
            n["failed"] += "failed" in taken
        found[family] = n
    found["all"] = sum(found.values(), collections.Counter())
    return found


def show(found):
    """Prints the table."""
    width = max(map(len, found))
    print(f"{'family':{width}}  " + "  ".join(f"{c:>{max(len(c), 6)}}" for c in COLUMNS))
    for family, n in found.items():
        print(f"{family:{width}}  " + "  ".join(f"{n[c]:>{max(len(c), 6)}}" for c in COLUMNS))


def main():
    """Runs the command line that is described above. The status is 1 if a row is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    parser.add_argument("--level", action="append", choices=LEVELS)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--state", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--list", action="store_true", help="prints the forms and runs nothing")
    parser.add_argument("--refusals", action="store_true", help="prints what the assembler says of forms that it does not take")
    given = parser.parse_args()
    families = given.families or list(table.FAMILIES)
    levels = tuple(given.level or LEVELS)
    if given.list:
        print(*(f"{family}: {r.text}" for family in families for r in chosen(family, given.every, given.only)), sep="\n")
        return 0
    chunks = [(family, first) for family in families for first in range(0, len(chosen(family, given.every, given.only)), bench.CHUNK)]
    state = State(given.state, fingerprint(given.every, given.only, levels))
    left = [c for c in chunks if c not in state.done]
    with concurrent.futures.ProcessPoolExecutor(given.jobs) as pool:
        running = {pool.submit(work, family, first, given.every, given.only, levels): (family, first) for family, first in left}
        for future in concurrent.futures.as_completed(running):
            state.add(running[future], future.result())
            bad = sum(v["result"] in ("wrong", "failed") for found in state.done.values() for v in found)
            print(f"\r{len(state.done)} of {len(chunks)} modules, {bad} kernels wrong, now {running[future][0]}" + " " * 20, end="", file=sys.stderr,
                  flush=True)
    print(file=sys.stderr)
    verdicts = collections.defaultdict(list)
    for family, first in chunks:
        verdicts[family] += state.done[family, first]
    for family in families:
        for v in verdicts[family]:
            if v["result"] in ("wrong", "failed") or given.refusals and v["result"] == "not for sm_87":
                print(f"{v['result']}: {v['row']} [{v['shape']}, {v['level']}]: {v['says']}")
    found = summary(families, given.every, given.only, verdicts)
    show(found)
    return int(found["all"]["wrong"] + found["all"]["failed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
