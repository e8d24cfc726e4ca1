"""``tegrarm nvcc`` compiles a program of CUDA C++ with ``<<<…>>>`` with NVIDIA's compiler and the runtime library here.

The compiler comes from pip and needs neither a GPU nor an installation of CUDA. ``CUDA_HOME`` names an installation that takes its place.
"""

from __future__ import annotations

import os
import pathlib
import platform
import re
import shutil
import subprocess
import tempfile

from . import compile as compiler
from . import libcuda
from .say import Refused

# What the compiler needs below its folder, and the wheel that has it.
PARTS = {"bin/nvcc": "nvidia-cuda-nvcc", "include/crt/host_config.h": "nvidia-cuda-crt", "nvvm/bin/cicc": "nvidia-nvvm",
         "include/cuda_runtime.h": "nvidia-cuda-runtime", "include/cccl/cuda/std/version": "nvidia-cuda-cccl"}
# Options with which the user chooses what would be chosen here.
ARCH = re.compile(r"-arch|--gpu-architecture|-gencode|--generate-code")
CUDART = re.compile(r"--?cudart(=|$)")
HOST = re.compile(r"-ccbin|--compiler-bindir")


def wheels() -> pathlib.Path | None:
    """The folder of the wheels of CUDA 13 or later, of which this Python has at least one."""
    folders = [folder for place in compiler.installed("nvidia") for folder in place.glob("cu[0-9][0-9]")]
    found = [folder for folder in folders if any((folder / part).exists() for part in PARTS)]
    return max(found, key=lambda folder: folder.name, default=None)


def toolkit(host_is_chosen: bool) -> pathlib.Path:
    """The folder of the compiler. All that is missing is named at once."""
    missing = []
    if home := os.environ.get("CUDA_HOME"):
        folder = pathlib.Path(home)
        if not (folder / "bin/nvcc").exists():
            missing.append(f"CUDA_HOME is {home}, where there is no bin/nvcc")
    else:
        folder = wheels() or pathlib.Path()
        if absent := [wheel for part, wheel in PARTS.items() if folder == pathlib.Path() or not (folder / part).exists()]:
            missing.append(f"NVIDIA's compiler: pip install {' '.join(absent)}   (or let CUDA_HOME name an installation of CUDA)")
    if not host_is_chosen and not (os.environ.get("NVCC_CCBIN") or shutil.which("g++")):
        missing.append("a C++ compiler for the CPU: apt install g++   (or let -ccbin name one)")
    if missing:
        raise Refused("nvcc: this machine lacks\n" + "\n".join(f"  {one}" for one in missing))
    return folder


def shared_runtime(arguments: list[str]) -> bool:
    """Whether the user asked for the shared runtime. Another one is refused."""
    pairs = zip(arguments, [*arguments[1:], ""], strict=True)
    kinds = [word.partition("=")[2] or following for word, following in pairs if CUDART.match(word)]
    if any(kind != "shared" for kind in kinds):
        raise Refused(f"nvcc: -cudart {kinds[-1]}: NVIDIA's static runtime uses private interfaces of NVIDIA's driver, so that the program "
                      "would not run here: leave the option out")
    return bool(kinds)


def major(folder: pathlib.Path) -> int:
    """The release of CUDA whose headers the compiler has."""
    found = re.search(r"#define CUDART_VERSION\s+(\d+)", (folder / "include/cuda_runtime_api.h").read_text(errors="replace"))
    return int(found[1]) // 1000 if found else 0


def command(arguments: list[str], folder: pathlib.Path, libraries: pathlib.Path) -> list[str]:
    """The words of the call. ``libraries`` is a folder that becomes the linker's."""
    runtime = libcuda.folder() / f"libcudart.so.{major(folder)}"
    if not runtime.exists():
        raise Refused(f"nvcc: {folder} is of CUDA {major(folder)}, and there is no {runtime}: the runtimes are of CUDA 12 and 13")
    (libraries / "libcudart.so").symlink_to(runtime)
    (libraries / "libcuda.so").symlink_to(libcuda.folder() / libcuda.NAME)
    words = [str(folder / "bin/nvcc")]
    if not any(ARCH.match(word) for word in arguments):
        words.append("-arch=sm_87")
    if not shared_runtime(arguments):
        words += ["-cudart", "shared"]
    return [*words, f"-L{libraries}", *arguments]


def nvcc(args) -> int:
    """Executes ``tegrarm nvcc``. Returns the compiler's status."""
    arguments = args.arguments
    if not arguments:
        raise Refused("nvcc: there is no source: tegrarm nvcc program.cu -o program")
    if platform.system() != "Linux":
        raise Refused("nvcc: the compiler's wheels are for Linux")
    shared_runtime(arguments)
    folder = toolkit(any(HOST.match(word) for word in arguments))
    with tempfile.TemporaryDirectory(prefix="tegrarm-nvcc-") as libraries:
        status = subprocess.run(command(arguments, folder, pathlib.Path(libraries))).returncode
    return status if status >= 0 else 128 - status
