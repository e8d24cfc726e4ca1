"""Checks of the installed software: the library, tinygrad and the compilers. Each is loaded and tried."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib.metadata
import importlib.util
import os
import pathlib
import re
import shutil
from collections.abc import Iterator

from .. import _ffi, libcuda, nvml, where
from .. import compile as compiler
from ..say import Refused
from .check import Check, note, ok, problem, skipped
from .machine import Machine

TINYGRAD = ((0, 12), (0, 15))  # the first release that works, and the first that is not known to work; pyproject.toml has the same


def library(machine: Machine) -> Iterator[Check]:
    """Checks that the shared library is found, can be loaded and has the version of this package."""
    try:
        path = _ffi.find()
        version = _ffi.version()
    except _ffi.LibraryNotFound as error:
        first, *rest = str(error).splitlines()
        yield problem("library", first, "\n".join(line.strip() for line in rest))
        return
    try:
        package = importlib.metadata.version("tegrarm")
    except importlib.metadata.PackageNotFoundError:
        yield note("library", f"{version} at {path}; the Python package is not installed", "pip install tegrarm")
        return
    if package != version:
        yield problem("library", f"{path} is {version}, and the Python package is {package}",
                      "They belong together: install both from one release, or unset TEGRARM_LIB.")
    else:
        yield ok("library", f"{version} at {path}")


def tinygrad(machine: Machine) -> Iterator[Check]:
    """Checks which tinygrad is installed, and whether the adapter knows it."""
    try:
        version = importlib.metadata.version("tinygrad")
    except importlib.metadata.PackageNotFoundError:
        yield note("tinygrad", "not installed", "pip install 'tegrarm[tinygrad]', if you want to run tinygrad.")
        return
    chosen = machine.environ.get("DEV", "")
    if chosen.partition(":")[0].split("+")[0].upper() == "TEGRA":
        yield note("DEV", f"DEV={chosen} is known to tinygrad only after `import tegrarm.tinygrad`",
                   "Start scripts with `python -m tegrarm run SCRIPT`, which imports it, or import it in the script.")
    low, high = TINYGRAD
    numbers = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
    if low <= numbers < high:
        yield ok("tinygrad", version)
        return
    wanted = f">={low[0]}.{low[1]},<{high[0]}.{high[1]}"
    yield problem("tinygrad", f"{version} is not one that the adapters know ({wanted})",
                  "It runs unchanged through the preload door: DEV=NVK+NV tegrarm run --preload -- python SCRIPT. "
                  f"For DEV=TEGRA and DEV=TEGRA+NV: pip install 'tinygrad{wanted}'")


def compilers(machine: Machine) -> Iterator[Check]:
    """Loads NVRTC and NAK. tinygrad needs one of them."""
    found = [*nvrtc(), *nak()]
    yield from found
    has_tinygrad = importlib.util.find_spec("tinygrad") is not None
    if has_tinygrad and all(check.state != "ok" for check in found):
        yield problem("compilers", "there is none that works, and tinygrad needs one",
                      "pip install 'tegrarm[nvrtc]', or pip install tinymesa (x86-64 alone).")


def nvrtc() -> Iterator[Check]:
    """Checks whether NVRTC compiles an empty kernel."""
    try:
        version, image = compiler.version(), compiler.compiled(b'extern "C" __global__ void f() {}', "doctor.cu")
    except Refused as error:
        yield note("NVRTC", str(error), "pip install 'tegrarm[nvrtc]'; NVRTC_PATH may name another one.")
        return
    except AttributeError as error:
        yield note("NVRTC", f"what NVRTC_PATH names is another library: {error}", "Unset NVRTC_PATH, or let it name libnvrtc.so.12.")
        return
    yield ok("NVRTC", f"{version}, which compiles for sm_87 ({len(image)} bytes)")


def monitors(machine: Machine) -> Iterator[Check]:
    """Says which NVML a monitor or a framework would get, and what that one answers."""
    if not where.chosen():
        yield skipped("NVML", "no backend is chosen")
        return
    use = "Monitors get ours with: tegrarm run --nvml -- nvitop"
    try:
        ours = nvml.folder().resolve() / nvml.NAME
    except (Refused, _ffi.LibraryNotFound):
        ours, use = None, "`make build` makes one that knows this GPU."
    found = nvml.asked()
    if found is None:
        yield note("NVML", f"a program finds no {nvml.NAME}", use)
        return
    is_ours = ours is not None and pathlib.Path(found["path"]).resolve() == ours.resolve()
    who = f"{found['path']}{' (ours)' if is_ours else ''}"
    if found["status"]:
        yield note("NVML", f"{who} cannot begin: result {found['status']} of nvmlInit", "" if is_ours else use)
        return
    told = [what for what, answered in found["answers"].items() if answered]
    lacking = [what for what, answered in found["answers"].items() if not answered]
    says = f"{who} tells {', '.join(told) or 'nothing'}" + (f"; it does not tell {', '.join(lacking)}" if lacking else "")
    yield ok("NVML", says) if is_ours or not lacking else note("NVML", says, use)


def cuda_driver(machine: Machine) -> Iterator[Check]:
    """Says which CUDA driver a program would get, and whether that one finds a GPU."""
    if not where.chosen():
        yield skipped("CUDA", "no backend is chosen")
        return
    use = "CUDA programs get ours with: tegrarm run --cuda -- PROGRAM"
    try:
        ours = libcuda.folder().resolve() / libcuda.NAME
    except (Refused, _ffi.LibraryNotFound):
        ours, use = None, "`make build` makes one that knows this GPU."
    found = libcuda.asked()
    if found is None:
        yield note("CUDA", f"a program finds no {libcuda.NAME}", use)
        return
    is_ours = ours is not None and pathlib.Path(found["path"]).resolve() == ours.resolve()
    version = f"CUDA {found['version'] // 1000}.{found['version'] % 1000 // 10}"
    who = f"{found['path']}{' (ours)' if is_ours else ''}, {version},"
    if found["status"]:
        yield note("CUDA", f"{who} cannot begin: result {found['status']} of cuInit", "" if is_ours else use)
    else:
        yield ok("CUDA", f"{who} finds {found['name'] or 'no device'}")


def nak() -> Iterator[Check]:
    """Checks whether Mesa's library can be loaded."""
    spec = importlib.util.find_spec("tinymesa")
    places = [pathlib.Path(p) for p in (spec.submodule_search_locations or [])] if spec else []
    libraries = [file for place in places for file in sorted(place.rglob("*.so*"))]
    if not libraries:
        yield note("NAK", "the wheel tinymesa is not installed", "pip install tinymesa (x86-64 alone), if you want Mesa's compiler.")
        return
    try:
        ctypes.CDLL(str(libraries[0]))
    except OSError as error:
        yield note("NAK", f"{libraries[0].name} cannot be loaded: {error}", "pip install --force-reinstall tinymesa")
        return
    yield ok("NAK", f"{importlib.metadata.version('tinymesa')}, {libraries[0].name}")


def others(machine: Machine) -> Iterator[Check]:
    """Checks what tinygrad uses in addition."""
    try:
        ctypes.CDLL(ctypes.util.find_library("atomic") or "libatomic.so.1")
        yield ok("libatomic", "libatomic.so.1")
    except OSError:
        known = importlib.util.find_spec("tinygrad") is not None
        yield (problem if known else note)("libatomic", "libatomic.so.1 is not there; tinygrad fences with it", "apt install libatomic1")
    clang = shutil.which(os.environ.get("CC", "clang"))
    yield ok("clang", clang) if clang else note("clang", "not found", "Only tinygrad's CPU device needs it: apt install clang.")
    simulator = shutil.which("tegrarm-sim") or _beside()
    yield ok("tegrarm-sim", simulator) if simulator else note("tegrarm-sim", "not found", "`make sim`, or the wheel, has it.")


def _beside() -> str:
    from ..sim import program
    try:
        return program()
    except Refused:
        return ""


def backend(machine: Machine) -> Iterator[Check]:
    """Checks what answers kernel calls."""
    if chosen := where.chosen():
        yield ok("backend", chosen)
    else:
        yield problem("backend", "this machine has no /dev/nvgpu, and TEGRARM_BACKEND is not set",
                      "export TEGRARM_BACKEND=sim: the virtual Orin")


def elsewhere(what: str) -> Check:
    """The result of a check that an image of another machine cannot answer."""
    return skipped(what, "another machine's files are looked at; run this on the machine itself")
