"""Prints the platform tag of a wheel that contains shared libraries, for example manylinux_2_34_x86_64 for libraries that need nothing
newer than glibc 2.34. Pip of an older system then refuses the wheel with a sentence, before the loader would fail.

    python platform_tag.py libtegrarm.so [...]
"""

import os
import re
import subprocess
import sys

MACHINES = {"Advanced Micro Devices X86-64": "x86_64", "AArch64": "aarch64"}


def needs(path: str) -> tuple[tuple[int, int], str]:
    """The newest version of glibc that the symbols of the file need, and the file's architecture."""
    command = ["readelf", "--wide", "--file-header", "--version-info", path]
    text = subprocess.run(command, env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=True).stdout
    machine = re.search(r"^ *Machine: +(.+)$", text, re.MULTILINE)[1]
    if machine not in MACHINES:
        raise SystemExit(f"{path}: {machine} is not what wheels are made for")
    versions = [(int(major), int(minor)) for major, minor in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", text)]
    if not versions:
        raise SystemExit(f"{path}: needs no version of glibc")
    return max(versions), MACHINES[machine]


def main(paths: list[str]) -> None:
    """Prints the tag for all files together."""
    found = {needs(path) for path in paths}
    if len({machine for _, machine in found}) != 1:
        raise SystemExit("name shared libraries of one architecture")
    (major, minor), machine = max(found)
    print(f"manylinux_{major}_{minor}_{machine}")


if __name__ == "__main__":
    main(sys.argv[1:])
