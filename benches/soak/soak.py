"""Runs programs on the virtual Orin for a long time and watches what they take (`make soak`).

Five processes work at the same time: a program in process, the same program on device nodes together with a stream of short
programs that are killed at odd moments, the supervisor of these two, another supervisor whose programs take all that they get, and a loop
of tinygrad. Of each, memory, descriptors,
mappings and threads are read again and again. At the end there is a plot, and the run fails if one of them has grown.
"""

import argparse
import csv
import os
import pathlib
import random
import signal
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
METRICS = {"memory": "MiB", "descriptors": "", "mappings": "", "threads": ""}
SAMPLES = 240
# How many seconds a program may take to end after its time.
GRACE = 900
# With fewer samples there is no verdict.
ENOUGH = 20
# What a run may grow from its second quarter to its last: allocators keep what they had, and a sample may fall into a busy moment. An open
# device has seven descriptors, and whether the common moment of a quarter has one more of them depends on what else the machine does. An
# hour has twenty thousand rounds or more, so what one round in a thousand leaves behind is twenty.
ALLOWED = {"memory": lambda before: max(3.0, 0.03 * before), "descriptors": lambda _: 8,
           "mappings": lambda before: max(8, 0.02 * before), "threads": lambda _: 2}
# Where all is taken again and again, few samples fall between two takers, and the least of them may have two devices open.
ALLOWED_TAKEN = {**ALLOWED, "descriptors": lambda _: 16}
TINYGRAD = """
import sys, time
import tegrarm.tinygrad
from tinygrad import Device, Tensor, TinyJit
# tinygrad writes arguments and commands into 18 MiB of memory, again and again from the beginning. It touches each page for the first time
# during the first thousands of launches. The pages are touched here, so that later growth can only be memory that is lost.
for buffer in (Device["NV"].kernargs_buf, Device["NV"].cmdq_page):
    view = buffer.cpu_view().view(fmt="B")
    for at in range(0, len(view), 4096): view[at] = view[at]
end, rounds = time.monotonic() + float(sys.argv[1]), 0
@TinyJit
def step(x): return (x @ x + 1).relu().sum().realize()
while time.monotonic() < end:
    step(Tensor.rand(16, 16).realize()).item()
    (Tensor.rand(32) + rounds % 7).numpy()
    rounds += 1
print(rounds, "rounds of tinygrad")
"""


# Programs of the tests that open, take and close whatever there is, on a board with little of everything.
TAKERS = ("openers", "taker", "uring")
TAKING = 'end=$(($(date +%s) + $0)); while [ $(date +%s) -lt $end ]; do for one; do "$one" >/dev/null || exit 1; done; done'


def takers(out):
    """The programs, compiled."""
    folder = ROOT / "crates/tegra-sim/tests/outlive"
    for name in TAKERS:
        command = [os.environ.get("CC", "cc"), "-O1", "-pthread", "-o", out / name, folder / f"{name}.c", "-I", ROOT / "include"]
        subprocess.run(command, check=True)
    return [str(out / name) for name in TAKERS]


def read(pid):
    """What a process has now, or nothing if it has ended."""
    proc = pathlib.Path("/proc") / str(pid)
    try:
        status, share = (dict(line.split(":", 1) for line in (proc / name).read_text().splitlines() if ":" in line)
                         for name in ("status", "smaps_rollup"))
        # The resident set cannot be used: in process, the program and the virtual Orin map the same pages, and it would count them twice.
        memory = sum(int(share[name].split()[0]) for name in ("Pss_Anon", "Pss_Shmem")) / 1024
        maps = (proc / "maps").read_text().count("\n")
        return {"memory": memory, "descriptors": len(os.listdir(proc / "fd")), "mappings": maps, "threads": int(status["Threads"])}
    except (OSError, KeyError):
        return None


def child_of(pid, process):
    """The first child of `pid`, as soon as there is one. It is nothing if `process`, to which both belong, has ended before."""
    while process.poll() is None:
        try:
            children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        except OSError:
            return None
        if children:
            return int(children[0])
        time.sleep(0.01)
    return None


def kill(pid):
    """Kills a process, which may have ended by itself."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def churn(end, target, cubin, seed, out):
    """Short programs on nodes of their own, each killed or left alone, with its supervisor or without."""
    odd, count, failed = random.Random(seed), 0, []
    simulator, work = target / "release" / "tegrarm-sim", target / "soak" / "work"
    env = {**os.environ, "TEGRARM_BACKEND": "nvgpu", "TMPDIR": str(out)}
    while time.monotonic() < end:
        run = subprocess.Popen([simulator, "run", "--quiet", "--", work, cubin, "2"], env=env, stdout=subprocess.DEVNULL,
                               stderr=subprocess.PIPE, text=True, start_new_session=True)
        victim = odd.choice([None, "simulator", "supervisor"])
        time.sleep(odd.uniform(0.05, 1.5))
        found = run.pid if victim == "simulator" else child_of(run.pid, run) if victim else None
        if found is not None and run.poll() is None:
            kill(found)
        try:
            said = run.communicate(timeout=GRACE)[1]
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)
            said, victim = f"it did not end in {GRACE} s after {victim or 'nobody'} was killed", None
            run.communicate()
        if victim is None and run.returncode != 0:
            failed.append(said)
        count += 1
    return count, failed


def left(out):
    """What simulators left in their folder. Those that lost their other half sweep a moment later."""
    end = time.monotonic() + GRACE
    while (paths := list(out.glob("tegrarm-sim.*"))) and time.monotonic() < end:
        time.sleep(0.1)
    return paths


def svg(table, path, seconds):
    """A plot for each process and metric."""
    width, height, pad = 300, 120, 46
    names = list(table)
    wide, high = len(METRICS) * (width + pad) + pad, len(names) * (height + pad) + pad
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}"'
             ' font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>']
    for row, name in enumerate(names):
        for column, (metric, unit) in enumerate(METRICS.items()):
            points = [(t, sample[metric]) for t, sample in table[name]]
            x0, y0 = pad + column * (width + pad), pad + row * (height + pad)
            top = max([value for _, value in points] or [1]) * 1.1 or 1
            line = " ".join(f"{x0 + width * t / seconds:.1f},{y0 + height - height * value / top:.1f}" for t, value in points)
            parts += [f'<rect x="{x0}" y="{y0}" width="{width}" height="{height}" fill="none" stroke="#999"/>',
                      f'<polyline points="{line}" fill="none" stroke="#2a6" stroke-width="1.5"/>',
                      f'<text x="{x0}" y="{y0 - 6}">{name}: {metric}{f" ({unit})" if unit else ""}</text>',
                      f'<text x="{x0 - 4}" y="{y0 + 10}" text-anchor="end">{top:.0f}</text>',
                      f'<text x="{x0 - 4}" y="{y0 + height}" text-anchor="end">0</text>',
                      f'<text x="{x0 + width}" y="{y0 + height + 14}" text-anchor="end">{seconds:.0f} s</text>']
    path.write_text("\n".join([*parts, "</svg>"]))


def judge(table):
    """What has grown, in sentences."""
    grown = []
    for name, samples in table.items():
        for metric in METRICS:
            values = [sample[metric] for _, sample in samples]
            if len(values) < ENOUGH:
                grown.append(f"{name}: {len(values)} samples of {metric} say nothing, it ended too early")
                continue
            quarter = max(1, len(values) // 4)
            # Whole devices come and go: what counts is what a program takes in its quiet and its busy moments alike.
            # Where all is taken again and again, it is what is there between two takers.
            level = min if name == "taken from" else statistics.median
            before, after = level(values[quarter:2 * quarter]), level(values[-quarter:])
            allowed = (ALLOWED_TAKEN if name == "taken from" else ALLOWED)[metric](before)
            verdict = "flat" if after - before <= allowed else "GROWS"
            spread = f"{min(values):8.1f} to {max(values):8.1f}"
            print(f"{name:24} {metric:12} {spread}, second quarter {before:8.1f}, last {after:8.1f}  {verdict}")
            if verdict != "flat":
                grown.append(f"{name}: {metric} grew from {before:.1f} to {after:.1f}")
    return grown


def main():
    """Starts everything, samples it, and tells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--target", type=pathlib.Path, default=ROOT / "target")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the folder for the plot and the figures")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    cubin = str(ROOT / "tests/data/cubin/vecadd.nvrtc.cubin")
    simulator, work = args.target / "release" / "tegrarm-sim", args.target / "soak" / "work"
    seconds = str(int(args.seconds))
    library = str(args.target / "release" / "libtegrarm.so")
    quiet = {**os.environ, "TEGRARM_SIM_FAULTS": "0", "TMPDIR": str(args.out), "TEGRARM_LIB": library}
    start = time.monotonic()
    spawn = {
        "in process": ([work, cubin, seconds], {**quiet, "TEGRARM_BACKEND": "sim"}),
        "supervisor": ([simulator, "run", "--quiet", "--", work, cubin, seconds], {**quiet, "TEGRARM_BACKEND": "nvgpu"}),
        "taken from": ([simulator, "run", "--quiet", "--scarce", "4096", "--", "sh", "-c", TAKING, seconds, *takers(args.out)], quiet),
        "tinygrad": ([sys.executable, "-c", TINYGRAD, seconds], {**quiet, "TEGRARM_BACKEND": "sim", "DEV": "TEGRA+NV:CUDA"}),
    }
    running = {name: subprocess.Popen(command, env=env, cwd=ROOT) for name, (command, env) in spawn.items()}
    pids = {name: process.pid for name, process in running.items()}
    pids["supervisor"] = child_of(running["supervisor"].pid, running["supervisor"])
    pids["taken from"] = child_of(running["taken from"].pid, running["taken from"])
    pids["on nodes"] = child_of(pids["supervisor"], running["supervisor"])
    outcome = []
    churning = threading.Thread(target=lambda: outcome.append(churn(start + args.seconds, args.target, cubin, 1, args.out)))
    churning.start()
    table = {name: [] for name in pids}
    while any(process.poll() is None for process in running.values()) and time.monotonic() - start < args.seconds + GRACE:
        for name, pid in pids.items():
            if pid and (sample := read(pid)) and time.monotonic() - start < args.seconds:
                table[name].append((time.monotonic() - start, sample))
        time.sleep(args.seconds / SAMPLES)
    stuck = [name for name, process in running.items() if process.poll() is None]
    for name in stuck:
        running[name].kill()
        running[name].wait()
    churning.join()
    with (args.out / "soak.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["process", "seconds", *METRICS])
        writer.writerows([name, f"{t:.2f}", *sample.values()] for name, samples in table.items() for t, sample in samples)
    svg(table, args.out / "soak.svg", args.seconds)
    wrong = judge(table)
    count, failed = outcome[0] if outcome else (0, ["the short runs ended with an exception"])
    print(f"{count} short runs, some of them killed; the plot is {args.out / 'soak.svg'}")
    wrong += [f"{name} ended with {process.returncode}" for name, process in running.items() if process.returncode != 0]
    wrong += [f"a short run that nobody killed failed: {said.strip()}" for said in failed]
    wrong += [f"{path} is left" for path in left(args.out)]
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
