"""`make test-librecuda` says what passed, what is wrong and what is missing. Shell scripts stand in for LibreCUDA's programs."""

import os
import pathlib
import subprocess
import sys

import pytest

RUNNER = pathlib.Path(__file__).with_name("run_librecuda.py")


def run(source, build, **more):
    command = [sys.executable, str(RUNNER), "--source", str(source), "--build", str(build)]
    done = subprocess.run(command, env={**os.environ, **more}, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def build(tmp_path):
    """Makes a build with programs that are these scripts. Each finds its kernel in its folder of the source."""

    def make(**programs):
        source, made = tmp_path / "source", tmp_path / "build"
        made.mkdir()
        (made / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={source}\n")
        for name, script in programs.items():
            for folder in (source, made):
                (folder / "tests" / name).mkdir(parents=True)
            (source / "tests" / name / "kernel.cubin").write_text("kernel")
            program = made / "tests" / name / name
            program.write_text(f"#!/bin/sh\ncat kernel.cubin || exit 9\n{script}\n")
            program.chmod(0o755)
        return source, made

    return make


def test_programs_pass_by_what_they_print(build):
    status, out = run(*build(test_write_float="echo 'Dst value (post exec): 419.31415'", test_memcopy="exit 1"))
    assert status == 0, out
    assert "test_write_float: passed" in out and "test_memcopy: SKIPPED, it needs HMM" in out
    assert "1 of 1 programs passed; 1 need HMM" in out


@pytest.mark.parametrize("script,says", [
    ("echo 'Dst value (post exec): 7'", "it does not print"),
    ("echo 'Dst value (post exec): 419.31415'; exit 3", "exit status 3"),
    ("echo 'Dst value (post exec): 419.31415'; echo '[CUDA ERROR] at' >&2", "it says 'CUDA ERROR'"),
])
def test_a_wrong_program_fails_the_run(build, script, says):
    status, out = run(*build(test_write_float=script))
    assert status == 1 and "test_write_float: FAILED, " + says in out and "0 of 1 programs passed" in out, out


def test_a_source_that_cannot_be_had_is_a_sentence(tmp_path):
    git = tmp_path / "git"
    git.write_text("#!/bin/sh\necho 'fatal: no way to the host' >&2\nexit 128\n")
    git.chmod(0o755)
    status, out = run(tmp_path / "source", tmp_path / "build", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert (status, out) == (0, "test-librecuda: SKIPPED, LibreCUDA's source cannot be had: fatal: no way to the host\n")


def test_a_source_that_was_not_built_is_a_sentence(tmp_path):
    git = tmp_path / "git"
    git.write_text("#!/bin/sh\nexit 0\n")
    git.chmod(0o755)
    status, out = run(tmp_path / "source", tmp_path / "build", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert status == 0 and out.startswith("test-librecuda: SKIPPED, LibreCUDA is not built") and "LIBRECUDA=" in out, out
