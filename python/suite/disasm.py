"""Compares `tegrarm-sim decode` with NVIDIA's disassembler, instruction by instruction (`make test-disasm`).

It compares these kernels:

- those that tinygrad's compilers made while its tests ran (`make test-tinygrad` keeps them),
- `intrinsics.cu`, which has every family of intrinsics,
- `silicon`, which has the rarer forms of PTX,
- the cubins in the source tree, which linkers and several releases of the compiler made,
- the forms in the table of the PTX ISA (`ptx`), of which `--every N` takes every n-th.

The texts must be equal, except for blanks at the end of a line.
"""

import argparse
import ctypes
import importlib
import pathlib
import pickle
import re
import sqlite3
import struct
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WORD = 16
NVDISASM_LINE = re.compile(r"^\s+/\*[0-9a-f]+\*/\s+(.*?)\s*;", re.MULTILINE)
OUR_LINE = re.compile(r"^  0x[0-9a-f]+  (.*?) +([0-9a-f]{16} [0-9a-f]{16})$", re.MULTILINE)
BATCH = 200_000  # instructions per call of the two tools


def sections(elf: bytes):
    """The names and contents of the sections of an ELF file."""
    start, = struct.unpack_from("<Q", elf, 0x28)
    count, names = struct.unpack_from("<HH", elf, 0x3c)
    headers = [struct.unpack_from("<IIQQQQ", elf, start + 64 * i) for i in range(count)]
    for name, kind, _flags, _address, offset, size in headers:
        at = headers[names][4] + name
        yield elf[at:elf.index(b"\0", at)].decode(), b"" if kind == 8 else elf[offset:offset + size]


def code(library: bytes) -> list[bytes]:
    """The machine code that a compiler returned: the functions of a cubin, or the bytes behind NAK's description of a shader."""
    if library.startswith(b"\x7fELF"):
        return [content for name, content in sections(library) if name.startswith(".text.")]
    from tinygrad.runtime.autogen import mesa
    return [library[ctypes.sizeof(mesa.struct_nak_shader_info):]]


def kept_kernels(database: pathlib.Path) -> list[bytes]:
    """The code of every kernel in one of tinygrad's caches."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        tables = [name for name, in db.execute("select name from sqlite_master where type = 'table' and name like 'compile_n%'")]
        return [part for table in tables for value, in db.execute(f"select val from '{table}'") for part in code(pickle.loads(value))]


def intrinsics() -> list[bytes]:
    """`intrinsics.cu`, compiled by NVRTC."""
    importlib.import_module("tegrarm.tinygrad")  # finds NVRTC and CUDA's headers among the wheels
    from tinygrad.runtime.support import compiler_cuda
    if hasattr(compiler_cuda, "NVRTCCompiler"):
        compiler = compiler_cuda.NVRTCCompiler("sm_87", ptx=False)
    else:
        compiler = compiler_cuda.NVCompiler("sm_87")
    if "--minimal" in compiler.compile_options:
        compiler.compile_options.remove("--minimal")  # it leaves clock() and its like out
    return code(compiler.compile((HERE / "intrinsics.cu").read_text()))


def recorded() -> list[bytes]:
    """The committed kernels of `silicon`."""
    text = (HERE.parents[1] / "crates/sm87/tests/sm/silicon/code.hex").read_text()
    sections = re.split("^# ", text, flags=re.MULTILINE)[1:]
    lines = (re.findall("^([0-9a-f]{16}) ([0-9a-f]{16})$", section, re.MULTILINE) for section in sections)
    return [b"".join(struct.pack("<QQ", int(low, 16), int(high, 16)) for low, high in words) for words in lines]


def committed() -> list[bytes]:
    """The cubins in the source tree: those of the tests, and those that the library contains."""
    files = [file for place in ("tests/data", "src/runtime") for file in sorted((HERE.parents[1] / place).rglob("*.cubin"))]
    return [part for file in files for part in code(file.read_bytes())]


def forms(every: int, wanted: str = "") -> list[bytes]:
    """Every n-th form of the table of PTX that contains a text, assembled by nvJitLink. Textures and surfaces are left out."""
    sys.path.insert(0, str(HERE / "ptx"))
    bench, table = importlib.import_module("bench"), importlib.import_module("table")
    found = []
    for family in table.FAMILIES.keys() - importlib.import_module("textures").FAMILIES.keys():
        rows = [r for r in table.rows(family) if wanted in r.text][::every]
        for first in range(0, len(rows), bench.CHUNK):
            found += [part for _, cubin in bench.modules(rows[first:first + bench.CHUNK]) for part in code(cubin)]
    return found


def nvdisasm() -> pathlib.Path:
    """NVIDIA's disassembler, which pip has installed."""
    found = [tool for place in sys.path for tool in pathlib.Path(place).glob("nvidia/cu*/bin/nvdisasm")]
    if not found:
        sys.exit("no nvdisasm: pip install nvidia-cuda-nvdisasm")
    return found[0]


def compare(simulator: str, kernels: list[bytes]) -> tuple[int, list[str]]:
    """The number of instructions, and the lines that the two tools write differently."""
    count, differences, batch = 0, [], b""
    for i, kernel in enumerate(kernels):
        batch += kernel[:len(kernel) // WORD * WORD]
        if len(batch) < BATCH * WORD and i + 1 < len(kernels):
            continue
        with tempfile.NamedTemporaryFile() as file:
            file.write(batch)
            file.flush()
            try:
                theirs = NVDISASM_LINE.findall(run([nvdisasm(), "-ndf", "-b", "SM87", file.name]))
                ours = OUR_LINE.findall(run([simulator, "decode", "--as", "code", file.name]))
            except subprocess.CalledProcessError as error:
                theirs, ours = [], []
                differences.append(f"{error.cmd[0]}: {error.stderr.strip()}")
        if len(theirs) != len(ours) or len(ours) != len(batch) // WORD:
            differences.append(f"{len(batch) // WORD} instructions: nvdisasm writes {len(theirs)}, decode {len(ours)}")
        pairs = zip(theirs, ours, strict=False)
        differences += [f"{words}: {our.rstrip()!r}, not {their!r}" for their, (our, words) in pairs if their != our.rstrip()]
        count, batch = count + len(ours), b""
    return count, differences


def run(command: list) -> str:
    """The output of a program."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> int:
    """Compares all kernels and prints a line for each source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="where the suite keeps kernels")
    parser.add_argument("--simulator", required=True, help="tegrarm-sim")
    parser.add_argument("--every", type=int, default=4, help="takes every n-th form of the table of PTX")
    args = parser.parse_args()
    origins = {"intrinsics.cu": intrinsics(), "silicon": recorded(), "cubins": committed(), "ptx": forms(args.every)}
    kept = [database for database in sorted(args.cache.glob("kernels/*.db")) if database.stem != "CPU"]
    if not kept:
        print("tinygrad's kernels are left out: `make test-tinygrad` keeps them, and has not run here", flush=True)
    origins |= {database.stem: kept_kernels(database) for database in kept}
    wrong = 0
    for name, kernels in origins.items():
        count, differences = compare(args.simulator, kernels)
        print(f"{name:16} {len(kernels):6} functions {count:9} instructions {len(differences):6} differ", flush=True)
        print("".join(f"    {text}\n" for text in differences[:20]), end="")
        wrong += len(differences)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
