"""The virtual Orin's checker: seeded bugs are found at their lines, and kernels without bugs have no reports."""

import functools
import os
import re
import subprocess
import sys

import checked
import pytest
from checker_clean import CLEAN, EVERYTHING
from checker_kernels import BUGS, STRICT
from conftest import TEGRARM_SIM


@functools.cache
def found(bugs, checks):
    """What the checker says of all bugs."""
    bugs = {"BUGS": BUGS, "STRICT": STRICT}[bugs]
    kernels = [(name, code, "k", grid, block, arguments, dict(options))
               for name, (_, _, code, grid, block, arguments, options) in bugs.items()]
    return checked.run(kernels, checks)


def line_of(code, mark):
    return next((n for n, line in enumerate(code.splitlines(), 1) if mark in line), None)


ALL = "memory,init,race,sync"
EACH = [("BUGS", ALL, name) for name in BUGS] + [("STRICT", "race=strict", name) for name in STRICT]


@pytest.mark.parametrize(("bugs", "checks", "name"), EACH)
def test_a_bug_is_found_at_its_line(bugs, checks, name):
    says, also, code, *_ = (BUGS | STRICT)[name]
    kernels, text = found(bugs, checks)
    wanted = {n for mark in ("// BUG", "// OTHER") if (n := line_of(code, mark)) is not None}
    place = r"\((?:kernel k|function \S+)\+0x[0-9a-f]+ \(.*test\.cu:\d+\)\)"
    where = rf"by thread \(\d+, 0, 0\) of block \(\d+, 0, 0\) at pc 0x[0-9a-f]+ {place}: \S"

    def is_it(report):
        lines = {int(n) for n in re.findall(r"test\.cu:(\d+)\)", report)}
        return report.startswith(says) and also in report and wanted <= lines and re.search(where, report)

    assert any(is_it(report) for report in kernels[name]), f"{says!r} is not among\n{kernels[name]}\nin\n{text}"


def test_what_strict_finds_is_more_than_race_does():
    kernels, text = found("STRICT", "race")
    assert kernels == {name: [] for name in STRICT} and "stopped" not in text, text


@pytest.mark.parametrize("name", [name for name, (says, *_) in BUGS.items() if says.startswith("race")])
def test_strict_finds_what_race_does(name):
    assert any(report.startswith("race: ") for report in found("BUGS", "memory,race=strict")[0][name])


def test_the_set_of_bugs_is_as_large_as_promised():
    assert len(BUGS) >= 40


def test_a_site_is_reported_once():
    kernels, text = found("BUGS", ALL)
    assert len([r for r in kernels["global store"] if r.startswith("memory: global store")]) == 1
    count = sum(len(reports) for reports in kernels.values())
    kinds = r"\(memory \d+, init \d+, race \d+, sync \d+\)"
    assert re.search(rf"tegrarm-check: \d+ launches were checked: {count} reports {kinds}; a fault has ended [1-9]\d* launches\n$", text)


def clean_ones():
    kernels = [(n, code, "k", grid, block, (("int32", 103), 0), {"shared": shared}) for n, grid, block, shared, code in CLEAN]
    # A grid whose blocks wait for each other is launched as one that is resident as a whole.
    return [(*kernel[:6], kernel[6] | {"cooperative": "this_grid" in kernel[1]}) for kernel in kernels]


def test_clean_kernels_have_no_reports():
    kernels, text = checked.run(clean_ones(), "memory,init,race,sync")
    assert kernels == {name: [] for name, *_ in CLEAN} and "stopped" not in text, text
    assert re.search(r"tegrarm-check: [1-9]\d* launches were checked: 0 reports\n$", text)


def test_clean_kernels_have_no_reports_without_the_compilers_optimisations():
    kernels = [(*kernel[:6], kernel[6] | {"compiled": "--device-debug"}) for kernel in clean_ones()]
    found, text = checked.run(kernels, "memory,init,race,sync")
    assert found == {name: [] for name, *_ in CLEAN} and "stopped" not in text, text


# What is a race by PTX's memory model in kernels that have no bug: stores of one value, a load in one lane of what another stores
# with no __syncwarp between them, and no fence behind the atomic that tells the last block that it is the last.
RACES_OF_CLEAN = {"everything": 1, "last block": 4, "one value": 3, "flags of a few threads": 2}


def test_strict_reports_of_clean_kernels_what_is_a_race():
    kernels, text = checked.run(clean_ones(), "race=strict")
    assert {name: len(reports) for name, reports in kernels.items() if reports} == RACES_OF_CLEAN and "stopped" not in text, text
    assert re.search(r"race=strict kept the accesses of a launch in up to [1-9]\d* bytes of the host\n$", text)


def test_only_what_is_asked_for_is_looked_for():
    wanted = ["global store", "barrier with two counts"]
    kernels = [(name, BUGS[name][2], "k", *BUGS[name][3:]) for name in wanted]
    assert [bool(reports) for reports in checked.run(kernels, "memory")[0].values()] == [True, False]
    assert [bool(reports) for reports in checked.run(kernels, "sync")[0].values()] == [False, True]
    assert "tegrarm-check" not in checked.run(kernels, "")[1]


def test_an_unknown_check_is_refused():
    done = subprocess.run([TEGRARM_SIM, "run", "--check", "memory,speed", "--", "true"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and 'there is no check "speed"; the checks are memory, ' in done.stderr
    code = "import cuda; cuda.Gpu()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=checked.os.path.dirname(__file__),
                          env={**checked.os.environ, "TEGRARM_BACKEND": "sim", "TEGRARM_SIM_CHECK": "speed"})
    assert 'TEGRARM_SIM_CHECK="speed" is unknown; set it to one of: memory, ' in done.stderr


@pytest.mark.parametrize(("name", "status"), [("global store", 9), (None, 0)])
def test_the_exit_status_says_that_something_was_found(name, status, tmp_path):
    """Under `tegrarm-sim run` the library reads the reports from the supervisor's process."""
    code = BUGS[name][2] if name else EVERYTHING
    options = {} if name else {"shared": 256}
    (tmp_path / "list").write_bytes(checked.pickle.dumps([("k", code, "k", 1, 64, (("int32", 100), 0), options)]))
    with (tmp_path / "list").open("rb") as kernels:
        done = subprocess.run([TEGRARM_SIM, "run", "--check", "memory,sync", "--check-exit", "9", "--", sys.executable, checked.__file__],
                              stdin=kernels, capture_output=True, text=True, check=False,
                              env={**checked.os.environ, "TEGRARM_BACKEND": "nvgpu"})
    assert done.returncode == status, done.stderr
    assert ("kernel k+0x" in done.stderr) == bool(name)
    assert f"launches were checked: {1 if name else 0} reports" in done.stderr


ZEROS = """
import tegrarm
with tegrarm.Device() as device:
    count = device.compile('extern "C" __global__ void count(int *p) { atomicAdd(p + threadIdx.x * 1024, 1); }')["count"]
    for array in (device.zeros(3 * 1024, "int32"), device.empty(3 * 1024, "int32")):
        count[1, 3](array)
        array.tolist()
        print("next", flush=True)
    print(device.zeros(0).nbytes)
"""


def test_zeros_that_are_meant_count_as_written():
    env = os.environ | {"TEGRARM_BACKEND": "sim", "TEGRARM_SIM_CHECK": "init"}
    done = subprocess.run([sys.executable, "-c", ZEROS], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    zeros, empty, rest = done.stdout.split("next\n")
    assert done.returncode == 0 and "tegrarm-check" not in zeros and "was never written, and an atomic changes it" in empty, done.stdout
    assert rest.startswith("0\n")


def child(tmp_path, name, code="", **environment):
    """A process that runs the kernel of a bug, or a clean one, with the virtual Orin in itself."""
    source, options = (BUGS[name][2], {}) if name else (EVERYTHING, {"shared": 256})
    (tmp_path / "list").write_bytes(checked.pickle.dumps([("k", source, "k", 1, 64, (("int32", 100), 0), options)]))
    program = f"import checked, sys\nsys.argv = ['checked.py']\nchecked.main()\n{code}"
    env = os.environ | {"TEGRARM_BACKEND": "sim", "TEGRARM_SIM_CHECK": "memory,sync", "TEGRARM_SIM_CHECK_EXIT": "9"} | environment
    with (tmp_path / "list").open("rb") as kernels:
        return subprocess.run([sys.executable, "-c", program], stdin=kernels, capture_output=True, text=True, check=False, env=env,
                              cwd=os.path.dirname(__file__))


@pytest.mark.parametrize(("name", "code", "status"), [
    ("global store", "", 9), (None, "", 0), ("global store", "sys.exit(4)", 4), ("global store", "import os; os.abort()", -6),
    (None, "import os; os.abort()", -6),
])
def test_the_exit_status_in_process_says_that_something_was_found(tmp_path, name, code, status):
    done = child(tmp_path, name, code)
    assert done.returncode == status, done.stderr
    assert ("launches were checked" in done.stderr) == (status != -6), "a program that a signal ends has no last line"


def test_a_launch_that_a_fault_ends_counts(tmp_path):
    done = child(tmp_path, "global null")
    assert done.returncode == 9 and "; a fault has ended 1 launches\n" in done.stderr, done.stderr
    assert child(tmp_path, "global null", TEGRARM_SIM_CHECK="sync").returncode == 9, "no check found anything"


SUPPRESSED = """# What is known
{{
   the store that is tested elsewhere
   memory
   kernel: {kernel}
   file: *test.cu
}}
"""


@pytest.mark.parametrize(("kernel", "status"), [("k", 0), ("other", 9)])
def test_known_reports_are_not_printed_and_do_not_count(tmp_path, kernel, status):
    (tmp_path / "known.supp").write_text(SUPPRESSED.format(kernel=kernel))
    done = child(tmp_path, "global store", TEGRARM_SUPPRESSIONS=str(tmp_path / "known.supp"))
    assert done.returncode == status, done.stderr
    assert ("memory: global store" in done.stderr) == bool(status)
    assert ("; 1 of them are suppressed\n" in done.stderr) == (not status), done.stderr


def test_a_mistake_in_the_list_of_known_reports_is_told(tmp_path):
    (tmp_path / "known.supp").write_text("{\n  a name\n  speed\n}\n")
    done = child(tmp_path, "global store", TEGRARM_SUPPRESSIONS=str(tmp_path / "known.supp"))
    assert done.returncode == 9 and 'line 4: "speed" is no kind of report' in done.stderr and "nothing is suppressed" in done.stderr


LEAKS = """
import tegrarm
device = tegrarm.Device()
array, module, event = device.zeros(1000, "int32"), device.compile('extern "C" __global__ void k(int *p) { *p = 1; }'), device.event()
kept = device.zeros(3000, "int32")
array.close()
"""


@pytest.mark.parametrize(("asked", "said"), [("1", ["the buffer of 12000 bytes at 0x", "1 modules", "1 events"]), ("", [])])
def test_what_was_never_freed_is_printed_if_it_is_asked_for(asked, said):
    env = os.environ | {"TEGRARM_BACKEND": "sim", "TEGRARM_LEAKS": asked}
    done = subprocess.run([sys.executable, "-c", LEAKS], env=env, capture_output=True, text=True, check=False)
    leaks = [line for line in done.stderr.splitlines() if line.startswith("libtegrarm: leak: ")]
    assert done.returncode == 0 and len(leaks) == len(said), done.stderr
    assert all(line.startswith(f"libtegrarm: leak: {what}") for line, what in zip(leaks, said, strict=True)), done.stderr


ORDERED = """
import sys, tegrarm
with tegrarm.Device() as device:
    p = device.zeros(1024, "int32")
    source = 'extern "C" __global__ void k(int *p) {\\n' + sys.argv[1] + '\\n}'
    device.compile(source, name="order.cu", options=["--generate-line-info"])["k"][8, 64](p)
    print(p.tolist()[:8])
"""


def in_orders(statement, **environment):
    """The first numbers that a kernel leaves, and what the checker says of it, with the addresses taken out."""
    env = os.environ | {"TEGRARM_BACKEND": "sim", "TEGRARM_SIM_SCHEDULES": "12"} | environment
    done = subprocess.run([sys.executable, "-c", ORDERED, statement], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


# What makes a difference to the order, what it leaves in the usual one, and what is said of it.
ORDERS = {
    "blocks": ("if (threadIdx.x == 0 && atomicAdd(p, 1) == 0) p[1] = blockIdx.x + 1;", [8, 1],
               r"order: global memory at 0x[0-9a-f]+, 4 bytes into the 4096-byte buffer at 0x[0-9a-f]+, depends on the order of blocks and "
               r"warps: 0x00000001 in the usual order, 0x0000000[2-8] in order \d+ of 12 with the seed 1\n"
               r"    last store in the usual order by thread \(0, 0, 0\) of block \(0, 0, 0\) at pc .*order\.cu:2\)\): STG.*\n"
               r"    last store in the other order by thread \(0, 0, 0\) of block \([1-7], 0, 0\) at pc .*order\.cu:2\)\): STG"),
    "warps": ("if (blockIdx.x == 3 && threadIdx.x % 32 == 0 && atomicAdd(p, 1) == 0) atomicExch(p + 1, threadIdx.x + 1);", [2, 1],
              r"0x00000001 in the usual order, 0x00000021 in order .*\n    last atomic in the usual order by thread \(0, 0, 0\) of block "
              r"\(3, 0, 0\) .*\n    last atomic in the other order by thread \(32, 0, 0\) of block \(3, 0, 0\)"),
    "failure": ("if (threadIdx.x == 0 && atomicAdd(p, 1) == 0 && blockIdx.x != 0) *(volatile int *)16 = 1;", [8, 0],
                r"order: the launch ends in the usual order of blocks and warps, and not in order \d+ of 12 with the seed 1: .*\n"
                r"    this instruction fails by thread \(0, 0, 0\) of block \([1-7], 0, 0\) at pc .*order\.cu:2\)\)"),
    "no end": ("if (threadIdx.x == 0 && atomicAdd(p, 1) == 0 && blockIdx.x != 0) while (*(volatile int *)p != -1);", [8, 0],
               r"order: the launch ends in the usual order of blocks and warps, and not in order \d+ of 12 with the seed 1: the grid "
               r"used up"),
}


@pytest.mark.parametrize("name", ORDERS)
def test_results_that_depend_on_the_order_are_reported(name):
    statement, left, says = ORDERS[name]
    numbers, said = in_orders(statement)
    assert numbers.startswith(str(left)[:-1]) and re.search(says, said), numbers + said
    assert in_orders(statement, TEGRARM_SIM_CHECK="race=strict", TEGRARM_SIM_SCHEDULES="0")[1].count("order: ") == 0


@pytest.mark.parametrize(("statement", "left"), [
    ("atomicAdd(p + threadIdx.x % 4, 1);", [128] * 4),
    ("__shared__ int own[64]; own[threadIdx.x] = p[8 + threadIdx.x]; __syncthreads(); if (!blockIdx.x) p[threadIdx.x] += own[63] + 3;",
     [3] * 8),
    ("if (blockIdx.x == 1) p[threadIdx.x] += 5; else if (!blockIdx.x) ((char *)p)[4 * (threadIdx.x + 64) + 1] += 1;", [5] * 8),
])
def test_results_that_no_order_changes_are_what_one_run_leaves(statement, left):
    """Each of the orders adds to what memory held before the launch."""
    numbers, said = in_orders(statement)
    assert numbers.startswith(str(left)[:-1]) and said.endswith("1 launches were checked: 0 reports\n"), numbers + said


def test_a_seed_gives_the_same_orders_again():
    said = {seed: in_orders(ORDERS["blocks"][0], TEGRARM_SIM_SEED=seed, TEGRARM_SIM_SCHEDULES="3")[1] for seed in "123456"}
    assert all(said[seed] == in_orders(ORDERS["blocks"][0], TEGRARM_SIM_SEED=seed, TEGRARM_SIM_SCHEDULES="3")[1] for seed in "12")
    found = {tuple(re.findall(r"(0x0000000.) in order (.)", text)) for text in said.values()}
    assert len(found) > 3, found


def test_the_orders_are_options_of_both_commands(tmp_path):
    (tmp_path / "order.py").write_text(ORDERED)
    program = [str(tmp_path / "order.py"), ORDERS["blocks"][0]]
    options = ["--schedules", "3", "--seed", "2", "--check-exit", "7"]
    for command, kind in (([TEGRARM_SIM, "run", *options, "--", sys.executable], "nvgpu"),
                          ([sys.executable, "-m", "tegrarm", "run", *options], "sim")):
        done = subprocess.run([*command, *program], env=os.environ | {"TEGRARM_BACKEND": kind}, capture_output=True, text=True, check=False)
        assert done.returncode == 7 and "of 3 with the seed 2\n" in done.stderr and "kernel k+0x" in done.stderr, done.stderr
    env = os.environ | {"TEGRARM_BACKEND": "sim", "TEGRARM_SIM_SCHEDULES": "many"}
    done = subprocess.run([sys.executable, "-c", "import tegrarm; tegrarm.Device()"], env=env, capture_output=True, text=True, check=False)
    assert 'TEGRARM_SIM_SCHEDULES="many" is unknown; set it to one of: a number from 0 to' in done.stderr, done.stderr


FREED = """
import tegrarm
with tegrarm.Device() as device:
    kernel = device.compile('extern "C" __global__ void k(unsigned long long at) { *(int *)at = 1; }')["k"]
    array = device.zeros(1024, "int32")
    address = array.address
    array.close()
    device.wait()
    kernel[1, 1](address)
    try:
        device.wait()
    except tegrarm.RmError as error:
        print(error)
"""


@pytest.mark.parametrize("checks", ["memory", ""])
def test_a_use_after_free_is_told_with_the_calls_of_both(checks):
    env = os.environ | {"TEGRARM_BACKEND": "sim", "TEGRARM_SIM_CHECK": checks}
    done = subprocess.run([sys.executable, "-c", FREED], env=env, capture_output=True, text=True, check=False)
    assert "which was freed by call #1 of tegrarm_buffer_free" in done.stdout, done.stdout + done.stderr
    found = re.search(r"libtegrarm: the buffer at (0x[0-9a-f]+) was freed here:\n +\d+: tegrarm_(\w+)\n"
                      r"(?s:.*)libtegrarm: and then used by work that was launched here:\n +\d+: tegrarm_(\w+)\n", done.stderr)
    assert bool(found) == bool(checks), done.stderr
    if found:
        assert found[2] == "buffer_free" and found[3].startswith("launch"), done.stderr


BETWEEN = """
import sys
import tegrarm

SOURCE = '''
extern "C" __global__ void fill(int *x) { x[threadIdx.x] = 1; }
extern "C" __global__ void twice(int *x) { x[threadIdx.x] *= 2; }
extern "C" __global__ void count(int *x) { atomicAdd(x, 1); }
extern "C" __global__ void signal(int *x) { x[1] = 5; __threadfence_system(); *(volatile int *)x = 7; }
extern "C" __global__ void tells(int *x) { x[1] = 5; __threadfence(); atomicExch(x, 1); }
extern "C" __global__ void hears(int *x) { if (atomicAdd(x, 0)) { __threadfence(); x[2] = x[1]; } }
'''
with tegrarm.Device() as device:
    module = device.compile(SOURCE, name="between.cu", options=["--generate-line-info"])
    fill, twice, count, signal, tells, hears = [module[name] for name in ("fill", "twice", "count", "signal", "tells", "hears")]
    one, two, copies = device.queue(), device.queue(), device.queue("copy")
    x, y = device.zeros(64, "int32"), device.zeros(64, "int32")
    device.wait()

    def on(queue, kernel, *arrays, n=64):
        kernel[1, n, 0, queue](*arrays)

    exec(sys.argv[1])
    device.wait()
"""

# What two queues do, and what is said of it: nothing, or which accesses race.
PAIRS = {
    "kernels": ("on(one, fill, x); on(two, twice, x)",
                r"race: global memory at 0x[0-9a-f]+, 0 bytes into the \d+-byte buffer at 0x[0-9a-f]+, is used by work of two queues, and "
                r"no semaphore, event or wait is between them\n"
                r"    (load|store) of kernel twice in queue 2 by thread \(0, 0, 0\) of block \(0, 0, 0\) at pc .*between\.cu:3\)\): .*\n"
                r"    earlier store of kernel fill in queue 1 at pc .*between\.cu:2\)\): STG"),
    "the default queue": ("fill[1, 64](x); on(two, twice, x)", "earlier store of kernel fill in the default queue"),
    "a copy": ("on(one, fill, x); copies.copy(y, x)",
               r"load of a copy of 256 bytes in copy queue \d\n    earlier store of kernel fill in queue \d at pc"),
    "two copies": ("one.copy(y, x); copies.copy(y, x)",
                   r"store of a copy of 256 bytes in copy queue \d\n    earlier store of a copy of 256 bytes in queue \d\n"),
    "a wait for the other queue only": ("on(one, fill, x); on(two, fill, y); two.wait(); on(two, twice, x)", "earlier store of kernel f"),
    "a wait behind": ("on(one, fill, x); on(two, twice, x); one.wait()", "earlier store of kernel fill"),
    "an event in front": ("f = one.fence(); on(one, fill, x); two.after(f); on(two, twice, x)", "earlier store of kernel fill"),
    "a wait for what was in front": ("f = one.fence(); on(one, fill, x); f.wait(); f.done; on(two, twice, x)", "earlier store of kernel f"),
    "an event": ("on(one, fill, x); two.after(one.fence()); on(two, twice, x)", None),
    "an event of an event": ("on(one, fill, x); copies.after(one.fence()); copies.copy(y, x); two.after(copies.fence()); on(two, twice, x)",
                             None),
    "a wait": ("on(one, fill, x); one.wait(); on(two, twice, x)", None),
    "a look": ("on(one, fill, x); f = one.fence()\nwhile not f.done: pass\non(two, twice, x)", None),
    "one queue": ("on(one, fill, x); one.copy(y, x); on(one, twice, x)", None),
    "other buffers": ("on(one, fill, x); on(two, fill, y)", None),
    "loads": ("one.copy(y, x); z = device.zeros(64, 'int32'); copies.copy(z, x)", None),
    "atomics": ("on(one, count, x); on(two, count, x)", None),
    "a kernel that tells another one": ("on(one, tells, x, n=1); on(two, hears, x, n=1)", None),
    "a number for the processor": ("on(one, signal, x, n=1); import ctypes\nwhile ctypes.c_int.from_address(x.pointer).value != 7: pass\n"
                                   "on(two, twice, x)", None),
    "freed and taken again": ("on(one, fill, x); x.close(); x = device.zeros(64, 'int32'); on(two, twice, x)", None),
    "a queue that has ended": ("on(one, fill, x); one.close(); on(two, twice, x)", None),
}


def said_of(program, statement, command, checks, environment):
    """What standard error has when a program has run a statement, below a command or by itself."""
    env = os.environ | {"TEGRARM_BACKEND": "sim", "TEGRARM_SIM_CHECK": checks} | environment
    done = subprocess.run([*command, sys.executable, "-c", program, statement], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def between(statement, *command, checks="race=strict", **environment):
    return said_of(BETWEEN, statement, command, checks, environment)


@pytest.mark.parametrize("name", PAIRS)
def test_work_of_two_queues_with_nothing_between_is_reported(name):
    statement, says = PAIRS[name]
    said = between(statement)
    assert re.search(says, said) if says else "launches were checked: 0 reports" in said, said
    assert says is None or between(statement, checks="race").endswith("launches were checked: 0 reports\n")


@pytest.mark.parametrize("name", ["kernels", "an event", "a wait"])
def test_work_of_two_queues_is_looked_at_out_of_process_too(name):
    statement, says = PAIRS[name]
    said = between(statement, TEGRARM_SIM, "run", "--check", "race=strict", "--", TEGRARM_BACKEND="nvgpu")
    assert ("race: global memory" in said) == bool(says) and "launches were checked: " in said, said


PROCESSOR = """
import ctypes, os, signal, sys
import numpy as np
import tegrarm

SOURCE = '''
extern "C" __global__ void fill(int *x) { x[threadIdx.x] = 1; }
extern "C" __global__ void twice(int *y, const int *x) { y[threadIdx.x] = x[threadIdx.x] * 2; }
extern "C" __global__ void signal(int *x) { x[1] = 5; __threadfence_system(); *(volatile int *)x = 7; }
'''
with tegrarm.Device() as device:
    module = device.compile(SOURCE, name="processor.cu", options=["--generate-line-info"])
    fill, twice, signals = module["fill"], module["twice"], module["signal"]
    x, y, other = device.zeros(32, "int32"), device.zeros(32, "int32"), device.queue()
    X, Y = (np.ctypeslib.as_array(ctypes.cast(a.pointer, ctypes.POINTER(ctypes.c_int)), (32,)) for a in (x, y))
    device.wait()
    exec(sys.argv[1])
    device.wait()
"""

# What the processor does while a launch or a copy uses its buffers, and what is said of it.
TOUCHED = {
    "a load": ("fill[1, 32](x); X[3]",
               r"cpu: global memory at 0x[0-9a-f]+, 12 bytes into the \d+-byte buffer at 0x[0-9a-f]+, is used by the processor and by work "
               r"for which it has not waited\n(?s:.*)load by the processor:\n +\d+: (?s:.*)"
               r"store of kernel fill in the default queue (by thread \(3, 0, 0\) of block \(0, 0, 0\) )?at pc .*processor\.cu:2\)\): STG"),
    "a store": ("twice[1, 32](y, x); X[4] = 7", r"store by the processor:\n(?s:.*)load of kernel twice .*processor\.cu:3\)\): LDG"),
    "a load behind the end": ("import time; fill[1, 32](y); time.sleep(0.3); Y[0]", "load by the processor"),
    "a copy": ("other.copy(y, x); Y[:] = 3", r"store by the processor:\n(?s:.*)store of a copy of 128 bytes in queue 1\n"),
    "a wait for another queue": ("fill[1, 32](x); fill[1, 32, 0, other](y); other.wait(); X[0]", "load by the processor"),
    "a wait": ("fill[1, 32](x); device.wait(); X[:] = 2; twice[1, 32](y, x); device.wait(); Y.sum()", None),
    "a look": ("fill[1, 32](x); f = device.fence()\nwhile not f.done: pass\nX.sum()", None),
    "loads of what is loaded": ("twice[1, 32](y, x); X.sum()", None),
    "another buffer": ("fill[1, 32](x); Y[:] = 4", None),
    "the library's own": ("fill[1, 32](x); x.numpy(); x.fill(3)", None),
    "a number for the processor": ("signals[1, 1](x)\nwhile X[0] != 7: pass\nassert X[1] == 5", None),
    "a system call behind a wait": ("fill[1, 32](x); device.wait(); assert os.write(os.open('/dev/null', os.O_WRONLY), X) == 128", None),
    "a handler of the program": ("signal.signal(signal.SIGSEGV, lambda *_: None); fill[1, 32](x); X[3]", "load by the processor"),
    "a child": ("fill[1, 32](x); child = os.fork()\nif not child: X[3]; os._exit(0)\n"
                "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGSEGV", None),
}


def touched(statement, *command, checks="cpu", **environment):
    return said_of(PROCESSOR, statement, command, checks, environment)


@pytest.mark.parametrize("name", TOUCHED)
def test_accesses_of_the_processor_to_what_the_gpu_still_uses_are_reported(name):
    statement, says = TOUCHED[name]
    said = touched(statement)
    assert re.search(says, said) if says else "launches were checked: 0 reports" in said, said


def test_accesses_of_the_processor_are_looked_at_out_of_process_too():
    for name in ("a load", "a wait"):
        statement, says = TOUCHED[name]
        said = touched(statement, TEGRARM_SIM, "run", "--check", "cpu", "--", TEGRARM_BACKEND="nvgpu")
        assert ("cpu: global memory" in said) == bool(says) and "launches were checked: " in said, said


def test_nobody_looks_at_the_processor_unless_it_is_asked_for():
    statement = "fill[1, 32](x); h = [l for l in open('/proc/self/status') if l.startswith('SigCgt')]; " \
                "print(int(h[0].split()[1], 16) >> 10 & 1, file=sys.stderr); X[3]"
    for checks in ("", "race=strict", "cpu"):
        said = touched(statement, checks=checks)
        assert said.startswith("1\n" if checks == "cpu" else "0\n") and ("by the processor" in said) == (checks == "cpu"), said
