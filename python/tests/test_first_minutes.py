"""What a newcomer waits for: preparing the demo, the table of `make test`, and a machine without clang."""

import importlib.util
import os
import re
import subprocess
import sys

import pytest
from conftest import HAS_CLANG, ROOT

PREPARE = ROOT / "packaging" / "prepare.py"


def suites():
    spec = importlib.util.spec_from_file_location("run_suites", ROOT / "packaging" / "run_suites.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["run_suites"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def prepare(*steps):
    return subprocess.run([sys.executable, str(PREPARE), *steps], capture_output=True, text=True, timeout=60)


def test_what_is_prepared_is_named_and_its_output_is_not_shown():
    done = prepare("one=echo Compiling a v1", "two=true")
    assert done.returncode == 0
    assert re.search(r"^prepared in \d+ s: one \d+ s, two \d+ s$", done.stdout, re.M) and "Compiling" not in done.stdout


def test_a_step_that_fails_shows_what_it_printed_and_ends_the_others():
    done = prepare("good=sleep 600", "bad=sh -c 'echo because of this; exit 3'")
    assert done.returncode == 3
    assert "because of this" in done.stdout and "bad could not be prepared" in done.stdout


def test_every_suite_of_make_test_has_a_time():
    makefile = (ROOT / "Makefile").read_text()
    line = next(line for line in makefile.splitlines() if line.startswith("SUITES :=")).split(":=")[1]
    names = re.split("[+, ]", line.strip())
    assert set(names) == set(suites().MINUTES)


def test_a_suite_is_read_for_what_passed_and_what_was_skipped():
    suite = suites().Suite("s")
    for line in ("test result: ok. 12 passed; 0 failed; 0 ignored", "5 passed, 2 skipped in 1.2s", "=== 1 failed, 3 passed ===",
                 "SKIPPED [2] python/tests/test_a.py:3: not installed: cmake", "memcheck: SKIPPED, valgrind is not installed",
                 "glibc amd64: SKIPPED, Debian 11's packages cannot be had"):
        suite.read(line)
    assert suite.passed == 12 + 5 + 3
    assert len(suite.skipped) == 4 and "memcheck: valgrind is not installed" in suite.skipped


def test_lanes_run_at_the_same_time_and_one_suite_speaks_at_a_time(tmp_path, monkeypatch, capsys):
    """`first` ends when the other lane is known to have run both of its suites; nothing begins behind the one that fails."""
    make, module = tmp_path / "make", suites()
    make.write_text(f"""#!/bin/sh
echo begin "$2"
case $2 in
first) n=0; while [ ! -e {tmp_path}/two.known ] && [ $n -lt 600 ]; do sleep 0.1; n=$((n+1)); done ;;
one) sleep 0.5 ;;
two) exit 1 ;;
esac
echo end "$2"
""")
    make.chmod(0o755)
    monkeypatch.setenv("MAKE", str(make))
    monkeypatch.delenv("MAKEFLAGS", raising=False)
    run_one = module.run
    # When `two` has only said its last line, the other lane may still begin its next suite.
    monkeypatch.setattr(module, "run", lambda suite, floor: (run_one(suite, floor), (tmp_path / f"{suite.name}.known").touch()))
    assert module.main(["first,behind+one,two", "later"]) == 1
    said = capsys.readouterr().out
    spoken = re.findall(r"^(?:begin|end) \w+$", said, re.M)
    assert sorted(spoken) == ["begin first", "begin one", "begin two", "end first", "end one"]
    assert all(spoken[spoken.index(f"end {name}") - 1] == f"begin {name}" for name in ("first", "one")), spoken
    assert dict(re.findall(r"^(\w+) +(passed|FAILED|not run) ", said, re.M)) == {
        "first": "passed", "one": "passed", "two": "FAILED", "behind": "not run", "later": "not run"}


def test_the_table_names_every_suite_and_everything_that_was_skipped():
    module = suites()
    suite, other = module.Suite("ctest", "passed", 61.0, 7, ["memcheck: valgrind is not installed"]), module.Suite("pytest")
    text = module.table([suite, other], 62.0)
    assert "1:01" in text and "1:02" in text and "not run" in text and "ctest: memcheck: valgrind is not installed" in text


def test_make_test_says_how_long_it_takes():
    done = subprocess.run(["make", "--dry-run", "test"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "suites, about" in done.stdout and "minutes on two cores" in done.stdout


@pytest.mark.skipif(not HAS_CLANG, reason="no clang and no zig: `make pytest` fetches one")
def test_a_machine_without_clang_has_tinygrads_cpu_device(python, tmp_path):
    from conftest import ZIG
    if not __import__("pathlib").Path(ZIG).exists():
        pytest.skip("clang is installed, and the zig that takes its place elsewhere is not")
    stand_in = ROOT / "python" / "tests" / "cc_without_clang.sh"
    out = python("from tinygrad import Tensor; print((Tensor([1., 2.]).exp() * 2).sum().item())",
                 env={"DEV": "CPU", "CC": str(stand_in), "CACHEDB": str(tmp_path / "cache.db"), "TEGRARM_TEST_ZIG": ZIG})
    assert abs(float(out) - 20.2146749) < 1e-5
    # Programs that only want a compiler find this one in $CC, too, and name the file that they want.
    (tmp_path / "a.c").write_text("int main(void) { return 7; }\n")
    done = subprocess.run([stand_in, "-O2", tmp_path / "a.c", "-o", tmp_path / "a"], env={**os.environ, "TEGRARM_TEST_ZIG": ZIG},
                          capture_output=True, check=True)
    assert done.stdout == b"" and subprocess.run([tmp_path / "a"], check=False).returncode == 7


@pytest.mark.parametrize(("fails", "status", "left"), [("", 0, 0), ("one", 1, 1), ("other", 1, 1)])
def test_two_suites_run_at_the_same_time_and_are_printed_one_after_the_other(tmp_path, fails, status, left):
    """Each of the first two waits for the other, so that they only end if they run together."""
    make = tmp_path / "make"
    make.write_text(f'''#!/bin/sh
cd {tmp_path}
[ "$2" = last ] && exit 0
touch began-$2
while [ ! -e began-one ] || [ ! -e began-other ]; do sleep 0.01; done
echo "$2 says a"; sleep 0.1; echo "$2 says b"; echo "1 passed"
[ "$2" != "{fails}" ]
''')
    make.chmod(0o755)
    run = [sys.executable, ROOT / "packaging" / "run_suites.py", "one+other", "last"]
    environment = os.environ | {"MAKE": str(make), "MAKEFLAGS": ""}
    done = subprocess.run(run, capture_output=True, text=True, timeout=60, env=environment, check=False)
    assert done.returncode == status and done.stdout.count("not run") == left, done.stdout
    said = re.findall(r"^(\w+) says (\w)$", done.stdout, re.M)
    assert sorted(said[::2]) == [("one", "a"), ("other", "a")] and said[1::2] == [(name, "b") for name, _ in said[::2]]
