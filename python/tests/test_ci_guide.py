"""The jobs of docs/continuous-integration.md, step by step as they are printed, with a wheel of this tree."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from conftest import ROOT, TEGRARM_SIM

PAGE = ROOT / "docs" / "continuous-integration.md"
BLOCK = re.compile(r"^```(?:yaml|python)\n# (\S+)\n(.*?)^```$", re.S | re.M)
FILES = {m[1]: m[0].split("\n", 1)[1].rsplit("```", 1)[0] for m in BLOCK.finditer(PAGE.read_text())}
GITHUB, GITLAB, TEST = ".github/workflows/gpu.yml", ".gitlab-ci.yml", "test_gpu.py"
pytestmark = pytest.mark.skipif(not TEGRARM_SIM.exists() or os.path.exists("/dev/nvgpu"), reason="no tegrarm-sim: make sim")


def load(name):
    return yaml.safe_load(FILES[name].replace("\non:", "\n'on':"))


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """A directory with a wheel of this tree and with one that stands for pytest, which is there already."""
    place = tmp_path_factory.mktemp("wheels")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index", "-w", place]
    subprocess.run([*map(str, command), str(ROOT / "python")], check=True, timeout=900)
    return place


@pytest.fixture
def machine(tmp_path, wheels):
    """A fresh home and project, and pip that finds our wheel. Other packages are those of this environment."""
    project = tmp_path / "project"
    project.mkdir()
    dropped = ("TEGRARM_", "DEV", "PYTHONPATH", "VIRTUAL_ENV", "CACHEDB", "NVRTC_PATH", "CUDA_PATH", "CARGO_TARGET_DIR", "PIP_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    env |= {"HOME": str(tmp_path), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    env |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_NO_DEPS": "1"}
    return project, env


def python_of(project: pathlib.Path, env: dict, place: str) -> dict:
    """A Python with the packages of this environment other than ours, first on the PATH."""
    subprocess.run([sys.executable, "-m", "venv", project / place], check=True)
    borrow(project / place)
    return {**env, "PATH": f"{project / place / 'bin'}:{env['PATH']}"}


def borrow(venv: pathlib.Path) -> None:
    """Lends a virtual environment the packages of this one, without this tree's own."""
    site = next(venv.glob("lib/python*/site-packages"))
    for place in map(pathlib.Path, sys.path):
        if place.name in ("site-packages", "dist-packages") and place.is_dir():
            for entry in place.iterdir():
                ours = "tegrarm" in entry.name or entry.suffix == ".pth" or entry.name.startswith(("pip", "setuptools", "_distutils"))
                if not ours and not (site / entry.name).exists():
                    (site / entry.name).symlink_to(entry)


def step(project: pathlib.Path, env: dict, script: str) -> dict:
    """Runs a step as a runner does, and returns the environment that it leaves."""
    after = project / ".environment"
    done = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", f"{script}\nenv -0 > {after}"], cwd=project, env=env, capture_output=True,
                          text=True, timeout=600)
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    left = dict(pair.split("=", 1) for pair in after.read_text().split("\0") if "=" in pair)
    after.unlink()
    if "pip install" in script:
        assert "tegrarm" in subprocess.run(["bash", "-c", "pip list"], cwd=project, env=left, capture_output=True, text=True).stdout
    return left


@pytest.mark.parametrize("l4t", ["r36", "r39"])
def test_the_job_of_github(machine, l4t):
    project, env = machine
    job = load(GITHUB)["jobs"]["virtual-orin"]
    assert l4t in job["strategy"]["matrix"]["l4t"]

    def known(text: str) -> str:
        text = text.replace("${{ matrix.l4t }}", l4t).replace("${{ github.sha }}", "0" * 40)
        assert "${{" not in text, text
        return text

    env |= {name: known(str(value)) for name, value in job["env"].items()}
    used, cached = [], None
    for one in job["steps"]:
        action = one.get("uses", "").split("@")[0]
        if action == "actions/checkout":
            (project / TEST).write_text(FILES[TEST])
        elif action == "actions/setup-python":
            env = python_of(project, env, ".python")
        elif action == "actions/cache":
            cached = project / known(one["with"]["path"])
            assert known(one["with"]["key"]).startswith(known(one["with"]["restore-keys"]))
        else:
            assert not action, f"an action that this test does not know: {action}"
            env = step(project, env, known(one["run"]))
        used.append(action or one["name"])
    assert used[:3] == ["actions/checkout", "actions/setup-python", "actions/cache"] and len(used) == 7
    assert any(cached.iterdir()), "the cache has nothing to keep"


def test_the_job_of_gitlab(machine):
    project, env = machine
    job = load(GITLAB)["virtual-orin"]
    (project / TEST).write_text(FILES[TEST])
    env = python_of(project, env, ".image")
    env |= {"CI_PROJECT_DIR": str(project), "TEGRARM_SIM_L4T": job["parallel"]["matrix"][0]["TEGRARM_SIM_L4T"][0]}
    for name, value in job["variables"].items():
        env[name] = os.path.expandvars(str(value).replace("$CI_PROJECT_DIR", str(project)))
    script = [*job["before_script"], *job["script"]]
    # A runner makes one script of all lines. The packages come with `pip install`, which here finds only ours.
    for line in script:
        env = step(project, env, line)
        if "venv" in line and line.startswith("python"):
            borrow(project / ".venv")
    for path in job["cache"]["paths"]:
        assert any((project / path).iterdir()), "the cache has nothing to keep"


def test_every_file_of_the_guide_is_used():
    assert set(FILES) == {GITHUB, GITLAB, TEST}
    assert shutil.which("bash")
