"""What compilers write into cubins: attributes that are known by name, and the same results of the same source."""

import importlib.util
import re
import struct
import subprocess

import cuda
import numpy
import pytest
from conftest import ROOT

SPEC = importlib.util.spec_from_file_location("compilers", ROOT / "python" / "suite" / "compilers.py")
compilers = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(compilers)

ROW = re.compile(r'row\((?:id::\w+|0x\w\w), "(\w+)", (\w+), (\w+)')
NUMBER = re.compile(r"pub const (\w+): u8 = 0x(\w\w);")
# INDIRECT_BRANCH_TARGETS and PERF_STATISTICS.
STOPS = (0x34, 0x4e)


def test_two_compilers_give_the_same_results():
    """`make test-compilers` takes every CUDA from 11.8 on."""
    found = {way: compilers.results(way) for way in ("12", "13")}
    assert not [name for of in found.values() for name, result in of.items() if not isinstance(result, bytes)]
    assert compilers.differing(found) == {}
    numbers = (numpy.arange(compilers.N, dtype=numpy.uint32) * numpy.uint32(40503)) >> numpy.uint32(3)
    assert found["12"]["plain"] == (numbers * numpy.uint32(2654435761) + numpy.uint32(5)).tobytes()
    assert len({result for result in found["12"].values()}) > len(found["12"]) - 3, "the kernels do different things"
    minors = {tuple(map(int, version.split(".")[:2])) for version in compilers.WHEELS}
    assert minors >= {(11, 8), *((12, n) for n in (0, 1, 2, 3, 4, 5, 6, 8, 9)), *((13, n) for n in range(6))}


def rows():
    """The loader's table of attributes: name, format and treatment by number."""
    folder = ROOT / "crates" / "tegrarm-images" / "src" / "cubin"
    numbers = {name: int(number, 16) for name, number in NUMBER.findall((folder / "attributes.rs").read_text())}
    text = (folder / "table.rs").read_text()
    keys = re.findall(r"row\((?:id::(\w+)|0x(\w\w)),", text)
    found = {numbers[name] if name else int(number, 16): row for (name, number), row in zip(keys, ROW.findall(text), strict=True)}
    assert len(found) == len(keys) > 100
    return found


def sections(cubin):
    """The sections of a cubin: name, place of the header, offset and size."""
    table, = struct.unpack_from("<Q", cubin, 40)
    count, names = struct.unpack_from("<HH", cubin, 60)
    text, = struct.unpack_from("<Q", cubin, table + 64 * names + 24)
    for at in range(table, table + 64 * count, 64):
        start = text + struct.unpack_from("<I", cubin, at)[0]
        yield cubin[start:cubin.index(b"\0", start)].decode(), at, *struct.unpack_from("<QQ", cubin, at + 24)


def attributes(cubin):
    """The format and the number of each attribute of a cubin."""
    for name, _, at, size in sections(cubin):
        end = at + size if name.startswith(".nv.info") else at
        while at < end:
            form, number, value = struct.unpack_from("<BBH", cubin, at)
            yield form, number
            at += 4 + (value if form == 4 else 0)


@pytest.mark.parametrize("way", cuda.TRIED)
def test_every_attribute_that_a_compiler_writes_is_a_row(way):
    known, form = rows(), {"Alone": 1, "Byte": 2, "Half": 3, "Data": 4}
    found = {pair for text, _ in compilers.sources().values() for pair in attributes(cuda.compiled(text, way))}
    assert len(found) > 20
    for format_, number in found:
        assert form.get(known[number][1]) == format_ and known[number][2] != "Refused", (hex(number), known[number])


def named(numbers, path):
    """What NVIDIA's disassembler calls these attributes, one after another, and its messages."""
    cubin = cuda.compiled(compilers.source(compilers.KERNELS[0]))
    header = next(at for name, at, *_ in sections(cubin) if name == ".nv.info")
    data = b"".join(struct.pack("<BBH64x", 4, number, 64) for number in numbers)
    changed = bytearray(cubin + data)
    struct.pack_into("<QQ", changed, header + 24, len(cubin), len(data))
    path.write_bytes(changed)
    done = subprocess.run([cuda.installed("cu13/bin/nvdisasm"), path], capture_output=True, text=True, check=False)
    return re.findall(r"EIATTR_(\w+)", done.stdout.partition('SHT_CUDA_INFO"')[2].partition(".section")[0]), done.stderr


def test_the_names_are_those_of_nvidias_disassembler(tmp_path):
    """It calls remedies for hardware and the newest numbers UNKNOWN, and stops at two attributes whose data are not right."""
    known, path = rows(), tmp_path / "one.cubin"
    together = [number for number in known if number not in STOPS]
    names, _ = named(together, path)
    ours = [known[number][0] for number in together]
    assert [(our, name) for our, name in zip(ours, names, strict=True) if name not in (our, "UNKNOWN")] == []
    assert names.count("UNKNOWN") < 9
    for number in STOPS:
        assert f"EIATTR_{known[number][0]}'" in named([number, *together], path)[1]


def test_pages_say_what_was_compiled():
    page = (ROOT / "docs" / "hardware" / "sm87-elf.md").read_text()
    known = rows()
    for numbers, names in re.findall(r"^\| (0x\w\w(?:, 0x\w\w)*) \| ([A-Z_0-9V, ]+) \|", page, re.M):
        for number, name in zip(numbers.split(", "), names.split(", "), strict=True):
            assert known[int(number, 16)][0] == name
