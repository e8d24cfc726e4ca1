"""What a user is told while he waits, and what `tegrarm top` draws."""

import io
import os
import subprocess
import sys

import pytest
from rich.console import Console

from tegrarm import dashboard, hints


def run(tmp_path, code="print('ran')", **env):
    (tmp_path / "s.py").write_text(code)
    command = [sys.executable, "-m", "tegrarm", "run", str(tmp_path / "s.py")]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "TEGRARM_BACKEND": "sim", **env})


@pytest.mark.skipif(os.path.exists("/dev/nvgpu"), reason="this machine has a board")
def test_a_search_on_the_virtual_orin_is_told_once_what_it_ranks(tmp_path):
    done = run(tmp_path, BEAM="2")
    assert done.stdout == "ran\n" and done.stderr.count("BEAM ranks kernels") == 1
    assert "time that the virtual Orin needs on this computer" in done.stderr
    assert "BEAM" not in run(tmp_path, BEAM="0").stderr and run(tmp_path).stderr == ""


@pytest.mark.skipif(os.path.exists("/dev/nvgpu"), reason="this machine has a board")
def test_a_search_with_modelled_time_is_told_that_it_ranks_by_the_model(tmp_path):
    done = run(tmp_path, BEAM="2", TEGRARM_SIM_CLOCK="model")
    assert done.stdout == "ran\n" and done.stderr.count("BEAM ranks kernels by a model of the module's time") == 1
    assert run(tmp_path, TEGRARM_SIM_CLOCK="model").stderr == ""


def test_nothing_is_said_about_a_search_on_a_board(monkeypatch):
    monkeypatch.setattr(hints.where, "kind", lambda: "board")
    monkeypatch.setenv("TEGRARM_BACKEND", "nvgpu")
    assert hints.of_beam({"BEAM": "2"}) == "" and hints.of_beam({"BEAM": "2", "TEGRARM_SIM_CLOCK": "model"}) == ""
    assert not hints.modelled({"TEGRARM_SIM_CLOCK": "model"})


class Terminal(io.StringIO):
    """A stream that people look at."""

    def isatty(self):
        return True


def test_a_long_run_is_no_hang_and_a_short_one_says_nothing(monkeypatch):
    monkeypatch.setenv("TEGRARM_BACKEND", "sim")
    monkeypatch.delenv("BEAM", raising=False)
    monkeypatch.setattr(sys, "stderr", Terminal())
    with hints.while_running(patience=600):
        pass
    assert sys.stderr.getvalue() == ""
    said = hints.threading.Event()
    monkeypatch.setattr(hints, "say", lambda text: said.set())
    with hints.while_running(patience=0):
        assert said.wait(60)


SEEN = {
    "kind": "board",
    "gpu": {"load_permille": 512, "clock_hz": 306000000, "clock_min_hz": 306000000, "clock_max_hz": 1300500000,
            "temperature_millicelsius": 47281},
    "memory": {"total_bytes": 8 << 30, "available_bytes": 6 << 30}, "kernel": None, "running": [],
    "processes": [{"pid": 42, "name": "python", "library": True, "memory_bytes": 2 << 20, "channels": 2, "groups": 1, "spaces": 1,
                   "buffers": 3, "launches": 5000, "counted_by": "library", "launches_per_second": 250.0}],
}


def text_of(seen):
    console = Console(record=True, width=100, file=io.StringIO())
    console.print(dashboard.view(seen))
    return console.export_text()


def test_the_dashboard_has_every_figure():
    text = text_of(SEEN)
    for figure in ("51.2 %", "306 MHz of 1300 MHz", "6144 MiB of 8192 MiB free", "47.3 °C", "42", "python", "2 MiB", "250", "a board"):
        assert figure in text, figure


def test_what_a_machine_does_not_tell_is_a_dash():
    nothing = {**SEEN, "gpu": dict.fromkeys(SEEN["gpu"]), "memory": dict.fromkeys(SEEN["memory"]), "processes": [],
               "kernel": {"channels": 2}}
    text = text_of(nothing)
    assert "no process uses the library now" in text and "channels 2" in text and "MHz of" not in text
