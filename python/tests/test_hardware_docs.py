"""Tests the checker of `docs/hardware` with each kind of mistake, in a small tree of its own."""

import importlib.util
import pathlib
import re
import shutil
import subprocess

import pytest

CHECKER = pathlib.Path(__file__).resolve().parents[1] / "checks" / "hardware.py"

GOOD = """# A chapter

It covers two rules.

<a id="first-rule"></a>
## First
A thing is so. [published: nvgpu ioctl_as.c]

<a id="second-rule"></a>
Another thing is so, as [the first](#first-rule) says. [observed: board log; inferred: from the first]
"""


@pytest.fixture(scope="module")
def checker():
    spec = importlib.util.spec_from_file_location("hardware_check", CHECKER)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def check(checker, tmp_path):
    """Writes a tree and checks it. Returns the problems and the summary."""
    if not shutil.which("git"):
        pytest.skip("not installed: git")

    def run(files: dict[str, str]):
        subprocess.run(["git", "init", "-q", tmp_path], check=True)
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return checker.check(tmp_path)

    return run


def test_a_good_tree_has_no_problems_and_is_counted(check):
    found, summary = check(
        {
            "docs/hardware/nvgpu-x.md": GOOD,
            "docs/hardware/README.md": '# Index\n\n<a id="top"></a>\nNo mark is needed here.\n',
            "docs/other.md": "See [it](hardware/nvgpu-x.md#second-rule), [all](hardware/nvgpu-x.md).\n",
            "src/a.rs": "//! So (docs/hardware/nvgpu-x.md#first-rule). And docs/hardware/nvgpu-x.md#second-rule.\n",
        }
    )
    assert found == []
    assert summary == (
        "hardware: 1 chapters, 2 rules (1 observed, 1 published, 0 confirmed, 0 computed, 1 inferred), 5 citations, 0 problems"
    )


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("src/a.rs", "// docs/hardware/nvgpu-x.md#third-rule\n", "has no anchor 'third-rule'"),
        ("ctests/a.c", "/* docs/hardware/nvgpu-x.md#third-rule */\n", "has no anchor 'third-rule'"),
        ("a.h", "\n\n/* docs/hardware/nvgpu-y.md#first-rule */\n", "line 3: there is no docs/hardware/nvgpu-y.md"),
        ("python/a.py", "# docs/hardware/nvgpu-y.md\n", "there is no docs/hardware/nvgpu-y.md"),
        ("a.toml", "# docs/hardware/nvgpu-x.md#third-rule\n", "has no anchor 'third-rule'"),
        ("docs/a.md", "[it](hardware/nvgpu-x.md#third-rule)\n", "has no anchor 'third-rule'"),
        ("docs/hardware/README.md", "[it](nvgpu-x.md#third-rule)\n", "has no anchor 'third-rule'"),
        ("docs/hardware/README.md", "[it](#nowhere)\n", "docs/hardware/README.md has no anchor 'nowhere'"),
    ],
)
def test_a_citation_that_does_not_resolve_is_found(check, name, text, what):
    found, _ = check({"docs/hardware/nvgpu-x.md": GOOD, name: text})
    assert len(found) == 1 and found[0].startswith(name) and what in found[0], found


def test_an_anchor_that_exists_twice_is_found(check):
    twice = GOOD + '\n<a id="first-rule"></a>\nOnce more. [inferred: nothing]\n'
    found, _ = check({"docs/hardware/nvmap.md": twice})
    assert found == ["docs/hardware/nvmap.md: line 12: anchor 'first-rule' exists already, in line 5"]


def test_an_anchor_has_a_plain_name(check):
    found, _ = check({"docs/hardware/gpu-x.md": '<a id="Rule_5"></a>\nSo. [inferred: nothing]\n'})
    assert found == ["docs/hardware/gpu-x.md: line 1: anchor 'Rule_5' is not in kebab-case"]


@pytest.mark.parametrize(
    "line",
    [
        "// (nvgpu-rules §5.1)",
        "//! RM (rm-semantics.md § 4.2)",
        "// what published logs show (nvgpu-rules E2)",
        "// sass-report: ELF",
        "// facts: gpu-frontend",
        "//! registered buffers (§4.7), shared groups",
        "// sass-encodings §E",
    ],
)
def test_a_citation_of_the_old_notes_is_found(check, line):
    found, _ = check({"docs/hardware/nvgpu-x.md": GOOD, "src/a.rs": f"\n{line}\n"})
    assert found == [f"src/a.rs: line 2: cites notes that are not in the tree: {line}"]


def test_a_chapter_may_have_the_name_of_a_note(check):
    found, _ = check({"docs/hardware/rm-semantics.md": GOOD, "docs/hardware/README.md": "[RM](rm-semantics.md)\n"})
    assert found == []


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("A thing is so.", "rule 'third-rule' has no mark"),
        ("A thing is so. [guessed: by me]", "rule 'third-rule' has no mark"),
        ("A thing is so. [published](other.md)", "rule 'third-rule' has no mark"),
        ("A thing is so. [published]", "the mark 'published' of 'third-rule' is not 'word: source'"),
        ("A thing is so. [published: ]", "the mark 'published:' of 'third-rule' is not 'word: source'"),
        ("So. [published: a; board log]", "the mark 'board log' of 'third-rule' is not 'word: source'"),
        ("```text\n[published: in an example]\n```", "rule 'third-rule' has no mark"),
        ("", "anchor 'third-rule' names nothing"),
    ],
)
@pytest.mark.parametrize("chapter", ["nvgpu-x", "nvmap", "rm-x", "gpu-x", "sm87-x"])
def test_a_rule_without_a_source_or_a_word_is_found(check, chapter, body, what):
    found, _ = check({f"docs/hardware/{chapter}.md": f'{GOOD}\n<a id="third-rule"></a>\n{body}\n'})
    assert len(found) == 1 and what in found[0], found


def test_two_anchors_may_name_one_rule(check):
    text = '<a id="one"></a>\n<a id="two"></a>\nSo. [computed:\nuapi headers,\ncompiled]\n'
    assert check({"docs/hardware/sm87-x.md": text})[0] == []


def test_a_mark_belongs_to_its_own_rule(check):
    text = '<a id="one"></a>\nSo.\n\n<a id="two"></a>\nSo. [computed: here]\n'
    assert check({"docs/hardware/sm87-x.md": text})[0] == [
        "docs/hardware/sm87-x.md: line 1: rule 'one' has no mark such as [published: source]"
    ]


def test_main_prints_the_problems_and_fails(checker, check, tmp_path, monkeypatch, capsys):
    check({"docs/hardware/nvgpu-x.md": GOOD})
    monkeypatch.setattr(checker, "ROOT", tmp_path)
    assert checker.main() == 0
    (tmp_path / "a.md").write_text("hardware/nvgpu-x.md#gone\n")
    assert checker.main() == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "a.md: line 1: docs/hardware/nvgpu-x.md has no anchor 'gone'",
        "hardware: 1 chapters, 2 rules (1 observed, 1 published, 0 confirmed, 0 computed, 1 inferred), 2 citations, 1 problems",
    ]


DOCS = CHECKER.parents[2] / "docs"
# What follows from the other rules of the chapter, and what is no claim about a board.
NO_CLAIM = {"client-duties", "simulator-duties", "questions-for-a-board", "telling-releases-apart"}


def test_what_was_concluded_about_r39_is_to_be_confirmed_on_a_board():
    """A rule of the chapter that is concluded, or that only a header's comment says, has a line in docs/validated-on.md."""
    anchor, concluded = "", set()
    for paragraph in (DOCS / "hardware" / "nvgpu-r39.md").read_text().split("\n\n"):
        anchor = (re.findall(r'<a id="([^"]+)">', paragraph) or [anchor])[-1]
        marks = " ".join(re.findall(r"\[[^\]]*:[^\]]*\]", paragraph.replace("\n", " ")))
        if "inferred:" in marks or "r39 header comments" in marks:
            concluded.add(anchor)
    linked = set(re.findall(r"hardware/nvgpu-r39\.md#([\w-]+)", (DOCS / "validated-on.md").read_text()))
    assert len(concluded) > 10 and concluded - NO_CLAIM <= linked, concluded - NO_CLAIM - linked


def test_each_line_to_be_confirmed_names_what_settles_it():
    rows = [line for line in (DOCS / "validated-on.md").read_text().splitlines() if line.startswith("| ") and "|---" not in line]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in rows if "taken for granted" not in line]
    assert len(rows) > 25
    for what, granted, command, look in rows:
        assert granted and command, what
        if "`" not in command:
            assert command in ("the same", "as for r39") or "do not try" in command or command.startswith("none:"), what
        assert look or "do not try" in command or command.startswith("none:"), what
