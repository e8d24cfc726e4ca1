"""Reads the facts of somebody else's C header: functions with their types, and the numbers and layouts that a C compiler finds.

The compiler's preprocessor and pycparser read the header. Nothing of its text is kept: only names, types and numbers. The rows of our own
libraries under NVIDIA's names are made and checked with it.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from pycparser import c_ast, c_generator, c_parser

# What headers expect of the C library, in a form that pycparser reads.
STAND_INS = {
    "stddef.h": "typedef unsigned long size_t;\ntypedef long ptrdiff_t;\ntypedef int wchar_t;\n#define NULL ((void *)0)\n",
    "stdint.h": "".join(f"typedef {sign} {base} {u}int{bits}_t;\n" for bits, base in ((8, "char"), (16, "short"), (32, "int"), (64, "long"))
                        for u, sign in (("", "signed"), ("u", "unsigned"))) + "typedef unsigned long uintptr_t;\ntypedef long intptr_t;\n",
    "stdlib.h": "#include <stddef.h>\n",
    "string.h": "#include <stddef.h>\n",
    "stdbool.h": "#define bool _Bool\n",
    "limits.h": "",
    # Of CUDA's compiler, in another wheel than the headers of the runtime: words that a parser of C does not need.
    "crt/host_defines.h": "#define CUDARTAPI\n#define CUDARTAPI_CDECL\n#define CUDART_CB\n#define __host__\n#define __device__\n"
                          "#define __device_builtin__\n#define __cudart_builtin__\n#define __builtin_align__(size)\n#define __inline__\n"
                          "#define __align__(size)\n#define __location__(text)\n#define __device_builtin_texture_type__\n"
                          "#define __device_builtin_surface_type__\n",
}


@dataclass(frozen=True)
class Function:
    """A function that a header declares."""

    name: str
    returns: str
    parameters: tuple[tuple[str, str], ...]  # type and name

    @property
    def signature(self) -> str:
        """The types of the parameters, as C writes them."""
        return ", ".join(kind for kind, _ in self.parameters)


@dataclass(frozen=True)
class Field:
    """A field of a structure."""

    name: str
    type: str  # without the brackets of an array
    lengths: tuple[str, ...]  # of an array, outermost first


class Header:
    """A header that was read."""

    def __init__(self, path: pathlib.Path, defines: Iterable[str] = (), without: str = ""):
        """Reads a file. ``defines`` are macros for it, and text that matches ``without`` is taken out before it is parsed."""
        self.path, self.defines = path.resolve(), tuple(f"-D{name}" for name in defines)
        text = self._preprocessed("-P")
        # Attributes and alignments change no layout that a row has: the compiler, which measures, sees them.
        text = re.sub(r"__attribute__\s*\(\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)\)|__extension__|__inline__|_Alignas\([^)]*\)", "", text)
        self.ast = c_parser.CParser().parse(re.sub(without, "", text) if without else text)
        self._write = c_generator.CGenerator().visit
        self.types = {node.type.name: node for node in self.ast.ext if isinstance(node, c_ast.Decl) and isinstance(node.type, c_ast.Struct)}
        self.types |= {node.name: node.type for node in self.ast.ext if isinstance(node, c_ast.Typedef)}

    def _preprocessed(self, *options: str) -> str:
        with tempfile.TemporaryDirectory() as place:
            for name, text in STAND_INS.items():
                pathlib.Path(place, name).parent.mkdir(exist_ok=True)
                pathlib.Path(place, name).write_text(text)
            command = [compiler(), "-E", "-nostdinc", *options, f"-I{place}", f"-I{self.path.parent}", *self.defines, str(self.path)]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def functions(self) -> Iterator[Function]:
        """The functions that it declares, in its order."""
        for node in self.ast.ext:
            if not isinstance(node, c_ast.Decl) or not isinstance(node.type, c_ast.FuncDecl):
                continue
            listed = node.type.args.params if node.type.args else []
            parameters = tuple((self._type(p.type), p.name or "") for p in listed if self._type(p.type) != "void")
            yield Function(node.name, self._type(node.type.type), parameters)

    def _type(self, node: c_ast.Node) -> str:
        """A type without the name that it declares. An array that is a parameter is a pointer."""
        if isinstance(node, c_ast.ArrayDecl):
            return self._type(node.type) + " *"
        if isinstance(node, c_ast.PtrDecl):
            return self._type(node.type) + " *"
        bare = node.type if isinstance(node, c_ast.TypeDecl) else node
        words = [*getattr(node, "quals", []), self._write(bare)]
        return " ".join(words).replace("* *", "**")

    def macros(self, pattern: str) -> list[str]:
        """The names of the macros without parameters that match a pattern, in the order of their names."""
        found = re.findall(r"^#define (\w+) \S", self._preprocessed("-dM"), re.M)
        return sorted(name for name in found if re.fullmatch(pattern, name))

    def enumerators(self, pattern: str) -> list[str]:
        """The names of the constants of enumerations that match a pattern, in the header's order."""
        found: list[str] = []
        visitor = c_ast.NodeVisitor()
        visitor.visit_Enumerator = lambda node: found.append(node.name)  # type: ignore[attr-defined]
        visitor.visit(self.ast)
        return [name for name in found if re.fullmatch(pattern, name)]

    def structure(self, name: str, inside: bool = False) -> list[Field]:
        """The fields of a structure or union. A field whose aggregate has no name is refused, or with ``inside`` its own fields stand in
        its place, by the names with which C reaches them.
        """
        node = self.types[name]
        while isinstance(node, c_ast.TypeDecl) and isinstance(node.type, c_ast.IdentifierType):
            node = self.types[node.type.names[0]]
        return self._fields(name, node.type, inside)

    def _fields(self, name: str, node: c_ast.Node, inside: bool) -> list[Field]:
        found = []
        for field in node.decls:
            kind, lengths = field.type, []
            while isinstance(kind, c_ast.ArrayDecl):
                lengths.append(self._write(kind.dim))
                kind = kind.type
            if isinstance(kind, c_ast.TypeDecl) and isinstance(kind.type, (c_ast.Struct, c_ast.Union)) and kind.type.name is None:
                if not inside or lengths:
                    raise ValueError(f"{name}.{field.name} has a type without a name")
                found += [replace(inner, name=f"{field.name}.{inner.name}") for inner in self._fields(name, kind.type, inside)]
                continue
            found.append(Field(field.name, self._type(kind), tuple(lengths)))
        return found

    def is_union(self, name: str) -> bool:
        """Whether a type is a union."""
        node = self.types[name]
        return isinstance(node, c_ast.TypeDecl) and isinstance(node.type, c_ast.Union)

    # *** what the compiler says ***

    def numbers(self, expressions: Iterable[str]) -> dict[str, int]:
        """The values of constant expressions of C with this header, such as names of constants, ``sizeof`` and ``offsetof``."""
        listed = list(expressions)
        lines = "".join(f'    printf("%lld\\n", (long long)({text}));\n' for text in listed)
        program = f'#include <stdio.h>\n#include <stddef.h>\n#include "{self.path}"\nint main(void) {{\n{lines}    return 0;\n}}\n'
        with tempfile.TemporaryDirectory() as place:
            source, made = pathlib.Path(place, "numbers.c"), pathlib.Path(place, "numbers")
            source.write_text(program)
            for name, text in STAND_INS.items():
                if "/" in name:
                    pathlib.Path(place, name).parent.mkdir(exist_ok=True)
                    pathlib.Path(place, name).write_text(text)
            subprocess.run([compiler(), "-w", f"-I{place}", *self.defines, str(source), "-o", str(made)], check=True)
            said = subprocess.run([str(made)], check=True, capture_output=True, text=True).stdout
        return dict(zip(listed, map(int, said.split()), strict=True))


def compiler() -> str:
    """The C compiler."""
    found = shutil.which(os.environ.get("CC", "cc"))
    if not found:
        raise SystemExit("there is no C compiler: install one, or name it with CC")
    return found
