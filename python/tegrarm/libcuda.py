"""The library ``libcuda.so.1`` that runs CUDA programs, and what the CUDA driver that a program would get can tell."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

from . import folders

NAME = "libcuda.so.1"
# Runs in a process of its own: a library that crashes, or that is made for other hardware, must not harm who asks.
ASK = """
import ctypes, json
library = ctypes.CDLL("libcuda.so.1")
path = [line.split(maxsplit=5)[-1].rstrip("\\n") for line in open("/proc/self/maps") if "libcuda.so" in line or "libtegrarm_cuda" in line]
version, count, device, name = ctypes.c_int(), ctypes.c_int(), ctypes.c_int(), ctypes.create_string_buffer(100)
library.cuDriverGetVersion(ctypes.byref(version))
found = {"path": path[0] if path else "libcuda.so.1", "version": version.value, "status": library.cuInit(0), "name": ""}
if found["status"] == 0 and library.cuDeviceGet(ctypes.byref(device), 0) == 0 and library.cuDeviceGetName(name, 100, device) == 0:
    found["name"] = name.value.decode(errors="replace")
print(json.dumps(found))
"""


def folder() -> pathlib.Path:
    """The folder with our library."""
    return folders.folder("cuda", NAME)


def environment() -> dict[str, str]:
    """The variables with which a program finds our library before any other."""
    return folders.environment(folder())


def asked() -> dict | None:
    """What the CUDA driver says that a program gets now. It is None if there is none that can be loaded."""
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout) if done.returncode == 0 and done.stdout else None
