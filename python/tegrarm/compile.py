"""``tegrarm compile`` makes machine code for the Orin from CUDA C. It needs NVRTC, but no installation of CUDA.

NVRTC comes from pip (``tegrarm[nvrtc]``), or NVRTC_PATH names the library.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import functools
import importlib.util
import os
import pathlib
import re
import sys
from collections.abc import Iterator
from typing import Any

from . import kept, say, timeline
from .say import Refused

NOT_HERE = "there is no NVRTC here: pip install nvidia-cuda-nvrtc-cu12, or let NVRTC_PATH name libnvrtc.so"

# The wheels with headers: their modules, which headers they have, and their names.
HEADERS = (
    ("nvidia.cuda_cccl", r"(cuda|nv|cub|thrust)/", "nvidia-cuda-cccl-cu12"),
    ("nvidia.cuda_nvcc", r"crt/", "nvidia-cuda-nvcc-cu12"),
    ("nvidia.curand", r"curand", "nvidia-curand-cu12"),
    ("nvidia.cuda_runtime", r"cooperative_groups|cuda|mma\.h|library_types\.h|(vector|driver|device|channel|texture|surface)_",
     "nvidia-cuda-runtime-cu12"),
)
NOT_FOUND = re.compile(r'cannot open source file "([^"]+)"')
OF_THE_HOST = re.compile(r"(std(int|io|lib|def|bool|arg)|assert|math|string|limits|float|errno|time|complex)\.h|"
                         r"c(stdint|stdio|stdlib|stddef|assert|math|string|limits|float|errno|time)")


def installed(module: str) -> list[pathlib.Path]:
    """The folders of a package, which this Python need not have."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return []
    return [pathlib.Path(place) for place in (spec.submodule_search_locations or [])] if spec else []


def library() -> str:
    """The file of the compiler."""
    path = os.environ.get("NVRTC_PATH")
    found = [path] if path else [str(file) for place in installed("nvidia.cuda_nvrtc") for file in sorted(place.glob("lib/libnvrtc.so.*"))]
    if not found:
        raise Refused(NOT_HERE)
    return found[0]


@functools.cache
def nvrtc() -> ctypes.CDLL:
    """The library of the compiler."""
    path = library()
    try:
        return ctypes.CDLL(path)
    except OSError as error:
        raise Refused(f"NVRTC cannot be loaded: {error}") from error


def version() -> str:
    """The version of NVRTC."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    nvrtc().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return f"{major.value}.{minor.value}"


def headers() -> list[str]:
    """The directories in which pip installed headers of CUDA, such as cuda_fp16.h, and those of libcu++ and CUB."""
    places = (place / "include" for module, *_ in HEADERS for place in installed(module))
    return [str(place) for place in places if place.is_dir()]


def missing(log: str) -> str:
    """What to do about a header that the compiler did not find. It is empty if the reason is another one."""
    name = found[1] if (found := NOT_FOUND.search(log)) else ""
    if OF_THE_HOST.fullmatch(name):
        return f"<{name}> is a header of the host's C library, which NVRTC does not have: leave it out, or include that of libcu++"
    wheel = next((wheel for module, pattern, wheel in HEADERS if re.match(pattern, name) and not installed(module)), "") if name else ""
    return f"<{name}> is in the wheel {wheel}: pip install {wheel}" if wheel else ""


def _get(program: ctypes.c_void_p, what: str) -> bytes:
    compiler, size = nvrtc(), ctypes.c_size_t()
    getattr(compiler, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    result = ctypes.create_string_buffer(size.value)
    getattr(compiler, f"nvrtcGet{what}")(program, result)
    return result.raw


class CompileError(Refused):
    """The compiler refused the source. ``log`` is the compiler's own text."""

    def __init__(self, log: str):
        super().__init__(log, say.PROBLEM)
        self.log = log


@dataclasses.dataclass(frozen=True)
class Program:
    """The result of NVRTC: machine code, PTX (which may be empty), and the new names of the functions that were asked for."""

    cubin: bytes
    ptx: str
    names: dict[str, str]


def program(source: bytes, name: str, arch: str, options: tuple[str, ...] = (), expressions: tuple[str, ...] = ()) -> Program:
    """Compiles a source for one GPU. ``expressions`` are functions whose names C++ changes, such as ``scale<float>``.

    If an earlier process compiled the same, and nothing that it depends on has changed, the result is read from a file.
    """
    timeline.note_source(name, source)
    every = (f"--gpu-architecture={arch}", *options)
    key = kept.key(source, name, every, expressions, library(), headers())
    if found := kept.load(key):
        return Program(*found)
    with _compiled(source, name, every, expressions) as made:
        lowered = {expression: _lowered(made, expression) for expression in expressions}
        result = _get(made, "CUBIN"), _get(made, "PTX").rstrip(b"\0").decode(errors="replace"), lowered
    kept.save(key, result)
    return Program(*result)


def compiled(source: bytes, name: str, arch: str = "sm_87", options: tuple[str, ...] = (), ptx: bool = False) -> bytes:
    """Compiles CUDA C to machine code or PTX. If the compiler refuses the source, this raises a CompileError with its text."""
    return compiled_and_told(source, name, arch, options, ptx)[0]


def compiled_and_told(source: bytes, name: str, arch: str, options: tuple[str, ...], ptx: bool) -> tuple[bytes, str]:
    """The same, with what the compiler says about a source that it took."""
    goal = f"--gpu-architecture={arch.replace('sm_', 'compute_') if ptx else arch}"
    with _compiled(source, name, (goal, *options), ()) as made:
        return _get(made, "PTX" if ptx else "CUBIN"), told(made)


def told(made: ctypes.c_void_p) -> str:
    """What the compiler says about a source that it took: warnings, and what an option such as --ptxas-options=-v asked for."""
    return _get(made, "ProgramLog").rstrip(b"\0\n").decode(errors="replace")


@contextlib.contextmanager
def _compiled(source: bytes, name: str, options: tuple[str, ...], expressions: tuple[str, ...]) -> Iterator[ctypes.c_void_p]:
    compiler, made = nvrtc(), ctypes.c_void_p()
    if compiler.nvrtcCreateProgram(ctypes.byref(made), source, os.fsencode(name), 0, None, None):
        raise Refused(f"{name}: NVRTC did not take the source")
    try:
        for expression in expressions:
            compiler.nvrtcAddNameExpression(made, expression.encode())
        array = (ctypes.c_char_p * len(options))(*map(os.fsencode, options))
        if compiler.nvrtcCompileProgram(made, len(options), array):
            log = told(made)
            if todo := missing(log):
                log = f"{log}\n{todo}"
            raise CompileError(log or f"{name}: NVRTC refuses the options {' '.join(options)}")
        yield made
    finally:
        compiler.nvrtcDestroyProgram(ctypes.byref(made))


def _lowered(made: ctypes.c_void_p, expression: str) -> str:
    name = ctypes.c_char_p()
    if nvrtc().nvrtcGetLoweredName(made, expression.encode(), ctypes.byref(name)):
        raise CompileError(f"the source has no function {expression}")
    return (name.value or b"").decode()


def run(args: Any) -> int:
    """Compiles a file into another."""
    source = pathlib.Path(args.source)
    try:
        text = source.read_bytes()
    except OSError as error:
        raise Refused(f"{source}: {error.strerror}") from error
    if text.startswith(b"\x7fELF"):
        raise Refused(f"{source} is machine code already, not CUDA C")
    if b"\0" in text:
        raise Refused(f"{source} is no text, so it is no CUDA C")
    target = pathlib.Path(args.target or source.with_suffix(".ptx" if args.ptx else ".cubin"))
    if target.resolve() == source.resolve():
        raise Refused(f"{source} would be overwritten by what it is compiled to: name another target")
    options = [f"--include-path={place}" for place in [str(source.parent), *args.include, *headers()]]
    options += [f"--define-macro={macro}" for macro in args.define]
    if args.optimize is not None and args.optimize < 3:
        options += ["--device-debug"] if args.optimize == 0 else [f"--ptxas-options=-O{args.optimize}"]
    options += ["--generate-line-info"] if args.lineinfo else []
    options += [f"--std={args.std}"] if args.std else []
    options += [f"--ptxas-options={given}" for given in args.ptxas_options]
    # Lines of machine code name the file, so they name it as the command line does. A debugger or a profile finds it by that.
    result, says = compiled_and_told(text, args.source, args.arch, (*options, *args.further), args.ptx)
    if says:
        print(says, file=sys.stderr)
    try:
        target.write_bytes(result.rstrip(b"\0") if args.ptx else result)
    except OSError as error:
        raise Refused(f"{target}: {error.strerror}") from error
    if args.json:
        say.as_json({"source": str(source), "target": str(target), "bytes": len(result), "arch": args.arch, "nvrtc": version()})
    return say.OK
