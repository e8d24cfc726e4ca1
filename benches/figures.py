"""Prints the figures by which the project is measured (`make bench`). This program only measures: it has no limits that could fail.

Instruction counts (callgrind) and kernel calls (from a recording) are the same in every run. Times depend on the machine.
"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import engines

from tegrarm import _ffi, trace
from tegrarm import preload as loader

ROOT = pathlib.Path(__file__).resolve().parents[1]
LIBDIR = pathlib.Path(_ffi.find()).parent
PLACE = tempfile.TemporaryDirectory(prefix="tegrarm-bench-")  # which goes with this object, at the end of the program
WORK = pathlib.Path(PLACE.name)
CONTROL_ROUNDS = 1000  # COUNT of benches/c/controls.c
TURNS = 7


def line(what: str, figure: str, target: str = "") -> None:
    print(f"{what:58} {figure:>16}   {target}", flush=True)


def build(name: str, folder: str = "benches/c") -> pathlib.Path:
    binary = WORK / name
    headers = [f"-I{ROOT}/{folder}" for folder in ("include", "ctests", "examples/c")]
    subprocess.run([os.environ.get("CC", "cc"), "-std=c17", "-D_GNU_SOURCE", "-O2", "-g", *headers,
                    ROOT / folder / f"{name}.c", "-o", binary, f"-L{LIBDIR}", "-ltegrarm", f"-Wl,-rpath,{LIBDIR}"], check=True)
    return binary


def control_instructions() -> None:
    binary = build("controls")

    for which, what, calls in (("token", "GET_WORK_SUBMIT_TOKEN", 1), ("open", "RM_CONTROL, mean of a device's open", 7)):
        doors = {door: callgrind(f"{door}_door", binary, door, which) / (CONTROL_ROUNDS * calls) for door in ("object", "file")}
        line(f"{what}, instructions", f"{doors['object']:.0f}", "at most 250" if which == "token" else "")
        line("  through the file door", f"{doors['file']:.0f}, {doors['file'] / doors['object']:.2f} x",
             "" if which == "token" else "at most 1.3 x")


ALLOC_FREE = """
import sys, tegrarm
from tinygrad.runtime.autogen import nv_570 as nv
with tegrarm.Client() as c:
    d = c.alloc(c.root, nv.NV01_DEVICE_0, nv.NV0080_ALLOC_PARAMETERS())
    v = c.alloc(d, nv.FERMI_VASPACE_A, nv.NV_VASPACE_ALLOCATION_PARAMETERS())
    m = c.alloc(d, nv.NV01_MEMORY_VIRTUAL, nv.NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS(hVASpace=v))
    for _ in range(int(sys.argv[1])):
        h = c.alloc(d, nv.NV1_MEMORY_USER, nv.NV_MEMORY_ALLOCATION_PARAMS(size=1 << 20))
        c.map_dma(d, m, h, 1 << 20); c.map(d, h, 1 << 20); c.free(h)
"""


def kernel_calls(buffers: int) -> dict:
    record = WORK / f"calls-{buffers}.jsonl"
    env = {**os.environ, "TEGRARM_RECORD": str(record)}
    subprocess.run([sys.executable, "-c", ALLOC_FREE, str(buffers)], env=env, check=True)
    return trace.count(trace.read(str(record)))


def alloc_free_calls() -> None:
    print("kernel calls of one 1 MiB buffer: allocated, mapped for GPU and CPU, freed")
    one, two = kernel_calls(1), kernel_calls(2)  # The first buffer also makes the address space.
    for rm_call, made in two.items():
        if more := made - one.get(rm_call, {}):
            line(f"  {rm_call}", str(more.total()), ", ".join(more))


def latency() -> None:
    median, worst, idle, looks = subprocess.run([build("latency")], capture_output=True, text=True, check=True).stdout.split()
    line("submit to semaphore, median", f"{median} us", "at most 10 us")
    line("submit to semaphore, 99th percentile", f"{worst} us")
    line("CPU of a process with an idle open device", f"{idle} %", "at most 1 %")
    line("  its threads wake up", f"{looks} times a second")


UNITS = "\n".join(f"#include <{h}>" for h in ("math.h", "pthread.h", "stdio.h", "stdlib.h", "string.h", "sys/socket.h"))


def compile_job(prefix: list[str]) -> float:
    """CPU seconds of some compiler runs. What else runs changes them less than it changes the time."""
    source = WORK / "unit.c"
    source.write_text(UNITS + "\ndouble f(double *x, int n) { double s = 0; while (n--) s += sqrt(x[n]); return s; }\n")
    script = f"for i in $(seq 15); do cc -O2 -c {source} -o {WORK}/unit.o; done"
    before = os.times()
    subprocess.run([*prefix, "sh", "-c", script], check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def callgrind(functions: str, binary: pathlib.Path, *arguments: str, **env: str) -> int:
    """Instructions of the functions with that name. Threads take turns, because a thread that spins must not keep the others from
    running.
    """
    tool = ["valgrind", "--fair-sched=yes", "--tool=callgrind", f"--toggle-collect={functions}", "--callgrind-out-file=/dev/null"]
    done = subprocess.run([*tool, binary, *arguments], env={**os.environ, **env}, capture_output=True, text=True, check=True)
    return int(re.search(r"Collected : (\d+)", done.stderr)[1])


def cubin() -> pathlib.Path:
    made = WORK / "kernels.cubin"
    if not made.exists():
        subprocess.run([sys.executable, ROOT / "examples/c/compile.py", ROOT / "examples/c/kernels.cu", made], check=True)
    return made


LAUNCH_ROUNDS, GRAPH_NODES = 200, 20  # ROUNDS and NODES of benches/c/cuda.c


def cuda_instructions() -> dict[str, float]:
    """The instructions of a launch through libtegrarm and through the CUDA library, and of the launch of a graph of GRAPH_NODES kernels."""
    binary, image, library = build("cuda"), ROOT / "tests/data/cubin/vecadd.nvrtc.cubin", LIBDIR / "cuda/libcuda.so.1"
    ways = ("runtime", "cuda", "graph")
    return {way: callgrind(f"measured_{way}", binary, str(image), way, str(library)) / LAUNCH_ROUNDS for way in ways}


def cuda() -> None:
    """A launch through the CUDA library, and the same launch through libtegrarm; and a graph."""
    counts = cuda_instructions()
    line("cuLaunchKernel, instructions", f"{counts['cuda']:.0f}", f"tegrarm_launch {counts['runtime']:.0f}")
    line("  ratio", f"{counts['cuda'] / counts['runtime']:.2f} x", "at most 1.15 x")
    line(f"cuGraphLaunch of {GRAPH_NODES} kernels, instructions", f"{counts['graph']:.0f}", f"cuLaunchKernel {GRAPH_NODES} times: more")


def submit() -> None:
    """A launch through the runtime; the same call in hand-written C, for any kernel and thread; and C for only one kernel and thread."""
    binary, launches = build("submit"), 1000
    ways = ("runtime", "hand", "bare", "replay", "handreplay")
    counts = {way: callgrind("measured_*", binary, str(cubin()), way) / launches for way in ways}
    line("tegrarm_launch, instructions", f"{counts['runtime']:.0f}", f"at most 282; the same call in C {counts['hand']:.0f}")
    line("  ratio", f"{counts['runtime'] / counts['hand']:.2f} x", "at most 1.05 x")
    line("  the stores alone in C, for one kernel and one thread", f"{counts['bare']:.0f}")
    line("tegrarm_replay_submit, instructions", f"{counts['replay']:.0f}", f"its stores alone in C {counts['handreplay']:.0f}")
    done = subprocess.run([binary, cubin()], capture_output=True, text=True, check=True).stdout.split()
    times = dict(zip(ways, map(float, done), strict=False))
    line("tegrarm_launch, median time", f"{times['runtime']:.2f} us", f"the same call in C {times['hand']:.2f} us")
    line("  ratio", f"{times['runtime'] / times['hand']:.2f} x", "at most 1.10 x")
    line("  the stores alone in C, for one kernel and one thread", f"{times['bare']:.2f} us")
    line("tegrarm_replay_submit, median time", f"{times['replay']:.2f} us")


def calls() -> None:
    """Counts the instructions of calls that submit work or query it, and of the same work done by hand in C."""
    binary, count = build("calls"), 400
    rows = {"fill": "tegrarm_fill", "copy": "tegrarm_copy", "event": "tegrarm_event_record", "after": "tegrarm_queue_after_syncpoint",
            "syncpoint": "tegrarm_fence_syncpoint", "query": "tegrarm_fence_query"}
    for call, name in rows.items():
        ours, hand = (callgrind(f"measured_{way}_{call}", binary, call, way) / count for way in ("runtime", "hand"))
        line(f"{name}, instructions", f"{ours:.0f}", f"the same words and stores in C {hand:.0f}")


def handover() -> None:
    """Measures sync files and dmabufs, and the system calls alone."""
    run = [str(LIBDIR / "tegrarm-sim"), "run", "--", build("handover")]
    done = subprocess.run(run, env={**os.environ, "TEGRARM_BACKEND": "nvgpu"}, capture_output=True, text=True, check=True).stdout
    names = ("a sync file made; its ioctl in C", "a sync file waited for; its ioctl in C", "a dmabuf imported and freed; its calls in C")
    for name, figures in zip(names, done.splitlines(), strict=True):
        ours, hand = map(float, figures.split())
        line(name, f"{ours:.0f}, {hand:.0f} us", f"{ours / hand:.2f} x")


def devices() -> None:
    env = {**os.environ, "DEV": "TEGRA+NV"}
    done = subprocess.run([sys.executable, ROOT / "benches" / "devices.py"], env=env, capture_output=True, text=True, check=True)
    rows = (("call of a TinyJit of 4 kernels, CPU time", 10), ("  of a transformer's step of 51 kernels", 5), ("eager launch, CPU time", 2))
    for (what, target), figures in zip(rows, done.stdout.splitlines(), strict=True):
        ours, theirs = map(float, figures.split())
        line(f"{what}, TEGRA", f"{ours} us, 1/{theirs / ours:.1f}", f"at most 1/{target} of TEGRA+NV's {theirs} us")


def frontend() -> None:
    env = {**os.environ, "DEV": "TEGRA+NV:CUDA"}
    done = subprocess.run([sys.executable, ROOT / "benches" / "frontend.py"], env=env, capture_output=True, text=True, check=True)
    names = ("a jit call of tinygrad, its graph's replay: CPU", "a cubin, tinygrad's loader, tegrarm_module_load: CPU")
    for name, figures in zip(names, done.stdout.splitlines(), strict=True):
        theirs, ours = map(float, figures.split())
        line(name, f"{theirs:.0f}, {ours:.0f} us", f"{theirs / ours:.0f} x; at least 20 x")


def copies() -> None:
    for text in subprocess.run([build("copies")], capture_output=True, text=True, check=True).stdout.splitlines():
        size, into, out = text.split()
        line(f"copy in, copy out of {size} MiB: memcpy's bandwidth times", f"{into}, {out}", "at least 0.95")


def buffers() -> None:
    run = [str(LIBDIR / "tegrarm-sim"), "run", "--"]
    env = {**os.environ, "TEGRARM_BACKEND": "nvgpu"}
    done = subprocess.run([*run, build("buffers")], env=env, capture_output=True, text=True, check=True).stdout.split()
    ours, hand = map(float, done)
    line("a buffer allocated and freed; nine system calls in C", f"{ours:.0f}, {hand:.0f} us", f"{ours / hand:.2f} x; at most 1.10 x")


def supervised() -> None:
    run = [str(LIBDIR / "tegrarm-sim"), "run", "--"]
    binary = build("supervised")
    names = {"call": ("a trapped ioctl", "at most 25 us"), "channel": ("a channel opened and closed, of 1000", "flat"),
             "mapping": ("a buffer mapped and unmapped, of 100000", "flat")}
    for text in subprocess.run([*run, binary], capture_output=True, text=True, check=True).stdout.splitlines():
        what, first, last = text.split()
        line(f"{names[what][0]}: first tenth, last tenth", f"{first}, {last} us", names[what][1])
    costs = [compile_job(run) / compile_job([]) for _ in range(TURNS)]
    line("a compile job under tegrarm-sim run, median of turns", f"{100 * (statistics.median(costs) - 1):+.1f} %", "at most 10 %")


def resident(pid: int) -> int:
    """Bytes of memory that belong to a process alone."""
    pages = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(size) << 10 for size in re.findall(r"^Private_\w+: +(\d+) kB", pages, re.M))


def crowd() -> None:
    """Processes that each open and close a device ten times: on a board of their own each, and on one that they share."""
    binary, run = build("crowd"), [str(LIBDIR / "tegrarm-sim"), "run", "--"]
    for processes in (1, 8, 32, 100, 1000):
        def seconds(command: list, backend: str, processes: int = processes) -> float:
            env = {**os.environ, "TEGRARM_BACKEND": backend}
            said = subprocess.run([*command, binary, str(processes), "10"], env=env, capture_output=True, text=True, check=True)
            return float(said.stdout)
        inside, outside = seconds([], "sim"), seconds(run, "nvgpu")
        line(f"{processes} processes open a device 10 times, in process and out", f"{inside:.2f}, {outside:.2f} s",
             "at most 3 x" if processes == 100 else "")
    # One supervisor, asked for the same twice.
    twice = "for i in 1 2 3; do $0 100 10 > /dev/null; echo; read go; done"
    with subprocess.Popen([*run, "sh", "-c", twice, binary], env={**os.environ, "TEGRARM_BACKEND": "nvgpu"}, text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as outer:
        sizes = []
        for _ in range(3):
            outer.stdout.readline()
            supervisor = int(pathlib.Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text().split()[0])
            sizes.append(resident(supervisor))
            outer.stdin.write("go\n")
            outer.stdin.flush()
    line("the supervisor's memory after 100, 200, 300 of them", " ".join(f"{size / 1e6:.1f}" for size in sizes) + " MB", "flat")


def preload() -> None:
    binary = build("preload")
    loaded = loader.environment({}, LIBDIR / loader.NAME)

    def run(**env) -> list[float]:
        done = subprocess.run([binary], env={**os.environ, **env}, capture_output=True, text=True, check=True)
        return [float(figure) for figure in done.stdout.split()]

    for what, without, with_it in zip(("open", "ioctl", "refused ioctl", "close"), run(), run(**loaded), strict=True):
        line(f"unrelated {what} under LD_PRELOAD, extra", f"{with_it - without:.1f} ns", "" if "refused" in what else "at most 20 ns")


# What is executed on one core: the inputs and the function.
WORK_OF_TINYGRAD = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import tegrarm.tinygrad
import numpy as np
from tinygrad import Tensor, TinyJit
rng = np.random.default_rng(0)
def square(n, dtype): return [Tensor(rng.standard_normal((n, n)).astype(dtype)).realize() for _ in "ab"]
what, times = sys.argv[1], int(sys.argv[2])
if what.startswith("add"):
    n = int(what[3:] or 1 << 20)
    inputs, function = [Tensor(rng.standard_normal(n).astype(np.float32)).realize() for _ in "ab"], lambda a, b: (a + b).realize()
elif what.startswith("sum"):
    inputs, function = square(int(what[3:]), "float32")[:1], lambda a: a.sum().realize()
elif what.startswith("softmax"):
    inputs, function = square(int(what[7:]), "float32")[:1], lambda a: a.softmax().realize()
elif what == "conv":
    inputs = [Tensor(rng.standard_normal(shape).astype(np.float32)).realize() for shape in ((1, 16, 32, 32), (16, 16, 3, 3))]
    function = lambda a, b: a.conv2d(b).realize()
else:
    kind, size = what.split()
    inputs, function = square(int(size), kind), lambda a, b: (a @ b).realize()
"""
# One kernel is launched often enough for a count.
KERNELS = WORK_OF_TINYGRAD + """
step = TinyJit(function)
for _ in range(times): step(*inputs).numpy()
"""
STATS = re.compile(r"^ +0x[0-9a-f]+ +(\d+) +(\d+) +([\d.]+)(?: .*)?$", re.MULTILINE)


def tinygrad(program: str, what: str, times: int, **env: str) -> subprocess.CompletedProcess:
    """Runs one of the programs above. What the engine took is in its standard error."""
    env = {**os.environ, "DEV": "TEGRA+NV", "TEGRARM_SIM_STATS": "1", **env}
    return subprocess.run([sys.executable, "-c", program, what, str(times)], env=env, capture_output=True, text=True, check=True)


def kernel(what: str, times: int, **env: str) -> tuple[float, float]:
    """Core seconds and warp instructions of one launch of the most expensive kernel."""
    done = tinygrad(KERNELS, what, times, **env)
    launches, instructions, seconds = STATS.findall(done.stderr)[0]
    return float(seconds) / int(launches), int(instructions) / int(launches)


# Launches kernels and waits for them, and prints the processor time of the program's own thread and of the GPU's for one time, in µs.
LAUNCHES = WORK_OF_TINYGRAD + """
import pathlib
from tinygrad import Device
from tinygrad.engine.realize import runtime_cache
def seconds():
    both = [0.0, 0.0]
    for thread in pathlib.Path("/proc/self/task").iterdir():
        of_gpu = (thread / "comm").read_text().startswith("gpu-")
        both[of_gpu] += int((thread / "schedstat").read_text().split()[0]) / 1e9
    return both
function(*inputs)
device, launches = Device[Device.DEFAULT], []
kind = type(next(program for (_, name), program in runtime_cache.items() if name == Device.DEFAULT))
launch = kind.__call__
kind.__call__ = lambda self, *a, **k: launches.append((self, a, k)) or launch(self, *a, **k)
kept = function(*inputs)
kind.__call__ = launch
def run(times):
    for _ in range(times):
        for program, a, k in launches: program(*a, **{**k, "wait": False})
        device.synchronize()
run(times // 4)
before = seconds()
run(times)
print(*((b - a) / times * 1e6 for a, b in zip(before, seconds())))
"""


def waiting() -> None:
    """The processor time of a launch and a wait on one core, beside that of the engine, which is a part of the GPU's."""
    for device, most in (("TEGRA", "at most 1.15 x"), ("TEGRA+NV", "at most 1.3 x")):
        for what in ("float32 128", "float32 256", "float32 512", "sum1024", "softmax256", "conv"):
            done = tinygrad(LAUNCHES, what, 400, DEV=device)
            engine = sum(float(seconds) / int(launches) for launches, _, seconds in STATS.findall(done.stderr)) * 1e6
            own, gpu = map(float, done.stdout.split())
            line(f"{what}, {device}: engine, GPU's threads, the program's", f"{engine:.0f}, {gpu:.0f}, {own:.0f} µs")
            line("  all against the engine", f"{(own + gpu) / engine:.2f} x", most)


def engine() -> None:
    """The engine's speed. `make bench-peer` compares it with another emulator in one run."""
    seconds, _ = kernel("float32 128", 20)
    line("128x128x128 float product, one core", f"{2 * 128**3 / seconds / 1e6:.0f} MFLOP/s")
    seconds, _ = kernel("add", 20)
    line("sum of two vectors of 2^20 floats, one core", f"{2**20 / seconds / 1e6:.0f} M/s")
    seconds, instructions = kernel("float32 256", 10)
    line("256x256x256 float product, warp instructions per core", f"{instructions / seconds / 1e6:.0f} M/s", "at least 60 M/s")
    seconds, instructions = kernel("float16 256", 10)
    line("256x256x256 half product on tensor cores, the same", f"{instructions / seconds / 1e6:.0f} M/s")
    suite = ROOT / ".cache" / "results" / "test_ops-nvrtc.log"
    sums = re.findall(r"^ +all +\d+ +\d+ +([\d.]+)$", suite.read_text(), re.MULTILINE) if suite.exists() else []
    figure = f"{sum(map(float, sums)):.1f} s" if sums else "not run here"
    line("engine time of tinygrad's test_ops, of the last make test-tinygrad", figure, "at most 45 s of one core")


SMALL = ("add65536", "float32 64", "float16 64", "sum256", "softmax128")  # of KERNELS


def in_turns(what: str, *settings: dict[str, str]) -> list[float]:
    """Core seconds of a kernel under several settings, which take turns: the least of each."""
    turns = [[kernel(what, 3, **setting)[0] for setting in settings] for _ in range(3)]
    return [min(times) for times in zip(*turns, strict=True)]


def engine_instructions(name: str, *settings: dict[str, str]) -> list[int]:
    """The instructions of the engine for the kernel of a C example, under several settings."""
    binary = build(name, "examples/c")
    return [callgrind("*run_observed*", binary, str(cubin()), TEGRARM_BACKEND="sim", **setting) for setting in settings]


def checks() -> None:
    """What the race checker costs, and the strict one beside it: instructions of C examples, and times of kernels of tinygrad."""
    for name in ("vecadd", "matmul"):
        without, race, strict = engine_instructions(name, {}, {"TEGRARM_SIM_CHECK": "race"}, {"TEGRARM_SIM_CHECK": "race=strict"})
        line(f"{name}.c, instructions: race, race=strict against no check", f"{race / without:.1f}, {strict / without:.1f} x")
        line("  race=strict against race", f"{strict / race:.2f} x", "at most 2 x")
    for what in SMALL:
        without, race, strict = in_turns(what, {}, {"TEGRARM_SIM_CHECK": "race"}, {"TEGRARM_SIM_CHECK": "race=strict"})
        line(f"{what}: race, race=strict against no check", f"{race / without:.1f}, {strict / without:.1f} x")
        line("  race=strict against race", f"{strict / race:.2f} x", "at most 2 x")


def profile() -> None:
    """What a profile costs: nothing if there is none, and about as much again as the model, from which it is made."""
    model, written = {"TEGRARM_SIM_CLOCK": "model"}, {"TEGRARM_SIM_CLOCK": "model", "TEGRARM_SIM_PROFILE": str(WORK / "profile.json")}
    for name in ("vecadd", "matmul"):
        counts = engine_instructions(name, {}, model, written)
        against = ", ".join(f"{count / counts[0]:.1f}" for count in counts[1:])
        line(f"{name}.c, instructions: the model, a profile against neither", f"{against} x")
        line("  what a profile takes more, against what the model takes more", f"{(counts[2] - counts[1]) / (counts[1] - counts[0]):.2f} x",
             "at most 1 x")
    for what in SMALL:
        times = in_turns(what, {}, model, written)
        line(f"{what}: the model, a profile against neither", ", ".join(f"{time / times[0]:.1f}" for time in times[1:]) + " x")
    made, own = WORK / "callgrind.out", []
    tool = ["valgrind", "--fair-sched=yes", "--tool=callgrind", f"--callgrind-out-file={made}"]
    for setting in ({}, written):
        env = {**os.environ, "TEGRARM_BACKEND": "sim", **setting}
        subprocess.run([*tool, build("vecadd", "examples/c"), cubin()], env=env, capture_output=True, check=True)
        own.append(engines.own_cost(made, ("tegra_gpu::profile", "sm87_model")))
    line("instructions in the code of profiles and the model, with neither", f"{own[0]}", f"0; with both {own[1]}")


def ratios() -> None:
    """Compares the engine with the one of an older commit, on the same kernels in the same run, and two cores with one."""
    engines.ratios(line)


def handlers() -> None:
    """Lists the instructions that take many host instructions."""
    engines.handlers(line)


# The first result of a kernel of Numba, counted from the start of Python, and a launch after that.
PRODUCT = """
import sys, time
began = time.perf_counter()
import numpy
from numba import cuda
N, launches = 256, int(sys.argv[1])
@cuda.jit
def product(a, b, c):
    i, j = cuda.grid(2)
    total = numpy.float32(0)
    for k in range(N):
        total += a[i, k] * b[k, j]
    c[i, j] = total
a, b = (numpy.random.default_rng(seed).random((N, N), numpy.float32) for seed in (0, 1))
da, db, dc = cuda.to_device(a), cuda.to_device(b), cuda.device_array((N, N), numpy.float32)
product[(16, 16), (16, 16)](da, db, dc)
assert numpy.allclose(dc.copy_to_host(), a @ b, rtol=1e-4)
first = time.perf_counter()
for _ in range(launches):
    product[(16, 16), (16, 16)](da, db, dc)
cuda.synchronize()
print(first - began, (time.perf_counter() - first) / launches)
"""


def numba() -> None:
    """Numba on the CUDA library, beside Numba's own simulator of CUDA, which needs a minute for a launch."""
    python = pathlib.Path(os.environ.get("NUMBA_PYTHON", ROOT / ".cache/numba-cuda/bin/python"))
    if not python.exists():
        line("a 256x256 product in Numba", "not run here", "`make test-cuda` installs Numba")
        return

    def run(prefix: list[str], launches: int, **env: str) -> list[float]:
        command = [*prefix, python, "-W", "ignore", "-c", PRODUCT, str(launches)]
        done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, text=True, check=True)
        return [float(figure) for figure in done.stdout.split()[-2:]]

    ours = run([sys.executable, "-m", "tegrarm", "run", "--cuda", "--"], 100)
    simulated = run([], 1, NUMBA_ENABLE_CUDASIM="1")
    whats = ("import of Numba to the first 256x256 product", "one more launch of it, of a hundred")
    for what, own, other in zip(whats, ours, simulated, strict=True):
        line(what, f"{own:.2f} s", f"{other:.1f} s in Numba's simulator")
        line("  ratio", f"{other / own:.0f} x", "" if own is ours[0] else "at least 50 x")


def demo() -> None:
    started = time.perf_counter()
    subprocess.run([sys.executable, ROOT / "examples" / "python" / "demo.py"], capture_output=True, check=True)
    line("demo, after the first build", f"{time.perf_counter() - started:.1f} s", "at most 60 s")


FIGURES = (
    control_instructions, alloc_free_calls, latency, submit, cuda, calls, handover, frontend, devices, copies, buffers, supervised, crowd,
    preload, engine, waiting, checks, profile, ratios, handlers, numba, demo,
)


def main() -> None:
    """Prints all figures, or those that are named."""
    wanted = set(sys.argv[1:]) or {figure.__name__ for figure in FIGURES}
    if unknown := wanted - {figure.__name__ for figure in FIGURES}:
        sys.exit(f"no such figure: {', '.join(sorted(unknown))}; there are: {', '.join(figure.__name__ for figure in FIGURES)}")
    for figure in FIGURES:
        if figure.__name__ in wanted:
            figure()


if __name__ == "__main__":
    main()
