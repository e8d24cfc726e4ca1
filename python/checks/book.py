"""Follows the links of the documentation: README.md, CONTRIBUTING.md and every page of `docs`.

Every relative link must lead to a file, and its anchor to a heading or an `<a id>` in it. Every file that the text names as code must
exist. `docs/SUMMARY.md` must list every page once. The check needs no other tool. Only `make book` makes the HTML.
"""

import pathlib
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUMMARY = pathlib.PurePath("docs/SUMMARY.md")
FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2[^\n]*$", re.S | re.M)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
HEADING = re.compile(r"^#{1,6} +(.*?) *#*$", re.M)
ANCHOR = re.compile(r'<a id="([^"]*)"></a>')
# A path of the tree in a text begins with one of the tree's own folders.
PATH = re.compile(r"(?:(?:src|crates|docs|python|examples|ctests|tests|benches|fuzz|packaging|\.ci)/|include/tegrarm)[\w./-]+")


def pages(root: pathlib.Path) -> list[pathlib.PurePath]:
    """Every page that is checked, by its path from the root."""
    docs = sorted(path.relative_to(root) for path in (root / "docs").rglob("*.md"))
    return [pathlib.PurePath(n) for n in ("README.md", "CONTRIBUTING.md") if (root / n).exists()] + docs


def blank_fences(text: str) -> str:
    """The text with its code blocks emptied, line by line."""
    return FENCE.sub(lambda block: "\n" * block[0].count("\n"), text)


def slug(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def anchors(path: pathlib.Path) -> frozenset[str]:
    """Every anchor of a page: those of its headings, and those that are written out."""
    text = blank_fences(path.read_text())
    seen: Counter[str] = Counter()
    found = set(ANCHOR.findall(text))
    for heading in HEADING.findall(text):
        name = slug(heading)
        found.add(f"{name}-{seen[name]}" if seen[name] else name)
        seen[name] += 1
    return frozenset(found)


def link_problem(root: pathlib.Path, page: pathlib.PurePath, target: str) -> str | None:
    """The reason why a link leads nowhere."""
    if re.match(r"[a-z]+:", target):
        return None
    name, _, anchor = target.partition("#")
    to = (root / page.parent / name) if name else root / page
    if not to.exists():
        return f"leads to {name}, which is not there"
    if to.is_dir():
        return None if page == SUMMARY else f"leads to the folder {name}: name a page"
    if anchor and to.suffix == ".md" and anchor not in anchors(to.resolve()):
        return f"leads to {target}: that page has no such anchor"
    return None


def path_problem(root: pathlib.Path, code: str) -> str | None:
    """The reason why a path in the text is wrong. Words that are not a path of the tree, and patterns, are not checked."""
    named = PATH.fullmatch(code)
    return f"names {code}, which is not there" if named and not (root / code).exists() else None


def problems_of(root: pathlib.Path, page: pathlib.PurePath) -> Iterator[tuple[int, str]]:
    """The lines of one page that have a problem, with the problem of each."""
    text = blank_fences((root / page).read_text())
    generated = page.name in {"classes.md", "controls.md", "nodes.md"}
    for pattern, check in ((LINK, lambda t: link_problem(root, page, t)), (CODE, lambda t: path_problem(root, t))):
        for found in pattern.finditer(text):
            if not generated and (problem := check(found[1])):
                yield text.count("\n", 0, found.start()) + 1, problem


def summary_problems(root: pathlib.Path) -> Iterator[str]:
    """The pages that SUMMARY.md leaves out or lists twice. A link to a folder stands for all pages in it."""
    listed: Counter[pathlib.PurePath] = Counter()
    for target in LINK.findall((root / SUMMARY).read_text()):
        where = root / SUMMARY.parent / target
        pages_there = where.rglob("*.md") if where.is_dir() else [where]
        listed.update(pathlib.PurePath(path.relative_to(root)) for path in pages_there)
    for page in pages(root):
        if page.parts[0] == "docs" and page != SUMMARY and listed[page] != 1:
            yield f"{SUMMARY}: lists {page} {listed[page]} times"


def problems(root: pathlib.Path) -> list[str]:
    """All problems in the documentation of a tree."""
    anchors.cache_clear()
    found = [f"{page}:{line}: {what}" for page in pages(root) for line, what in problems_of(root, page)]
    return found + list(summary_problems(root))


def tracked() -> set[str]:
    """The files of the tree that git has or would add. A link to any other file works on one machine only."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True,
                           check=True, text=True).stdout
    return set(names.split("\0"))


def main() -> int:
    found = problems(ROOT)
    untracked = [f"{page}: git ignores it" for page in pages(ROOT) if str(page) not in tracked()]
    print("\n".join(found + untracked) or f"book: ok, {len(pages(ROOT))} pages")
    return 1 if found or untracked else 0


if __name__ == "__main__":
    sys.exit(main())
