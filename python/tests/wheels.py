"""Finds the compilers that pip installed, for plain tinygrad processes, which do not find them alone."""

import pathlib
import subprocess
import sys

FIND = """
import importlib.util
for module in ("nvidia.cuda_nvrtc", "nvidia.cuda_runtime"): print(*importlib.util.find_spec(module).submodule_search_locations)
"""


def nvrtc(python: str = sys.executable) -> dict[str, str]:
    """The environment with which tinygrad finds the NVRTC and CUDA header wheels of a Python installation."""
    done = subprocess.run([python, "-c", FIND], capture_output=True, text=True, check=True)
    compiler, headers = map(pathlib.Path, done.stdout.splitlines())
    library = next(iter(sorted(compiler.glob("lib/libnvrtc.so.*"))))
    return {"NVRTC_PATH": str(library), "CUDA_PATH": str(headers)}
