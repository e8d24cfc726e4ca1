"""Rules about the tree that no compiler checks: file length, where `unsafe` may be, no private machine names."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 1200  # lines; the aim is 500, and what is longer is a table
# Where the design allows unsafe code. A file outside these may not even opt in.
CRATES = r"crates/(sm87|tegra-gpu|tegra-hw|tegra-kernel|tegra-mm|tegra-sim|tegrarm-kmd|tegrarm-preload)/(src|tests|benches)/"
UNSAFE = re.compile(rf"src/capi/|src/runtime/(memory|place)\.rs|{CRATES}|benches/|fuzz/|tests/")
MACHINE = re.compile(r"/root/|/home/\w+/|\.pyenv")
TEXT = {".rs", ".py", ".c", ".cc", ".h", ".md", ".toml", ".txt", ".yml", ".sh", ""}
SELF = pathlib.Path(__file__).resolve().relative_to(ROOT)


def tracked() -> list[pathlib.Path]:
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                           capture_output=True, check=True, text=True).stdout
    return [pathlib.Path(n) for n in names.split("\0") if n and (ROOT / n).is_file()]


def problems(path: pathlib.Path):
    """Everything wrong with one file, as sentences."""
    text = (ROOT / path).read_text(errors="replace")
    lines = text.splitlines()
    if path.suffix in {".rs", ".py", ".c", ".h"} and len(lines) > LIMIT and "generated" not in text[:400].lower():
        yield f"{len(lines)} lines, limit {LIMIT}: split it by duty"
    if path.suffix == ".rs" and not UNSAFE.match(str(path)) and re.search(r"\bunsafe\s*(\{|fn|impl|extern)", text):
        yield "unsafe code outside the places that may have it"
    if path != SELF:
        for number, line in enumerate(lines, 1):
            if MACHINE.search(line):
                yield f"line {number} names a private machine path: {line.strip()[:80]}"


def main() -> int:
    found = [f"{path}: {what}" for path in tracked() if path.suffix in TEXT for what in problems(path)]
    print("\n".join(found) or "tree: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
