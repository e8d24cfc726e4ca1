"""Compares the C interface with the ABI that is written down in packaging/libtegrarm.abi.

`make abi-check` compares include/tegrarm.h with that file, with abidiff of Debian's abigail-tools, and fails on any difference. `make
abi-baseline` writes the file anew, for a wanted change that CHANGELOG.md names under "ABI". The header is generated from the functions
themselves, so it describes what the library exports; `python/tests/test_abi.py` checks the library itself.

The comparison uses a library that has no code and declares everything in the header. Its debug information has the types as C has them.
It builds in a second, and it does not change with the Rust compiler.
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
# The file leaves out everything that differs between machines and directories and does not belong to the ABI.
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
    """The constants that the header itself defines. The version is not one of them, because it changes with each release."""
    return [c for c in re.findall(r"^#define (TEGRARM_\w+) \S", header, flags=re.M) if not c.startswith("TEGRARM_VERSION")]


def source(header: str) -> str:
    """C code that defines every function. A function cannot use an enumeration or a constant, so variables stand for them."""
    lines = ['#include "tegrarm.h"']
    lines += [f"{result}{name}({arguments}) {{ return 0; }}" for result, name, arguments in prototypes(header)]
    lines += [f"enum {name} value_of_{name};" for name in enums(header)]
    values = ", ".join(f"value_{name} = {name}" for name in constants(header))
    lines += [f"enum tegrarm_constants {{ {values} }} value_of_tegrarm_constants;"]
    return "\n".join(lines) + "\n"


def library(to: pathlib.Path) -> None:
    """Compiles the library that only declares. Its enumeration needs GNU C, because it has constants of 64 bits."""
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
