"""Compares documents and workflows with the tree: every file, directory and make target that they name must exist.

Documents name files in backticks. A path with a directory is looked for from the root, beside the document and in every crate. A bare
name is looked for everywhere.
"""

import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The chapters of docs/hardware name files of other projects. python/checks/hardware.py checks what they cite.
OTHERS = "docs/hardware"
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs/**/*.md", "**/README.md"]
WORKFLOWS = ".github/workflows/*.yml"
FILE = re.compile(r"[\w.*-]+\.(rs|py|toml|md|h|c|sh|tsv|yml)")
# Directories that commands of this project make and git ignores, and that in which commands of the documents write.
MADE = {"fuzz/artifacts", "fuzz/corpus"}
WRITTEN = "out/"
# A workflow that other projects call, which have no Makefile of ours. A test that names it runs its steps.
OF_OTHERS = re.compile(r"^  workflow_call:", re.M)
CI_GUIDE = ROOT / "python/tests/test_ci_guide.py"
# The commands that a step of a workflow may run besides a make target: they prepare the machine.
PREPARATION = re.compile(r"(\.ci/run|rustup (toolchain install|target add|component add) .*|sudo apt-get .*)")


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, check=True, text=True).stdout
    return [name for name in listed.split("\n") if name and (ROOT / name).exists()]


def makefile() -> str:
    """The Makefile with the files that it includes."""
    return "".join(path.read_text() for path in (ROOT / "Makefile", *sorted(ROOT.glob("make/*.mk"))))


def targets(makefile: str) -> set[str]:
    return {name for line in re.findall(r"^([\w -]+):(?!=)", makefile, re.M) for name in line.split()}


class Tree:
    """Everything in the tree that a document may name."""

    def __init__(self, files: list[str], makefile: str):
        self.files = set(files)
        self.directories = {str(parent) for name in files for parent in pathlib.PurePath(name).parents}
        self.top = {name.split("/")[0] for name in files if "/" in name}
        self.crates = {"/".join(name.split("/")[:2]) for name in files if name.startswith("crates/")}
        self.names = {name.rsplit("/", 1)[-1] for name in files}
        self.targets = targets(makefile)

    def has_path(self, path: str, home: str) -> bool:
        """Whether the tree has a file, a directory or a match of a pattern."""
        path = path.rstrip("/")
        if "*" in path:
            return any(pathlib.PurePath(name).match(path) for name in self.files | self.directories)
        places = [path, f"{home}/{path}", *(f"{crate}/{path}" for crate in self.crates)]
        return path in MADE or path.startswith(WRITTEN) or any(place in self.files or place in self.directories for place in places)

    def is_path(self, word: str) -> bool:
        """Whether a quoted word is meant as a path of this repository."""
        return "/" in word and word.split("/")[0] in self.top and re.fullmatch(r"[\w./*-]+", word) is not None


def lies(text: str, tree: Tree, home: str = "") -> Iterator[str]:
    """The names in a document that do not exist. The document is in directory `home`."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    for word in sorted(set(re.findall(r"`([^`\n]+)`", text))):
        if make := re.fullmatch(r"(?:[A-Z_]+=\S+ )*make ((?:[a-z][\w-]* ?)+)(?:[A-Z_]+=.*)?", word):
            yield from (f"`{word}`: the Makefile has no target {name}" for name in make[1].split() if name not in tree.targets)
        elif tree.is_path(word):
            if not tree.has_path(word, home):
                yield f"`{word}` is not there"
        elif FILE.fullmatch(word) and "*" not in word and word not in tree.names:
            yield f"`{word}`: no file has that name"


def steps(workflow: str) -> Iterator[str]:
    """The commands of a workflow's steps, one by one."""
    for run in re.finditer(r"^( *)(?:- )?run: (\|\n(?:\1  .*\n|\s*\n)+|.*)", workflow, re.M):
        yield from (line.strip() for line in run[2].removeprefix("|").splitlines() if line.strip())


def strays(workflow: str, tree: Tree) -> Iterator[str]:
    """The commands of a workflow that are not make targets of this project. Nobody can run them on another machine."""
    for command in steps(workflow):
        make = re.fullmatch(r"make((?: [a-z][\w-]*)+)(?: [A-Z_]+=\S+)*", command)
        if make and set(make[1].split()) <= tree.targets:
            continue
        if not PREPARATION.fullmatch(command):
            yield f"{command!r} is neither a target of the Makefile nor preparation"


def proof() -> Iterator[str]:
    tree = Tree(["src/a.rs", "docs/b.md"], "test: build\nbuild:\n")
    wrong = ["`src/b.rs`", "`make tests`", "`alloc.rs`", "`docs/c.md`"]
    right = ["`src/a.rs`", "`src`", "`make test`", "`a.rs`", "`TEGRARM_LOG=info make test ARGS=x`", "`/dev/nvmap`", "`docs/*.md`"]
    yield from (f"claims.py does not see {text}" for text in wrong if not list(lies(text, tree)))
    yield from (f"claims.py objects to {text}" for text in right if list(lies(text, tree)))
    bad = ["      - run: cargo test\n", "      - run: make tests\n", "      - run: |\n          make test\n          cargo test\n"]
    yield from (f"claims.py does not see {text!r}" for text in bad if not list(strays(text, tree)))
    if list(strays("      - run: |\n          make build test\n          .ci/run\n", tree)):
        yield "claims.py objects to a workflow that is right"


def main() -> int:
    tree = Tree(tracked(), makefile())
    named = {path for pattern in DOCUMENTS for path in ROOT.glob(pattern)}
    documents = sorted(named & {ROOT / name for name in tree.files if not name.startswith(OTHERS)})
    workflows = sorted(ROOT.glob(WORKFLOWS))
    found = list(proof())
    for path in documents:
        name = path.relative_to(ROOT)
        found += [f"{name}: {lie}" for lie in lies(path.read_text(), tree, str(name.parent))]
    for path in workflows:
        if OF_OTHERS.search(path.read_text()) and path.name in CI_GUIDE.read_text():
            continue
        if not list(steps(path.read_text())):
            found.append(f"{path.name}: no step runs anything")
        found += [f"{path.name}: {stray}" for stray in strays(path.read_text(), tree)]
    if not workflows:
        found.append(f"no workflow: {WORKFLOWS}")
    print("\n".join(found) or f"claims: {len(documents)} documents and {len(workflows)} workflows name what is there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
