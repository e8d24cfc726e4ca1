"""Rules about `docs/hardware`: every citation leads to an anchor, and every rule has its own anchor, a source and a mark that says how
sure it is.

A rule is the text that follows `<a id="..."></a>` up to the next such anchor. Its mark looks like `[published: nvgpu ioctl_as.c]`.
"""

import pathlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHAPTERS = pathlib.PurePath("docs/hardware")
TEXT = {".rs", ".c", ".h", ".py", ".md", ".toml"}
# These two files contain citations that are wrong on purpose.
EXEMPT = {pathlib.PurePath("python/checks/hardware.py"), pathlib.PurePath("python/tests/test_hardware_docs.py")}

# Files that have rules. The others, such as the index, only have anchors.
RULES = re.compile(r"(nvgpu|nvmap|rm|gpu|sm87)\b.*\.md")
ANCHOR = re.compile(r'<a id="([^"]*)"></a>')
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.S | re.M)

WORDS = ("observed", "published", "confirmed", "computed", "inferred")
# Anything in brackets that begins like a mark and is not a link.
MARK = re.compile(r"\[(observed|published|confirmed|computed|inferred)\b([^\[\]]*)\](?!\()")
CLAUSE = re.compile(r"(observed|published|confirmed|computed|inferred):\s+\S.*", re.S)

CITATION = re.compile(r"\bhardware/([\w.-]+\.md)(?:#([\w.-]+))?")
LINK = re.compile(r"\]\(([\w.-]+\.md)?#([\w.-]+)\)")

# Notes that these chapters replace. They were never in the tree.
NOTES = ("nvgpu-rules", "gpu-frontend", "rm-semantics", "sass-report", "sass-encodings")
# The index says how many rules are confirmed.
CONFIRMED = re.compile(r"(\d+) rules are \*confirmed\*")

NOTE = re.compile(rf"(?<![\w/-])({'|'.join(NOTES)})\b(?!\.md#)")
SECTION = re.compile(r"§+ ?[0-9A-Z]")


def tracked(root: pathlib.Path) -> list[pathlib.PurePath]:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True).stdout
    return [pathlib.PurePath(n) for n in names.split("\0") if n and (root / n).is_file()]


def blank_fences(text: str) -> str:
    """The text with its code blocks emptied line by line, because what they contain is an example."""
    return FENCE.sub(lambda block: block[1] + "\n" * block[0].count("\n"), text)


def line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


class Chapter:
    """One file of `docs/hardware`: its anchors in order, and the text that belongs to each."""

    def __init__(self, text: str):
        self.text = blank_fences(text)
        found = list(ANCHOR.finditer(self.text))
        self.anchors = [(m[1], line_of(self.text, m.start())) for m in found]
        self.bodies = ANCHOR.split(self.text)[2::2]  # text, name, text, name, text ...

    def problems(self, is_rules: bool, marks: Counter) -> Iterator[str]:
        """The problems of the chapter. The words of its marks are counted."""
        yield from self.anchor_problems()
        if is_rules:
            yield from self.mark_problems(marks)

    def anchor_problems(self) -> Iterator[str]:
        """Anchors that have a bad name or exist twice."""
        first: dict[str, int] = {}
        for name, line in self.anchors:
            if not NAME.fullmatch(name):
                yield f"line {line}: anchor '{name}' is not in kebab-case"
            if name in first:
                yield f"line {line}: anchor '{name}' exists already, in line {first[name]}"
            first.setdefault(name, line)

    def mark_problems(self, marks: Counter) -> Iterator[str]:
        """Rules without a mark, and brackets that are not a valid mark."""
        waiting: list[str] = []
        for (name, line), body in zip(self.anchors, self.bodies, strict=True):
            waiting.append(name)
            if not body.strip():
                continue  # The next anchor names the same rule.
            clauses = [clause.strip() for mark in MARK.finditer(body) for clause in mark[0][1:-1].split(";")]
            bad = [clause for clause in clauses if not CLAUSE.fullmatch(clause)]
            for clause in bad:
                yield f"line {line}: the mark '{' '.join(clause.split())}' of '{name}' is not 'word: source'"
            if not clauses:
                yield f"line {line}: rule '{', '.join(waiting)}' has no mark such as [published: source]"
            marks.update(clause.split(":")[0] for clause in clauses if clause not in bad)
            waiting = []
        if waiting:
            yield f"anchor '{waiting[-1]}' names nothing"


def citations(path: pathlib.PurePath, text: str) -> Iterator[tuple[int, str, str | None]]:
    """The line, chapter and anchor of every citation in a file."""
    for m in CITATION.finditer(text):
        yield line_of(text, m.start()), m[1], m[2].rstrip(".-") if m[2] else None
    if path.parent == CHAPTERS:
        for m in LINK.finditer(blank_fences(text)):
            yield line_of(text, m.start()), m[1] or path.name, m[2]


def note_problems(text: str, names: Iterable[str]) -> Iterator[str]:
    """Citations of the old notes, which are not chapters."""
    for number, line in enumerate(text.splitlines(), 1):
        named = [m[1] for m in NOTE.finditer(line) if f"{m[1]}.md" not in names]
        if SECTION.search(line) or named:
            yield f"line {number}: cites notes that are not in the tree: {line.strip()[:100]}"


def check(root: pathlib.Path) -> tuple[list[str], str]:
    """All problems of a tree, and the numbers of things that were checked."""
    found: list[str] = []
    marks: Counter = Counter()
    texts = {p: (root / p).read_text(errors="replace") for p in tracked(root) if p.suffix in TEXT and p not in EXEMPT}
    chapters = {p.name: Chapter(text) for p, text in texts.items() if p.parent == CHAPTERS and p.suffix == ".md"}
    rules = {name for name in chapters if RULES.fullmatch(name)}
    for name, chapter in chapters.items():
        found += [f"{CHAPTERS / name}: {what}" for what in chapter.problems(name in rules, marks)]
    anchors = {name: {anchor for anchor, _ in chapter.anchors} for name, chapter in chapters.items()}
    cited = 0
    for path, text in texts.items():
        for line, name, anchor in citations(path, text):
            cited += 1
            if name not in anchors:
                found.append(f"{path}: line {line}: there is no {CHAPTERS / name}")
            elif anchor is not None and anchor not in anchors[name]:
                found.append(f"{path}: line {line}: {CHAPTERS / name} has no anchor '{anchor}'")
        found += [f"{path}: {what}" for what in note_problems(text, anchors)]
    for name, chapter in chapters.items():
        for said in CONFIRMED.findall(chapter.text):
            if int(said) != marks["confirmed"]:
                found.append(f"{CHAPTERS / name}: says that {said} rules are confirmed, but {marks['confirmed']} are")
    count = sum(len(chapters[name].anchors) for name in rules)
    sure = ", ".join(f"{marks[word]} {word}" for word in WORDS)
    return found, f"hardware: {len(rules)} chapters, {count} rules ({sure}), {cited} citations, {len(found)} problems"


def main() -> int:
    found, summary = check(ROOT)
    print("\n".join([*found, summary]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
