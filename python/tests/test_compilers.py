"""What compilers write into cubins: attributes that are known by name, and the same results of the same source."""

import importlib.util
import itertools
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


# Constants that compilers do not convert, because their rounding is not the GPU's. ptxas packs two results in one register.
# Each is exact in both formats or has bits that are cut off.
VALUES = (3.0, 4.0, -2.5, 1.0009765625, 65504.0, 0.1, -7.0, 1e-3)


def source(kind: str, name: str, values: tuple[float, ...], pad: int) -> str:
    """A kernel that stores converted constants, each in the upper half of a word. `pad` changes which of them share a register."""
    lines = [f'asm("cvt.rz.{kind}.f32 %0, %1;" : "=h"(h[{at}]) : "f"({value!r}f));' for at, value in enumerate(values)]
    packed = 'asm("mov.b32 %0, {{%1, %2}};" : "=r"(out[{at}]) : "h"((unsigned short)0), "h"(h[{at}]));'
    stores = [packed.format(at=at) for at in range(len(values))]
    stores = stores[pad:] + stores[:pad]
    return f'extern "C" __global__ void {name}(unsigned *out) {{ unsigned short h[{len(values)}]; {" ".join(lines)} {" ".join(stores)} }}\n'


def cut(kind: str, values: tuple[float, ...]) -> list[int]:
    """The same numbers, rounded to zero."""
    exact = numpy.array(values, numpy.float32)
    if kind == "bf16":
        return list(exact.view(numpy.uint32) >> 16)
    near = exact.astype(numpy.float16)
    away = numpy.abs(near.astype(numpy.float32)) > numpy.abs(exact)
    return list(near.view(numpy.uint16) - away)


CASES = {f"of_{count}_from_{pad}": (VALUES[:count], pad) for count, pad in itertools.product((2, 3, 5, 8), (0, 1))}


@pytest.mark.parametrize("way", cuda.TRIED)
@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_constants_that_share_a_register_are_converted(gpu, kind, way):
    code = cuda.compiled("".join(source(kind, name, *case) for name, case in CASES.items()), way)
    for name, (values, _) in CASES.items():
        out = numpy.zeros(len(values), numpy.uint32)
        gpu.launch(gpu.kernel(code, name), 1, 1, out)
        assert [hex(word >> 16) for word in out] == [hex(half) for half in cut(kind, values)], name
