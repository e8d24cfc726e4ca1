"""What the library adds to a C program: memory and kernel calls (docs/small-boards.md). `make footprint` prints the times, too."""

import importlib.util
import os
import pathlib
import shutil

import pytest
from conftest import ROOT, TEGRARM_SIM

from tegrarm import _ffi

HERE = TEGRARM_SIM.exists() and shutil.which("cc") and not os.path.exists("/dev/nvgpu")
pytestmark = pytest.mark.skipif(not HERE, reason="needs tegrarm-sim and cc, and no board")

# The library with the simulator in it. Which parts of its code are resident depends on what the system reads ahead.
MOST_KIB = {"anonymous": 700, "file": 3200, "shared": 80}
# Opening a device, loading a module, one buffer and one launch. A launch and a wait make no call.
MOST_CALLS = {"opens": 5, "ioctls": 60, "mmaps": 10}


def test_a_program_pays_little_for_the_gpu(tmp_path):
    spec = importlib.util.spec_from_file_location("footprint", ROOT / "benches" / "footprint.py")
    footprint = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(footprint)
    library = pathlib.Path(_ffi.find()).resolve()
    told = footprint.figures(tmp_path, library, 1, tinygrad=False)["C"]
    for key, most in {**MOST_KIB, **MOST_CALLS}.items():
        assert 0 <= told[key] <= most, (key, told)
    assert told["threads"] == 0  # waiting needs none
