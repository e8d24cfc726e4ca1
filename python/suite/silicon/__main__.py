#!/usr/bin/env python3
"""What a real NVIDIA GPU computes, kept for the tests of the engine.

usage: silicon record DIRECTORY [FAMILY...] [--items N]   on a machine with a GPU: runs the forms there, writes recordings.bin
       silicon record DIRECTORY mufu                      likewise: hashes of all results of MUFU, mufu.hash
       silicon compile PTXAS DIRECTORY [FAMILY...]            anywhere: the same PTX as sm_87 code, code.hex

DIRECTORY is crates/sm87/tests/sm/silicon. Recording needs a GPU of compute capability 8.6 or later and its driver,
nothing else. PTXAS is a program that the PyPI packages nvidia-cuda-nvcc-cu12 and triton carry.

mufu.hash is a line that names the GPU, an empty line, and for each function 4096 words of 64 bits: the hashes that
ptx.hashes describes, for the inputs from 2^20·k to 2^20·(k + 1).

recordings.bin has the recordings of all families, one behind the other: a line `recording FAMILY BYTES`, and so many bytes.
A recording is a header, an empty line, and zlib data. The header names the GPU, then the number of items, the words of
input per item, and the columns: width in bytes, form, result. The data are the input words, column after column, then
the results; a column is all items' lowest bytes, then all next bytes, and so on.
"""
import argparse
import random
import re
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import forms
import inputs
import matrices
import ptx
from gpu import Gpu

sys.path.insert(0, str(Path(__file__).parents[3] / "crates/sm87/tests/sm"))
from compile import kernels  # noqa: E402

FAMILIES = forms.FAMILIES | matrices.FAMILIES
POOLS = inputs.POOLS | matrices.POOLS


def planes(data, width):
    """Puts bytes of equal significance next to each other."""
    return b"".join(data[k::width] for k in range(width))


def source(name, count=None):
    """The operands of a family, its PTX and its number of items."""
    pool, usual, rows = FAMILIES[name]
    count = count or usual
    items = list(POOLS[pool](count, random.Random(pool)))
    assert len(items) == count
    return items, ptx.kernel(name, len(items[0]), count, rows), ptx.columns(rows)


def recordings(file):
    """The recordings of a file, by family."""
    found, rest = {}, file.read_bytes() if file.exists() else b""
    while rest:
        line, _, rest = rest.partition(b"\n")
        _, name, size = line.decode().split()
        found[name], rest = rest[:int(size)], rest[int(size):]
    return found


def record(directory, names, count):
    """Runs families on the GPU and writes the results. The recordings of other families stay."""
    gpu, file = Gpu(), directory / "recordings.bin"
    found = recordings(file)
    for name in names:
        items, text, columns = source(name, count)
        number, words = len(items), len(items[0])
        data = b"".join(w.to_bytes(4, "little") for item in items for w in item)
        size = sum(width for _, _, width in columns) * number
        out = gpu.run(text.encode(), name, number // ptx.BLOCK, ptx.BLOCK, data, size)
        body = [planes(b"".join(w.to_bytes(4, "little") for w in column), 4) for column in zip(*items, strict=True)]
        at = 0
        for _, _, width in columns:
            body.append(planes(out[at:at + width * number], width))
            at += width * number
        header = [f"# {gpu.description}", f"items {number}", f"words {words}"]
        header += [f"column {width} {form} -> {result}" for form, result, width in columns]
        packed = zlib.compress(b"".join(body), 9)
        found[name] = "\n".join(header).encode() + b"\n\n" + packed
        file.write_bytes(b"".join(b"recording %s %d\n%s" % (name.encode(), len(found[name]), found[name]) for name in sorted(found)))
        print(f"{name}: {len(columns)} columns of {number}, {len(packed)} bytes")


def record_mufu(directory):
    """Writes 4096 sums of hashes for each function."""
    gpu = Gpu()
    blocks, header = 1 << 12, f"# {gpu.description}\n\n".encode()
    runs = (gpu.run(ptx.hashes("mufu", form).encode(), "mufu", blocks, 1024, b"", 8 * blocks) for form in forms.MUFU)
    (directory / "mufu.hash").write_bytes(header + b"".join(runs))


def assembled(ptxas, text):
    """PTX as a cubin for sm_87."""
    with tempfile.TemporaryDirectory() as place:
        ptx_file, cubin = Path(place, "kernel.ptx"), Path(place, "kernel.cubin")
        ptx_file.write_text(text)
        subprocess.run([ptxas, "-arch=sm_87", "-o", cubin, ptx_file], check=True)
        return cubin.read_bytes()


def compile_(ptxas, directory, names, count):
    """Writes families as code for the engine, each as a section of one file. The other sections of the file stay."""
    file = directory / "code.hex"
    sections = {}
    for section in re.split(r"^(?=# )", file.read_text() if file.exists() else "", flags=re.MULTILINE)[1:]:
        sections[section.split()[1]] = section.rstrip()
    for name in names:
        for kernel, lines in kernels(assembled(ptxas, source(name, count)[1])):
            note = [f"# {kernel} of python/suite/silicon, compiled by ptxas for sm_87", ""]
            sections[kernel] = "\n".join(note + lines).rstrip()
    file.write_text("\n\n".join(sections[kernel] for kernel in sorted(sections)) + "\n")


def main():
    """Runs the command line that the description above lists."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("record", "compile"))
    parser.add_argument("arguments", nargs="+")
    parser.add_argument("--items", type=int, help="another number of items than usual")
    given = parser.parse_args()
    ptxas = given.arguments.pop(0) if given.command == "compile" else None
    directory, names = Path(given.arguments[0]), given.arguments[1:] or list(FAMILIES)
    if given.command == "record" and names == ["mufu"]:
        record_mufu(directory)
    elif given.command == "record":
        record(directory, names, given.items)
    else:
        compile_(ptxas, directory, names, given.items)


if __name__ == "__main__":
    main()
