"""README.md and the pages of `docs`: what they print is run.

Each page is one terminal: its `sh` blocks run in order, exactly as printed, in a folder that looks like the root of the repository.
A Python, C or CUDA block begins with a comment that names a file, and is saved under that name. An `output` block is what the block
before it must print; `...` in it stands for any text. Blocks marked `long` or `board` are not run: `docs/contributing.md` has a table
of their commands, each with its reason.
"""

import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

from tegrarm import say

sys.path.insert(0, str(ROOT / "python" / "checks"))
import book

FENCE = re.compile(r"^```(\S*)([^\n]*)\n(.*?)^```$", re.S | re.M)
SAVED = {"python": r"# (\S+)\n", "c": r"/\* (\S+) \*/\n", "cuda": r"// (\S+)\n"}
NOT_RUN = {"long", "board"}
TIMEOUT = 900  # of one block; they take seconds, but a busy machine may need more


@dataclasses.dataclass
class Block:
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    words: set[str]
    text: str

    def where(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: pathlib.PurePath) -> list[Block]:
    text = (ROOT / page).read_text()
    return [Block(str(page), text.count("\n", 0, m.start()) + 1, m[1], set(m[2].split()), m[3]) for m in FENCE.finditer(text)]


BLOCKS = {str(page): blocks_of(page) for page in book.pages(ROOT)}
PAGES = [page for page, blocks in BLOCKS.items() if any(b.language == "sh" and not b.words for b in blocks)]
LEFT_OUT = [block for blocks in BLOCKS.values() for block in blocks if block.words]


def commands(block: Block) -> list[str]:
    """The commands of a block, without comments."""
    return [line for line in (re.sub(r"\s+#\s.*", "", line).strip() for line in block.text.splitlines()) if line]


def target() -> pathlib.Path:
    return pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


def of_the_repository() -> list[str]:
    """What is in the repository; where it came as an archive, or there is no git, everything that we did not make."""
    if shutil.which("git") and (ROOT / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout.split("\0")
    else:
        listed = [p.name for p in ROOT.iterdir() if p.name not in (".git", ".venv", ".cache", "target", "dist")]
    return [name for name in listed if name and (ROOT / name).exists()]


@pytest.fixture
def terminal(tmp_path):
    """A folder like the repository's root, and a way to run a block there. What a block exports, the next one has."""
    for top in {name.partition("/")[0] for name in of_the_repository()} - {"out"}:
        (tmp_path / top).symlink_to(ROOT / top)
    for own in ("out", ".tmp"):
        (tmp_path / own).mkdir()
    for name, to in ((".venv", pathlib.Path(sys.prefix)), (".cache", ROOT / ".cache"), ("target", target())):
        (tmp_path / name).symlink_to(to)
    state = tmp_path / ".terminal"
    state.touch()
    ours = ("TEGRARM_", "MAKE", "MFLAGS", "DEV", "LD_PRELOAD", "VIRTUAL_ENV", "PYTEST")
    env = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    env["TMPDIR"] = str(tmp_path / ".tmp")
    if " " in str(target()):
        env.pop("CARGO_TARGET_DIR", None)  # make takes no such name; the folder has a link of the usual name
    else:
        env["CARGO_TARGET_DIR"] = str(target())
    before = set(tmp_path.iterdir())

    def run(block: Block) -> str:
        script = f". {state}\n{block.text}\nexport -p > {state}\n"
        done = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=TIMEOUT,
                              stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{block.where()}: exit status {done.returncode}\n{block.text}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def left(own: set[str]) -> set[str]:
        """What the commands have left in the folder for temporary files, and in the repository where git would show it."""
        made = {path.name + "/" * path.is_dir() for path in set(tmp_path.iterdir()) - before} - own
        shown = {name for name in made if subprocess.run(["git", "check-ignore", "-q", name], cwd=ROOT).returncode == 1}
        return shown | {f".tmp/{path.name}" for path in (tmp_path / ".tmp").iterdir()}

    run.root, run.left = tmp_path, left
    return run


def matches(printed: str, wanted: str) -> bool:
    """Whether a text is the wanted one, in which `...` stands for anything."""
    return re.fullmatch(".*?".join(re.escape(part) for part in wanted.split("...")), printed, re.S) is not None


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_prints_runs(page, terminal):
    if any("pkg-config" in b.text for b in BLOCKS[page]) and not shutil.which("pkg-config"):
        pytest.skip("pkg-config is not installed")
    printed, own = "", set()
    for block in BLOCKS[page]:
        if block.language in SAVED:
            name = re.match(SAVED[block.language], block.text)
            assert name, f"{block.where()}: the first line of a {block.language} block names its file in a comment"
            (terminal.root / name[1]).write_text(block.text)
            own.add(name[1])
        elif block.language == "sh" and not block.words:
            printed = terminal(block)
            own |= set(re.findall(r"> (\w+\.py)\b", block.text))
        elif block.language == "output":
            assert matches(printed, block.text), f"{block.where()}: printed\n{printed}\nwanted\n{block.text}"
    # Programs of the reader are the reader's. Everything else goes to folders that git does not show.
    assert terminal.left(own) == set(), f"{page} leaves files"


def test_every_block_is_run_saved_or_only_looked_at():
    """A block in an unknown language, or with an unknown word, would silently not be run; so would a file that no command names."""
    for page, blocks in BLOCKS.items():
        run = "\n".join(b.text for b in blocks if b.language == "sh" and not b.words)
        for block in blocks:
            known = {"sh", "output", "text", "yaml", *SAVED}
            assert block.language in known, f"{block.where()}: blocks are {', '.join(sorted(known))}"
            # test_ci_guide.py runs these, and compares the list of them with the page.
            assert block.language != "yaml" or block.page == "docs/continuous-integration.md", f"{block.where()}: who runs this?"
            assert not block.words or (block.language == "sh" and len(block.words) == 1 and block.words <= NOT_RUN), block.where()
            if block.language in SAVED:
                name = re.match(SAVED[block.language], block.text)
                assert name and name[1] in run, f"{block.where()}: no command of {page} names this file"


def listed() -> dict[str, str]:
    """The table of commands that no test runs, with its reasons."""
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", section("docs/contributing.md", "### Commands that no test runs"), re.M)
    return dict(rows)


def section(page: str, heading: str) -> str:
    text = (ROOT / page).read_text().split(heading + "\n")[1]
    return re.split(r"^#{1,6} ", text, flags=re.M)[0]


def test_commands_that_are_not_run_are_listed_with_a_reason():
    table = listed()
    printed = {command for block in LEFT_OUT for command in commands(block)}
    assert printed == set(table), "the table of docs/contributing.md and the blocks marked long or board differ"
    assert all(len(reason.split()) > 3 for reason in table.values())
    assert len(table) <= 15, "few commands are left out: find a way to run the new one"


@pytest.mark.parametrize("command", sorted(listed()))
def test_a_command_that_is_not_run_could_be(command):
    """make knows the goal; programs and scripts are there."""
    words = [w for w in shlex.split(command) if not re.match(r"[A-Z_]+=", w)]
    if words[0] == "make":
        env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
        subprocess.run([*words, "--dry-run"], cwd=ROOT, env=env, check=True, capture_output=True)
        return
    if words[0] == "sudo":
        return  # a machine without sudo has root
    of_the_tree = [w for w in words if re.match(r"(\.ci|python|crates|examples|docs)/", w)]
    missing = [w for w in of_the_tree if not (ROOT / w).exists()]
    assert not missing
    assert of_the_tree or words[0].startswith(("target/release/", ".venv/bin/")) or shutil.which(words[0]), command


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


def test_settings_name_every_variable_that_is_read():
    """The table has every TEGRARM_ variable that the source reads, and the source reads every variable in the table."""
    table = set(re.findall(r"^\| `(TEGRARM_\w+)`", (ROOT / "docs" / "settings.md").read_text(), re.M))
    lists = {ROOT / "crates/tegrarm-output/src/settings.rs", ROOT / "python/tegrarm/say.py"}
    files = {*ROOT.glob("src/**/*.rs"), *ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("python/tegrarm/*.py")} - lists
    read = {v for f in files for v in re.findall(r'"(TEGRARM_(?!TEST_)[A-Z0-9_]+)"', f.read_text())} | {"TEGRARM_TOLD"}
    assert table == read
    # Both lists of what is a setting have the same names. Everything else that begins so is told to be none.
    rust = re.search(r"pub const NAMES.*?\];", (ROOT / "crates/tegrarm-output/src/settings.rs").read_text(), re.S)[0]
    assert table == set(re.findall(r'"(TEGRARM_\w+)"', rust)) | {"TEGRARM_TOLD"} == set(say.SETTINGS)


def test_links_lead_somewhere():
    assert book.problems(ROOT) == []


def test_bad_links_are_found(tmp_path):
    """The check itself: each kind of mistake, and a page without one."""
    docs = tmp_path / "docs"
    docs.mkdir()
    good = "[good](docs/a.md#one-two) [itself](#top) [elsewhere](https://example.com/#x) `docs/a.md`"
    (tmp_path / "README.md").write_text(f"# Top\n\n{good}\n")
    (docs / "SUMMARY.md").write_text("* [a](a.md)\n")
    (docs / "a.md").write_text('# A\n\n## One, `two`\n\n<a id="three"></a>\n\n```text\n[no link](nowhere.md)\n```\n[three](#three)\n')
    assert book.problems(tmp_path) == []
    (docs / "b.md").write_text("[gone](c.md) [no anchor](a.md#four) `src/none.rs` [folder](../docs)\n")
    found = "\n".join(book.problems(tmp_path))
    for part in ("leads to c.md, which", "a.md#four: that page has no such anchor", "names src/none.rs", "the folder ../docs",
                 "lists docs/b.md 0 times"):
        assert part in found
    assert len(found.splitlines()) == 5
