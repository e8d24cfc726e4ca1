"""Holds the C interface to the ABI that is written down in packaging/libtegrarm.abi.

`make abi-check` compares include/tegrarm.h with that file, with abidiff of Debian's abigail-tools, and fails on any difference.
`make abi-baseline` writes the file anew, for a change that is wanted and that CHANGELOG.md names under "ABI". The header is
generated from the functions themselves, so that it is what the library exports; `python/tests/test_abi.py` looks at the library.

What is compared is a library without any code that declares everything of the header: its debug information has the types as C
has them, builds in a second, and does not change with the Rust compiler.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADER = ROOT / "include" / "tegrarm.h"
BASELINE = ROOT / "packaging" / "libtegrarm.abi"
# Everything that differs between machines and directories and does not belong to the ABI stays out of the file.
WRITE = ["abidw", "--no-corpus-path", "--no-comp-dir-path", "--no-show-locs", "--no-architecture", "--type-id-style", "hash"]
MISSING = "SKIPPED, abidiff is not installed (Debian: abigail-tools). python/tests/test_abi.py compares the same without it."


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*|^\s*#[^\n]*", "", text, flags=re.S | re.M)


def prototypes(header: str) -> list[tuple[str, str, str]]:
    """(result, name, arguments) of every function that a header declares, as C text."""
    return re.findall(r"([\w][\w\s]*?[\s*]+)(\w+)\s*\(([^()]*)\)\s*;", without_comments(header))


def enums(header: str) -> list[str]:
    return re.findall(r"\benum (\w+)\s*\{", without_comments(header))


def constants(header: str) -> list[str]:
    """The header's own constants; the version is none, because it changes with each release."""
    return [c for c in re.findall(r"^#define (TEGRARM_\w+) \S", header, flags=re.M) if not c.startswith("TEGRARM_VERSION")]


def source(header: str) -> str:
    """C that defines every function. No function uses an enumeration or a constant, so that variables stand for them."""
    lines = ['#include "tegrarm.h"']
    lines += [f"{result}{name}({arguments}) {{ return 0; }}" for result, name, arguments in prototypes(header)]
    lines += [f"enum {name} value_of_{name};" for name in enums(header)]
    values = ", ".join(f"value_{name} = {name}" for name in constants(header))
    lines += [f"enum tegrarm_constants {{ {values} }} value_of_tegrarm_constants;"]
    return "\n".join(lines) + "\n"


def library(to: pathlib.Path) -> None:
    """Compiles the library that only declares. Constants of 64 bits make its enumeration one of GNU C."""
    options = ["-g", "-O0", "-fPIC", "-shared", "-x", "c", "-std=gnu11", f"-I{HEADER.parent}"]
    subprocess.run(["cc", *options, "-", "-o", to], input=source(HEADER.read_text()), text=True, check=True)


def main() -> int:
    if shutil.which("abidiff") is None:
        print(f"abi-check: {MISSING}")
        return 0
    with tempfile.TemporaryDirectory() as directory:
        made = pathlib.Path(directory) / "libtegrarm.so"
        library(made)
        if "--write" in sys.argv:
            BASELINE.write_text(subprocess.run([*WRITE, made], capture_output=True, text=True, check=True).stdout)
            print(f"wrote {BASELINE.relative_to(ROOT)}: name the change under \"ABI\" in CHANGELOG.md")
            return 0
        found = subprocess.run(["abidiff", "--no-architecture", BASELINE, made], capture_output=True, text=True)
    if found.returncode != 0:
        print(found.stdout + found.stderr)
        print("the ABI is not the one of packaging/libtegrarm.abi. If that is wanted: make abi-baseline, and say so in CHANGELOG.md")
        return 1
    print("abi-check: ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
