"""The examples of README.md are taken from it and run."""

import os
import re
import subprocess
import sys

from conftest import ROOT

from tegrarm import _ffi


def example(language: str) -> str:
    blocks = re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert len(blocks) == 1, f"README.md should have one {language} example"
    return blocks[0]


def test_python_example(python):
    code = example("python")
    assert len(code.split("\n")) <= 7
    assert python(code, env={"DEV": "TEGRA+NV"}) == "[5 7 9]\nsm_87\n"


def test_c_example(tmp_path):
    source, binary = tmp_path / "example.c", tmp_path / "example"
    source.write_text(example("c"))
    assert len([line for line in example("c").splitlines() if line]) <= 32, "thirty lines and the braces"
    libdir = os.path.dirname(_ffi.find())
    subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", source, f"-I{ROOT}/include", f"-L{libdir}", "-ltegrarm",
                    f"-Wl,-rpath,{libdir}", "-o", binary], check=True)
    compiler = ROOT / "examples" / "c" / "compile.py"
    subprocess.run([sys.executable, compiler, compiler.with_name("kernels.cu"), tmp_path / "kernels.cubin"], check=True)
    done = subprocess.run([binary], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "2 198\n"), done.stderr


def test_environment_table_names_every_variable_that_is_read():
    """A TEGRARM_ variable that the source reads is in the table, and the table lists nothing that nobody reads."""
    listed = set(re.findall(r"^\| `(TEGRARM_\w+)`", (ROOT / "README.md").read_text(), re.M))
    files = [*ROOT.glob("src/**/*.rs"), *ROOT.glob("crates/*/src/**/*.rs"), *ROOT.glob("python/tegrarm/*.py")]
    read = {v for f in files for v in re.findall(r'"(TEGRARM_(?!TEST_)[A-Z0-9_]+)"', f.read_text())}
    assert listed == read
