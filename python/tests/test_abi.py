"""The library and its header have the ABI that packaging/libtegrarm.abi describes. This comparison needs no other tool.

`make abi-check` compares more, with abidiff. `make abi-baseline` writes the file anew for a wanted change.
"""

import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import pytest
from conftest import ROOT

from tegrarm import _ffi

sys.path.insert(0, str(ROOT / "python" / "checks"))
import abi  # noqa: E402  what `make abi-check` runs

HEADER = abi.HEADER.read_text()
BASELINE = ET.parse(abi.BASELINE).getroot()
BY_ID = {e.get("id"): e for e in BASELINE.iter() if e.get("id")}
FUNCTIONS = {f.get("name"): f for f in BASELINE.iter("function-decl")}
STRUCTS = [s for s in BASELINE.iter("class-decl") if s.find("data-member") is not None]
ENUMS = {e.get("name"): {v.get("name"): int(v.get("value")) for v in e.iter("enumerator")} for e in BASELINE.iter("enum-decl")}
CHANGED = "the ABI is not that of packaging/libtegrarm.abi: make abi-baseline if that is wanted, and say so in CHANGELOG.md"


def spelled(type_id: str) -> str:
    """A type of the baseline as C text, without spaces."""
    e = BY_ID[type_id]
    inner = spelled(e.get("type-id")) if e.tag in ("pointer-type-def", "qualified-type-def") else ""
    if e.tag == "pointer-type-def":
        return inner + "*"
    if e.tag == "qualified-type-def":
        return inner + "const" if inner.endswith("*") else "const" + inner
    return ("struct" if e.tag == "class-decl" else "") + e.get("name")


def squeezed(text: str) -> str:
    """C text in the form that :func:`spelled` gives. abidw leaves out `const` before `void`."""
    return re.sub(r"\s+", "", text).replace("constvoid", "void").replace("longint", "long")


def prints(tmp_path, expressions: list[str]) -> list[int]:
    """The output of a C program that includes the header."""
    lines = "".join(f'    printf("%llu\\n", (unsigned long long)({e}));\n' for e in expressions)
    source, binary = tmp_path / "says.c", tmp_path / "says"
    source.write_text(f'#include <stdio.h>\n#include "tegrarm.h"\nint main(void)\n{{\n{lines}    return 0;\n}}\n')
    subprocess.run(["cc", f"-I{abi.HEADER.parent}", source, "-o", binary], check=True)
    return [int(n) for n in subprocess.run([binary], capture_output=True, text=True, check=True).stdout.split()]


def test_library_exports_the_baselines_functions():
    said = subprocess.run(["nm", "-D", "--defined-only", _ffi.find()], capture_output=True, text=True, check=True).stdout
    # NVTX finds this one by its name. No program calls it.
    exported = {line.split()[-1] for line in said.splitlines()} - {"InitializeInjectionNvtx2"}
    written = {s.get("name") for s in BASELINE.find("elf-function-symbols")}
    assert exported == written == set(FUNCTIONS), CHANGED


def test_header_declares_the_baselines_functions():
    assert {name for _, name, _ in abi.prototypes(HEADER)} == set(FUNCTIONS), CHANGED


def test_soname_is_the_one_that_programs_are_linked_with():
    said = subprocess.run(["readelf", "-d", _ffi.find()], capture_output=True, text=True, check=True).stdout
    assert re.search(r"SONAME.*\[libtegrarm\.so\.0\]", said)


@pytest.mark.parametrize("result, name, arguments", abi.prototypes(HEADER))
def test_functions_have_the_baselines_types(result, name, arguments):
    f = FUNCTIONS[name]
    written = [spelled(p.get("type-id")) for p in f.findall("parameter")]
    given = [] if arguments.strip() == "void" else [squeezed(re.sub(r"\w+\s*$", "", a.strip())) for a in arguments.split(",")]
    assert (squeezed(result), given) == (squeezed(spelled(f.find("return").get("type-id"))), [squeezed(w) for w in written]), CHANGED


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda s: s.get("name"))
def test_structures_have_the_baselines_layout(struct, tmp_path):
    name, members = struct.get("name"), struct.findall("data-member")
    written = [int(m.get("layout-offset-in-bits")) // 8 for m in members] + [int(struct.get("size-in-bits")) // 8]
    offsets = [f"offsetof(struct {name}, {m.find('var-decl').get('name')})" for m in members]
    assert prints(tmp_path, [*offsets, f"sizeof(struct {name})"]) == written, CHANGED
    declared = re.search(rf"struct {name} \{{(.*?)\n\}};", abi.without_comments(HEADER), flags=re.S)[1]
    assert declared.count(";") == len(members), CHANGED


def test_no_structure_is_missing():
    declared = set(re.findall(r"^struct (\w+) \{", HEADER, flags=re.M))
    assert declared == {s.get("name") for s in STRUCTS}, CHANGED


def test_enumerations_and_constants_have_the_baselines_values(tmp_path):
    assert set(abi.enums(HEADER)) | {"tegrarm_constants"} == set(ENUMS), CHANGED
    written = {name.removeprefix("value_"): value for values in ENUMS.values() for name, value in values.items()}
    declared = re.findall(r"^    (TEGRARM_\w+) =", HEADER, flags=re.M) + abi.constants(HEADER)
    assert set(declared) == set(written), CHANGED
    said = prints(tmp_path, list(written))
    assert said == [value % (1 << 64) for value in written.values()], CHANGED


def test_the_changelog_has_a_place_for_changes():
    assert re.search(r"^### ABI$", (ROOT / "CHANGELOG.md").read_text(), flags=re.M)
