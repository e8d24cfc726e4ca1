"""tegrarm top: the figures are those of the files, on a board and on the virtual Orin."""

import json
import os
import subprocess
import sys

import pytest
from conftest import TEGRARM_SIM
from machines import build

from tegrarm import top

needs_sim = pytest.mark.skipif(not TEGRARM_SIM.exists() or os.path.exists("/dev/nvgpu"), reason="no tegrarm-sim: make sim")


@pytest.fixture
def board(tmp_path):
    """The files of a board that works: half loaded, one process with two channels."""
    root = build(tmp_path)
    devfreq = root / "sys/class/devfreq/17000000.gpu"
    files = {
        devfreq / "device/load": "512\n", devfreq / "min_freq": "306000000\n", devfreq / "max_freq": "1300500000\n",
        root / "sys/class/thermal/thermal_zone0/type": "cpu-thermal\n", root / "sys/class/thermal/thermal_zone0/temp": "40000\n",
        root / "sys/class/thermal/thermal_zone1/type": "gpu-thermal\n", root / "sys/class/thermal/thermal_zone1/temp": "47281\n",
        root / "proc/42/maps": "7f00-7f01 r-xp 0 0:0 1 /usr/lib/libtegrarm.so.0\n",
        root / "proc/42/status": 'Name:\tpy"thon\nVmRSS:\t  2048 kB\n',
        root / "proc/43/maps": "7f00-7f01 r-xp 0 0:0 1 /usr/lib/libc.so.6\n", root / "proc/43/status": "Name:\tbash\n",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (root / "proc/42/fd").mkdir()
    held = ["nvhost--fd4", "nvhost--fd5", "nvhost-tsg-fd2", "nvhost-as-fd3"]
    for number, target in enumerate([*(f"anon_inode:{name}" for name in held), "/dmabuf:", "pipe:[1]"]):
        (root / "proc/42/fd" / str(number)).symlink_to(target)
    return top.Files(root)


def test_the_figures_are_those_of_the_files(board):
    seen = top.look(board, "board")
    assert seen["gpu"] == {"load_permille": 512, "clock_hz": 306000000, "clock_min_hz": 306000000, "clock_max_hz": 1300500000,
                           "temperature_millicelsius": 47281}
    assert seen["memory"] == {"total_bytes": 64349196 << 10, "available_bytes": 60000000 << 10}
    assert seen["processes"] == [{"pid": 42, "name": 'py"thon', "library": True, "memory_bytes": 2 << 20, "channels": 2, "groups": 1,
                                  "spaces": 1, "buffers": 1, "launches": None, "counted_by": None, "launches_per_second": None}]
    text = top.text(seen)
    assert "load 51.2 %" in text and "47.3 °C" in text and "306 MHz" in text


def test_what_the_virtual_orin_executes_for_long_is_told(board):
    assert top.look(board, "board")["running"] == []
    file = next(board.root.glob("sys/class/devfreq/*.gpu/device")) / "tegra_sim_faults"
    file.write_text("channel=3\ttext=a fault\nchannel=5\tstate=waits\ttext=the kernel sum at 0x100 is running\n")
    seen = top.look(board, "tegrarm-sim run")
    assert seen["running"] == ["the kernel sum at 0x100 is running"]
    assert "GPU  the kernel sum at 0x100 is running" in top.text(seen)


def test_prometheus_reads_it(board):
    lines = top.prometheus(top.look(board, "board")).splitlines()
    assert "tegrarm_gpu_load_ratio 0.512" in lines and "tegrarm_gpu_temperature_celsius 47.281" in lines
    assert 'tegrarm_process_channels{pid="42",name="py\\"thon"} 2' in lines
    described = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert {line.split("{")[0].split()[0] for line in lines if not line.startswith("#")} == described


def test_what_a_machine_does_not_tell_is_a_dash_and_no_sample(tmp_path):
    seen = top.look(top.Files(tmp_path), "board")
    assert "load -" in top.text(seen) and "no process uses the library" in top.text(seen)
    assert top.prometheus(seen) == ""


@needs_sim
def test_on_the_virtual_orin_of_tegrarm_sim_run():
    """A process with an open device looks at itself: its channels are there, and the kernel counts as many. Other boards are not."""
    code = """
import json, os, subprocess, sys
import tegrarm.tinygrad
from tinygrad import Tensor
Tensor([2]).contiguous().realize()
seen = json.loads(subprocess.run([sys.executable, "-m", "tegrarm", "top", "--json", "-n", "1"], capture_output=True, check=True).stdout)
print(json.dumps({**seen, "me": [p for p in seen["processes"] if p["pid"] == os.getpid()]}))
"""
    other = "import tegrarm; device = tegrarm.Device(); print('open', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", other], env={**os.environ, "TEGRARM_BACKEND": "sim"}, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as outsider:
        assert outsider.stdout.readline() == "open\n"
        done = subprocess.run([TEGRARM_SIM, "run", "--", sys.executable, "-c", code], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "TEGRARM_BACKEND": "nvgpu", "DEV": "TEGRA+NV"})
        listed = {process["pid"] for process in top.processes(top.Files())}
        outsider.communicate("\n")
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert outsider.pid in listed and outsider.pid not in {process["pid"] for process in seen["processes"]}
    assert seen["kind"] == "tegrarm-sim run" and seen["gpu"]["clock_max_hz"] >= seen["gpu"]["clock_min_hz"] > 0
    assert seen["kernel"]["channels"] == 2
    assert [(p["channels"], p["groups"], p["library"]) for p in seen["me"]] == [(2, 1, True)]


def test_one_look_without_a_terminal():
    done = subprocess.run([sys.executable, "-m", "tegrarm", "top"], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "TEGRARM_BACKEND": "sim"})
    assert done.returncode == 0 and "PID" in done.stdout and "\x1b" not in done.stdout


@pytest.mark.parametrize("wrong", [["-d", "0"], ["-d", "-1"], ["-d", "nan"], ["-d", "inf"], ["-d", "1e300"], ["-n", "-1"]])
def test_a_delay_or_number_that_means_nothing(wrong):
    refused = subprocess.run([sys.executable, "-m", "tegrarm", "top", *wrong], capture_output=True, text=True, timeout=60,
                             env={**os.environ, "TEGRARM_BACKEND": "sim"})
    assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1, refused.stderr
