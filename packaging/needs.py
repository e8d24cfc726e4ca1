"""Names what a packaging target needs and this machine lacks, before minutes of work end in an error.

    python packaging/needs.py TARGET...

It prints those of the targets that can be made, one a line, and on standard error what the others lack and what to do. A Rust target
that is missing is added if rustup is there. The exit status is 1 if no target can be made.
"""

import dataclasses
import pathlib
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable

CROSS = {"x86_64": "binutils-x86-64-linux-gnu", "aarch64": "binutils-aarch64-linux-gnu"}


@dataclasses.dataclass(frozen=True)
class Need:
    """One thing that has to be there."""

    what: str
    is_there: Callable[[], bool]
    todo: str


def program(name: str, package: str) -> Need:
    """A program, and Debian's package that has it."""
    return Need(f"the program {name}", lambda: shutil.which(name) is not None, f"apt install {package}")


def output(*command: str) -> str:
    """What a command prints, or nothing if it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def has_rust_target(triple: str) -> bool:
    """Whether rustc has the standard library of a machine. If not, rustup is asked to add it."""
    def is_there() -> bool:
        folder = output("rustc", "--print", "target-libdir", "--target", triple)
        return bool(folder) and any(pathlib.Path(folder).glob("libstd-*.rlib"))
    if is_there():
        return True
    if not shutil.which("rustup"):
        return False
    print(f"needs: adding the Rust target {triple}: rustup target add {triple}", file=sys.stderr)
    subprocess.run(["rustup", "target", "add", triple], stdout=sys.stderr, check=False)
    return is_there()


def rust(machine: str) -> Need:
    """Rust's standard library of a machine."""
    triple = f"{machine}-unknown-linux-gnu"
    todo = f"rustup target add {triple} (Rust of a distribution has no other machine's: take rustup)"
    return Need(f"the Rust target {triple}", lambda: has_rust_target(triple), todo)


def strip(machine: str) -> Need:
    """The program that removes symbols from a machine's libraries."""
    own = machine == platform.machine()
    name, package = ("strip", "binutils") if own else (f"{machine}-linux-gnu-strip", CROSS[machine])
    return program(name, package)


CARGO = Need("cargo", lambda: shutil.which("cargo") is not None, "https://github.com/rust-lang/rustup, or apt install rustup")
VENV = Need("Python's venv", lambda: bool(output(sys.executable, "-c", "import ensurepip, venv; print(1)")), "apt install python3-venv")
TARGETS = {
    "wheel": (CARGO, VENV, rust("x86_64"), strip("x86_64")),
    "wheel-aarch64": (CARGO, VENV, rust("aarch64"), strip("aarch64")),
    "deb": (CARGO, program("dpkg-buildpackage", "dpkg-dev"), program("dh", "debhelper")),
    "deb-computer": (CARGO, VENV, rust("x86_64"), strip("x86_64"), program("dpkg-deb", "dpkg")),
    "deb-board": (CARGO, VENV, rust("aarch64"), strip("aarch64"), program("dpkg-deb", "dpkg")),
}


def missing(target: str) -> list[Need]:
    """What is not there of what a target needs."""
    return [need for need in TARGETS[target] if not need.is_there()]


def main(targets: list[str]) -> int:
    """Looks at each target. Returns the exit status."""
    possible = 0
    for target in targets:
        if lacks := missing(target):
            print(f"make {target}: this machine lacks", file=sys.stderr)
            for need in lacks:
                print(f"  {need.what}: {need.todo}", file=sys.stderr)
        else:
            possible += 1
            print(target)
    return 0 if possible else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
