"""``tegrarm doctor`` always makes every check. The order is that in which a program needs what they look at."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Iterator

from .. import _ffi, cdi, rm, say, where
from . import board, gpu, software
from .check import PROBLEM, Check, lines, skipped
from .machine import Machine

# These checks look at the files of a board, which a simulator in the process does not have.
OF_THE_BOARD = (board.nodes, board.release, board.driver, board.desktop, board.devfreq, board.heap)
AROUND = (board.memory, board.container)
OF_THE_SOFTWARE = (software.library, software.backend)
OF_THE_GPU = (gpu.kernel, gpu.device)
FOR_TINYGRAD = (software.tinygrad, software.compilers, software.others, software.monitors, software.cuda_driver)


# What a program needs, in this order: without one of them, all that follow fail, too.
CHAIN = ("library", "backend", "node", "driver", "kernel", "device", "work")


def with_one_cause(found: Iterator[Check]) -> Iterator[Check]:
    """The checks, where what follows from a problem is not told as another one."""
    causes: list[Check] = []
    for check in found:
        if check.state != PROBLEM or check.name not in CHAIN:
            yield check
        elif cause := next((c for c in causes if c.name != check.name or c.todo == check.todo), None):
            says = f"{check.says}: the same" if cause.name == check.name else f"this follows from the line `{cause.name}`"
            yield skipped(check.name, says)
        else:
            causes.append(check)
            yield check


def checks(machine: Machine) -> Iterator[Check]:
    """The results of all checks."""
    yield from with_one_cause(all_checks(machine))


def all_checks(machine: Machine) -> Iterator[Check]:
    """The results of all checks, each for itself."""
    if machine.here:
        for look in OF_THE_SOFTWARE:
            yield from look(machine)
    yield from board.system(machine)
    in_process = machine.here and any(part in where.chosen() for part in ("sim", "replay"))
    for look in OF_THE_BOARD:
        if in_process:
            yield skipped(look.__name__, "no board is asked: the backend is in this process")
        elif machine.here and where.supervisor() is not None and look in (board.release, board.driver, board.desktop, board.heap):
            yield skipped(look.__name__, "the board is that of tegrarm-sim run")
        else:
            yield from look(machine)
    for look in AROUND:
        yield from look(machine)
    for look in OF_THE_GPU if machine.here else ():
        yield from look(machine) if where.chosen() else [skipped(look.__name__, "no backend is chosen")]
    for look in FOR_TINYGRAD if machine.here else ():
        yield from look(machine)
    if not machine.here:
        for what in ("library", "kernel", "device", "tinygrad"):
            yield software.elsewhere(what)


def doctor(args) -> int:
    """Says what is there and what is missing. The exit status is 1 if something is missing that every program needs."""
    machine = Machine(root=pathlib.Path(args.root or "/").resolve())
    if not machine.root.is_dir():
        raise say.Refused(f"doctor --root: there is no directory {args.root}")
    found = []
    for check in checks(machine):
        found.append(check)
        if not args.json:
            print(lines(check), flush=True)
    problems = [check for check in found if check.state == PROBLEM]
    report = driver_report() if machine.here and (args.kernel or any(c.name in ("kernel", "device") for c in problems)) else ""
    if args.json:
        written = args.cdi if args.cdi and not problems else None
        say.as_json({"well": not problems, "checks": [dataclasses.asdict(c) for c in found], "driver_report": report or None,
                     **({"cdi": written} if args.cdi else {})})
    else:
        print("".join(f"{'':9}{line}\n" for line in report.splitlines()), end="")
        print(f"{len(problems)} problem{'s' * (len(problems) != 1)}" if problems else "all is well")
    if args.cdi and not problems:
        cdi.write(json.dumps(cdi.specification(machine.root), indent=2) + "\n", args.cdi, "doctor --cdi")
        if not args.json:
            print(cdi.how_to_use(args.cdi))
    elif args.cdi and not args.json:
        print(f"{args.cdi} is not written: a container would have the same problem")
    return say.PROBLEM if problems else say.OK


def driver_report() -> str:
    """The bytes of the kernel's interface, which a report about an unknown release needs. It is empty if the nodes cannot be asked."""
    try:
        return rm.driver_report()
    except (rm.RmError, _ffi.LibraryNotFound):
        return ""
