"""Libraries that a program loads, uses and unloads again and again: nothing stays but the library."""

import os
import pathlib
import subprocess
import sys

import pytest
from conftest import ROOT

TARGET = pathlib.Path(os.environ.get("TEGRARM_LIB", ROOT / "target/release/libtegrarm.so")).parent
LOOP = """
import _ctypes, ctypes, os, sys
def held():
    with open("/proc/self/maps") as maps:
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), sum(1 for _ in maps)
first = None
for turn in range(20):
    library = ctypes.CDLL(sys.argv[1], os.RTLD_NOW | os.RTLD_LOCAL)
    work(library)
    _ctypes.dlclose(library._handle)
    first = held() if turn == 3 else first
print(first, held())
"""
DEVICE = """
def work(library):
    device = ctypes.c_void_p()
    assert library.tegrarm_device_open(0, ctypes.byref(device)) == 0
    assert library.tegrarm_device_close(device) == 0
    if sys.argv[2:]:
        assert library.tegrarm_shutdown() == 0
"""
CUDA = """
def work(library):
    context = ctypes.c_void_p()
    assert library.cuInit(0) == 0 and library.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert library.cuDevicePrimaryCtxRelease_v2(0) == 0
"""
MONITOR = """
def work(library):
    assert library.nvmlInit_v2() == 0 and library.nvmlShutdown() == 0
"""
NOTHING = "def work(library):\n    pass\n"


@pytest.mark.parametrize(("library", "work", "more"), [
    ("libtegrarm.so", DEVICE, []), ("libtegrarm.so", DEVICE, ["shutdown"]), ("libtegrarm.so", NOTHING, []),
    ("libtegrarm_cuda.so", CUDA, []),
    ("libtegrarm_nvml.so", MONITOR, []), ("libtegrarm_preload.so", NOTHING, []),
], ids=["devices", "shutdown", "nothing", "cuda", "nvml", "preload"])
def test_a_library_that_is_unloaded_again_and_again(python, library, work, more):
    path = TARGET / library
    if not path.exists():
        pytest.skip(f"not built: {library}")
    first, last = python(["-c", LOOP.replace("first = None", work + "first = None", 1), str(path), *more]).strip().split(") (")
    first, last = ([int(count) for count in each.strip("()\n").split(",")] for each in (first, last))
    assert first[:2] == last[:2], "descriptors and threads after the fourth and after the twentieth time"
    # The kernel merges neighbours with equal rights, so a few mappings come and go with where a stack happens to lie.
    # What is left behind by each of sixteen turns is sixteen mappings or more.
    assert last[2] - first[2] < 8, f"mappings grow with each turn: {first[2]} after the fourth, {last[2]} after the twentieth"


def test_a_library_that_is_unloaded_while_a_device_is_open(python):
    """Its threads and its handlers at the end of the process are still there: the program ends as it wants."""
    leak = DEVICE.replace("    assert library.tegrarm_device_close(device) == 0\n", "")
    script = LOOP.replace("first = None", leak + "first = None", 1).replace("range(12)", "range(2)")
    done = subprocess.run([sys.executable, "-c", script + "sys.exit(7)", str(TARGET / "libtegrarm.so")], timeout=120)
    assert done.returncode == 7
