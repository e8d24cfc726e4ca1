"""Runs below `tegrarm-sim run` and starts programs that keep tensors of tinygrad, then the monitors. Prints what they say.

The output is one JSON object: the programs by their numbers, with the MiB of their tensors, and the text of each monitor.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable

import pyte

from tegrarm import nvml

PROGRAM = """
import select, sys
import tegrarm.tinygrad
from tinygrad import Tensor, dtypes
mib = int(sys.argv[1])
kept = Tensor(b"\\1" * (mib << 20), dtype=dtypes.uint8, device="PYTHON").to("NV").realize()
total = (kept[:4096].cast(dtypes.int32) + 1).sum().item()
print(total, flush=True)
# One of the programs keeps the GPU busy until it shall end.
while mib == 16 and not select.select([sys.stdin], [], [], 0)[0]:
    (kept.cast(dtypes.int32) + 1).sum().item()
sys.stdin.read()
"""
# What programs keep, in MiB.
SIZES = (16, 32, 64)
# The terminal: columns and lines.
SIZE = (100, 28)
# Lines are characters of Unicode, because pyte knows no other set of characters beside it.
TERMINAL = {"TERM": "xterm", "LC_ALL": "C.UTF-8", "NCURSES_NO_UTF8_ACS": "1"}


def said(command: list[str], env: dict[str, str]) -> str:
    """What a monitor prints. Its terminal is wide and has no colours."""
    wide = {**env, "COLUMNS": "100", "LINES": "40", "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(command, env=wide, capture_output=True, text=True, timeout=120)
    return done.stdout if done.returncode == 0 else f"exit status {done.returncode}: {done.stdout}{done.stderr}"


def drawn(command: list[str], env: dict[str, str], wanted: Callable[[str], bool]) -> str:
    """What a monitor draws on a terminal, as soon as it is what is wanted. A q ends the monitor."""
    screen, whole = pyte.Screen(*SIZE), ""
    stream, (ours, theirs) = pyte.ByteStream(screen), pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))
    with subprocess.Popen(command, env={**env, **TERMINAL}, stdin=theirs, stdout=theirs, stderr=theirs) as monitor:
        for _ in range(100):
            if select.select([ours], [], [], 0.3)[0]:
                stream.feed(os.read(ours, 1 << 16))
            whole = "\n".join(line.rstrip() for line in screen.display).strip("\n")
            if monitor.poll() is not None or wanted(whole):
                break
        os.write(ours, b"q")
        # What it still draws must not stop it.
        while monitor.poll() is None and select.select([ours], [], [], 10)[0]:
            os.read(ours, 1 << 16)
        monitor.kill()
    os.close(ours), os.close(theirs)
    return whole


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


def load(env: dict[str, str], wanted: Callable[[int], bool]) -> int:
    """The percentage that NVIDIA's own Python module says of the GPU, as soon as it is the wanted one."""
    code = """
import pynvml
pynvml.nvmlInit()
print(pynvml.nvmlDeviceGetUtilizationRates(pynvml.nvmlDeviceGetHandleByIndex(0)).gpu)
"""
    for _ in range(100):
        percent = int(said([sys.executable, "-c", code], env))
        if wanted(percent):
            break
        time.sleep(0.1)
    return percent


def main() -> None:
    env = {**os.environ, **nvml.environment()}
    with contextlib.ExitStack() as ended:
        started = {}
        # Monitors show how a program was started: without a path, the screens are the same on every computer.
        place = ended.enter_context(tempfile.TemporaryDirectory())
        pathlib.Path(place, "program.py").write_text(PROGRAM)
        path = f"{pathlib.Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
        for size in SIZES:
            child = subprocess.Popen(["python", "program.py", str(size)], cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     text=True, env={**os.environ, "DEV": "TEGRA+NV", "PATH": path})
            ended.callback(child.communicate)
            started[child.pid] = child
        totals = {pid: child.stdout.readline().strip() for pid, child in started.items()}
        out = {"programs": dict(zip(started, SIZES, strict=True)), "totals": list(totals.values()), "seen": seen(env, started.keys()),
               "busy": load(env, lambda percent: percent > 0),
               "gpustat": said([sys.executable, "-m", "gpustat", "-cpu", "--no-color", "--no-header"], env),
               "nvitop": said([sys.executable, "-m", "nvitop", "--once"], env)}
        if nvtop := shutil.which("nvtop", path=f"{os.environ.get('TEGRARM_TEST_NVTOP', '')}:{path}"):
            out["nvtop"] = drawn([nvtop, "-C"], env, lambda text: all(re.search(rf"^ *{pid} .*MiB", text, re.M) for pid in started))
        if torch := os.environ.get("TEGRARM_TEST_NVML_PROGRAM"):
            out["torch"] = said([torch, *map(str, started)], env)
    out["idle"] = load(env, lambda percent: percent == 0)
    print(json.dumps(out))


if __name__ == "__main__":
    assert pathlib.Path(sys.executable).exists()
    main()
