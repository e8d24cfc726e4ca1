"""Checks that the tree stays small enough to be carried in one's head: how many files git tracks.

The rule is tried on samples before the tree is looked at, as in `tree.py`.
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = 1_700


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


def samples() -> list[str]:
    """What is wrong with the rule itself."""
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
    found = samples() + too_many(files)
    print("\n".join(found) or f"size: {len(files)} files of at most {FILES}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
