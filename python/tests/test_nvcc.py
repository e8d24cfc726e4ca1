"""`tegrarm nvcc`: what it says without a compiler, and the words that it gives to one. test_cuda_door.py compiles a program with it."""

import os
import pathlib
import subprocess
import sys

import pytest

FAKE = """#!/bin/sh
printf '%s\\n' "$@"
for word; do case $word in -L*) ls "${word#-L}" | sed 's/^/linked: /' ;; esac; done
exit 3
"""


def tegrarm(*words: object, **env: str) -> subprocess.CompletedProcess:
    plain = {name: value for name, value in os.environ.items() if name not in ("CUDA_HOME", "NVCC_CCBIN")}
    return subprocess.run([sys.executable, "-m", "tegrarm", "nvcc", *map(str, words)], env={**plain, **env}, capture_output=True, text=True)


@pytest.fixture
def toolkit(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder that has what an installation of CUDA 13 has, and a compiler that says what it is asked."""
    for place, text in (("bin/nvcc", FAKE), ("include/cuda_runtime_api.h", "#define CUDART_VERSION  13020\n")):
        (tmp_path / place).parent.mkdir()
        (tmp_path / place).write_text(text)
    (tmp_path / "bin/nvcc").chmod(0o755)
    return tmp_path


def test_all_that_is_missing_is_named_at_once(tmp_path):
    done = tegrarm("program.cu", CUDA_HOME=str(tmp_path), PATH="/nowhere")
    assert done.returncode == 2 and f"CUDA_HOME is {tmp_path}" in done.stderr and "apt install g++" in done.stderr


def test_the_wheels_are_named_where_there_is_no_compiler():
    code = "import sys; from tegrarm import __main__, nvcc; nvcc.wheels = lambda: None; sys.exit(__main__.main(sys.argv[1:]))"
    done = subprocess.run([sys.executable, "-c", code, "nvcc", "program.cu"], capture_output=True, text=True,
                          env={name: value for name, value in os.environ.items() if name != "CUDA_HOME"})
    wheels = "nvidia-cuda-nvcc nvidia-cuda-crt nvidia-nvvm nvidia-cuda-runtime nvidia-cuda-cccl"
    assert done.returncode == 2 and f"pip install {wheels}" in done.stderr, done.stderr


def test_it_chooses_the_gpu_and_the_shared_runtime(toolkit):
    done = tegrarm("-O2", "program.cu", "-o", "program", CUDA_HOME=str(toolkit), NVCC_CCBIN="c++")
    said = done.stdout.splitlines()
    assert done.returncode == 3 and said[:3] == ["-arch=sm_87", "-cudart", "shared"], done.stderr
    assert said[4:8] == ["-O2", "program.cu", "-o", "program"] and {"linked: libcudart.so", "linked: libcuda.so"} <= set(said)


@pytest.mark.parametrize("chosen", [["-arch=sm_80"], ["-gencode", "arch=compute_87,code=sm_87"], ["--gpu-architecture", "sm_87"]])
def test_what_the_user_chooses_stays(toolkit, chosen):
    done = tegrarm(*chosen, "--cudart=shared", "-ccbin", "c++", "--help", "--json", CUDA_HOME=str(toolkit))
    said = done.stdout.splitlines()
    assert said[1:][:len(chosen)] == chosen and "-arch=sm_87" not in said and said.count("shared") == 0
    assert "--help" in said and "--json" in said, "all words are the compiler's"


@pytest.mark.parametrize("words", [["-cudart", "static"], ["--cudart=none"], ["-cudart=static"]])
def test_another_runtime_is_refused(words):
    done = tegrarm(*words, "program.cu")
    assert done.returncode == 2 and "static runtime uses private interfaces" in done.stderr


def test_a_release_without_a_runtime_here_is_refused(toolkit):
    (toolkit / "include/cuda_runtime_api.h").write_text("#define CUDART_VERSION  11080\n")
    done = tegrarm("program.cu", CUDA_HOME=str(toolkit), NVCC_CCBIN="c++")
    assert done.returncode == 2 and "is of CUDA 11" in done.stderr


def test_without_a_source_it_says_what_to_write():
    assert "tegrarm nvcc program.cu -o program" in tegrarm().stderr
