"""Compares the virtual Orin with gpuocelot, the PTX emulator behind tinygrad's interface MOCK (`make bench-peer`), and prints a table.

gpuocelot and tinygrad's mock, which only its repository has, are fetched into the cache, or taken from folders. Nothing of them is
committed or changed. The virtual Orin runs the same programs twice, with DEV=TEGRA and with DEV=TEGRA+NV. All sides run on one core, in
turns, so that other load on the machine affects all.
The library that is built first is kept: delete it to build another source.
"""

import argparse
import importlib.util
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
COMMIT = "b16039dc940dc6bc4ea0a98380495769ff35ed99"  # what tinygrad's CI built; c476bcb6 has been built and run with this
SOURCES = {"gpuocelot": "https://github.com/tinygrad/gpuocelot.git", "tinygrad": "https://github.com/tinygrad/tinygrad.git"}
TOOLS = ("cmake", "flex", "bison")
TEST_TIMEOUT = 600  # seconds; a machine that has other work is slow, and no test hangs
SIDES = {"tegra": "TEGRA:PTX", "adapter": "TEGRA+NV:PTX", "peer": "MOCK+NV:PTX"}
PEER = "peer"
OURS = [side for side in SIDES if side != PEER]
OURS_NAMES = [SIDES[side].partition(":")[0] for side in OURS]
WIDE = 1.5  # a spread of the ratios that is named


def stop(sentence: str) -> None:
    sys.exit(f"bench-peer: {sentence}")


def fetched(cache: pathlib.Path, name: str, given: str, what: str, found: str) -> pathlib.Path:
    """The folder that was given, or a clone in the cache. `found` is a file that shows that it is the right one."""
    folder = pathlib.Path(given).resolve() if given else cache / name
    if not given and not (folder / found).exists():
        shutil.rmtree(folder, ignore_errors=True)
        clone = ["git", "clone", "--quiet", "--recurse-submodules", SOURCES[name], folder]
        if not shutil.which("git") or subprocess.run(clone, env=os.environ | {"GIT_TERMINAL_PROMPT": "0"}).returncode:
            stop(f"{SOURCES[name]} cannot be fetched. Fetch it elsewhere, with its submodules, and give both folders: "
                 "make bench-peer PEER_SOURCE=gpuocelot PEER_TINYGRAD=tinygrad")
        subprocess.run(["git", "-C", folder, "checkout", "--quiet", what], check=True)
        subprocess.run(["git", "-C", folder, "submodule", "--quiet", "update", "--init", "--recursive"], check=True)
    if not (folder / found).exists():
        stop(f"{folder} has no {found}")
    return folder


def built(cache: pathlib.Path, source: pathlib.Path) -> pathlib.Path:
    """The emulator's library."""
    library = cache / "build" / "libgpuocelot.so"
    if library.exists():
        return library
    if missing := [tool for tool in TOOLS if not shutil.which(tool)]:
        stop(f"{' '.join(missing)} missing. On Debian: apt install cmake flex bison libfl-dev libboost-thread-dev zlib1g-dev libgl-dev")
    subprocess.run(["cmake", "-S", HERE, "-B", library.parent, f"-DSOURCE={source}"], check=True, stdout=subprocess.DEVNULL)
    print("building gpuocelot's emulator: minutes", flush=True)
    subprocess.run(["cmake", "--build", library.parent, "--parallel", "2"], check=True, stdout=subprocess.DEVNULL)
    return library


def environment(side: str, library: pathlib.Path, tinygrad: pathlib.Path, database: pathlib.Path) -> dict[str, str]:
    """The same for all sides, but for the device. All find `test` and, if it is a full checkout, tinygrad itself in one place."""
    names = ("NV", "DEV", "DEBUG", "BEAM", "JIT", "NOOPT", "TEGRARM_RECORD", "TEGRARM_SIM_STATS")
    env = {name: value for name, value in os.environ.items() if name not in names}
    where = os.pathsep.join(map(str, (tinygrad, ROOT / "python")))
    env |= {"DEV": SIDES[side], "PYTHONPATH": where, "CACHEDB": str(database), "OCELOT_PATH": str(library), "TEGRARM_BACKEND": "sim"}
    return env | {"PYTHONDONTWRITEBYTECODE": "1", "HCQDEV_WAIT_TIMEOUT_MS": "600000", "DERANDOMIZE_CI": "1"}


Times = dict[str, list[tuple[float, float]]]  # of each side, the wall and CPU seconds of every turn


def row(what: str, times: Times, unit: float = 1e3, name: str = "ms") -> None:
    """A row of the table: the medians of wall time, and for each of our sides the median ratio of a turn, of wall and of CPU time. The
    lowest and the highest ratio follow if they are far apart."""
    columns = [f"{statistics.median(wall for wall, _ in times[side]) * unit:.4g} {name}" for side in SIDES]
    for side in OURS:
        for which in (0, 1):
            ratios = [theirs[which] / ours[which] for ours, theirs in zip(times[side], times[PEER], strict=True)]
            spread = f" ({min(ratios):.3g} to {max(ratios):.3g})" if max(ratios) > WIDE * min(ratios) else ""
            columns.append(f"{statistics.median(ratios):.3g}{spread}")
    print(f"| {' | '.join([what, *columns])} |", flush=True)


def ask(worker: subprocess.Popen, program: str) -> tuple[float, float, str]:
    print(program, file=worker.stdin, flush=True)
    answer = worker.stdout.readline().split()
    if len(answer) != 3:
        stop(f"a worker ended in {program}: {worker.wait()}")
    return float(answer[0]), float(answer[1]), answer[2]


def programs(environments: dict[str, dict[str, str]], turns: int) -> None:
    """Programs that have been compiled before: what remains is tinygrad's call, and execution."""
    # Without tinygrad's pool of compilers, the texts are made where they can be read.
    workers = {side: subprocess.Popen([sys.executable, HERE / "worker.py"], env=env | {"PARALLEL": "0"}, stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for side, env in environments.items()}
    names = [worker.stdout.readline().strip().split("|") for worker in workers.values()]
    for program in names[0]:
        texts = {ask(worker, program)[2] for worker in workers.values()}
        if len(texts) != 1:
            stop(f"{program}: the sides have different PTX")
        times: Times = {side: [] for side in SIDES}
        for _ in range(turns):
            for side, worker in workers.items():
                times[side].append(ask(worker, program)[:2])
        row(program, times)
    for worker in workers.values():
        worker.stdin.close()
        worker.wait()


def pytest(tests: list[str], env: dict[str, str], tinygrad: pathlib.Path, *more: str) -> tuple[float, float, str]:
    """Wall seconds and CPU seconds of a run of tests, with Python's start, and what it printed."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", f"--timeout={TEST_TIMEOUT}", *more]
    command += ["-p", "tegrarm.tinygrad"] if "TEGRA" in env["DEV"] else []
    before, started = os.times(), time.perf_counter()
    done = subprocess.run([*command, *tests], cwd=tinygrad, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    taken, after = time.perf_counter() - started, os.times()
    spent = after.children_user + after.children_system - before.children_user - before.children_system
    return taken, spent, done.stdout


def chosen(environments: dict[str, dict[str, str]], tinygrad: pathlib.Path, count: int, kept: pathlib.Path) -> list[str]:
    """Tests, evenly from all of test_ops, that pass on all sides. The choice is kept, because it takes as long as a turn."""
    if not kept.exists():
        file = "test/backend/test_ops.py"
        every = re.findall(rf"^{file}::\S+$", pytest([file], environments[PEER], tinygrad, "--collect-only")[2], re.MULTILINE)
        candidates = every[:: max(1, len(every) // (count * 5 // 4))]
        for env in environments.values():
            passed = pytest(candidates, env, tinygrad, "-rA", "--tb=no")[2]
            candidates = [test for test in candidates if f"PASSED {test}\n" in passed + "\n"]
        kept.write_text("\n".join(candidates))
    tests = kept.read_text().split()
    return tests[:: max(1, len(tests) // count)][:count]


def suite(environments: dict[str, dict[str, str]], tinygrad: pathlib.Path, args: argparse.Namespace) -> None:
    """A hundred tests, the first time and again. Again, all sides find what they compiled in tinygrad's cache."""
    if not importlib.util.find_spec("torch"):
        print("test_ops: SKIPPED, it compares with torch. `make test-tinygrad` makes an environment that has it.")
        return
    tests = chosen(environments, tinygrad, args.tests, args.cache.resolve() / "tests.txt")
    if not tests:
        stop("no test of test_ops passed on all sides")
    times: dict[str, Times] = {kind: {side: [] for side in SIDES} for kind in ("cold", "warm")}
    for _ in range(args.suite_turns):
        for env in environments.values():
            for file in pathlib.Path(env["CACHEDB"]).parent.glob(pathlib.Path(env["CACHEDB"]).name + "*"):
                file.unlink()
        for kind in ("cold", "warm"):
            for side, env in environments.items():
                taken, spent, said = pytest(tests, env, tinygrad, "--tb=no")
                if " failed" in said or " passed" not in said:
                    print(f"{side}, {kind}: {said.splitlines()[-1]}", file=sys.stderr)
                times[kind][side].append((taken, spent))
    for kind, label in (("cold", "with empty caches"), ("warm", "again")):
        row(f"{len(tests)} of test_ops, {label}", times[kind], 1, "s")


def main() -> None:
    """Fetches, builds and compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="where sources and the library go")
    parser.add_argument("--source", default="", help="gpuocelot's source with its submodules")
    parser.add_argument("--tinygrad", default="", help="a checkout of the installed tinygrad: it has test/mockgpu")
    parser.add_argument("--release", required=True, help="the installed tinygrad's release")
    parser.add_argument("--turns", type=int, default=9, help="turns of each program; 0 leaves them out")
    parser.add_argument("--suite-turns", type=int, default=3, help="turns of the tests of test_ops; 0 leaves them out")
    parser.add_argument("--tests", type=int, default=100, help="how many tests")
    args = parser.parse_args()
    cache = args.cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    source = fetched(cache, "gpuocelot", args.source, COMMIT, "ocelot/src/api/interfaces/emulated.cpp")
    tinygrad = fetched(cache, "tinygrad", args.tinygrad, f"v{args.release}", "test/mockgpu/mockgpu.py")
    library = built(cache, source)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    environments = {side: environment(side, library, tinygrad, cache / f"{side}.db") for side in SIDES}
    ratios = [f"{what}, {name}" for name in OURS_NAMES for what in ("times as fast", "in CPU time")]
    columns = ["program", *OURS_NAMES, "gpuocelot", *ratios]
    print(f"| {' | '.join(columns)} |\n|{len(columns) * '---|'}")
    if args.turns:
        programs(environments, args.turns)
    if args.suite_turns:
        suite(environments, tinygrad, args)


if __name__ == "__main__":
    main()
