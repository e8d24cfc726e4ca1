"""CUDA C to machine code for the Orin, with NVRTC alone: python compile.py kernels.cu kernels.cubin

NVRTC comes from pip (nvidia-cuda-nvrtc-cu12) or from the library that NVRTC_PATH names; no CUDA needs to be installed.
"""

import ctypes
import importlib.util
import os
import pathlib
import sys


def nvrtc() -> ctypes.CDLL:
    if path := os.environ.get("NVRTC_PATH"):
        return ctypes.CDLL(path)
    spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    for place in spec.submodule_search_locations if spec else []:
        for library in sorted(pathlib.Path(place).glob("lib/libnvrtc.so.*")):
            return ctypes.CDLL(str(library))
    sys.exit("compile.py: no NVRTC here: pip install nvidia-cuda-nvrtc-cu12")


def compiled(source: bytes, name: str) -> bytes:
    library, program, size = nvrtc(), ctypes.c_void_p(), ctypes.c_size_t()
    if library.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), 0, None, None):
        sys.exit("compile.py: NVRTC did not take the source")
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_87")
    failed = library.nvrtcCompileProgram(program, 1, options)
    what = "ProgramLog" if failed else "CUBIN"
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    result = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, result)
    if failed:
        sys.exit(result.value.decode())
    return result.raw


if __name__ == "__main__":
    source, target = map(pathlib.Path, sys.argv[1:3])
    target.write_bytes(compiled(source.read_bytes(), source.name))
