"""docs/troubleshooting.md: every message of its table is made here, by the row that the page was written from.

    python python/tests/test_troubleshooting.py        writes the page anew
"""

import os
import pathlib
import re
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from conftest import ROOT, TEGRARM_SIM
from machines import BROKEN
from troubles import COMMANDS, SNIPPETS, changing, masked, of_command, of_machine, of_snippet, without

PAGE = ROOT / "docs" / "troubleshooting.md"
BEGIN, END = "<!-- messages: begin -->", "<!-- messages: end -->"
pytestmark = pytest.mark.skipif(not TEGRARM_SIM.exists() or os.path.exists("/dev/nvgpu"), reason="no tegrarm-sim: make sim")


def cell(text: str) -> str:
    return text.replace("|", "\\|")


def code(text: str) -> str:
    """A message as code: with two backticks where it has one itself."""
    return f"`` {cell(text)} ``" if "`" in text else f"`{cell(text)}`"


def row(message: str, means: str, todo: str) -> str:
    return f"| {code(message)} | {cell(means)} | {cell(todo)} |"


def rows_of(page: str) -> list[str]:
    inside = page.split(BEGIN)[1].split(END)[0]
    return [line for line in inside.splitlines() if line.startswith("| `")]


def doctors(place: pathlib.Path) -> list[str]:
    """The rows that doctor says, in the order of its checks."""
    made = []
    for index, broken in enumerate(BROKEN):
        folder = place / str(index)
        folder.mkdir()
        message, todo = of_machine(broken, folder)
        made.append(row(message, f"{broken.name[0].upper()}{broken.name[1:]}: the line `{broken.line}` of `tegrarm doctor`.", todo))
    return list(dict.fromkeys(made))


def generated(place: pathlib.Path) -> str:
    head = "| message | what it means | what to do |\n|---|---|---|\n"
    parts = ["## Commands refuse", head + "\n".join(row(of_command(c, fresh(place, c.name)), c.means, c.todo) for c in COMMANDS),
             "## The library refuses, or the GPU stops",
             head + "\n".join(row(of_snippet(s, fresh(place, s.name)), s.means, s.todo) for s in SNIPPETS),
             "## Doctor finds", head + "\n".join(doctors(fresh(place, "doctor")))]
    return "\n\n".join(parts)


def fresh(place: pathlib.Path, name: str) -> pathlib.Path:
    folder = place / re.sub(r"\W+", "-", name)
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def page():
    return rows_of(PAGE.read_text())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.name)
def test_a_commands_message_is_in_the_table(command, page, tmp_path):
    assert row(of_command(command, tmp_path), command.means, command.todo) in page


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda s: s.name)
def test_the_librarys_message_is_in_the_table(snippet, page, tmp_path):
    assert row(of_snippet(snippet, tmp_path), snippet.means, snippet.todo) in page


def test_doctors_messages_are_in_the_table(page, tmp_path):
    assert set(doctors(tmp_path)) <= set(page)


def test_the_table_has_no_other_rows(page):
    """Each row is made by one of the tests above."""
    assert len(page) == len(set(page))
    distinct = {(b.line, b.says, b.todo, b.name) for b in BROKEN}
    assert len(page) == len(COMMANDS) + len(SNIPPETS) + len(distinct)


def test_what_differs_between_runs_is_left_out():
    assert masked("tegrarm: a\n  b 0x7f12345678 at /tmp/x/y: SM 3") == "a b 0x… at …: SM …"


@pytest.mark.parametrize("root", ["/tmp/checkout", "/srv/tmp/tegrarm", "/srv/with space/tmp/ü", f"/srv/tmp/{'x' * 200}"])
def test_the_checkout_may_lie_anywhere(root):
    """Below a folder `tmp`, too: what is masked then is the checkout, and not a part of its path."""
    patterns = changing(root)
    assert without(f"{root}/README.md cannot be loaded", patterns) == "…/README.md cannot be loaded"
    assert without(f"looked at {root} and at /tmp/x", patterns) == "looked at … and at …"


def main() -> None:
    with tempfile.TemporaryDirectory() as place:
        text = PAGE.read_text()
        head, rest = text.split(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n{generated(pathlib.Path(place))}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
