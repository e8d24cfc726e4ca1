"""python -m tegrarm."""

import _ctypes
import json
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT, TEGRARM_SIM

from tegrarm import say

RUN = ["-m", "tegrarm"]
BOARD = os.path.exists("/dev/nvgpu")
needs_sim = pytest.mark.skipif(not TEGRARM_SIM.exists(), reason="no tegrarm-sim: make sim")


def test_info(python):
    out = python([*RUN, "info"])
    assert "sm_87" in out and ("virtual Orin" in out or os.path.exists("/dev/nvgpu"))


def test_doctor_is_content(python):
    out = python([*RUN, "doctor"])
    assert "all is well" in out and "problem" not in out and "tinygrad" in out


def test_doctor_prints_the_kernels_interface_for_a_report(python):
    if os.path.exists("/dev/nvgpu"):
        pytest.skip("this machine has a board")
    for l4t, size, known in (("r35", 312, "R35"), ("r36", 328, "R36"), ("r39", 336, "R39")):
        out = python([*RUN, "doctor", "--kernel"], env={"TEGRARM_SIM_L4T": l4t})
        assert f"GET_CHARACTERISTICS: {size} bytes" in out and f"nvgpu is that of {known}" in out
        assert sum("EINVAL, known" in line for line in out.splitlines()) == 1
    assert "GET_CHARACTERISTICS" not in python([*RUN, "doctor"])


def test_doctor_names_what_is_missing(python):
    if os.path.exists("/dev/nvgpu"):
        pytest.skip("this machine has a board")
    out = python([*RUN, "doctor"], env={"TEGRARM_BACKEND": "nvgpu"}, status=1)
    assert re.search(r"problem +node +/dev/nvmap does not exist", out)


def test_run_needs_a_backend(python, tmp_path):
    if os.path.exists("/dev/nvgpu"):
        pytest.skip("this machine has a board")
    script = tmp_path / "s.py"
    script.write_text("print('ran')")
    out = python([*RUN, "run", str(script)], env={"TEGRARM_BACKEND": ""}, status=2)
    assert "TEGRARM_BACKEND=sim" in out and "ran" not in out


def test_run_gives_the_script_its_arguments_and_the_device(python, tmp_path):
    script = tmp_path / "s.py"
    script.write_text("import sys, os\nfrom tinygrad import Tensor\nprint(sys.argv[1:], os.environ['DEV'], (Tensor([2]) * 3).tolist())")
    assert python([*RUN, "run", str(script), "-x", "y"]) == "['-x', 'y'] TEGRA+NV [6]\n"


def test_run_respects_a_chosen_device(python, tmp_path):
    script = tmp_path / "s.py"
    script.write_text("import os; print(os.environ['DEV'])")
    assert python([*RUN, "run", str(script)], env={"DEV": "CPU"}) == "CPU\n"


def test_trace_lists_kernel_calls(python, tmp_path):
    script = tmp_path / "s.py"
    script.write_text("from tinygrad import Tensor; print((Tensor([2]) * 3).tolist())")
    record = tmp_path / "calls.jsonl"
    assert "[6]" in python([*RUN, "trace", "-o", str(record), str(script)])
    assert record.stat().st_size > 0


def test_sim_runs_a_command_there(python):
    assert "virtual Orin" in python([*RUN, "sim", "--", os.sys.executable, "-m", "tegrarm", "info"], env={"TEGRARM_BACKEND": ""})


# --- the whole command line: one sentence for bad input, statuses, JSON -------------------------------------------------------------

def tegrarm(*arguments, backend="sim", **env):
    done = subprocess.run([sys.executable, *RUN, *map(str, arguments)], env={**os.environ, "TEGRARM_BACKEND": backend, **env}, cwd=ROOT,
                          capture_output=True, text=True, timeout=300)
    assert "Traceback" not in done.stderr, done.stderr
    return done


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "s.py"
    path.write_text("from tinygrad import Tensor; print((Tensor([2]) * 3).tolist())")
    return path


# Any shared library that is not ours.
OTHER_LIBRARY = _ctypes.__file__
BAD = [
    (["run", "none.py"], {}, 2, "none.py: No such file or directory"),
    (["run", "python"], {}, 2, "python: Is a directory"),
    (["run", sys.executable], {}, 2, "is a program, not a Python script"),
    (["run", "--preload", "--", "no-such-program"], {}, 127, "no-such-program: No such file or directory"),
    (["run", "examples/python/demo.py"], {"TEGRARM_LIB": "/none/libtegrarm.so"}, 2, "libtegrarm.so not found"),
    (["info"], {"TEGRARM_LIB": "/none/libtegrarm.so"}, 2, "libtegrarm.so not found"),
    (["info"], {"TEGRARM_LIB": "README.md"}, 2, "README.md cannot be loaded"),
    (["info"], {"TEGRARM_LIB": OTHER_LIBRARY}, 2, "it is no libtegrarm, or one of another version"),
    (["run", "examples/python/demo.py"], {"TEGRARM_LIB": OTHER_LIBRARY}, 2, "has no function rm_alloc"),
    (["info"], {"TEGRARM_BACKEND": "simulator"}, 1, "there are nvgpu, sim"),
    (["info"], {"TEGRARM_BACKEND": "replay:/none.jsonl"}, 1, "/none.jsonl"),
    (["trace", "none.py"], {}, 2, "none.py: No such file or directory"),
    (["trace", "--html", "/none/page.html", "examples/python/demo.py"], {}, 2, "there is no directory"),
    (["compile", "none.cu"], {}, 2, "none.cu: No such file or directory"),
    (["compile", "examples/c/kernels.cu", "/none/x.cubin"], {}, 2, "/none/x.cubin: No such file or directory"),
    (["compile", "README.md", "/dev/null"], {}, 1, "error"),
    (["compile", "examples/c/kernels.cu"], {"NVRTC_PATH": "/none.so"}, 2, "NVRTC cannot be loaded"),
    (["doctor", "--root", "/none"], {}, 2, "there is no directory /none"),
    (["sim", "--", "no-such-program"], {}, 127, "no-such-program: No such file or directory"),
    (["no-such-command"], {}, 2, "invalid choice"),
    (["top", "--delay", "soon"], {}, 2, "invalid float value"),
]


@pytest.mark.parametrize("arguments, env, status, says", BAD, ids=lambda value: "-".join(value)[:60] if isinstance(value, list) else None)
def test_bad_input_is_one_sentence(arguments, env, status, says):
    done = tegrarm(*arguments, **env) if "TEGRARM_BACKEND" not in env else tegrarm(*arguments, backend=env["TEGRARM_BACKEND"])
    assert done.returncode == status and says in done.stderr, (done.returncode, done.stderr)


@pytest.mark.parametrize(("arguments", "of"), [
    (["run", "--chip", "x.py"], "run"), (["trace", "--htlm", "a", "x.py"], "trace"), (["info", "now"], "info"),
    (["doctor", "--fix"], "doctor"), (["top", "--once"], "top"), (["compile", "-g", "a.cu"], "compile"), (["validate", "--al"], "validate"),
    (["cdi", "x"], "cdi"), (["pool", "plan", "--chip", "a", "b"], "pool plan"), (["pool", "list", "all"], "pool list"),
    (["pool", "run", "--token", "x"], "pool run"),
    (["pool", "go"], "pool"), (["pool"], "pool"), (["run"], "run"), (["--fast"], ""), ([], ""),
], ids=" ".join)
def test_a_wrong_option_shows_the_usage_of_its_own_command(arguments, of):
    done = tegrarm(*arguments)
    usage, said = done.stderr.splitlines()[0], done.stderr.splitlines()[-1]
    assert done.returncode == 2 and usage.startswith(f"usage: {' '.join(filter(None, ['tegrarm', of]))} ["), done.stderr
    assert said.startswith(f"tegrarm: {of or 'the command line'}: "), said


@pytest.mark.skipif(BOARD, reason="this machine has a board")
@pytest.mark.parametrize("command", ["run", "info", "trace", "top"])
def test_a_backend_that_is_not_set_is_one_sentence(command, script):
    done = tegrarm(command, *([script] if command in ("run", "trace") else []), backend="")
    assert done.returncode == 2 and done.stderr.splitlines() == [
        "tegrarm: this machine has no /dev/nvgpu. Set TEGRARM_BACKEND=sim to use the virtual Orin."]


@needs_sim
def test_files_that_are_something_else_are_told_so(tmp_path):
    cubin, empty, page = tmp_path / "k.cubin", tmp_path / "empty", tmp_path / "page.html"
    assert tegrarm("compile", "examples/c/kernels.cu", cubin).returncode == 0
    empty.write_bytes(b"")
    page.write_text("<html>")
    for tool, file, says in (("replay", cubin, "an ELF file, which `tegrarm-sim decode` prints"), ("replay", empty, "the file is empty"),
                             ("replay", page, "no recording"), ("decode", empty, "the file is empty"), ("replay", "/none", "No such file")):
        done = tegrarm("sim", tool, file)
        assert done.returncode == 2 and says in done.stderr, (tool, file, done.stderr)


@needs_sim
def test_the_simulators_tools_are_below_sim(tmp_path, script):
    record = tmp_path / "calls.jsonl"
    assert tegrarm("run", script, TEGRARM_RECORD=str(record)).returncode == 0
    outcome = json.loads(tegrarm("sim", "--json", "replay", record).stdout)
    assert outcome["same"] and outcome["made"] > 50 and outcome["difference"] is None
    cubin = tmp_path / "k.cubin"
    assert json.loads(tegrarm("compile", "--json", "examples/c/kernels.cu", cubin).stdout)["arch"] == "sm_87"
    listing = json.loads(tegrarm("sim", "--json", "decode", cubin).stdout)
    assert listing["kind"] == "cubin" and any("EXIT" in line for line in listing["lines"])
    below = tegrarm("sim", "run", "--", sys.executable, *RUN, "info", backend="nvgpu")
    assert "of tegrarm-sim run" in below.stdout


@needs_sim
@pytest.mark.skipif(BOARD, reason="this machine has a board")
def test_info_tells_the_three_apart():
    here = json.loads(tegrarm("info", "--json", TEGRARM_SIM_CHIP="orin-nano").stdout)
    assert here["kind"] == "in-process" and here["simulator"] == {"module": "orin-nano", "l4t": "r36"}
    low = json.loads(tegrarm("info", "--json", TEGRARM_SIM_CHIP="orin-nano", TEGRARM_SIM_POWER="7W").stdout)
    assert low["simulator"]["power"] == "7W" and (low["device"]["compute_units"], here["device"]["compute_units"]) == (4, 8)
    for chip in ("agx-orin", "orin-nano"):
        board = ["--chip", chip, "--l4t", "r35", "--memory", "2048"]
        done = subprocess.run([TEGRARM_SIM, "run", *board, "--", sys.executable, *RUN, "info", "--json"],
                              env={**os.environ, "TEGRARM_BACKEND": "nvgpu"}, capture_output=True, text=True, timeout=300)
        told = json.loads(done.stdout)
        assert told["kind"] == "tegrarm-sim run" and told["device"]["memory"] == 2048 << 20
        assert told["simulator"]["module"] == chip and told["simulator"]["l4t"] == "r35"
    powered = subprocess.run([TEGRARM_SIM, "run", "--power", "MODE_15W", "--", sys.executable, *RUN, "info", "--json"],
                             env={**os.environ, "TEGRARM_BACKEND": "nvgpu"}, capture_output=True, text=True, timeout=300)
    told = json.loads(powered.stdout)
    assert told["simulator"]["power"] == "MODE_15W" and told["device"]["compute_units"] == 6
    # A program that takes the variable away is still told by what the kernel answers.
    bare = subprocess.run([TEGRARM_SIM, "run", "--", "env", "-u", "TEGRARM_SIM_RUN", sys.executable, *RUN, "info", "--json"],
                          env={**os.environ, "TEGRARM_BACKEND": "nvgpu"}, capture_output=True, text=True, timeout=300)
    assert json.loads(bare.stdout)["kind"] == "tegrarm-sim run"


def test_version_and_help():
    version = tegrarm("--version").stdout
    assert re.fullmatch(r"tegrarm \S+, libtegrarm \d+\.\d+\.\d+ \(.*\)\n", version)
    assert "no libtegrarm" in tegrarm("--version", TEGRARM_LIB="/none.so").stdout
    text = tegrarm("--help").stdout
    assert "examples:" in text and "exit status:" in text and "TEGRARM_BACKEND=sim" in text
    for command in ("run", "info", "doctor", "trace", "top", "compile", "sim"):
        assert re.search(rf"^ +{command} ", text, re.M), command
        assert "--json" in tegrarm(command, "--help").stdout


def test_there_is_no_colour_where_nobody_looks():
    assert "\x1b" not in tegrarm("doctor").stdout


def test_run_reports_in_json_on_standard_error(tmp_path):
    path = tmp_path / "s.py"
    path.write_text("import sys; print('mine'); sys.exit(5)")
    done = tegrarm("run", "--json", path)
    assert done.returncode == 5 and done.stdout == "mine\n"
    told = json.loads(done.stderr.splitlines()[-1])
    assert (told["status"], told["backend"]) == (5, "sim")


@pytest.mark.skipif(BOARD, reason="this machine has a board")
def test_a_script_that_finds_no_gpu_ends_in_a_sentence(tmp_path):
    """Not below `tegrarm run`: a program of its own, whose frontend would print fifty lines."""
    path = tmp_path / "s.py"
    path.write_text("import tegrarm.tinygrad\nfrom tinygrad import Tensor\nprint((Tensor([2]) * 3).tolist())\n")
    env = {k: v for k, v in os.environ.items() if k != "TEGRARM_BACKEND"}
    done = subprocess.run([sys.executable, path], env={**env, "DEV": "TEGRA+NV"}, capture_output=True, text=True)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and "TEGRARM_BACKEND=sim" in done.stderr


def test_other_exceptions_keep_their_traceback(tmp_path):
    path = tmp_path / "s.py"
    path.write_text("import tegrarm\nfrom tegrarm import plainly\nplainly.promise()\nraise ValueError('mine')\n")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True)
    assert "Traceback" in done.stderr and done.stderr.endswith("ValueError: mine\n")


OF_A_SCRIPT = {
    "an exception": ("def f():\n    raise ValueError('mine')\nf()", 1, "ValueError: mine"),
    "a syntax error": ("x = (1", 1, "SyntaxError: '(' was never closed"),
    "an error of the library": ("import tegrarm\ntegrarm.Device(7)", 1, "NV_ERR_"),
    "a source that does not compile": ("import tegrarm\ntegrarm.Device().compile('what')", 1, 'in the compilation of "source.cu".'),
    "a file": ("open('/none/x')", 1, "FileNotFoundError: [Errno 2] No such file or directory: '/none/x'"),
    "a pipe": ("raise BrokenPipeError(32, 'mine')", 1, "BrokenPipeError: [Errno 32] mine"),
    "a chain": ("try:\n    {}[1]\nexcept KeyError as error:\n    raise OSError('mine') from error", 1, "OSError: mine"),
    "Ctrl-C": ("import os, signal, time\nsignal.signal(2, signal.default_int_handler)\nos.kill(os.getpid(), 2)\ntime.sleep(9)", -2,
               "KeyboardInterrupt"),
    "a hook of its own": ("import sys\nsys.excepthook = lambda kind, *_: print(kind.__name__, 'in my way', file=sys.stderr)\n{}[1]", 1,
                          "KeyError in my way"),
}


@pytest.mark.parametrize("verb", ["run", "trace"])
@pytest.mark.parametrize(("code", "status", "says"), OF_A_SCRIPT.values(), ids=OF_A_SCRIPT)
def test_a_traceback_begins_with_the_script(tmp_path, code, status, says, verb):
    """Below the command it is the same as without it."""
    path = tmp_path / "s.py"
    path.write_text(code)
    env = {**os.environ, "TEGRARM_BACKEND": "sim"}
    done = subprocess.run([sys.executable, *RUN, verb, path], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, (done.returncode, done.stderr)
    shown = done.stderr[max(done.stderr.find("Traceback"), 0) : done.stderr.index(says) + len(says)]
    assert "runpy" not in shown and "__main__.py" not in shown, shown
    assert "in my way" in says or f'File "{path}", line ' in shown.splitlines()[0 if "SyntaxError" in says else 1], shown


def test_compile_has_a_real_command_line(tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "value.h").write_text("#define VALUE 7\n")
    source = tmp_path / "k.cu"
    source.write_text('#include "value.h"\n#include <cuda_fp16.h>\nextern "C" __global__ void k(int *p) { *p = VALUE + MORE; }\n')
    refused = tegrarm("compile", source)
    assert refused.returncode == 1 and "value.h" in refused.stderr
    options = ["-I", tmp_path / "include", "-D", "MORE=1"]
    for level in "0123":
        assert tegrarm("compile", *options, f"-O{level}", source).returncode == 0
    assert source.with_suffix(".cubin").read_bytes().startswith(b"\x7fELF")
    assert tegrarm("compile", *options, "--ptx", "--arch", "sm_80", source).returncode == 0
    assert ".target sm_80" in source.with_suffix(".ptx").read_text()
    bad = tegrarm("compile", *options, "--arch", "sm_3", source)
    assert bad.returncode == 1 and "invalid" in bad.stderr


def test_compile_hands_options_to_the_compiler_and_says_what_it_says(tmp_path):
    source = tmp_path / "k.cu"
    source.write_text('extern "C" __global__ void k(int *p) { if constexpr (sizeof(long) == WIDTH) *p = 7; }\n')
    plain = tegrarm("compile", "-D", "WIDTH=8", source)
    assert plain.returncode == 0 and not plain.stderr
    assert b".debug_line" not in source.with_suffix(".cubin").read_bytes()
    told = tegrarm("compile", "-D", "WIDTH=8", "-lineinfo", "--ptxas-options=-v", source)
    assert told.returncode == 0 and "registers" in told.stderr and "'k'" in told.stderr
    assert b".debug_line" in source.with_suffix(".cubin").read_bytes()
    old = tegrarm("compile", "-D", "WIDTH=8", "--std=c++14", source)
    assert old.returncode == 1 and "error: expected" in old.stderr, "C++14 has no `if constexpr`"
    assert tegrarm("compile", source, tmp_path / "further.cubin", "--", "-DWIDTH=8").returncode == 0
    refused = tegrarm("compile", source, "--", "--no-such-option")
    assert refused.returncode == 1 and "--no-such-option" in refused.stderr


def test_run_has_options_for_the_virtual_orin(tmp_path):
    script = tmp_path / "s.py"
    script.write_text("import os\nprint(*(os.environ.get('TEGRARM_SIM_' + name) for name in ('CHECK', 'CLOCK', 'STATS')))\n")
    given = ["--check", "memory,race", "--clock", "model", "--stats"]
    env = {**os.environ, "TEGRARM_BACKEND": "sim", "DEV": "CPU"}
    command = [sys.executable, *RUN, "run"]
    done = subprocess.run([*command, *given, script], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout == "memory,race model 1\n", done.stderr
    kept = {**env, "TEGRARM_SIM_CLOCK": "host"}
    done = subprocess.run([*command, "--check", "init", script], env=kept, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout == "init host None\n", done.stderr
    if not BOARD:
        env["TEGRARM_BACKEND"] = "nvgpu"
        refused = subprocess.run([*command, "--stats", script], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120)
        assert refused.returncode == 2 and "run --stats: only the virtual Orin" in refused.stderr and not refused.stdout


@pytest.mark.parametrize(("misspelt", "meant"), [
    ("TEGRARM_SIM_CLOKC", "TEGRARM_SIM_CLOCK"), ("TEGRARM_CHIP", "TEGRARM_SIM_CHIP"), ("tegrarm_backend", "TEGRARM_BACKEND"),
    ("TEGRAM_LOG", "TEGRARM_LOG"), ("TEGRARM_LOGS", "TEGRARM_LOG"), ("TEGARRM_LIB", "TEGRARM_LIB"), ("TEGRARM_SOMETHING_ELSE", ""),
    ("TEGRARM_", "")])
def test_a_misspelt_setting_is_recognized(misspelt, meant):
    assert say.unknown_settings([misspelt, *say.SETTINGS]) == {misspelt: meant}


def test_other_variables_are_no_misspelt_settings():
    assert say.unknown_settings(["TEGRARM_TEST_X", "TEGRARM_WHEEL_PLATFORM", "TEGRA_LOG", "TEGRA_RELEASE", "LIB", "HOME", ""]) == {}


def test_a_misspelt_setting_is_told_once():
    """The command starts a program, or is one with the library, and only one of the two tells."""
    program = [sys.executable, "-c", "import tegrarm; tegrarm.Device().close()"]
    commands = [["info"], *([["sim", "run", "--", *program]] if TEGRARM_SIM.exists() and not BOARD else [])]
    for command in commands:
        done = tegrarm(*command, backend="nvgpu" if command[0] == "sim" else "sim", TEGRARM_SIM_STAT="1",
                       PYTHONPATH=str(ROOT / "python"))
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("TEGRARM_SIM_STAT") == 2, done.stderr  # the name, and the name that is meant
        assert "tegrarm: there is no setting TEGRARM_SIM_STAT, so it changes nothing: is TEGRARM_SIM_STATS meant?" in done.stderr


@pytest.mark.skipif(not TEGRARM_SIM.exists() or BOARD, reason="no tegrarm-sim: make sim")
def test_the_virtual_orin_of_tegrarm_sim_prints_statistics_and_tells_of_misspelt_settings():
    program = [sys.executable, "-c", "import tegrarm; d = tegrarm.Device(); d.zeros(4).fill(2.0); d.wait()"]
    env = {**os.environ, "TEGRARM_BACKEND": "nvgpu", "PYTHONPATH": str(ROOT / "python"), "TEGRARM_SIM_CLOKC": "model"}
    command = [TEGRARM_SIM, "run", "--stats", "--clock", "model", "--", *program]
    done = subprocess.run(list(map(str, command)), env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "warp instructions" in done.stderr
    assert done.stderr.count("there is no setting TEGRARM_SIM_CLOKC") == 1, done.stderr
    quiet = subprocess.run(list(map(str, [TEGRARM_SIM, "run", "--", *program])), env=env, capture_output=True, text=True, timeout=120)
    assert quiet.returncode == 0 and "warp instructions" not in quiet.stderr, quiet.stderr


def test_statistics_and_checks_are_those_of_the_program(tmp_path):
    script = tmp_path / "s.py"
    script.write_text("from tinygrad import Tensor\nprint((Tensor([2]) * 3).tolist())\n")
    env = {**os.environ, "TEGRARM_BACKEND": "sim"}
    command = [sys.executable, *RUN, "run", "--stats", "--clock", "model", "--check"]
    done = subprocess.run([*command, "memory", script], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout == "[6]\n", done.stderr
    assert "warp instructions" in done.stderr and "bound by" in done.stderr and "launches were checked: 0 reports" in done.stderr
    wrong = subprocess.run([*command, "speed", script], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert wrong.returncode != 0 and "speed" in wrong.stderr and "memory, init, race, race=strict, sync" in wrong.stderr
