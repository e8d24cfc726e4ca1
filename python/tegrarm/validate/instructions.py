"""Every family of instructions with odd values, and whole kernels. `python/suite/silicon` makes them and their inputs, and says which forms
they have.

An archive has for each family machine code for sm_87, the words of input, and the columns of results: one column for each result of
each form. A column is compared by its hash, and by value where the machine differs from the simulator. A whole kernel is a family with
one column; all of them are in one module.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import io
import json
import zipfile
from collections.abc import Iterator

from .gpu import Gpu
from .note import Note

INSTRUCTIONS, KERNELS = "instructions.zip", "kernels.zip"
BLOCK = 64


def archive(name: str = INSTRUCTIONS) -> zipfile.ZipFile:
    """Opens an archive: that of the families of instructions, or that of the whole kernels."""
    packed = importlib.resources.files(__package__).joinpath("data", name).read_bytes()
    return zipfile.ZipFile(io.BytesIO(packed))


def families(opened: zipfile.ZipFile) -> list[str]:
    """The names of the families."""
    return sorted(name.removesuffix(".json") for name in opened.namelist() if name.endswith(".json"))


def everything() -> Iterator[tuple[zipfile.ZipFile, str]]:
    """The families of both archives. No name is in both."""
    for opened in (archive(), archive(KERNELS)):
        for name in families(opened):
            yield opened, name


def columns(about: dict) -> list[tuple[str, int, int]]:
    """The columns of a family's results. Each has its form and result, its first byte, and the bytes of one item."""
    found, at = [], 0
    for form, result, width in about["columns"]:
        found.append((f"{form} -> {result}", at, width))
        at += width * about["items"]
    return found


def given(opened: zipfile.ZipFile, name: str, about: dict) -> bytes:
    """The words of input of a family."""
    return opened.read(f"{about.get('module', name)}.in")


def run(note: Note) -> None:
    """Runs all families of instructions."""
    run_all(note, archive())


def whole(note: Note) -> None:
    """Runs all whole kernels."""
    run_all(note, archive(KERNELS))


def run_all(note: Note, opened: zipfile.ZipFile) -> None:
    """Runs what is in an archive. The results are stored beside the answers, so that they can be compared."""
    with Gpu() as gpu:
        for name in families(opened):
            about = json.loads(opened.read(f"{name}.json"))
            cubin, data = opened.read(f"{about.get('module', name)}.cubin"), given(opened, name, about)
            with note.part(name):
                last, at, width = columns(about)[-1]
                results = gpu.buffer(at + width * about["items"])
                words = gpu.buffer(len(data))
                words.fill(data)
                gpu.run(gpu.kernel(cubin, name), about["items"] // BLOCK, BLOCK, results, words)
                got = results.bytes
                (note.folder / f"{name}.out").write_bytes(got)
                for form, at, width in columns(about):
                    note.put(form, hashlib.sha256(got[at:at + width * about["items"]]).hexdigest()[:16])
                results.free()
                words.free()
