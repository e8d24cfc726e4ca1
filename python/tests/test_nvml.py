"""libnvidia-ml.so.1 of this project: its rows, and programs that nobody here wrote, unmodified."""

import csv
import ctypes
import getpass
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, TEGRARM_SIM

from tegrarm import _ffi, nvml

CRATE = ROOT / "crates/tegrarm-nvml"
HERE = pathlib.Path(__file__).parent
SITE = next((place for place in map(pathlib.Path, sys.path) if (place / "nvidia/cu13/include/nvml.h").exists()), None)
CHAPTER = ROOT / "docs/nvml.md"
SCREENS = ("gpustat", "nvitop", "nvtop")

needs_library = pytest.mark.skipif(not (TEGRARM_SIM.parent / "libtegrarm_nvml.so").exists(), reason="no libtegrarm_nvml.so: make build")
needs_sim = pytest.mark.skipif(not TEGRARM_SIM.exists() or os.path.exists("/dev/nvgpu"), reason="no tegrarm-sim: make sim")
needs_headers = pytest.mark.skipif(SITE is None, reason="no nvidia-nvml-dev: make venv")


def rows(name):
    with open(CRATE / name) as file:
        return [row for row in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE) if not row[0].startswith("#")]


@needs_headers
def test_rows_and_layouts_are_those_of_nvidias_headers():
    """The layouts in src/abi.rs are what the C compiler says, and the build ends if Rust's are others."""
    done = subprocess.run([sys.executable, ROOT / "packaging/nvml_rows.py", "--check", SITE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_each_function_has_a_state_and_each_refusal_a_reason():
    functions, states = {row[0] for row in rows("functions.tsv")}, rows("states.tsv")
    assert {row[0] for row in states} == functions and len(states) == len(functions)
    for name, state, answer, why in states:
        assert state in ("done", "partly", "refused"), name
        assert answer.startswith("NVML_ERROR_") == (state == "refused"), name
        assert len(why) > 8 or state == "done", f"{name}: no reason"


@needs_library
def test_the_names_that_nvidias_python_module_calls_are_exported():
    module = importlib.util.find_spec("pynvml")
    called = set(re.findall(r'_nvmlGetFunctionPointer\("(\w+)"\)', pathlib.Path(module.origin).read_text()))
    library = ctypes.CDLL(nvml.folder() / nvml.NAME)
    absent = {name for name in called if not hasattr(library, name)}
    # The module names three functions that no header of NVIDIA declares.
    assert absent <= called - {row[0] for row in rows("functions.tsv")}, absent
    assert len(called) > 300


FUZZ = """
import ctypes, json, random, sys
library, rows = ctypes.CDLL(sys.argv[1]), json.loads(sys.argv[2])
chance = random.Random(int(sys.argv[3]))
numbers = [0, 1, 2, 7, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1]
ends = ("nvmlShutdown", "nvmlErrorString")  # the first is called at the end; the second returns a text
found = {}
def call(name, arguments):
    code = getattr(library, name)(*arguments)
    found.setdefault(name, set()).add(code)
def rounds(device, often):
    for name, parameters in rows:
        kinds = [kind.strip() for kind in parameters.split(",") if kind.strip()]
        for _ in range(often if name not in ends else 0):
            # A handle that was never given out is a number like any other: the library must not look behind it.
            call(name, [None if kind.endswith("*") else device if kind == "nvmlDevice_t" and chance.random() < 0.7
                        else ctypes.c_uint64(chance.choice(numbers) if not kind.startswith("nvmlEventSet") else chance.randrange(9))
                        for kind in kinds])
rounds(None, 1)
assert library.nvmlInit_v2() == 0
device = ctypes.c_void_p()
assert library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
rounds(device, 6)
print(json.dumps({name: sorted(codes) for name, codes in found.items()}))
"""


@needs_library
def test_every_function_answers_null_and_any_number_with_a_result():
    """Arguments are made from the rows: pointers are NULL, handles and numbers are anything."""
    functions = [[name, parameters] for name, _, parameters in rows("functions.tsv")]
    library, seed = str(nvml.folder() / nvml.NAME), "33"
    done = subprocess.run([sys.executable, "-c", FUZZ, library, json.dumps(functions), seed], capture_output=True, text=True,
                          env={**os.environ, **nvml.environment()}, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == len(functions) - 2
    known = {*range(31), 999}
    assert all(set(codes) <= known for codes in found.values())
    assert 999 not in {code for codes in found.values() for code in codes}, "a panic"
    refused = {name: answer for name, state, answer, _ in rows("states.tsv") if state == "refused"}
    number = {"NVML_ERROR_NOT_SUPPORTED": 3, "NVML_ERROR_INVALID_ARGUMENT": 2}
    for name, answer in refused.items():
        assert set(found[name]) <= {1, 2, number[answer]} and number[answer] in found[name], (name, found[name])


@needs_library
def test_the_examples_of_nvidias_python_module_run():
    """They are in the description of its package."""
    text = importlib.metadata.metadata("nvidia-ml-py").get_payload() or importlib.metadata.metadata("nvidia-ml-py")["Description"]
    usage, _, functions = text.partition("FUNCTIONS")
    first = re.findall(r"^(?:>>>|\.\.\.) ?(.*)$", usage.partition("USAGE")[2], re.M)
    memory = re.findall(r"^>>> ((?:info|print\(f).*)$", functions, re.M)
    assert "nvmlInit()" in first and len(memory) >= 4
    # A line that the interactive interpreter shows as "..." belongs to the block before it.
    program = "\n".join([*first[:-1], "handle = nvmlDeviceGetHandleByIndex(0)", *memory, "nvmlShutdown()"])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, **nvml.environment()})
    assert done.returncode == 0, done.stderr
    assert re.search(r"Driver Version: 570\.[\d.]+\nDevice 0 : Orin \(nvgpu\)\nTotal memory: \d+\n", done.stdout), done.stdout


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """A C program that calls NVML, or None."""
    program, cc = tmp_path_factory.mktemp("nvml") / "nvml_calls", shutil.which("cc")
    if not SITE or not cc:
        return None
    options = ["-std=c17", "-D_GNU_SOURCE", "-O1", "-Wall", "-Werror", f"-I{SITE}/nvidia/cu13/include"]
    subprocess.run([cc, *options, HERE / "nvml_calls.c", "-o", program, "-ldl", "-pthread"], check=True)
    return program


# Below the supervisor: the instructions of a thousand launches alone and beside a monitor that looks ten times a second, and the monitor's.
BESIDE_A_MONITOR = """
import json, os, re, subprocess, sys
from tegrarm import nvml
submit, cubin, calls = sys.argv[1:]
quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
def counted(*command):
    tool = ["valgrind", "--fair-sched=yes", "--tool=callgrind", "--toggle-collect=measured_*", "--callgrind-out-file=/dev/null"]
    done = subprocess.run([*tool, *command], env=env, check=True, **quiet)
    return int(re.search(r"Collected : (\\d+)", done.stderr)[1])
def called(often):
    tool = ["valgrind", "--tool=none", "--trace-syscalls=yes"]
    return subprocess.run([*tool, calls, "refresh", str(often)], env=env, check=True, **quiet).stderr.count("SYSCALL[")
env = {**os.environ, **nvml.environment()}
alone = counted(submit, cubin, "runtime")
monitor = subprocess.Popen([calls, "refresh", "100000"], env=env, **quiet)
beside = counted(submit, cubin, "runtime")
monitor.terminate()
print(json.dumps({"alone": alone, "beside": beside, "seen": "processes: 1" in monitor.communicate()[0],
                  "instructions": (counted(calls, "refresh", "5") - counted(calls, "refresh", "2")) / 3,
                  "system calls": (called(5) - called(2)) / 3}))
"""


@needs_sim
@needs_library
@pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind")
def test_a_monitor_costs_the_gpus_program_nothing_and_itself_little(calls, tmp_path):
    if calls is None:
        pytest.skip("no C compiler, or no nvidia-nvml-dev")
    library, submit, cubin = pathlib.Path(_ffi.find()).resolve(), tmp_path / "submit", tmp_path / "kernels.cubin"
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", f"-I{ROOT / 'include'}", ROOT / "benches/c/submit.c", "-o", submit, library,
                    f"-Wl,-rpath,{library.parent}", "-pthread"], check=True)
    compiler = [sys.executable, ROOT / "examples/c/compile.py", ROOT / "examples/c/kernels.cu", cubin]
    subprocess.run(compiler, check=True, stdout=subprocess.DEVNULL)
    command = [TEGRARM_SIM, "run", "--quiet", "--", sys.executable, "-c", BESIDE_A_MONITOR, submit, cubin, calls]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "TEGRARM_BACKEND": "nvgpu"}, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["seen"] and found["alone"] == found["beside"] > 100_000, found
    # How many processes this computer has decides about the rest: 24 of them are looked at again in each refresh.
    assert 0 < found["instructions"] < 3_000_000 and 0 < found["system calls"] < 2_000, found


@pytest.fixture(scope="module")
def monitors(calls):
    """What the monitors say of three programs below one supervisor."""
    env = {**os.environ, "TEGRARM_BACKEND": "nvgpu", "TEGRARM_TEST_NVTOP": str(ROOT / ".cache/nvtop/usr/bin")}
    if calls:
        env["TEGRARM_TEST_NVML_PROGRAM"] = str(calls)
    done = subprocess.run([TEGRARM_SIM, "run", "--", sys.executable, HERE / "nvml_monitors.py"], capture_output=True, text=True, env=env,
                          timeout=600)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    if os.environ.get("TEGRARM_TEST_WRITE_SCREENS"):
        write(seen)
    return {**seen, "programs": {int(pid): mib for pid, mib in seen["programs"].items()}}


def write(seen):
    """Puts the screens into the chapter: TEGRARM_TEST_WRITE_SCREENS=1."""
    text, here = CHAPTER.read_text(), f"{getpass.getuser()}@{os.uname().nodename}"
    for name in [name for name in SCREENS if name in seen]:
        seen[name] = seen[name].replace(here, "me@orin".rjust(len(here))[-len(here):])
        screen = "\n".join(line.rstrip() for line in seen[name].strip("\n").splitlines())
        text = re.sub(rf"(<!-- screen: {name} -->\n+```text\n).*?```", lambda found, s=screen: f"{found[1]}{s}\n```", text, flags=re.S)
    CHAPTER.write_text(text)


def sizes(text):
    """The MiB in a screen, of those that the programs can have. nvtop also says how much other memory they have."""
    text = re.sub(r"(Compute .*?MiB).*", r"\1", text)
    return sorted(int(float(size)) for size in re.findall(r"(?<=[ (])(\d+(?:\.\d+)?)M(?:iB|\))", text) if float(size) < 1000)


@needs_sim
@needs_library
def test_programs_are_seen_with_their_memory(monitors):
    assert monitors["totals"] == ["8192"] * 3
    found = {int(pid): size for pid, size in monitors["seen"].items()}
    assert found.keys() == monitors["programs"].keys(), "the programs of this board, and no others"
    for pid, mib in monitors["programs"].items():
        assert mib << 20 < found[pid] < (mib + 64) << 20


@needs_sim
@needs_library
def test_the_load_is_there_while_a_program_computes(monitors):
    assert 0 < monitors["busy"] <= 100 and monitors["idle"] == 0


@needs_sim
@needs_library
def test_gpustat_shows_them(monitors):
    assert re.match(r"\[0\] Orin \(nvgpu\) ", monitors["gpustat"]), monitors["gpustat"]
    for pid in monitors["programs"]:
        assert re.search(rf"/{pid}\(\d+M\)", monitors["gpustat"])


ON_A_RELEASE = """
import os, subprocess, sys, tegrarm
from tegrarm import nvml
with tegrarm.Device() as device:
    kept = device.empty(48 << 20, "uint8")
    env = {**os.environ, **nvml.environment()}
    print(os.getpid())
    command = [sys.executable, "-m", "gpustat", "-cpu", "--no-color"]
    print(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)
"""


@needs_sim
@needs_library
@pytest.mark.parametrize("release", ["r35", "r39"])
def test_gpustat_shows_a_program_on_other_releases(release):
    command = [TEGRARM_SIM, "run", "--quiet", "--l4t", release, "--", sys.executable, "-c", ON_A_RELEASE]
    done = subprocess.run(command, env={**os.environ, "TEGRARM_BACKEND": "nvgpu"}, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    pid, *shown = done.stdout.splitlines()
    held = re.search(rf"/{pid}\((\d+)M\)", "\n".join(shown))
    assert "Orin (nvgpu)" in done.stdout and held and 48 <= int(held[1]) < 200, done.stdout


@needs_sim
@needs_library
def test_nvitop_shows_them(monitors):
    screen = monitors["nvitop"]
    assert "Orin (nvgpu)" in screen and "Driver Version: 570." in screen, screen
    assert len(re.findall(r"^│ +0 +\d+ C .*\d+\.\d+MiB", screen, re.M)) == len(monitors["programs"]), screen


@needs_sim
@needs_library
def test_the_calls_of_pytorch_in_c(monitors):
    if "torch" not in monitors:
        pytest.skip("no C compiler, or no nvidia-nvml-dev")
    lines = monitors["torch"].splitlines()
    assert lines[-1:] == ["nvml: ok"], monitors["torch"]
    found, seen = {int(pid): int(size) for pid, size in map(str.split, lines[:-1])}, {int(k): v for k, v in monitors["seen"].items()}
    # One of the programs works meanwhile.
    assert found.keys() == seen.keys() and all(abs(found[pid] - seen[pid]) < 4 << 20 for pid in seen)


@needs_sim
@needs_library
def test_nvtop_shows_them(monitors):
    if "nvtop" not in monitors:
        pytest.skip("no nvtop: make nvtop, or Debian's package in contrib")
    screen = monitors["nvtop"]
    assert "Orin (nvgpu)" in screen and re.search(r"GPU\[.*\d%\]", screen) and re.search(r"GPU \d+MHz", screen), screen
    for pid in monitors["programs"]:
        assert re.search(rf"^ *{pid} .*Compute .*\d+MiB", screen, re.M), screen


@needs_sim
@needs_library
def test_the_screens_of_the_chapter_are_of_these_programs(monitors):
    chapter = CHAPTER.read_text()
    for name in [name for name in SCREENS if name in monitors]:
        screen = re.search(rf"<!-- screen: {name} -->\n+```text\n(.*?)\n```", chapter, re.S)[1]
        there, now = sizes(screen), sizes(monitors[name])
        # A device of its own takes a little more or less from release to release.
        alike = len(there) == len(now) == 3 and all(abs(a - b) <= 16 for a, b in zip(there, now, strict=True))
        assert alike, f"{name}: TEGRARM_TEST_WRITE_SCREENS=1 writes it anew"


@needs_library
def test_tegrarm_run_puts_it_in_front(python):
    code = "import pynvml; pynvml.nvmlInit(); print(pynvml.nvmlDeviceGetName(pynvml.nvmlDeviceGetHandleByIndex(0)))"
    assert python(["-m", "tegrarm", "run", "--nvml", "--", sys.executable, "-c", code]) == "Orin (nvgpu)\n"


@needs_library
def test_doctor_says_which_one_a_program_gets(python):
    report = json.loads(python(["-m", "tegrarm", "doctor", "--json"], env={"LD_LIBRARY_PATH": str(nvml.folder())}))
    says = next(check["says"] for check in report["checks"] if check["name"] == "NVML")
    assert "(ours) tells name, memory, load, clock, processes; it does not tell temperature, power" in says
