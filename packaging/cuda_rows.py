"""Writes crates/tegrarm-cuda/functions.tsv and numbers.tsv: the functions and the numbers of CUDA's driver interface (`make cuda-rows`).

They are read from cuda.h and cudaTypedefs.h of NVIDIA's wheels, of CUDA 12 and of CUDA 13, with a parser of C. Only facts are written:
names, types, numbers, and the versions in which a function came and went. Nothing of the text of the headers is.

functions.tsv has one row for each symbol that a driver exports: the symbol, the name of the function without its version, the version of
CUDA in which the symbol came (as cuDriverGetVersion writes it), the version of the last header that has it or `-`, and its arguments as
types of Rust. numbers.tsv has one row for each value of an enumeration: the enumeration, the name and the number.
"""

from __future__ import annotations

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass

from pycparser import c_ast, c_parser

ROOT = pathlib.Path(__file__).resolve().parent.parent
CRATE = ROOT / "crates/tegrarm-cuda"
#: What cuda.h includes, as far as it needs it.
STAND_INS = {"stdlib.h": "typedef unsigned long size_t;",
             "stdint.h": "typedef unsigned int uint32_t; typedef unsigned long uint64_t; typedef unsigned char uint8_t; "
                         "typedef unsigned short uint16_t; typedef int int32_t; typedef long int64_t;"}
#: Types of Rust for the types of C that are numbers.
NUMBERS = {"int": "i32", "unsigned int": "u32", "unsigned": "u32", "unsigned long": "usize", "long": "i64", "unsigned long long": "u64",
           "long long": "i64", "char": "c_char", "unsigned char": "u8", "signed char": "i8", "unsigned short": "u16", "short": "i16",
           "float": "f32", "double": "f64", "void": "c_void", "_Bool": "bool"}
#: Structures that are passed by value, and how large they are.
BY_VALUE = {"CUmemLocation_st": "Location", "CUipcEventHandle_st": "Bytes64", "CUipcMemHandle_st": "Bytes64"}
#: The wheels have no cudaProfiler.h, but cudaProfilerTypedefs.h: these functions came with CUDA 4.0.
PROFILER = {"cuProfilerInitialize": "configFile: *mut c_char, outputFile: *mut c_char, outputMode: u32", "cuProfilerStart": "",
            "cuProfilerStop": ""}
SINCE = dict.fromkeys(PROFILER, 4000)
COLUMNS = "# symbol\tfunction\tsince\tlast\targuments\n"


@dataclass
class Function:
    """A function as a header declares it."""

    symbol: str
    arguments: str


def find(site: pathlib.Path, major: int) -> pathlib.Path:
    """The folder with the headers of this CUDA."""
    folder = site / ("nvidia/cu13/include" if major == 13 else "nvidia/cuda_runtime/include")
    if not (folder / "cuda.h").is_file():
        sys.exit(f"{folder} has no cuda.h: `make venv` installs the wheels that have it")
    return folder


def preprocess(folder: pathlib.Path, header: str, options: list[str]) -> str:
    """The text of a header behind the preprocessor."""
    with tempfile.TemporaryDirectory() as made:
        for name, text in STAND_INS.items():
            if name != header:
                pathlib.Path(made, name).write_text(text)
        command = ["cc", "-E", "-P", "-x", "c", "-nostdinc", f"-I{made}", f"-I{folder}", "-D__attribute__(x)=", "-D__inline__=",
                   *options, str(folder / header)]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def parse(text: str) -> c_ast.FileAST:
    """The declarations of a text."""
    return c_parser.CParser().parse(text)


class Types:
    """The types of a header, and how Rust writes them."""

    def __init__(self, tree: c_ast.FileAST) -> None:
        self.aliases = {item.name: item.type for item in tree.ext if isinstance(item, c_ast.Typedef)}
        self.defined: set[str] = set()
        for item in tree.ext:
            inner = getattr(getattr(item, "type", None), "type", None) if isinstance(item, c_ast.Typedef) else item.type
            if isinstance(inner, (c_ast.Struct, c_ast.Union)) and inner.decls:
                self.defined.add(inner.name)

    def rust(self, node: c_ast.Node) -> str:
        """The type of Rust for an argument."""
        if isinstance(node, c_ast.ArrayDecl):
            return "*mut " + self.target(node.type)
        if isinstance(node, c_ast.PtrDecl):
            if isinstance(node.type, c_ast.FuncDecl):
                return "Callback"
            inner = getattr(node.type, "type", None)
            if isinstance(inner, c_ast.Struct) and inner.name not in self.defined:
                return "Handle"
            return "*mut " + self.target(node.type)
        inner = node.type
        if isinstance(inner, c_ast.Enum):
            return "u32"
        if isinstance(inner, (c_ast.Struct, c_ast.Union)):
            if inner.name not in BY_VALUE:
                sys.exit(f"{inner.name} is passed by value: name its size in packaging/cuda_rows.py")
            return BY_VALUE[inner.name]
        name = " ".join(inner.names)
        if name in NUMBERS:
            return NUMBERS[name]
        if name == "size_t":
            return "usize"
        return self.rust(self.aliases[name])

    def target(self, node: c_ast.Node) -> str:
        """The type that a pointer points at: a number, a pointer, or c_void for a structure."""
        if isinstance(node, (c_ast.PtrDecl, c_ast.ArrayDecl)):
            return self.rust(node)
        inner = node.type
        if isinstance(inner, c_ast.Enum):
            return "u32"
        if isinstance(inner, (c_ast.Struct, c_ast.Union, c_ast.FuncDecl)):
            return "c_void"
        name = " ".join(inner.names)
        if name in NUMBERS:
            return NUMBERS[name]
        return "usize" if name == "size_t" else self.target(self.aliases[name])


def functions(tree: c_ast.FileAST) -> list[Function]:
    """The functions that a header declares."""
    types, found = Types(tree), []
    for item in tree.ext:
        if isinstance(item, c_ast.Decl) and isinstance(item.type, c_ast.FuncDecl) and item.name.startswith("cu"):
            arguments = item.type.args.params if item.type.args else []
            texts = [f"{a.name or f'a{i}'}: {types.rust(a.type)}" for i, a in enumerate(arguments)
                     if not (isinstance(a.type, c_ast.TypeDecl) and getattr(a.type.type, "names", None) == ["void"])]
            found.append(Function(item.name, ", ".join(texts)))
    return found


def numbers(tree: c_ast.FileAST) -> list[tuple[str, str, int]]:
    """The values of the enumerations of a header."""
    rows: list[tuple[str, str, int]] = []
    known: dict[str, int] = {}
    for item in tree.ext:
        inner = getattr(getattr(item, "type", None), "type", None)
        if isinstance(item, c_ast.Typedef) and isinstance(inner, c_ast.Enum) and inner.values:
            at = -1
            for value in inner.values.enumerators:
                at = evaluate(value.value, known) if value.value is not None else at + 1
                known[value.name] = at
                rows.append((item.name, value.name, at))
    return rows


def evaluate(node: c_ast.Node, known: dict[str, int]) -> int:
    """The number of a constant expression."""
    if isinstance(node, c_ast.Constant):
        return int(node.value.rstrip("uUlL"), 0) if not node.value.startswith("'") else ord(node.value[1])
    if isinstance(node, c_ast.ID):
        return known[node.name]
    if isinstance(node, c_ast.Cast):
        return evaluate(node.expr, known)
    if isinstance(node, c_ast.UnaryOp):
        value = evaluate(node.expr, known)
        return {"-": -value, "~": ~value, "+": value}[node.op]
    left, right = evaluate(node.left, known), evaluate(node.right, known)
    return {"<<": left << right, "|": left | right, "+": left + right, "-": left - right, "*": left * right}[node.op]


def plain(symbol: str) -> tuple[str, str]:
    """The name of a function without its version, and how it takes the default stream: `` or `_ptsz` or `_ptds`."""
    name, stream = re.fullmatch(r"(\w+?)(_pts?[zd]s?)?", symbol).groups()  # type: ignore[union-attr]
    return re.sub(r"_v\d$", "", name), stream or ""


def versions(folder: pathlib.Path) -> dict[tuple[str, str], list[int]]:
    """Name of a function and kind of its default stream, to the versions of CUDA in which a symbol of this name came."""
    text = (folder / "cudaTypedefs.h").read_text()
    found: dict[tuple[str, str], set[int]] = {}
    for name, version, stream in re.findall(r"\*PFN_(\w+?)_v(\d+)(_pts?[zd]s?)?\)", text):
        found.setdefault((name, stream), set()).add(int(version))
    return {name: sorted(numbers) for name, numbers in found.items()}


def since(symbols: list[str], folders: list[pathlib.Path]) -> dict[str, int]:
    """The version in which each symbol came. The symbols of one function are in the order of their versions."""
    known: dict[tuple[str, str], set[int]] = {}
    for folder in folders:
        for name, those in versions(folder).items():
            known.setdefault(name, set()).update(those)
    groups: dict[tuple[str, str], list[str]] = {}
    for symbol in sorted(symbols, key=lambda s: (len(s), s)):
        groups.setdefault(plain(symbol), []).append(symbol)
    result = {}
    for name, group in groups.items():
        those = sorted(known.get(name, set()) or {SINCE.get(group[0], 0)})
        if len(those) != len(group):
            print(f"{name[0]}{name[1]}: symbols {', '.join(group)}, versions {those}", file=sys.stderr)
        # The newest symbols have the newest versions. A symbol without a version of its own is as old as the function.
        for back, symbol in enumerate(reversed(group)):
            result[symbol] = those[-1 - back] if back < len(those) else those[0]
    return result


def read(folder: pathlib.Path) -> tuple[dict[str, Function], list[tuple[str, str, int]], int]:
    """The functions, the numbers and the version of one CUDA."""
    found = {symbol: Function(symbol, arguments) for symbol, arguments in PROFILER.items()}
    values: list[tuple[str, str, int]] = []
    for options in (["-D__CUDA_API_VERSION_INTERNAL"], []):
        tree = parse(preprocess(folder, "cuda.h", options))
        for function in functions(tree):
            found.setdefault(function.symbol, function)
        values = values or numbers(tree)
    match = re.search(r"^#define CUDA_VERSION (\d+)$", (folder / "cuda.h").read_text(), re.M)
    return found, values, int(match[1]) if match else 0


def tables(site: pathlib.Path) -> dict[pathlib.Path, str]:
    """The text of the generated files."""
    folders = [find(site, 12), find(site, 13)]
    (old, old_values, old_version), (new, new_values, _) = read(folders[0]), read(folders[1])
    symbols = sorted({*old, *new})
    came = since(symbols, folders)
    rows = [COLUMNS]
    for symbol in symbols:
        function = (new.get(symbol) or old[symbol])
        last = "-" if symbol in new else str(old_version)
        rows.append(f"{symbol}\t{plain(symbol)[0]}\t{came[symbol]}\t{last}\t{function.arguments}\n")
    lines = ["# enumeration\tname\tnumber\n"]
    seen: dict[str, int] = {}
    for enumeration, name, number in [*new_values, *old_values]:
        if name not in seen:
            seen[name] = number
            lines.append(f"{enumeration}\t{name}\t{number}\n")
    return {CRATE / "functions.tsv": "".join(rows), CRATE / "numbers.tsv": "".join(lines)}


def main() -> None:
    """Writes the files, or says which one is not up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("site", type=pathlib.Path, help="the folder site-packages with NVIDIA's wheels")
    parser.add_argument("--check", action="store_true", help="write nothing: fail if a file is not what the headers say")
    options = parser.parse_args()
    for path, text in tables(options.site).items():
        if not options.check:
            path.write_text(text)
        elif path.read_text() != text:
            sys.exit(f"{path.relative_to(ROOT)} is not what the headers say: run `make cuda-rows`")


if __name__ == "__main__":
    main()
