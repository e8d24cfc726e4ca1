"""Small boards (docs/small-boards.md): those that refuse large buffers although memory is free, and what the library adds to a C program.

`make footprint` prints times, too.
"""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, TEGRARM_SIM

from tegrarm import _ffi

# A buffer of seven eighths of a board that does not give so much at once. The GPU fills and copies parts of it at its ends and in the
# middle, where pieces meet, and the CPU reads them. Then a buffer that no board has.
LARGE = """
import os, tegrarm
with tegrarm.Device() as device:
    available = min(device.memory()[0], int(os.environ.get("MOST", 1 << 62)))
    large = device.empty(available // 8 * 7, "uint8")
    part = device.array(bytes(range(251)) * 4177)
    for at in (0, large.nbytes // 2 - 77777, large.nbytes - part.nbytes):
        large[at:at + part.nbytes].copy_from(part)
        assert bytes(large[at:at + part.nbytes].memoryview()) == bytes(part.memoryview()), at
        large[at:at + part.nbytes].fill(9)
        device.wait()
        assert bytes(large[at:at + part.nbytes].memoryview()) == bytes([9]) * part.nbytes, at
    for call in (large.memory.export, lambda: device.empty(1 << 45, "uint8")):
        try:
            call()
        except tegrarm.RmError as error:
            print(error)
"""


def outcome(env: dict[str, str], *around: str) -> list[str]:
    done = subprocess.run([*around, sys.executable, "-c", LARGE], env={**os.environ, **env}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("mode", ["cve-2025-33177", "fragmented"])
def test_a_large_buffer_is_made_of_pieces(mode):
    here = {"TEGRARM_BACKEND": "sim", "TEGRARM_SIM_CHIP": "orin-nano", "TEGRARM_SIM_NVMAP": mode}
    shared, too_much = outcome(here)
    assert "pieces" in shared and "NV_ERR_NOT_SUPPORTED" in shared
    assert "are available: free some, or end other programs" in too_much


@pytest.mark.skipif(not TEGRARM_SIM.exists() or os.path.exists("/dev/nvgpu"), reason="no tegrarm-sim: make sim")
def test_a_large_buffer_is_made_of_pieces_out_of_process():
    around = (str(TEGRARM_SIM), "run", "--quiet", "--memory", "1024", "--nvmap", "fragmented", "--")
    shared, _ = outcome({"TEGRARM_BACKEND": "nvgpu", "MOST": str(600 << 20)}, *around)
    assert "pieces" in shared


HERE = TEGRARM_SIM.exists() and shutil.which("cc") and not os.path.exists("/dev/nvgpu")
# The library with the simulator in it. Which parts of its code are resident depends on what the system reads ahead.
MOST_KIB = {"anonymous": 700, "file": 3500, "shared": 80}
# Opening a device, loading a module, one buffer and one launch. A launch and a wait make no call. Three of the files that are opened
# tell the virtual Orin what the kernels of the module are called. A board does not have them, and is not asked for them.
MOST_CALLS = {"opens": 8, "ioctls": 60, "mmaps": 10}


@pytest.mark.skipif(not HERE, reason="needs tegrarm-sim and cc, and no board")
def test_a_program_pays_little_for_the_gpu(tmp_path):
    spec = importlib.util.spec_from_file_location("footprint", ROOT / "benches" / "footprint.py")
    footprint = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(footprint)
    library = pathlib.Path(_ffi.find()).resolve()
    told = footprint.figures(tmp_path, library, 1, tinygrad=False)["C"]
    for key, most in {**MOST_KIB, **MOST_CALLS}.items():
        assert 0 <= told[key] <= most, (key, told)
    assert told["threads"] == 0  # waiting needs none
