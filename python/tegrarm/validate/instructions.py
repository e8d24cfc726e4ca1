"""Every family of instructions with odd values. `python/suite/silicon` makes the kernels and the inputs, and says which forms they have.

The archive has for each family machine code for sm_87, the words of input, and the columns of results: one column for each result of
each form. A column is compared by its hash, and by value where the machine differs from the simulator.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import io
import json
import zipfile

from .gpu import Gpu
from .note import Note

ARCHIVE = "instructions.zip"
BLOCK = 64


def archive() -> zipfile.ZipFile:
    """Opens the archive that has the families of instructions."""
    packed = importlib.resources.files(__package__).joinpath("data", ARCHIVE).read_bytes()
    return zipfile.ZipFile(io.BytesIO(packed))


def families(opened: zipfile.ZipFile) -> list[str]:
    """The names of the families."""
    return sorted(name.removesuffix(".json") for name in opened.namelist() if name.endswith(".json"))


def columns(about: dict) -> list[tuple[str, int, int]]:
    """The columns of a family's results. Each has its form and result, its first byte, and the bytes of one item."""
    found, at = [], 0
    for form, result, width in about["columns"]:
        found.append((f"{form} -> {result}", at, width))
        at += width * about["items"]
    return found


def run(note: Note) -> None:
    """Runs all families. The results are stored beside the answers, so that they can be compared."""
    opened = archive()
    with Gpu() as gpu:
        for name in families(opened):
            about = json.loads(opened.read(f"{name}.json"))
            cubin, given = opened.read(f"{name}.cubin"), opened.read(f"{name}.in")
            with note.part(name):
                last, at, width = columns(about)[-1]
                results = gpu.buffer(at + width * about["items"])
                words = gpu.buffer(len(given))
                words.fill(given)
                gpu.run(gpu.kernel(cubin, name), about["items"] // BLOCK, BLOCK, results, words)
                got = results.bytes
                (note.folder / f"{name}.out").write_bytes(got)
                for form, at, width in columns(about):
                    note.put(form, hashlib.sha256(got[at:at + width * about["items"]]).hexdigest()[:16])
                results.free()
                words.free()
