"""Checks that the tree stays small enough to be carried in one's head: how many files git tracks, and how long a crate is.

The rules are tried on samples before the tree is looked at, as in `tree.py`.
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = 1_700
# Lines of a crate's sources, without its tests.
LINES = 20_000
# A module of tests within a source, as rustfmt leaves it.
TESTS = re.compile(rb"^#\[cfg\((?:all\()?test\b.*\n(?:#\[.*\n)*(?:pub(?:\(.*?\))? )?mod \w+ \{\n(?:.*\n)*?\}\n", re.MULTILINE)


def too_many(files: list[str]) -> list[str]:
    """The objection to a list of files, with the folders that hold most of them."""
    if len(files) <= FILES:
        return []
    folders: dict[str, int] = {}
    for name in files:
        folder = name.rpartition("/")[0]
        folders[folder] = folders.get(folder, 0) + 1
    largest = sorted(folders, key=lambda folder: -folders[folder])[:3]
    return [f"{len(files)} files, and at most {FILES} are allowed: put many small inputs into one archive. Most are in "
            + ", ".join(f"{folder or 'the root'} ({folders[folder]})" for folder in largest)]


def crate_of(name: str) -> str | None:
    """The folder of the crate to which a source belongs, or None for a test and for what is no Rust."""
    folder, found, rest = name.rpartition("src/") if name.startswith("src/") else name.partition("/src/")
    if not found or not name.endswith(".rs") or not (name.startswith(("src/", "crates/"))):
        return None
    return None if "tests/" in rest or rest.endswith("tests.rs") else folder or "the root"


def too_long(lines: dict[str, int]) -> list[str]:
    """The objections to crates, by the number of lines of each."""
    return [f"{crate}: {count} lines without tests, and at most {LINES} are allowed: make a crate of a part that knows nothing of the rest"
            for crate, count in sorted(lines.items()) if count > LINES]


def length(source: bytes) -> int:
    """How many lines a source has without its modules of tests."""
    return TESTS.sub(b"", source).count(b"\n")


def lines_of(files: list[str]) -> dict[str, int]:
    """How many lines each crate has."""
    lines: dict[str, int] = {}
    for name in files:
        if crate := crate_of(name):
            lines[crate] = lines.get(crate, 0) + length((ROOT / name).read_bytes())
    return lines


def samples() -> list[str]:
    """What is wrong with the rules themselves."""
    crates = [crate_of(f"{start}src/{rest}") for start in ("", "crates/a/") for rest in ("b.rs", "b/tests/c.rs", "tests.rs", "b.md")]
    if crates != ["the root", None, None, None, "crates/a", None, None, None]:
        return [f"size.py takes sources to be of other crates: {crates}"]
    if too_long({"crates/a": LINES}) or not too_long({"crates/a": LINES + 1}):
        return ["size.py does not count the lines of a crate"]
    tests = b"#[cfg(test)]\n#[path = \"b.rs\"]\nmod tests;\n#[cfg(all(test, unix))]\npub(crate) mod tests {\n    fn a() {\n    }\n}\n"
    if length(b"fn a() {\n}\n" + tests + b"fn b() {\n}\n") != 7:
        return ["size.py does not leave out a module of tests, or leaves out more"]
    crowd = [f"data/{number}" for number in range(FILES + 1)]
    if too_many(crowd[:-1]):
        return [f"size.py objects to {FILES} files, which are allowed"]
    named = "data (1701)" in "".join(too_many(crowd))
    return [] if named else ["size.py does not object to one file too many, or does not name its folder"]


def tracked() -> list[str]:
    """The files that are tracked, and those that are new and not ignored."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, check=True, text=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


def main() -> int:
    """Returns 0 if the tree keeps to the rule."""
    files = tracked()
    lines = lines_of(files)
    found = samples() + too_many(files) + too_long(lines)
    largest = max(lines, key=lambda crate: lines[crate])
    print("\n".join(found) or f"size: {len(files)} files of at most {FILES}; the largest crate is {largest}, "
          f"with {lines[largest]} lines of at most {LINES}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
