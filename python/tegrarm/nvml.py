"""The library ``libnvidia-ml.so.1`` that answers monitors, and what the NVML that a program would get can tell.

Ours lies in a folder of its own, so that it never takes the place of a system's library by accident: ``tegrarm run --nvml`` puts the folder
in front of the others.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

from . import folders

NAME = "libnvidia-ml.so.1"
# Runs in a process of its own: a library that crashes, or that is made for other hardware, must not harm who asks.
ASK = """
import ctypes, json
library = ctypes.CDLL("libnvidia-ml.so.1")
path = [line.split(maxsplit=5)[-1].rstrip("\\n") for line in open("/proc/self/maps") if "libnvidia-ml" in line or "libtegrarm_nvml" in line]
found = {"path": path[0] if path else "libnvidia-ml.so.1", "status": library.nvmlInit_v2(), "answers": {}}
device, room, count = ctypes.c_void_p(), (ctypes.c_ulonglong * 8)(), ctypes.c_uint(0)
if found["status"] == 0 and library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0:
    # A list that has no room is "insufficient size", which is an answer.
    asked = {"name": ("nvmlDeviceGetName", room, 64), "memory": ("nvmlDeviceGetMemoryInfo", room),
             "load": ("nvmlDeviceGetUtilizationRates", room), "clock": ("nvmlDeviceGetClockInfo", 0, room),
             "temperature": ("nvmlDeviceGetTemperature", 0, room), "power": ("nvmlDeviceGetPowerUsage", room),
             "processes": ("nvmlDeviceGetComputeRunningProcesses_v3", ctypes.byref(count), None)}
    found["answers"] = {what: getattr(library, name)(device, *arguments) in (0, 7) for what, (name, *arguments) in asked.items()}
print(json.dumps(found))
"""


def folder() -> pathlib.Path:
    """The folder with our library."""
    return folders.folder("nvml", NAME)


def environment() -> dict[str, str]:
    """The variables with which a program finds our library before any other."""
    return folders.environment(folder())


def asked() -> dict | None:
    """What the NVML says that a program gets now. It is None if there is none that can be loaded."""
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, timeout=60)
    return json.loads(done.stdout) if done.returncode == 0 and done.stdout else None
