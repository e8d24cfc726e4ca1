#!/usr/bin/env python3
"""Tests whether the table of PTX forms notices a wrong rule of the instruction set.

usage: mutate LISTER [--every N] [--rows N] [--family FAMILY]...

LISTER is the program of crates/sm87/examples/mutants.rs. The kernels of the table are assembled. For every row of the instruction set, one
of its words in a kernel is replaced by a mutant: by an instruction that does nothing, or by the same instruction with another value of one
modifier. The engine then executes what it would execute if that rule of the row were wrong. At least one kernel must give a wrong result
or fail. Modifiers that are only hints, and rules that no result can show, are listed with the reason.
"""
import argparse
import collections
import dataclasses
import re
import struct
import subprocess
import sys
from pathlib import Path

import bench
import table

from tegrarm.rm import RmError

SCHEDULING = ((1 << 20) - 1) << 105
NOP = 0x7918  # with the guard PT
TRIES = 6  # how many kernels are tried for each mutant
# Modifiers that do not change what a thread reads if instructions run in order and there are no caches.
HINTS = {"EF", "EL", "LU", "EU", "NA", "LTC64B", "LTC128B", "LTC256B", "BYPASS", "E", "DEFER_BLOCKING", "PRIVATE", "CONSTANT", "STRONG", "MMIO",
         "SC", "ALL", "CTA", "SM", "GPU", "SYS", "VC", "NOINC", "NODEC", "SPIN", "RAND", "WARP", "EXCLUSIVE", "KEEPREFCOUNT", "PREEMPTED",
         "NO_ATEXIT", "U", "DIV", "CONV", "PF1", "PF2", "WB", "IV", "IVALL", "RS", "IVALLP", "WBALL", "PML2", "DML2", "RML2", "C", "I"}

# Instructions that no result depends on. Where each instruction completes before the next one, there is nothing to wait for.
NOTHING_TO_SEE = {"NOP", "DEPBAR", "MEMBAR", "CCTL", "ERRBAR", "YIELD", "PMTRIG", "LDGDEPBAR", "WARPSYNC", "NANOSLEEP", "BMOV", "BPT", "CCTLL"}
ROWS = len(re.findall(r'^ +0x[0-9a-f]{3} \[', (Path(__file__).parents[3] / "crates/sm87/src/isa/table.rs").read_text(), re.M))


@dataclasses.dataclass
class Case:
    """A kernel of the table that contains a word."""

    row: object
    shape: str
    items: list
    cubin: bytes
    name: str
    places: list  # the offsets of the word in the file


def sections(elf):
    """The name, the offset and the size of each section of a cubin."""
    start, = struct.unpack_from("<Q", elf, 40)
    count, names = struct.unpack_from("<HH", elf, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, start + 64 * k) for k in range(count)]
    for name, kind, _, _, offset, size, *_ in headers:
        at = headers[names][4] + name
        if kind != 8:
            yield elf[at:elf.index(b"\0", at)].decode(), offset, size


def words(cubin):
    """The instructions of each kernel: the kernel, the offset in the file, and the word without its scheduling bits."""
    for name, offset, size in sections(cubin):
        if name.startswith(".text.k"):
            for at in range(offset, offset + size, 16):
                low, high = struct.unpack_from("<QQ", cubin, at)
                yield name.removeprefix(".text."), at, (high << 64 | low) & ~SCHEDULING


def collected(families, every):
    """For each word, the kernels that contain it."""
    found = collections.defaultdict(list)
    rows = {family: [r for r in table.rows(family) if r.reference][::every] for family in families}
    chunks = [of[first:first + bench.CHUNK] for of in rows.values() for first in range(0, len(of), bench.CHUNK)]
    for number, chunk in enumerate(chunks):
        print(f"\r{number} of {len(chunks)} modules are assembled", end="", file=sys.stderr, flush=True)
        for cases, cubin in bench.modules(chunk):
            for name, at, word in words(cubin):
                kept = found[word]
                if kept and kept[-1].cubin is cubin and kept[-1].name == name:
                    kept[-1].places.append(at)
                elif len(kept) < TRIES:
                    r, shape, items = cases[int(name[1:])]
                    kept.append(Case(r, shape, items, cubin, name, [at]))
    print(file=sys.stderr)
    return found


def mutants(lister, found):
    """The mutants of every word: the index of the row, its name, the word, the mutant, the old modifier and the new one."""
    text = "\n".join(f"{word:032x}" for word in found)
    listed = subprocess.run([lister], input=text, capture_output=True, text=True, check=True).stdout
    word = at = name = None
    for line in listed.splitlines():
        kind, *rest = line.split("\t")
        if kind == "word":
            word, at, name = int(rest[0], 16), int(rest[1]), rest[2]
            yield at, name, word, NOP, "", "nothing"
        elif kind == "mutant":
            yield at, name, word, int(rest[0], 16), rest[1], rest[2]


def patched(case, mutant):
    """Loads the module of a case with the mutant in place of the word. The scheduling bits stay."""
    image = bytearray(case.cubin)
    for at in case.places:
        low, high = struct.unpack_from("<QQ", image, at)
        new = (high << 64 | low) & SCHEDULING | mutant
        struct.pack_into("<QQ", image, at, new & (1 << 64) - 1, new >> 64)
    return bytes(image)


def is_noticed(machine, case, mutant):
    """Whether the kernel gives a wrong result or fails with the mutant."""
    try:
        module = machine.load(patched(case, mutant))
        return bool(bench.differences(case.row, case.items, machine.run(module, case.name, case.row, case.items)))
    except RmError:
        machine.close()
        return True


def chosen(listed, every):
    """One mutant for each row and each pair of modifiers, of the word that most kernels have. Then every n-th of these."""
    kept = {}
    for at, name, word, mutant, was, now in listed:
        kept.setdefault((at, name, was, now), []).append((word, mutant))
    return list(kept.items())[::every]


def is_hint(was, now):
    """Whether both modifiers are hints about caches, the order of memory or scheduling."""
    return now != "nothing" and {part for n in (was, now) for part in n.split(".") if part} <= HINTS


def report(results, rows):
    """Prints the results of each row and the mutants that were not noticed. The status is 1 if no mutant of a row was noticed."""
    counts = collections.defaultdict(collections.Counter)
    for kind, found in results.items():
        for at, name, was, now in found:
            counts[at, name][kind] += 1
            if kind == "missed":
                print(f"not noticed: {name} (row {at}): {was or 'the usual'} became {now or 'the usual'}")
    for (at, name), n in sorted(counts.items()):
        print(f"{name:12} row {at:3}: {n['noticed']} noticed, {n['hint']} hints, {n['missed']} not noticed")
    blind = [f"{name} (row {at})" for (at, name), n in counts.items() if not n["noticed"] and name not in NOTHING_TO_SEE]
    print(f"{len(counts)} rows of {rows} are in these kernels, {len(results['noticed'])} mutants noticed, {len(results['hint'])} are hints, "
          f"{len(results['missed'])} not noticed; rows of which nothing is noticed: {', '.join(blind) or 'none'}")
    return int(bool(blind))


def main():
    """Runs the command line that is described above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lister", type=Path)
    parser.add_argument("--every", type=int, default=1, help="every n-th mutant")
    parser.add_argument("--rows", type=int, default=1, help="every n-th row of the table of PTX")
    parser.add_argument("--family", action="append")
    given = parser.parse_args()
    found = collected(given.family or [f for f in table.FAMILIES if f not in ("textures", "surfaces")], given.rows)
    machine, results = bench.Machine(), {"noticed": [], "hint": [], "missed": []}
    todo = chosen(mutants(given.lister, found), given.every)
    for number, (what, where) in enumerate(todo):
        seen = any(is_noticed(machine, case, mutant) for word, mutant in where[:TRIES] for case in found[word][:2])
        results["noticed" if seen else "hint" if is_hint(*what[2:]) else "missed"].append(what)
        if number % 20 == 0:
            print(f"\r{number} of {len(todo)} mutants, {len(results['missed'])} not noticed", end="", file=sys.stderr, flush=True)
    machine.close()
    print(file=sys.stderr)
    return report(results, ROWS)


if __name__ == "__main__":
    sys.exit(main())
