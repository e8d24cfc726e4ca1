"""Says which glibc shared libraries and programs need, and whether that version is too new.

    python glibc.py --most 2.31 libtegrarm.so [...]

Prints one line for each file. If a file needs a newer glibc than `--most`, the exit status is 1 and the line has the symbols that need
it.
"""

import argparse
import re
import subprocess
import sys

from platform_tag import needs


def newer(path: str, most: tuple[int, int]) -> list[str]:
    """The symbols of the file that only a newer glibc has."""
    text = subprocess.run(["readelf", "--wide", "--dyn-syms", path], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"(\w+)@+GLIBC_(\d+)\.(\d+)", text)
    return sorted({f"{name}@GLIBC_{major}.{minor}" for name, major, minor in found if (int(major), int(minor)) > most})


def main() -> int:
    """Compares each file with the wanted version. Returns 1 if a file needs a newer one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", required=True, help="the newest glibc that may be needed, such as 2.31")
    parser.add_argument("files", nargs="+")
    args = parser.parse_args()
    major, minor = (int(part) for part in args.most.split("."))
    bad = False
    for path in args.files:
        version, machine = needs(path)
        symbols = newer(path, (major, minor))
        bad |= bool(symbols) or version > (major, minor)
        print(f"{path}: {machine}, glibc {version[0]}.{version[1]}" + (f", for {', '.join(symbols)}" if symbols else ""))
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
