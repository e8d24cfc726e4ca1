"""The jobs of docs/continuous-integration.md and of the workflow that they call, step by step as they are written, on this tree.

What the tests stand in for: the machine (actions, apt-get, a clone of this repository) and the package index. Packages other than ours are
those of this environment.
"""

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
CUDA, CUDA_TEST = ".github/workflows/cuda.yml", "test_cuda.py"
CALLED = ".github/workflows/virtual-orin.yml"
pytestmark = pytest.mark.skipif(not TEGRARM_SIM.exists() or os.path.exists("/dev/nvgpu"), reason="no tegrarm-sim: make sim")


def load(text):
    return yaml.safe_load(text.replace("\non:", "\n'on':"))


@pytest.fixture(scope="module")
def stand_ins(tmp_path_factory):
    """A folder with an apt-get that does nothing, and a git whose clone of this repository is this tree."""
    place = tmp_path_factory.mktemp("stand-ins")
    git = f'[ "$1" != clone ] || exec ln -s "{ROOT}" "${{@: -1}}"\nexec {shutil.which("git")} "$@"\n'
    for name, script in (("apt-get", "exit 0\n"), ("git", git)):
        (place / name).write_text(f"#!/bin/bash\n{script}")
        (place / name).chmod(0o755)
    return place


@pytest.fixture
def machine(tmp_path, stand_ins):
    """A fresh home and project, and pip without an index."""
    project = tmp_path / "project"
    project.mkdir()
    dropped = ("TEGRARM_", "DEV", "PYTHONPATH", "VIRTUAL_ENV", "CACHEDB", "NVRTC_PATH", "CUDA_PATH", "PIP_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(dropped)}
    env |= {"HOME": str(tmp_path), "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PATH": f"{stand_ins}:{env['PATH']}"}
    # The homes of cargo and rustup are beside the user's.
    env |= {name: os.environ.get(name, str(pathlib.Path.home() / f".{name[:-5].lower()}")) for name in ("CARGO_HOME", "RUSTUP_HOME")}
    env |= {"PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}
    return project, env


def python_of(project: pathlib.Path, env: dict, place: str) -> dict:
    """A Python with the packages of this environment other than ours, first on the PATH. It borrows pip, which takes long to install."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project / place], check=True)
    lender = next(path for path in map(pathlib.Path, sys.path) if (path / "pip").is_dir())
    site, tools = next((project / place).glob("lib/python*/site-packages")), project / place / "bin"
    (site / "pip").symlink_to(lender / "pip")
    (tools / "pip").write_text(f'#!/bin/sh\nexec "{tools}/python" -m pip "$@"\n')
    (tools / "pip").chmod(0o755)
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


class Runner:
    """What a runner of GitHub does, as far as the workflow needs it."""

    def __init__(self, env: dict, home: pathlib.Path, inputs: dict):
        self.env, self.home = env, home
        self.values = {"github.sha": "0" * 40, **{f"inputs.{name}": value for name, value in inputs.items()}}
        self.artifacts, self.cached, self.ran = home / "artifacts", [], []

    def known(self, text):
        """A text with what its expressions stand for."""
        def value(found):
            of = found[1].strip()
            if inside := re.fullmatch(r"fromJSON\((.+)\)", of):
                return str(yaml.safe_load(self.values[inside[1]]))
            return str(self.values[of])
        return re.sub(r"\${{(.*?)}}", value, str(text))

    def wanted(self, condition: str) -> bool:
        """Whether the condition of a step holds."""
        if compared := re.fullmatch(r"(\S+) != '(\w+)'", condition):
            return self.values.get(compared[1], "") != compared[2]
        return bool(self.values[condition])

    def job(self, name: str, job: dict, checkout) -> None:
        """Runs the steps of a job in a folder of its own."""
        place = self.home / name
        place.mkdir()
        env = {**self.env, **{key: self.known(value) for key, value in job.get("env", {}).items()}}
        env["GITHUB_OUTPUT"] = str(place / ".outputs")
        for one in job["steps"]:
            if "if" in one and not self.wanted(one["if"]):
                continue
            given = {key: self.known(value) for key, value in one.get("with", {}).items()}
            match one.get("uses", "").split("@")[0]:
                case "":
                    env = step(place, env, self.known(one["run"]))
                    self.ran.append(one["name"])
                case "actions/checkout":
                    checkout(place, given)
                case "actions/setup-python":
                    env = python_of(place, env, ".python")
                case "actions/cache":
                    assert given["key"].startswith(given.get("restore-keys", ""))
                    self.cached.append(place / given["path"])
                case "actions/upload-artifact":
                    shutil.copytree(place / given["path"], self.artifacts / given["name"])
                case "actions/download-artifact":
                    shutil.copytree(self.artifacts / given["name"], place / given["path"])
                case action:
                    raise AssertionError(f"an action that this test does not know: {action}")
            if (place / ".outputs").exists() and "id" in one:
                self.values |= {f"steps.{one['id']}.outputs.{line.split('=')[0]}": line.split("=")[1]
                                for line in (place / ".outputs").read_text().splitlines()}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no checkout of git")
def test_the_job_of_github(machine, tmp_path):
    """The caller, and what it calls, on the newest kernel."""
    _, env = machine
    caller, called = load(FILES[GITHUB])["jobs"]["virtual-orin"], load((ROOT / CALLED).read_text())
    assert caller["uses"].split("@")[0].endswith(f"libtegrarm/{CALLED}")
    inputs = {name: row.get("default") for name, row in called["on"]["workflow_call"]["inputs"].items()}
    assert set(caller["with"]) <= set(inputs)
    runner = Runner(env, tmp_path / "runner", {**inputs, **caller["with"]})
    runner.home.mkdir()

    def ours(place, given):
        assert (given["repository"], given["ref"]) == ("libtegrarm/libtegrarm", "main")
        for entry in ROOT.iterdir():
            (place / entry.name).symlink_to(entry)

    runner.job("wheel", called["jobs"]["wheel"], ours)
    job = called["jobs"]["commands"]
    kernels = yaml.safe_load(runner.known(job["strategy"]["matrix"]["l4t"]))
    assert job["needs"] == "wheel" and kernels == ["r35", "r36", "r39"]
    runner.values["matrix.l4t"] = kernels[-1]
    runner.job("commands", job, lambda place, given: (place / TEST).write_text(FILES[TEST]))
    assert runner.ran == ["Which commit", "Build", "Install", "What is missing", "Commands", "Commands with the device nodes of a board"]
    assert all(any(place.iterdir()) for place in runner.cached), "a cache has nothing to keep"
    # The job for a CUDA program, with the same wheel.
    caller = load(FILES[CUDA])["jobs"]["cuda"]
    assert caller["uses"].split("@")[0].endswith(f"libtegrarm/{CALLED}") and set(caller["with"]) <= set(inputs)
    runner.values |= {f"inputs.{name}": value for name, value in caller["with"].items()}
    (runner.values["matrix.l4t"],) = yaml.safe_load(runner.known(job["strategy"]["matrix"]["l4t"]))
    runner.ran.clear()
    runner.job("cuda", job, lambda place, given: (place / CUDA_TEST).write_text(FILES[CUDA_TEST]))
    assert runner.ran == ["Install", "What is missing", "Commands"]


def test_the_jobs_of_gitlab(machine):
    project, env = machine
    jobs = load(FILES[GITLAB])
    env = python_of(project, env, ".image")
    for line in jobs["wheel"]["script"]:
        step(project, env, line)
        if "venv .build" in line:
            borrow(project / ".build")
    assert jobs["wheel"]["artifacts"]["paths"] == ["wheels"] and jobs["virtual-orin"]["needs"] == ["wheel"]
    job = jobs["virtual-orin"]
    (project / TEST).write_text(FILES[TEST])
    env |= {"CI_PROJECT_DIR": str(project), "TEGRARM_SIM_L4T": job["parallel"]["matrix"][0]["TEGRARM_SIM_L4T"][0]}
    for name, value in job["variables"].items():
        env[name] = os.path.expandvars(str(value).replace("$CI_PROJECT_DIR", str(project)))
    script = [*job["before_script"], *job["script"]]
    # A runner makes one script of all lines.
    for line in script:
        env = step(project, env, line)
        if "venv" in line and line.startswith("python"):
            borrow(project / ".venv")
    for path in job["cache"]["paths"]:
        assert any((project / path).iterdir()), "the cache has nothing to keep"


def test_workflows_follow_githubs_schema(tmp_path):
    workflows = (ROOT / ".github/workflows").glob("*.yml")
    texts = {"caller.yml": FILES[GITHUB], "cuda.yml": FILES[CUDA], **{path.name: path.read_text() for path in workflows}}
    for name, text in {**texts, "wrong.yml": FILES[GITHUB].replace("jobs:", "job:")}.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows"]
    done = subprocess.run([*command, *(tmp_path / name for name in texts)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert subprocess.run([*command, tmp_path / "wrong.yml"], capture_output=True, timeout=120).returncode == 1


def test_every_file_of_the_guide_is_used():
    assert set(FILES) == {GITHUB, GITLAB, TEST, CUDA, CUDA_TEST}
    assert shutil.which("bash")


def test_the_demos_environment_has_what_the_guides_command_needs():
    """`make demo` makes the environment in which a reader of the guide types its command."""
    assert "python -m pytest -q test_gpu.py" in PAGE.read_text()
    assert re.search(r"^pytest==", (ROOT / "python/requirements-demo.txt").read_text(), re.M)
