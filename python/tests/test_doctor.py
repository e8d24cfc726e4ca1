"""tegrarm doctor: every way in which a machine can be broken is named, with what to do."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import ROOT, TEGRARM_SIM
from machines import BROKEN, build

from tegrarm import doctor
from tegrarm.doctor.machine import Machine

BOARD = os.path.exists("/dev/nvgpu")
DOCTOR = ["-m", "tegrarm", "doctor", "--json"]


def checks_of(root: pathlib.Path, environ: dict[str, str]):
    nobody = 54321  # no file of a fixture is this user's
    return list(doctor.checks(Machine(root=root, environ=environ, uid=nobody, groups=frozenset([nobody]))))


def test_a_board_that_is_well_has_no_problem(tmp_path):
    found = checks_of(build(tmp_path), {})
    assert [c for c in found if c.state not in ("ok", "skipped")] == []
    assert [c.says for c in found if c.name == "release"] == ["L4T r36.4.3 (JetPack 6)"]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda b: b.name.replace(" ", "-"))
def test_a_broken_environment_is_named_with_what_to_do(broken, tmp_path):
    found = checks_of(build(tmp_path, broken), broken.environ)
    hits = [c for c in found if c.name == broken.line and c.state == broken.state and broken.says in c.says]
    assert hits, [c for c in found if c.name == broken.line]
    assert any(broken.todo in hit.todo for hit in hits), hits
    problems = [c.name for c in found if c.state == "problem"]
    assert (broken.line in problems) == (broken.state == "problem")


def test_every_check_is_made_whatever_the_first_ones_find(tmp_path):
    well, worst = checks_of(build(tmp_path / "well"), {}), checks_of(build(tmp_path / "worst", BROKEN[0]), {})
    assert [c.name for c in well] == [c.name for c in worst]


def test_one_cause_gives_one_problem(tmp_path):
    for name, problems in (("no Jetson", 1), ("no nvgpu", 1), ("Docker without devices", 1), ("nodes of root alone", 1)):
        broken = next(b for b in BROKEN if b.name == name)
        found = checks_of(build(tmp_path / name, broken), broken.environ)
        assert len([c for c in found if c.state == "problem"]) == problems, (name, found)


def test_the_exit_status_says_whether_there_is_a_problem(tmp_path):
    for broken, status in ((None, 0), (BROKEN[3], 1)):
        root = build(tmp_path / str(status), broken)
        done = subprocess.run([sys.executable, *DOCTOR, "--root", str(root)], capture_output=True, text=True)
        assert done.returncode == status, done.stdout + done.stderr
        assert json.loads(done.stdout)["well"] == (status == 0)


# --- below tegrarm-sim run: the nodes, the kernel and the GPU are asked ------------------------------------------------------------

UNDER = [
    ([], 0, "device", "ok", "tegrarm-sim run", ""),
    (["--l4t", "r35"], 0, "kernel", "ok", "L4T r35", ""),
    (["--l4t", "r39"], 0, "kernel", "ok", "L4T r39", ""),
    (["--without", "/dev/nvmap"], 1, "node", "problem", "/dev/nvmap does not exist", ""),
    (["--without", "/dev/nvgpu"], 1, "node", "problem", "/dev/nvgpu/igpu0/ctrl does not exist", ""),
    (["--deny", "/dev/nvgpu/igpu0/ctrl"], 1, "node", "problem", "/dev/nvgpu/igpu0/ctrl: Permission denied", "udev"),
    (["--deny", "/dev/nvmap"], 1, "node", "problem", "/dev/nvmap: Permission denied", ""),
    (["--deny", "/dev/nvmap"], 1, "device", "skipped", "line `node`", ""),
    (["--dead-gpu"], 1, "kernel", "problem", "ENODEV", "dmesg"),
    (["--dead-gpu"], 1, "device", "skipped", "line `kernel`", ""),
    (["--memory", "8"], 1, "work", "problem", "NO_MEMORY", "End other programs"),
    (["--chip", "gv11b"], 1, "device", "problem", "sm_72", "Orin family"),
    (["--without", "/sys/class/devfreq"], 0, "devfreq", "note", "no GPU under", "Clocks"),
]


@pytest.mark.skipif(not TEGRARM_SIM.exists(), reason="no tegrarm-sim: make sim")
@pytest.mark.parametrize("options, status, line, state, says, todo", UNDER)
def test_below_tegrarm_sim_run(options, status, line, state, says, todo):
    command = [TEGRARM_SIM, "run", *options, "--", sys.executable, *DOCTOR]
    done = subprocess.run(command, env={**os.environ, "TEGRARM_BACKEND": "nvgpu"}, capture_output=True, text=True, timeout=300)
    assert done.returncode == status, done.stdout + done.stderr
    hits = [c for c in json.loads(done.stdout)["checks"] if c["name"] == line and c["state"] == state]
    assert any(says in hit["says"] and todo in hit["todo"] for hit in hits), done.stdout


# --- what is installed ------------------------------------------------------------------------------------------------------------

def doctor_in(env: dict[str, str], status: int) -> dict:
    env = {**os.environ, "TEGRARM_BACKEND": "sim", **env}
    done = subprocess.run([sys.executable, *DOCTOR], env=env, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == status, done.stdout + done.stderr
    checks = json.loads(done.stdout)["checks"]
    return {check["name"]: check for check in checks}


def test_a_library_that_is_not_there(tmp_path):
    found = doctor_in({"TEGRARM_LIB": str(tmp_path / "none.so")}, 1)
    assert "not found" in found["library"]["says"] and found["device"]["state"] == "skipped" and found["NVRTC"]["state"] == "ok"


def test_a_library_that_is_something_else():
    found = doctor_in({"TEGRARM_LIB": str(ROOT / "README.md")}, 1)
    assert "cannot be loaded" in found["library"]["says"]


def test_a_backend_that_nobody_knows():
    found = doctor_in({"TEGRARM_BACKEND": "simulator"}, 1)
    assert "there are nvgpu, sim" in found["kernel"]["says"] and found["device"]["state"] == "skipped"


def test_an_nvrtc_that_is_something_else():
    found = doctor_in({"NVRTC_PATH": "libm.so.6"}, 0)
    assert found["NVRTC"]["state"] == "note" and "NVRTC_PATH" in found["NVRTC"]["todo"]
    assert "No such file" in doctor_in({"NVRTC_PATH": "/none.so"}, 0)["NVRTC"]["says"].replace("cannot open shared object file: ", "")


def test_a_tinygrad_that_the_adapter_does_not_know(tmp_path):
    other = tmp_path / "tinygrad-0.99.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: tinygrad\nVersion: 0.99.0\n")
    found = doctor_in({"PYTHONPATH": str(tmp_path)}, 1)
    assert ">=0.12,<0.15" in found["tinygrad"]["says"]
    assert "tegrarm run --preload" in found["tinygrad"]["todo"] and ">=0.12,<0.15" in found["tinygrad"]["todo"]


def test_a_library_of_another_version(tmp_path):
    other = tmp_path / "tegrarm-9.9.9.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: tegrarm\nVersion: 9.9.9\n")
    assert "9.9.9" in doctor_in({"PYTHONPATH": str(tmp_path)}, 1)["library"]["says"]


@pytest.mark.skipif(BOARD, reason="this machine has a board")
def test_no_backend():
    found = doctor_in({"TEGRARM_BACKEND": ""}, 1)
    assert "TEGRARM_BACKEND=sim" in found["backend"]["todo"] and found["device"]["state"] == "skipped"


def test_the_range_is_the_packages():
    from tegrarm.doctor import software
    (low, high) = software.TINYGRAD
    assert f'"tinygrad>={low[0]}.{low[1]},<{high[0]}.{high[1]}"' in (ROOT / "python/pyproject.toml").read_text()
