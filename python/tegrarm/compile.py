"""``tegrarm compile`` makes machine code for the Orin from CUDA C. It needs NVRTC, but no installation of CUDA.

NVRTC comes from pip (``tegrarm[nvrtc]``), or NVRTC_PATH names the library.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import pathlib

from . import say
from .say import Refused

NOT_HERE = "there is no NVRTC here: pip install nvidia-cuda-nvrtc-cu12, or let NVRTC_PATH name libnvrtc.so"


def _wheel(module: str) -> list[pathlib.Path]:
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return []
    return [pathlib.Path(place) for place in (spec.submodule_search_locations or [])] if spec else []


@functools.cache
def nvrtc() -> ctypes.CDLL:
    """The library of the compiler."""
    path = os.environ.get("NVRTC_PATH")
    found = [path] if path else [str(file) for place in _wheel("nvidia.cuda_nvrtc") for file in sorted(place.glob("lib/libnvrtc.so.*"))]
    if not found:
        raise Refused(NOT_HERE)
    try:
        return ctypes.CDLL(found[0])
    except OSError as error:
        raise Refused(f"NVRTC cannot be loaded: {error}") from error


def version() -> str:
    """The version of NVRTC."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def headers() -> list[str]:
    """The directories in which pip installed CUDA's own headers (such as cuda_fp16.h)."""
    return [str(place / "include") for place in _wheel("nvidia.cuda_runtime") if (place / "include").is_dir()]


def _get(program: ctypes.c_void_p, what: str) -> bytes:
    library, size = nvrtc(), ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    result = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, result)
    return result.raw


def compiled(source: bytes, name: str, arch: str = "sm_87", options: tuple[str, ...] = (), ptx: bool = False) -> bytes:
    """The machine code (or PTX) of CUDA C. If the compiler refuses the source, the error has the compiler's own text."""
    library, program = nvrtc(), ctypes.c_void_p()
    if library.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), 0, None, None):
        raise Refused(f"{name}: NVRTC did not take the source")
    try:
        given = [f"--gpu-architecture={arch.replace('sm_', 'compute_') if ptx else arch}", *options]
        array = (ctypes.c_char_p * len(given))(*(option.encode() for option in given))
        if library.nvrtcCompileProgram(program, len(given), array):
            log = _get(program, "ProgramLog").rstrip(b"\0\n").decode(errors="replace")
            raise Refused(log or f"{name}: NVRTC refuses the options {' '.join(given)}", say.PROBLEM)
        return _get(program, "PTX" if ptx else "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def run(args) -> int:
    """Compiles a file into another."""
    source = pathlib.Path(args.source)
    target = pathlib.Path(args.target or source.with_suffix(".ptx" if args.ptx else ".cubin"))
    try:
        text = source.read_bytes()
    except OSError as error:
        raise Refused(f"{source}: {error.strerror}") from error
    if text.startswith(b"\x7fELF"):
        raise Refused(f"{source} is machine code already, not CUDA C")
    options = [f"--include-path={place}" for place in [str(source.parent), *args.include, *headers()]]
    options += [f"--define-macro={macro}" for macro in args.define]
    if args.optimize is not None and args.optimize < 3:
        options += ["--device-debug"] if args.optimize == 0 else [f"--ptxas-options=-O{args.optimize}"]
    result = compiled(text, source.name, args.arch, tuple(options), args.ptx)
    try:
        target.write_bytes(result.rstrip(b"\0") if args.ptx else result)
    except OSError as error:
        raise Refused(f"{target}: {error.strerror}") from error
    if args.json:
        say.as_json({"source": str(source), "target": str(target), "bytes": len(result), "arch": args.arch, "nvrtc": version()})
    return say.OK
