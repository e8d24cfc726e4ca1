"""The command line, ``tegrarm`` and ``python -m tegrarm``: its grammar, and how scripts are run."""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib.util
import itertools
import os
import pathlib
import runpy
import subprocess
import sys
import tempfile
import time

from . import _ffi, preload, rm, say
from .grammar import Grammar
from .say import Refused
from .where import KINDS, backend, kind

EPILOG = """examples:
  tegrarm doctor                          what is missing here, and what to do about it
  TEGRARM_BACKEND=sim tegrarm run add.py  a tinygrad program on the virtual Orin
  tegrarm run --preload -- ./program      any program, with /dev/nvidiactl and its siblings
  tegrarm run --nvml -- nvitop            any monitor that asks NVML
  tegrarm run --cuda -- pytest            any program that uses CUDA's driver
  tegrarm trace --html page.html add.py   what it did, as a page to look at
  tegrarm profile -o page.html -- add.py  where the time of its kernels goes, line by line
  tegrarm compile kernels.cu              machine code for the Orin
  tegrarm nvcc program.cu -o program      a program with <<<...>>>, for run --cuda
  cc program.c $(tegrarm cflags)          a C program on the runtime
  tegrarm validate                        what this board does, in a file to send us
  tegrarm cdi --output /etc/cdi/tegrarm.json
  tegrarm sim run -- ./program            a program that uses /dev/nvgpu itself

exit status: 0 all is well; 1 a problem was found, or a call of the library failed; 2 the command line, a file that it names, or
the environment is wrong; 127 a program cannot be started; 130 Ctrl-C; otherwise that of the script or program that was run."""

# Python's own kinds of programs that are no text: an archive with a __main__ in it, and compiled code.
PROGRAMS = (b"PK\x03\x04", importlib.util.MAGIC_NUMBER)


def readable(script: str) -> None:
    """Refuses a script that is not there, or is no text."""
    try:
        with open(script, "rb") as file:
            head = file.read(4096)
    except OSError as error:
        raise Refused(f"{script}: {error.strerror}") from error
    if head.startswith(b"\x7fELF"):
        raise Refused(f"{script} is a program, not a Python script: tegrarm run --preload -- {script}")
    if b"\0" in head and not head.startswith(PROGRAMS):
        raise Refused(f"{script} is no text, so it is no Python script")


def writable(option: str, path: str) -> None:
    """Refuses a file that cannot be made, before the script runs."""
    file = pathlib.Path(path)
    if not file.resolve().parent.is_dir():
        raise Refused(f"trace {option}: there is no directory for {path}")
    if file.is_dir():
        raise Refused(f"trace {option}: {path} is a directory")
    if not os.access(file if file.exists() else file.resolve().parent, os.W_OK):
        raise Refused(f"trace {option}: {path} cannot be written")


def run(args) -> int:
    """Runs a Python script with the tinygrad adapter loaded, or any program with the device nodes of desktop RM, our NVML or our CUDA."""
    simulated(args)
    if args.preload or args.nvml or args.cuda:
        return run_program(args)
    readable(args.script)
    os.environ["TEGRARM_BACKEND"] = backend()
    if chosen_by_us := "DEV" not in os.environ:
        os.environ["DEV"] = "TEGRA+NV"
    if "TEGRA" in os.environ["DEV"]:
        rm.device_count()  # it says in a sentence why there is no device, before the frontend shows a traceback
    from tegrarm import hints, timeline
    from tegrarm import tinygrad as adapter
    if noted := os.environ.get("TEGRARM_TRACE_NAMES"):
        timeline.note_kernels(noted)
    if chosen_by_us and adapter.NAMES_INTERFACES_IN_CALL:
        del os.environ["DEV"]
        os.environ.update(NV="1", NV_IFACE="TEGRA")
    sys.argv = [args.script, *args.args]
    sys.path[0] = str(pathlib.Path(args.script).resolve().parent)
    try:
        with reported(args), hints.while_running():
            runpy.run_path(args.script, run_name="__main__")
    except Exception as error:  # whatever it is, it is the script's, as if Python had run it
        show(sys.excepthook, error)
        return say.PROBLEM
    except KeyboardInterrupt:  # the end of Python shows it, and tells the shell that Ctrl-C was the reason
        sys.excepthook = functools.partial(lambda hook, _kind, error, _traceback: show(hook, error), sys.excepthook)
        raise
    return say.OK


# The options of run for the virtual Orin, and the variables that say the same.
SIMULATED = {
    "check": "TEGRARM_SIM_CHECK",
    "check_exit": "TEGRARM_SIM_CHECK_EXIT",
    "schedules": "TEGRARM_SIM_SCHEDULES",
    "seed": "TEGRARM_SIM_SEED",
    "clock": "TEGRARM_SIM_CLOCK",
    "stats": "TEGRARM_SIM_STATS",
    "profile": "TEGRARM_SIM_PROFILE",
}


CHECKS = "look for errors in kernels: memory,init,race,race=strict,sync,order,cpu"


def simulated(args) -> None:
    """Sets the variables of which ``run`` got the options. The virtual Orin reads them when the program opens it in its process."""
    given = {name: value for name in SIMULATED if (value := getattr(args, name)) is not None}
    if given and (here := kind()) != "in-process":
        what = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        todo = "give them to tegrarm-sim run" if here == "tegrarm-sim run" else "set TEGRARM_BACKEND=sim"
        raise Refused(f"run {what}: only the virtual Orin in the program's process has that, and this is {KINDS[here]}; {todo}")
    os.environ.update({SIMULATED[name]: value for name, value in given.items()})
    if args.suppressions:
        readable(args.suppressions)
        os.environ["TEGRARM_SUPPRESSIONS"] = os.path.abspath(args.suppressions)


def show(hook, error: BaseException) -> None:
    """Shows an exception of a script. Its traceback begins with the script, without the frames of this file and of ``runpy``."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_frame.f_code.co_filename in (__file__, runpy.run_path.__code__.co_filename):
        traceback = traceback.tb_next
    hook(type(error), error.with_traceback(traceback), traceback)


@contextlib.contextmanager
def reported(args):
    """With --json, writes a line to standard error when the script has ended. Standard output belongs to the script."""
    started, status = time.monotonic(), 0
    try:
        yield
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        raise
    except BaseException:
        status = 1
        raise
    finally:
        if args.json:
            what = {"script": args.script, "status": status, "seconds": round(time.monotonic() - started, 3)}
            say.as_json({**what, "backend": os.environ["TEGRARM_BACKEND"]}, sys.stderr)


def run_program(args) -> int:
    """Replaces this process by a command that finds /dev/nvidiactl and its siblings, our NVML, our CUDA driver, or several of them."""
    os.environ["TEGRARM_BACKEND"] = backend()
    os.environ["TEGRARM_LIB"] = _ffi.find()
    if args.preload:
        library = preload.library()
        if not library.exists():
            raise Refused(f"run --preload: there is no {library}; `make build` makes it")
        os.environ.update(preload.environment(os.environ, library))
    if args.nvml:
        from . import nvml
        os.environ.update(nvml.environment())
    if args.cuda:
        from . import libcuda
        os.environ.update(libcuda.environment())
    command = [args.script, *args.args]
    kind = "--preload" if args.preload else "--nvml" if args.nvml else "--cuda"
    try:
        if args.json:
            with reported(args):
                sys.exit(status_of(command))
        if args.do is run_traced:
            return status_of(command)
        os.execvp(command[0], command)
    except OSError as error:
        raise Refused(f"run {kind}: {command[0]}: {error.strerror}", say.NOT_STARTED) from error


def status_of(command: list[str]) -> int:
    """Runs a program and returns its exit status as a shell would have it."""
    status = subprocess.run(command).returncode
    return status if status >= 0 else 128 - status


def run_traced(args) -> int:
    """Runs a script as ``run`` does, then prints which kernel calls each RM call made."""
    for option in ("html", "perfetto", "output"):
        if path := getattr(args, option):
            writable(f"--{option}", path)
    if args.preload and (args.html or args.perfetto):
        raise Refused("trace --html and --perfetto need a script: with --preload another program takes this process")
    with tempfile.TemporaryDirectory(prefix="tegrarm-trace-") as place:
        return traced(args, args.output or os.path.join(place, "calls.jsonl"))


def traced(args, path: str) -> int:
    """Runs a script with its calls in a file, and shows them."""
    from . import trace
    os.environ["TEGRARM_RECORD"] = path
    show, args.json = args.json, False
    pathlib.Path(path).unlink(missing_ok=True)
    pathlib.Path(f"{path}.timeline").unlink(missing_ok=True)
    if not args.preload:
        readable(args.script)
    try:
        if (args.html or args.perfetto) and (command := trace.below_the_simulator(path, [args.script, *args.args])):
            return status_of(command)
        return run(args)
    finally:
        if os.path.exists(path):
            trace.show(path, args.html, args.perfetto, show, kept=bool(args.output))


def profile(args) -> int:
    """Executes ``tegrarm profile``."""
    from .profile import profile_program as answer
    return answer(args)


def diff(args) -> int:
    """Executes ``tegrarm diff``."""
    from .profile import diff as answer
    return answer(args)


def info(args) -> int:
    """Executes ``tegrarm info``."""
    from .info import info as answer
    return answer(args)


def doctor(args) -> int:
    """Executes ``tegrarm doctor``."""
    from .doctor import doctor as answer
    return answer(args)


def compile_source(args) -> int:
    """Executes ``tegrarm compile``."""
    from .compile import run as answer
    return answer(args)


def top(args) -> int:
    """Executes ``tegrarm top``."""
    from .top import top as answer
    return answer(args)


def sim(args) -> int:
    """Executes ``tegrarm sim``."""
    from .sim import sim as answer
    return answer(args)


def validate(args) -> int:
    """``tegrarm validate``."""
    from .validate import validate as answer
    return answer(args)


def cdi(args) -> int:
    """``tegrarm cdi``."""
    from .cdi import cdi as answer
    return answer(args)


def cflags(args) -> int:
    """``tegrarm cflags``."""
    from .cflags import cflags as answer
    return answer(args)


def nvcc(args) -> int:
    """``tegrarm nvcc``."""
    from .nvcc import nvcc as answer
    return answer(args)


def pool(args) -> int:
    """Executes :mod:`tegrarm.pool`, whose packages are optional."""
    from .pool import cli
    return cli.main(args.arguments)


class Version(argparse.Action):
    """``--version`` shows the version of the package, and that of the library if it can be loaded."""

    def __call__(self, parser, *_rest):
        """Prints both versions and ends the program."""
        from .info import package_version
        try:
            library = f"libtegrarm {_ffi.version()} ({_ffi.find()})"
        except _ffi.LibraryNotFound as error:
            library = f"no libtegrarm: {str(error).splitlines()[0]}"
        print(f"tegrarm {package_version()}, {library}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """Makes the grammar of the command line."""
    raw = argparse.RawDescriptionHelpFormatter
    top_parser = Grammar(prog="tegrarm", description="libtegrarm: desktop NVIDIA RM calls on Jetson Orin",
                                         epilog=EPILOG, formatter_class=raw)
    top_parser.add_argument("--version", action=Version, nargs=0, help="versions of the package and of the library")
    commands = top_parser.add_subparsers(dest="command_name", required=True, metavar="COMMAND")

    def add(name: str, do, text: str, **more) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", formatter_class=raw, **more)
        command.set_defaults(do=do)
        command.add_argument("--json", action="store_true", help="answer in JSON, for programs")
        return command

    for name, do, text in (("run", run, "run a script on tinygrad's TEGRA interface"),
                           ("trace", run_traced, "run a script, then list the kernel calls behind every RM call")):
        command = add(name, do, text)
        command.add_argument("--preload", action="store_true", help="any program, with the device nodes of desktop RM, through LD_PRELOAD")
        if name == "run":
            command.add_argument("--nvml", action="store_true", help="any program, such as nvitop, with an NVML that knows this GPU")
            command.add_argument("--cuda", action="store_true", help="any program that uses CUDA's driver, such as tests with Numba")
            command.add_argument("--check", metavar="CHECKS", help=CHECKS)
            command.add_argument("--schedules", metavar="NUMBER", help="run each launch in so many other orders of its blocks, too")
            command.add_argument("--seed", metavar="NUMBER", help="the other orders follow from this number")
            command.add_argument("--check-exit", metavar="STATUS", help="the exit status if all went well but --check found something")
            command.add_argument("--suppressions", metavar="FILE", help="reports of --check that are known")
            command.add_argument("--clock", choices=("host", "model"), help="the time that the program sees on the virtual GPU")
            command.add_argument("--stats", action="store_const", const="1", help="at the end, print what each kernel cost there")
            command.add_argument("--profile", metavar="FILE", help="note what each kernel did there, for `tegrarm profile --from`")
        else:
            command.set_defaults(nvml=False, cuda=False, suppressions=None, **dict.fromkeys(SIMULATED))
            command.add_argument("-o", "--output", help="keep the recording (JSON lines) here")
            command.add_argument("--html", metavar="FILE", help="write one page with the timeline and the table")
            command.add_argument("--perfetto", metavar="FILE", help="write a timeline for Perfetto (ui.perfetto.dev) or chrome://tracing")
        command.add_argument("script")
        command.add_argument("args", nargs=argparse.REMAINDER)
    command = add("profile", profile, "run a program on the virtual Orin, and show on one page where the time of its kernels goes")
    command.add_argument("-o", "--output", metavar="FILE", help="the page (default: profile.html)")
    command.add_argument("--data", metavar="FILE", help="write the same as JSON, for `tegrarm diff` and other programs")
    command.add_argument("--perfetto", metavar="FILE", help="write a timeline for Perfetto (ui.perfetto.dev) or chrome://tracing")
    command.add_argument("--sarif", metavar="FILE", help="write the checker's reports as SARIF, which shows them at the lines of a change")
    command.add_argument("--check", metavar="CHECKS", help=CHECKS)
    command.add_argument("--clock", choices=("host", "model"), default="model", help="the time that the program sees (default: model)")
    command.add_argument("--from", dest="raw", action="append", default=[], metavar="FILE",
                         help="run nothing, but show what a run with --profile has noted")
    command.add_argument("--schema", action="store_true", help="print the JSON schema of --data")
    command.add_argument("--preload", action="store_true", help="the program uses the device nodes of desktop RM")
    command.add_argument("--cuda", action="store_true", help="the program uses CUDA's driver")
    command.add_argument("--nodes", action="store_true", help="the program uses /dev/nvgpu itself, below tegrarm-sim run")
    command.add_argument("script", nargs="?", help="a Python script for tinygrad or this package, or any program")
    command.add_argument("args", nargs=argparse.REMAINDER)
    command = add("diff", diff, "what is different in two profiles, kernel by kernel")
    command.add_argument("before", help="a file of `tegrarm profile --data`")
    command.add_argument("after", help="another one")
    command.add_argument("--most", type=float, metavar="PERCENT", help="end with status 1 if all kernels together are slower by more")
    add("info", info, "the library and the device")
    command = add("doctor", doctor, "what is missing, and what to do about it")
    command.add_argument("--kernel", action="store_true", help="also print the kernel's interface as bytes, for a report")
    command.add_argument("--root", metavar="DIRECTORY", help="look at the files of another machine, unpacked or mounted there")
    command.add_argument("--cdi", metavar="FILE", help="if all is well, also write a CDI specification there, as `tegrarm cdi` does")
    command = add("top", top, "load, clocks, temperature, memory and channels, live")
    command.add_argument("-d", "--delay", type=float, default=1.0, metavar="SECONDS", help="between two looks (default: 1)")
    command.add_argument("-n", "--times", type=int, default=0, metavar="N", help="end after so many looks")
    command.add_argument("--prometheus", action="store_true", help="print one look in Prometheus' text format")
    command = add("compile", compile_source, "compile CUDA C to machine code for the Orin, with NVRTC")
    command.add_argument("-I", "--include", action="append", default=[], metavar="DIRECTORY", help="look for headers here, too")
    command.add_argument("-D", "--define", action="append", default=[], metavar="NAME[=VALUE]", help="define a macro")
    command.add_argument("--arch", default="sm_87", help="the GPU (default: sm_87)")
    command.add_argument("-O", dest="optimize", type=int, choices=range(4), help="level of optimization; 0 adds debug information")
    command.add_argument("-lineinfo", "--generate-line-info", dest="lineinfo", action="store_true", help="note source lines")
    command.add_argument("-std", "--std", metavar="DIALECT", help="the language, for example c++20")
    command.add_argument("-Xptxas", "--ptxas-options", action="append", default=[], metavar="OPTIONS", help="of the assembler, such as -v")
    command.add_argument("--ptx", action="store_true", help="PTX instead of machine code")
    command.add_argument("source")
    command.add_argument("target", nargs="?", help="default: the source's name with .cubin or .ptx")
    command.usage = "tegrarm compile [options] source [target] [-- NVRTC's options]"
    command = add("validate", validate, "what this board does, in one file, beside what the virtual Orin does")
    command.add_argument("--risky", action="store_true", help="also the steps that may freeze a board, last")
    command.add_argument("--yes", action="store_true", help="write the file without asking")
    command.add_argument("--output", default=".", metavar="DIRECTORY", help="where the file is written (default: here)")
    command.add_argument("--only", action="append", default=[], metavar="STEP", help="this step; may be given several times")
    command.add_argument("--no-simulator", action="store_true", help="do not run the same on the virtual Orin")
    command.add_argument("--list", action="store_true", help="print the steps, with their risks and deadlines")
    command.add_argument("--compare", metavar="FILE", help="put a file's measurements beside the virtual Orin's and published ones")
    command.add_argument("--check", metavar="FILE", help="compare the hashes of a file and print what is in it")
    command = add("cdi", cdi, "write a CDI specification, with which Docker, Podman and Kubernetes give a container the GPU")
    command.add_argument("--root", metavar="DIRECTORY", help="look for the device nodes of another machine there")
    command.add_argument("--output", metavar="FILE", help="write it there, for example to /etc/cdi/tegrarm.json")
    command = add("cflags", cflags, "print what a C compiler needs to use the library")
    command.add_argument("--prefix", action="store_true", help="print the prefix for PKG_CONFIG_PATH and CMAKE_PREFIX_PATH instead")
    command = add("sim", sim, "the virtual Orin: run|replay|decode of tegrarm-sim, or a command with it in its process")
    command.add_argument("command", nargs=argparse.REMAINDER)

    # All words are nvcc's, also those that begin with a dash.
    text = "compile a program with <<<...>>> for the Orin, with NVIDIA's compiler from pip"
    command = commands.add_parser("nvcc", help=text, add_help=False, prefix_chars="\0")
    command.add_argument("arguments", nargs=argparse.REMAINDER)
    command.set_defaults(do=nvcc, json=False)
    command = commands.add_parser("pool", help="split a model over several devices (tegrarm[pool])", add_help=False)
    command.add_argument("arguments", nargs=argparse.REMAINDER)
    command.set_defaults(do=pool)
    return top_parser


def main(argv: list[str] | None = None) -> int:
    """The entry point of the program. Returns the exit status."""
    argv = sys.argv[1:] if argv is None else argv
    say.open_streams()
    say.tell_unknown_settings()
    if argv[:1] == ["pool"]:  # it has its own grammar, with its own help
        return pool(argparse.Namespace(arguments=argv[1:]))
    plain, sys.stdout = sys.stdout, say.Printed(sys.stdout)
    try:
        return answered(argv)
    finally:
        sys.stdout = plain


def answered(argv: list[str]) -> int:
    """Does what the command line says. Whatever goes wrong becomes a sentence and a status."""
    # As long as the command line is not understood, any --json in it is ours.
    script = argv[:1] in (["run"], ["trace"], ["profile"])
    in_json = "--json" in itertools.takewhile(lambda argument: argument != "--", argv)
    # What follows `--` is the compiler's own, also words that we know.
    own = argv.index("--") if argv[:1] == ["compile"] and "--" in argv else len(argv)
    try:
        try:
            args = parser().parse_args(argv[:own], argparse.Namespace(further=argv[own + 1:]))
        except SystemExit as end:  # --help and --version
            say.flush()
            return int(end.code or say.OK)
        script, in_json = args.do in (run, run_traced, profile), args.json
        return executed(args, script)
    except Refused as refused:
        status, said = refused.status, str(refused)
    except _ffi.LibraryNotFound as error:
        status, said = say.WRONG, str(error)
    except rm.RmError as error:
        status, said = say.PROBLEM, str(error)
    except BrokenPipeError:  # the reader of the output has closed the pipe
        say.silence()
        return say.OK
    except KeyboardInterrupt:
        if script:
            raise
        return say.INTERRUPTED
    except OSError as error:
        if script:  # the traceback is that of the script
            raise
        status, said = say.WRONG, say.of_system(error)
    print(f"tegrarm: {said}", file=sys.stderr)
    if in_json:
        # Where the answer would have been. The standard output of run and trace belongs to the script.
        say.as_json({"error": said, "status": status}, sys.stderr if script else sys.stdout)
        say.flush()
    return status


def executed(args, script: bool) -> int:
    """Executes a command that was understood, and writes all of its output."""
    if getattr(args, "args", None) and args.args[0] == "--":
        args.args = args.args[1:]
    if getattr(args, "script", None) == "--":
        args.script, *args.args = args.args or [""]
    if script:
        sys.stdout = sys.stdout.stream  # it belongs to the script
    elif hasattr(sys.stdout.stream, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files may be no text of this terminal
    status = args.do(args)
    say.flush()
    return status


if __name__ == "__main__":
    sys.exit(main())
