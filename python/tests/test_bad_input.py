"""Whatever a command is given: one sentence and a documented status, no traceback and no panic. With --json, programs can read it."""

import json
import os
import pathlib
import subprocess
import sys

import pytest
from conftest import ROOT, TEGRARM_SIM
from machines import WELL, build

from tegrarm import say, top

needs_sim = pytest.mark.skipif(not TEGRARM_SIM.exists(), reason="no tegrarm-sim: make sim")
SAID = ("tegrarm: ", "tegrarm-sim: ", "error: ")
WORDS = b"\xc3\xa9t\xe9 \xff\n"  # no UTF-8
# What stands where a file of another kind is expected. None is a directory.
FILES = {
    "empty": b"", "directory": None, "zeros": bytes(4096), "half a line": b'{"recording": 2', "no text": WORDS,
    "a header": b'{"recording": 2, "backend": "nvgpu"}\n{"call": "ioctl", "seq"', "another number": b'{"recording": 99}\n',
    "a list": b"[1, 2]\n",
    "half a cubin": b"\x7fELF\x02\x01\x01" + bytes(9) + b"\x02\x00\xbe\x00" + b"\xff" * 40, "half a zstd": b"\x28\xb5\x2f\xfd\x04\x00",
}
# Commands that read a file, and what they are given beside it.
READERS = {
    "run": ["run"], "trace": ["trace"], "compile": ["compile"], "check": ["validate", "--check"], "root": ["doctor", "--root"],
    "cdi": ["cdi", "--root"], "replay": ["sim", "replay"], "replay all": ["sim", "replay", "--all"], "decode": ["sim", "decode"],
    "cubin": ["sim", "decode", "--as", "cubin"], "qmd": ["sim", "decode", "--as", "qmd"],
    "pushbuffer": ["sim", "decode", "--as", "pushbuffer"],
}
# Python's own errors about a script that is text are Python's.
SCRIPTS = {"directory", "zeros", "half a cubin"}


def tegrarm(*arguments, status=None, encoding="utf-8", **env):
    environ = {**os.environ, "TEGRARM_BACKEND": "sim", **env}
    done = subprocess.run([sys.executable, "-m", "tegrarm", *arguments], env=environ, cwd=ROOT, capture_output=True, timeout=300)
    done.stdout, done.stderr = (text.decode(encoding, errors="replace") for text in (done.stdout, done.stderr))
    whole = done.stdout + done.stderr
    for word in ("Traceback", "panicked", "Exception ignored"):
        assert word not in whole, whole
    assert done.returncode in (say.OK, say.PROBLEM, say.WRONG, say.NOT_STARTED), (done.returncode, done.stderr)
    if status is not None:
        assert done.returncode == status, (done.returncode, whole)
    return done


def sentence(done) -> str:
    """The only line that is no usage."""
    lines = [line for line in done.stderr.splitlines() if line.startswith(SAID)]
    assert len(lines) == 1, done.stderr
    return lines[0]


def made(directory: pathlib.Path, kind: str, name: str | bytes = "file") -> pathlib.Path:
    path = pathlib.Path(os.fsdecode(os.path.join(os.fsencode(directory), os.fsencode(name))))
    if FILES[kind] is None:
        path.mkdir()
    else:
        path.write_bytes(FILES[kind])
    return path


@needs_sim
@pytest.mark.parametrize("reader", READERS)
def test_files_of_another_kind(reader, tmp_path):
    for number, kind in enumerate(FILES):
        if reader in ("run", "trace") and kind not in SCRIPTS:
            continue
        done = tegrarm(*READERS[reader], str(made(tmp_path, kind, f"{number}.x")))
        if done.returncode == say.WRONG:
            assert sentence(done), kind
        # Bytes can be code, words or a descriptor, and an empty source is one. Everything else is refused.
        if not (done.returncode == say.PROBLEM or "decode" in READERS[reader] or reader in ("compile", "root")):
            assert done.returncode == say.WRONG, (kind, done.stdout)


@needs_sim
@pytest.mark.parametrize("reader", READERS)
def test_a_name_that_is_no_text(reader, tmp_path):
    there = made(tmp_path, "zeros", b"\xff\xfe\xe9.x")
    gone = str(there) + "none"
    for path in (str(there), gone):
        done = tegrarm(*READERS[reader], path)
        assert done.returncode in (say.OK, say.WRONG) and (done.returncode == say.OK or sentence(done)), (path, done.stderr)
    assert tegrarm(*READERS[reader], gone).returncode == say.WRONG


KERNELS = "examples/c/kernels.cu"


@pytest.mark.parametrize("variable, command", [("TEGRARM_LIB", ["info"]), ("NVRTC_PATH", ["compile", KERNELS, "/dev/null"])])
def test_libraries_that_are_something_else(variable, command, tmp_path):
    for number, kind in enumerate(FILES):
        assert sentence(tegrarm(*command, status=say.WRONG, **{variable: str(made(tmp_path, kind, f"{number}.so"))})), kind


def test_recordings_that_are_something_else(tmp_path):
    for number, kind in enumerate(FILES):
        done = tegrarm("info", status=say.PROBLEM, TEGRARM_BACKEND=f"replay:{made(tmp_path, kind, f'{number}.jsonl')}")
        assert sentence(done), kind


def test_a_name_is_shown_where_the_terminal_has_no_such_letter(tmp_path):
    root = build(tmp_path / "board")
    target = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.json")
    for encoding in ("ascii", "utf-8", "latin-1"):
        assert "now `docker run" in tegrarm("cdi", "--root", str(root), "--output", target, status=say.OK, PYTHONIOENCODING=encoding).stdout
    assert tegrarm("doctor", PYTHONIOENCODING="ascii", status=say.OK)
    assert tegrarm("top", PYTHONIOENCODING="ascii", status=say.OK)


NOTHING = {"empty": b"", "no text": WORDS, "zeros": bytes(64), "huge": b"9" * 5000 + b"\n", "directory": None}


@pytest.mark.parametrize("contents", NOTHING.values(), ids=NOTHING)
def test_a_machine_whose_files_say_nothing(contents, tmp_path):
    """Every file of a board is replaced, one by one: doctor and cdi say what they find, and top shows a dash."""
    for number, name in enumerate(WELL):
        root = build(tmp_path / str(number))
        path = root / name.lstrip("/")
        path.unlink()
        path.mkdir() if contents is None else path.write_bytes(contents)
        assert top.text(top.look(top.Files(root), "board")), name
        assert top.prometheus(top.look(top.Files(root), "board")) is not None
    everything = build(tmp_path / "all")
    for name in WELL:
        path = everything / name.lstrip("/")
        path.unlink()
        path.mkdir() if contents is None else path.write_bytes(contents)
    assert "problem" in tegrarm("doctor", "--root", str(everything), status=say.PROBLEM).stdout
    json.loads(tegrarm("doctor", "--json", "--root", str(everything), status=say.PROBLEM).stdout)
    tegrarm("cdi", "--root", str(everything))


NUMBERS = [["top", "-d", "9" * 400], ["top", "-n", "1.5"], ["top", "-n", "-" + "9" * 30], ["compile", "-O", "9", "x.cu"],
           ["compile", "-O", "9" * 99, "x.cu"],
           ["sim", "run", "--memory", "0", "--", "true"], ["sim", "run", "--memory", "9" * 19, "--", "true"],
           ["sim", "run", "--memory", str(1 << 44), "--", "true"], ["sim", "run", "--chip", "orin", "--", "true"]]
OPTIONS = [["doctor", "--none"], ["info", "more"], ["top", "--none"], ["validate", "--none"], ["validate", "--only", "none"], ["trace"],
           ["trace", "--none"], ["compile"], ["compile", "--none", "x.cu"], ["cdi", "more"], ["sim", "replay"],
           ["sim", "replay", "--none", "x"], ["sim", "decode", "--as", "x", "y"],
           ["sim", "run"], ["run"], [], ["--none"], ["compile", ""], ["compile", ".."], ["run", ""], ["validate", "--output", "none"]]


@needs_sim
@pytest.mark.parametrize("arguments", [*NUMBERS, *OPTIONS], ids=lambda arguments: "-".join(arguments)[:40] or "nothing")
def test_numbers_and_options_that_mean_nothing(arguments):
    assert sentence(tegrarm(*arguments, status=say.WRONG))


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "s.py"
    path.write_text("import tegrarm\ntegrarm.device_count()\n")
    return str(path)


def test_places_that_cannot_be_written(script, tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path, tmp_path / "none" / "x", tmp_path / "file" / "x"):
        for option in ("--output", "--html", "--perfetto"):
            assert f"trace {option}" in sentence(tegrarm("trace", option, str(place), script, status=say.WRONG))
    assert sentence(tegrarm("compile", KERNELS, str(tmp_path), status=say.WRONG))
    assert "would be overwritten" in sentence(tegrarm("compile", KERNELS, KERNELS, status=say.WRONG))
    assert sentence(tegrarm("cdi", "--root", str(build(tmp_path / "b")), "--output", str(tmp_path / "none/x"), status=say.WRONG))
    assert sentence(tegrarm("validate", "--output", str(tmp_path / "file"), status=say.WRONG))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_that_may_not_be_read(tmp_path):
    path = made(tmp_path, "empty")
    path.chmod(0)
    for reader in READERS.values():
        assert "Permission denied" in sentence(tegrarm(*reader, str(path), status=say.WRONG))


# --- standard output that nobody reads ----------------------------------------------------------------------------

PRINTERS = [["--help"], ["--version"], ["info"], ["info", "--json"], ["doctor"], ["doctor", "--json"], ["top"],
            ["top", "--json", "-n", "3", "-d", "0.01"], ["top", "--prometheus"], ["validate", "--list"], ["validate", "--list", "--json"],
            ["trace"], ["compile", "--json", KERNELS, "/dev/null"]]


def run_into(arguments, script, **streams):
    command = [sys.executable, "-m", "tegrarm", *arguments, *([script] if arguments == ["trace"] else [])]
    done = subprocess.run(command, env={**os.environ, "TEGRARM_BACKEND": "sim"}, cwd=ROOT, stderr=subprocess.PIPE, timeout=300, **streams)
    said = done.stderr.decode()
    assert "Traceback" not in said and "Exception ignored" not in said, said
    return done.returncode, said


@pytest.mark.parametrize("arguments", PRINTERS, ids="-".join)
def test_output_that_nobody_reads(arguments, script):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as nobody:
        status, said = run_into(arguments, script, stdout=nobody)
    assert status == say.OK and "tegrarm: " not in said, said
    status, said = run_into(arguments, script, preexec_fn=lambda: os.close(1))
    assert status == say.OK, said
    with open("/dev/full", "wb") as full:
        status, said = run_into(arguments, script, stdout=full)
    if arguments != ["trace"]:  # it prints nothing there, because standard output belongs to the script
        assert status == say.WRONG and said.splitlines()[-1] == "tegrarm: standard output: No space left on device", said


def test_error_output_that_nobody_reads():
    done = subprocess.run([sys.executable, "-m", "tegrarm", "run", "none.py"], preexec_fn=lambda: os.close(2),
                          env={**os.environ, "TEGRARM_BACKEND": "sim"})
    assert done.returncode == say.WRONG


# --- errors for programs ------------------------------------------------------------------------------------------

REFUSED = [["info"], ["doctor", "--root", "none"], ["top", "-d", "0"], ["top", "--none"], ["validate", "--only", "none"],
           ["validate", "--check", "none"],
           ["compile", "none.cu"], ["cdi", "--root", "none"], ["sim", "replay", "none"], ["sim", "decode", "none"]]


@needs_sim
@pytest.mark.parametrize("arguments", REFUSED, ids="-".join)
def test_an_error_is_json_where_the_answer_would_have_been(arguments):
    environ = {"TEGRARM_BACKEND": "replay:none.jsonl"} if arguments == ["info"] else {}
    done = tegrarm(arguments[0], "--json", *arguments[1:], **environ)
    told = json.loads(done.stdout)
    assert told["status"] == done.returncode != say.OK and told["error"] in done.stderr


@pytest.mark.parametrize("arguments", [["run", "--json", "none.py"], ["trace", "--json", "none.py"], ["run", "--json"]], ids="-".join)
def test_an_error_of_a_script_is_json_on_standard_error(arguments):
    done = tegrarm(*arguments, status=say.WRONG)
    told = json.loads(done.stderr.splitlines()[-1])
    assert told["status"] == say.WRONG and told["error"] in done.stderr and done.stdout == ""


def test_a_compilers_objection_is_in_the_json(tmp_path):
    (tmp_path / "k.cu").write_text("no kernel\n")
    done = tegrarm("compile", "--json", str(tmp_path / "k.cu"), status=say.PROBLEM)
    assert "error" in json.loads(done.stdout)["error"]


def test_ctrl_c_is_a_status(tmp_path):
    """A command that shows something ends without a word."""
    process = subprocess.Popen([sys.executable, "-m", "tegrarm", "doctor"], env={**os.environ, "TEGRARM_BACKEND": "sim"},
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline()
    process.send_signal(2)
    _, said = process.communicate(timeout=60)
    assert process.returncode in (say.INTERRUPTED, say.OK) and "Traceback" not in said, said
