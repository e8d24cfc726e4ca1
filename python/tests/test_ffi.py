"""The ctypes declarations agree with the header: names, argument types, results and structure layouts."""

import ctypes
import re
import subprocess

import pytest
from conftest import ROOT

import tegrarm
from tegrarm import _ffi, rm

HEADER = ROOT / "include" / "tegrarm.h"
C_TYPES = {
    "NvHandle": ctypes.c_uint32, "NvU32": ctypes.c_uint32, "NV_STATUS": ctypes.c_uint32, "uint32_t": ctypes.c_uint32,
    "NvU64": ctypes.c_uint64, "uint64_t": ctypes.c_uint64, "int64_t": ctypes.c_int64, "int": ctypes.c_int,
    "unsigned long": ctypes.c_ulong, "size_t": ctypes.c_size_t, "uintptr_t": ctypes.c_size_t, "bool": ctypes.c_bool,
}


def declared(pattern):
    """The classes of _ffi that belong to what the header declares with these words, by the name in C."""
    names = re.findall(pattern, HEADER.read_text(), re.M)
    return {name: getattr(_ffi, "".join(part.capitalize() for part in name.removeprefix("tegrarm_").split("_"))) for name in names}


CALLBACKS, STRUCTS = declared(r"^typedef [\w ]+\(\*(\w+)\)"), declared(r"^struct (\w+) \{$")


def prototypes():
    """name -> (result, [(type, name) of each argument]) of every function the header declares, as C text."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*", "", HEADER.read_text(), flags=re.S | re.M)
    found = {}
    for result, name, arguments in re.findall(r"([\w][\w\s]*?[\s*]+)(\w+)\s*\(([^()]*)\)\s*;", text):
        parts = [] if arguments.strip() == "void" else [" ".join(a.split()) for a in arguments.split(",")]
        found[name] = (result.strip(), [(re.sub(r"\s*\w+$", "", p).strip(), re.search(r"\w+$", p)[0]) for p in parts])
    return found


def ctypes_of(text, result=False):
    """The ctypes declaration that belongs to a C type."""
    base = re.sub(r"\b(const|struct|extern)\b|\*", "", text).strip()
    stars = text.count("*")
    if stars == 0:
        return CALLBACKS.get(base) or C_TYPES[base]
    if base in ("void", "char"):
        if stars == 2:
            return ctypes.POINTER(ctypes.c_void_p)
        return ctypes.c_void_p if base == "void" or "const" not in text else ctypes.c_char_p
    return ctypes.POINTER(STRUCTS.get(base) or C_TYPES[base]) if base in STRUCTS or base in C_TYPES else ctypes.c_void_p


def test_header_declares_something():
    assert len(prototypes()) >= 20


@pytest.mark.parametrize("name", sorted(prototypes()))
def test_declared_as_in_the_header(name):
    result, arguments = prototypes()[name]
    assert name in _ffi.SIGNATURES, f"{name} is exported but has no row in _ffi.SIGNATURES"
    have_result, have_arguments = _ffi.SIGNATURES[name]
    assert list(have_arguments.items()) == [(name, ctypes_of(type_)) for type_, name in arguments]
    assert have_result == (None if result == "void" else ctypes_of(result))


def test_nothing_declared_that_the_header_lacks():
    assert set(_ffi.SIGNATURES) <= set(prototypes())


def test_library_exports_exactly_the_header():
    symbols = subprocess.run(["nm", "-D", "--defined-only", _ffi.find()], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1] for line in symbols.splitlines() if line.split()[-2] in "TW"}
    # NVTX's header asks for this function by its name. No program calls it.
    assert exported == set(prototypes()) | {"InitializeInjectionNvtx2"}


def test_constants_are_the_headers(tmp_path):
    """Compares macros and enumerators, except for the version, and the statuses and classes that tegrarm.rm knows by name."""
    text = HEADER.read_text()
    names = re.findall(r"^#define (TEGRARM_(?!VERSION|H\b)\w+)|^    (TEGRARM_\w+) =", text, flags=re.M)
    ours = {name: getattr(_ffi, name) for name in (a or b for a, b in names)}
    assert len(ours) > 20
    ours |= {name: value for name, value in vars(rm).items() if re.match("NV_(OK|ERR_)|NV[0-9]", name) and isinstance(value, int)}
    source, binary = tmp_path / "constants.c", tmp_path / "constants"
    rows = "".join(f'    printf("%llu\\n", (unsigned long long){name});\n' for name in ours)
    source.write_text(f'#include <stdio.h>\n#include "tegrarm.h"\n#include "tegrarm_abi.h"\nint main(void)\n{{\n{rows}}}\n')
    subprocess.run(["cc", f"-I{HEADER.parent}", source, "-o", binary], check=True)
    said = subprocess.run([binary], capture_output=True, text=True, check=True).stdout.split()
    assert dict(zip(ours, map(int, said), strict=True)) == ours


@pytest.mark.parametrize("name", sorted(STRUCTS))
def test_structures_have_the_compilers_layout(name, tmp_path):
    cls = STRUCTS[name]
    rows = "".join(f'printf("%zu ", offsetof(struct {name}, {f[0]}));' for f in cls._fields_)
    source = tmp_path / "layout.c"
    source.write_text(f'#include <stddef.h>\n#include <stdio.h>\n#include "tegrarm.h"\n'
                      f"int main(void) {{ {rows} printf(\"%zu\", sizeof(struct {name})); return 0; }}\n")
    binary = tmp_path / "layout"
    subprocess.run(["cc", f"-I{HEADER.parent}", source, "-o", binary], check=True)
    want = [int(n) for n in subprocess.run([binary], capture_output=True, text=True, check=True).stdout.split()]
    assert [getattr(cls, f[0]).offset for f in cls._fields_] + [ctypes.sizeof(cls)] == want


def test_version_is_the_packages():
    version = re.search(r'^version = "(.*)"', (ROOT / "python" / "pyproject.toml").read_text(), re.M)[1]
    assert tegrarm.version() == version


def test_missing_library_says_where_it_looked(python):
    out = python("import tegrarm; tegrarm.version()", env={"TEGRARM_LIB": "/nowhere/libtegrarm.so"}, status=1)
    assert "/nowhere/libtegrarm.so" in out and "make build" in out


def test_the_runtime_is_imported_when_it_is_asked_for(python):
    """The names of the package are complete without it, and no other name is found."""
    python("""
import sys, tegrarm
assert "tegrarm.device" not in sys.modules and set(tegrarm.__all__) <= set(dir(tegrarm))
assert tegrarm.Device.__module__ == "tegrarm.device" and tegrarm.compile.CompileError is tegrarm.CompileError
assert all(hasattr(tegrarm, name) for name in tegrarm.__all__) and not hasattr(tegrarm, "Devices")
""")
