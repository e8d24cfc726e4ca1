"""The completions of the shells: commands, those below `pool` and `sim`, and their options."""

import os
import shutil
import subprocess

import pytest
from conftest import ROOT

COMPLETIONS = ROOT / "packaging" / "completions"
BASH = """
source "$1/tegrarm.bash"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_tegrarm
printf '%s\\n' "${COMPREPLY[@]}"
"""


def offered(*words: str) -> set[str]:
    """What bash offers for the last word."""
    command = ["bash", "-c", BASH, "bash", str(COMPLETIONS), "tegrarm", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    return set(done.stdout.split())


@pytest.mark.parametrize(("words", "some"), [
    (["p"], {"pool"}),
    (["pool", ""], {"plan", "run", "profile", "list", "table"}),
    (["pool", "plan", "--"], {"--batch", "--objective", "--compare", "--output"}),
    (["pool", "run", "--k"], {"--kill"}),
    (["pool", "table", ""], {"compare", "scale"}),
    (["run", "--"], {"--json", "--preload"}),
    (["trace", "--p"], {"--preload", "--perfetto"}),
    (["compile", "-"], {"-I", "-D", "--ptx"}),
    (["sim", ""], {"run", "replay", "decode"}),
    (["sim", "run", "--"], {"--chip", "--l4t", "--trace"}),
    (["sim", "decode", "--"], {"--as", "--json"}),
])
def test_bash_offers(words, some):
    assert some <= offered(*words)


def test_bash_offers_no_option_of_another_command():
    assert not {"--batch", "--devices"} & offered("run", "--") and "--preload" not in offered("pool", "run", "--")
    assert "docs" in offered("compile", "doc")


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_understands_its_completion():
    for name in ("_tegrarm", "_tegrarm-sim"):
        subprocess.run(["zsh", "-n", COMPLETIONS / name], check=True)


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_offers_what_bash_offers(tmp_path):
    def said(line: str) -> set[str]:
        script = f"source '{COMPLETIONS}/tegrarm.fish'; source '{COMPLETIONS}/tegrarm-sim.fish'; complete -C '{line}'"
        done = subprocess.run(["fish", "--no-config", "-c", script], cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)},
                              capture_output=True, text=True, check=True)
        return {entry.split("\t")[0] for entry in done.stdout.splitlines()}

    assert {"plan", "run", "list"} <= said("tegrarm pool ") and "--kill" in said("tegrarm pool run --")
    assert "--preload" in said("tegrarm run --") and "--preload" not in said("tegrarm pool run --")
    assert {"run", "decode"} <= said("tegrarm sim ") and "--chip" in said("tegrarm sim run --")
