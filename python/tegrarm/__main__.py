"""The command line: ``python -m tegrarm info|doctor|run|trace|sim|pool``."""

from __future__ import annotations

import argparse
import ctypes.util
import importlib.metadata
import os
import pathlib
import runpy
import shutil
import sys
import tempfile

from . import _ffi, rm, trace

BOARD = pathlib.Path("/dev/nvgpu")
NODES = ("/dev/nvmap", "/dev/nvgpu/igpu0/ctrl", "/dev/nvgpu/igpu0/as", "/dev/nvgpu/igpu0/tsg")


def backend() -> str:
    """The backend that a run will use; exits with a sentence where none was chosen and there is no board."""
    if chosen := os.environ.get("TEGRARM_BACKEND"):
        return chosen
    if BOARD.exists():
        return "nvgpu"
    sys.exit("tegrarm: this machine has no /dev/nvgpu. Set TEGRARM_BACKEND=sim to use the virtual Orin.")


def describe() -> str:
    """One paragraph about the library and the device behind it."""
    profile = rm.device_profile()
    kind = "virtual Orin" if profile.simulated else "board"
    return "\n".join([
        f"library   {_ffi.version()}  {_ffi.find()}",
        f"backend   {backend()}",
        f"device    {profile.name.decode()} ({kind}), sm_{profile.sm_version >> 8}{profile.sm_version & 0xff}",
        f"memory    {profile.memory_size >> 20} MiB, {'shared with the CPU' if profile.shared_memory else 'its own'}",
        f"compute   {profile.compute_units} SMs of {profile.simd_width}-thread warps, up to {profile.max_clock_hz / 1e6:.0f} MHz",
    ])


def info(_args) -> int:
    """Prints the library and the device."""
    backend()
    print(describe())
    return 0


def _node_problem(path: str) -> str | None:
    if not os.path.exists(path):
        return f"{path} does not exist"
    if not os.access(path, os.R_OK | os.W_OK):
        return f"no permission on {path}; add yourself to its group ({pathlib.Path(path).group()}) or run as root"
    return None


def _checks():
    """(what, is it needed, problem or None, what it says when fine), in the order a newcomer meets them."""
    try:
        path = _ffi.find()
        yield "library", True, None, f"{_ffi.version()} at {path}"
    except (_ffi.LibraryNotFound, OSError) as error:
        yield "library", True, str(error), ""
        return
    chosen = os.environ.get("TEGRARM_BACKEND") or ("nvgpu" if BOARD.exists() else "")
    if not chosen:
        yield "backend", True, "no /dev/nvgpu here and TEGRARM_BACKEND is not set; use TEGRARM_BACKEND=sim", ""
        return
    yield "backend", True, None, chosen
    if chosen.startswith("nvgpu"):
        for node in NODES:
            yield "node", True, _node_problem(node), node
    try:
        yield "device", True, None, rm.device_profile().name.decode()
    except rm.RmError as error:
        yield "device", True, str(error), ""
    fence = ctypes.util.find_library("atomic")
    yield "libatomic", False, None if fence else "libatomic.so.1 not found; tinygrad fences with it (apt install libatomic1)", fence
    try:
        yield "tinygrad", False, None, importlib.metadata.version("tinygrad")
    except importlib.metadata.PackageNotFoundError:
        yield "tinygrad", False, "not installed (pip install tinygrad)", ""
    clang = shutil.which(os.environ.get("CC", "clang"))
    yield "clang", False, None if clang else "not found; tinygrad's CPU device compiles with it (apt install clang)", clang
    for name, package in (("NVRTC", "nvidia-cuda-nvrtc-cu12"), ("Mesa NAK", "tinymesa")):
        try:
            yield name, False, None, importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            yield name, False, f"wheel not installed (pip install {package})", ""


def doctor(args) -> int:
    """Says what is there and what is missing; exit status 1 if something needed is missing."""
    broken = False
    for what, needed, problem, fine in _checks():
        mark = "ok     " if problem is None else ("MISSING" if needed else "absent ")
        print(f"{mark} {what:10} {problem or fine}")
        broken |= needed and problem is not None
        if what == "device" and (problem is not None or args.kernel):
            print_kernel_report()
    return int(broken)


def print_kernel_report() -> None:
    """The kernel's interface in bytes: what a report about an unknown release needs."""
    try:
        text = rm.kernel_report()
    except rm.RmError:
        return  # the nodes cannot be asked, which the line about the device has said
    print("".join(f"        {line}\n" for line in text.splitlines()), end="")


def run(args) -> int:
    """Runs a Python script with the tinygrad adapter loaded, or any program with the device nodes of desktop RM."""
    if args.preload:
        return run_preloaded(args)
    os.environ["TEGRARM_BACKEND"] = backend()
    if chosen_by_us := "DEV" not in os.environ:
        os.environ["DEV"] = "TEGRA+NV"
    from tegrarm import tinygrad as adapter
    if chosen_by_us and adapter.NAMES_INTERFACES_IN_CALL:
        del os.environ["DEV"]
        os.environ.update(NV="1", NV_IFACE="TEGRA")
    sys.argv = [args.script, *args.args]
    sys.path[0] = str(pathlib.Path(args.script).resolve().parent)
    runpy.run_path(args.script, run_name="__main__")
    return 0


def run_preloaded(args) -> int:
    """Replaces this process by a command that finds /dev/nvidiactl and its siblings."""
    library = pathlib.Path(_ffi.find()).with_name("libtegrarm_preload.so")
    if not library.exists():
        sys.exit(f"tegrarm run --preload: there is no {library}; `make build` makes it")
    os.environ["TEGRARM_BACKEND"] = backend()
    os.environ["TEGRARM_LIB"] = _ffi.find()
    others = os.environ.get("LD_PRELOAD")
    os.environ["LD_PRELOAD"] = f"{library}:{others}" if others else str(library)
    command = [args.script, *args.args]
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"tegrarm run --preload: {command[0]}: {error.strerror}")


def run_traced(args) -> int:
    """Runs a script as ``run`` does, then prints which kernel calls each RM call made."""
    path = args.output or os.path.join(tempfile.mkdtemp(prefix="tegrarm-trace-"), "calls.jsonl")
    os.environ["TEGRARM_RECORD"] = path
    try:
        return run(args)
    finally:
        print(trace.table(trace.read(path)), file=sys.stderr)
        print(f"every call: {path}", file=sys.stderr)


def sim(args) -> int:
    """Replaces this process by a command that uses the virtual Orin."""
    os.environ["TEGRARM_BACKEND"] = "sim"
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        return info(args)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.exit(f"tegrarm sim: {command[0]}: {error.strerror}")


def pool(args) -> int:
    """Hands over to :mod:`tegrarm.pool`, whose packages are optional."""
    from .pool import cli
    return cli.main(args.arguments)


def parser() -> argparse.ArgumentParser:
    """The command line's grammar."""
    top = argparse.ArgumentParser(prog="python -m tegrarm", description="libtegrarm: desktop NVIDIA RM calls on Jetson")
    commands = top.add_subparsers(dest="command_name", required=True)
    commands.add_parser("info", help="the library and the device").set_defaults(do=info)
    command = commands.add_parser("doctor", help="what is missing, and what to do about it")
    command.add_argument("--kernel", action="store_true", help="also print the kernel's interface as bytes, for a report")
    command.set_defaults(do=doctor)

    for name, do, text in (("run", run, "run a script on tinygrad's TEGRA interface"),
                           ("trace", run_traced, "run a script, then list the kernel calls behind every RM call")):
        command = commands.add_parser(name, help=text)
        command.add_argument("--preload", action="store_true", help="any program, with the device nodes of desktop RM, through LD_PRELOAD")
        if name == "trace":
            command.add_argument("-o", "--output", help="keep the recording (JSON lines) here")
        command.add_argument("script")
        command.add_argument("args", nargs=argparse.REMAINDER)
        command.set_defaults(do=do)

    command = commands.add_parser("sim", help="run a command on the virtual Orin")
    command.add_argument("command", nargs=argparse.REMAINDER)
    command.set_defaults(do=sim)

    command = commands.add_parser("pool", help="split a model over several devices (tegrarm[pool])", add_help=False)
    command.add_argument("arguments", nargs=argparse.REMAINDER)
    command.set_defaults(do=pool)
    return top


def main() -> int:
    """Entry point; returns the exit status."""
    if sys.argv[1:2] == ["pool"]:  # has a grammar of its own, help included
        return pool(argparse.Namespace(arguments=sys.argv[2:]))
    args = parser().parse_args()
    if getattr(args, "output", None) is None and args.command_name == "trace":
        args.output = None
    try:
        return args.do(args)
    except (_ffi.LibraryNotFound, rm.RmError) as error:
        sys.exit(f"tegrarm: {error}")


if __name__ == "__main__":
    sys.exit(main())
