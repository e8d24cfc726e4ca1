"""Runs below `tegrarm-sim run` and starts programs that keep tensors of tinygrad, then the monitors. Prints what they say.

The output is one JSON object: the programs by their numbers, with the MiB of their tensors, and the text of each monitor.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from tegrarm import nvml

PROGRAM = """
import sys
import tegrarm.tinygrad
from tinygrad import Tensor, dtypes
mib = int(sys.argv[1])
kept = Tensor(b"\\1" * (mib << 20), dtype=dtypes.uint8, device="PYTHON").to("NV").realize()
total = (kept[:4096].cast(dtypes.int32) + 1).sum().item()
print(total, flush=True)
sys.stdin.read()
"""
# What programs keep, in MiB.
SIZES = (16, 32, 64)


def said(command: list[str], env: dict[str, str]) -> str:
    """What a monitor prints. Its terminal is wide and has no colours."""
    wide = {**env, "COLUMNS": "100", "LINES": "40", "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(command, env=wide, capture_output=True, text=True, timeout=120)
    return done.stdout if done.returncode == 0 else f"exit status {done.returncode}: {done.stdout}{done.stderr}"


def seen(env: dict[str, str], processes: set[int]) -> dict:
    """What NVIDIA's own Python module says of the processes, as soon as it has found all of them."""
    code = """
import json, pynvml
pynvml.nvmlInit()
gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
print(json.dumps({p.pid: p.usedGpuMemory for p in pynvml.nvmlDeviceGetComputeRunningProcesses(gpu)}))
"""
    for _ in range(100):
        found = {int(pid): size for pid, size in json.loads(said([sys.executable, "-c", code], env)).items()}
        if processes <= found.keys():
            break
        time.sleep(0.1)
    return found


def main() -> None:
    env = {**os.environ, **nvml.environment()}
    with contextlib.ExitStack() as ended:
        started = {}
        # Monitors show how a program was started: without a path, the screens are the same on every computer.
        path = f"{pathlib.Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
        for size in SIZES:
            child = subprocess.Popen(["python", "-c", PROGRAM, str(size)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                     env={**os.environ, "DEV": "TEGRA+NV", "PATH": path})
            ended.callback(child.communicate)
            started[child.pid] = child
        totals = {pid: child.stdout.readline().strip() for pid, child in started.items()}
        out = {"programs": dict(zip(started, SIZES, strict=True)), "totals": list(totals.values()), "seen": seen(env, started.keys()),
               "gpustat": said([sys.executable, "-m", "gpustat", "-cpu", "--no-color", "--no-header"], env),
               "nvitop": said([sys.executable, "-m", "nvitop", "--once"], env)}
        if nvtop := shutil.which("nvtop"):
            snapshot = "--snapshot" in said([nvtop, "--help"], env)
            command = [nvtop, "-s"] if snapshot else ["script", "-qec", f"timeout --foreground -s INT 3 {nvtop} -C", "/dev/null"]
            out["nvtop"] = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][AB0]", "", said(command, env))
        if torch := os.environ.get("TEGRARM_TEST_NVML_PROGRAM"):
            out["torch"] = said([torch, *map(str, started)], env)
    print(json.dumps(out))


if __name__ == "__main__":
    assert pathlib.Path(sys.executable).exists()
    main()
