"""The command ``tegrarm validate``: runs the steps, shows what was found, and writes the file when that is agreed to."""

from __future__ import annotations

import dataclasses
import pathlib
import shutil
import sys

from .. import rm, say, where
from . import collect, compare, evidence, published, report, runner
from .steps import FREEZES, STEPS, Step, chosen


def validate(args) -> int:
    """Does what the command line asks for."""
    if args.list:
        return listed(args)
    if args.check:
        return checked(args)
    if args.compare:
        return compared(args)
    return Run(args).go()


def listed(args) -> int:
    """Prints the steps."""
    rows = [dataclasses.asdict(step) for step in STEPS]
    if args.json:
        say.as_json([{key: row[key] for key in ("name", "does", "risk", "seconds")} for row in rows])
    else:
        for row in rows:
            only = "  (only with --risky)" if row["risk"] == FREEZES else ""
            print(f"{row['name']:17} {row['risk']:20} {row['seconds']:4} s  {row['does']}{only}")
    return say.OK


def checked(args) -> int:
    """Compares the hashes of a file and shows what is in it."""
    about, members = evidence.unpack(pathlib.Path(args.check))
    if args.json:
        say.as_json({"file": args.check, **{k: v for k, v in about.items() if k != "members"}})
        return say.OK
    try:
        shown = report.summary(about, members)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise say.Refused(f"{args.check}: it lacks what every file of tegrarm validate has") from None
    print(shown)
    return say.OK


def compared(args) -> int:
    """Puts the measurements of a file beside those of the virtual Orin and published ones."""
    about, members = evidence.unpack(pathlib.Path(args.compare))
    if args.json:
        say.as_json({"file": args.compare, "rows": published.rows(members)})
    else:
        print(published.table(about, members))
    return say.OK


class Run:
    """One run of the command."""

    def __init__(self, args):
        self.args = args
        self.kind = where.kind()
        if self.kind == "recording":
            raise say.Refused("validate: a recording has no GPU: set TEGRARM_BACKEND to nvgpu or sim")
        if unknown := set(args.only) - {step.name for step in STEPS}:
            raise say.Refused(f"validate --only: there is no step {sorted(unknown)[0]}; `tegrarm validate --list` names them")
        evidence.compressed(b"")  # says at the start what is missing
        rm.device_count()
        self.steps = chosen(args.risky, args.only)
        self.output = pathlib.Path(args.output)
        if not self.output.is_dir():
            raise say.Refused(f"validate --output: there is no directory {self.output}")
        self.work = self.output / "orin-validate"
        self.outcomes: dict[str, runner.Outcome] = {}
        self.simulated: dict[str, runner.Outcome] = {}
        self.stop = False
        self.chip, self.l4t = "", ""

    def go(self) -> int:
        """Runs everything, shows it, and writes the file."""
        self.work.mkdir(exist_ok=True)
        journal = runner.Journal(self.work)
        self.outcomes |= {name: outcome for name, outcome in journal.finished().items() if outcome.state != runner.NOT_RUN}
        if self.outcomes:
            self.say(f"Kept from the run before, whose answers lie in {self.work}: {', '.join(self.outcomes)}.")
        self.frozen(journal)
        for step in self.steps:
            if step.name not in self.outcomes and not self.stop:
                self.step(step, journal)
        journal.close()
        if not self.args.no_simulator:
            self.simulate()
        return self.write()

    def say(self, text: str, end: str = "\n") -> None:
        """Prints progress. It goes to standard error, because it is not the result."""
        print(text, file=sys.stderr, end=end, flush=True)

    def frozen(self, journal: runner.Journal) -> None:
        """Handles an earlier run that ended within a step, because the machine froze or was switched off. That step is not run again."""
        for name in journal.unfinished():
            self.say(f"The last run ended in {name}. It is noted as a freeze, and is not made again.")
            outcome = runner.Outcome(name, runner.FROZE, 0.0, "")
            journal.ends(outcome)
            self.outcomes[name] = outcome

    def step(self, step: Step, journal: runner.Journal) -> None:
        """Runs one step on this machine."""
        self.say(f"{step.name:17} {step.does} ({step.risk}) ", end="")
        journal.begins(step)
        around: tuple[str, ...] = ()
        environ = runner.environment(where.backend())
        if step.raw and self.kind == "in-process":
            chip, l4t = runner.like(self.work, self.kind)
            found = runner.below_the_simulator(chip, l4t)
            around, environ = found or (), runner.environment("nvgpu")
            if found is None:
                outcome = runner.Outcome(step.name, runner.NOT_RUN)
                journal.ends(outcome)
                self.outcomes[step.name] = outcome
                self.say("not run: tegrarm-sim run does not work here")
                return
        slower = 1 if self.kind == "board" else runner.SLOWER
        outcome = runner.run(step, self.work, runner.MACHINE, environ, slower, around)
        journal.ends(outcome)
        self.outcomes[step.name] = outcome
        self.stop = outcome.state == runner.STUCK
        why = f": {runner.SAYS[outcome.state]}" if runner.SAYS[outcome.state] else ""
        self.say(f"{outcome.seconds:.1f} s{why}{f', in {outcome.part}' if why and outcome.part else ''}")

    def simulate(self) -> None:
        """Runs the same steps on the virtual board that is most like this machine."""
        self.chip, self.l4t = runner.like(self.work, self.kind)
        self.say(f"Now the same on the virtual Orin ({self.chip}, {self.l4t}), which takes longer.")
        for step in self.steps:
            if self.outcomes.get(step.name, runner.Outcome("", runner.NOT_RUN)).state in (runner.DONE, runner.FAILED, runner.LATE):
                self.say(f"{step.name:17} ", end="")
                outcome = runner.on_the_simulator(step, self.work, self.chip, self.l4t)
                self.simulated[step.name] = outcome
                self.say(f"{outcome.seconds:.1f} s" if outcome.state != runner.NOT_RUN else "not run")

    def write(self) -> int:
        """Shows everything that the file would contain, and writes the file if the user agrees."""
        steps = [self.outcomes[s.name] for s in STEPS if s.name in self.outcomes]
        gathered = collect.gather(self.work, steps, self.simulated, (self.chip, self.l4t))
        about = {"kind": self.kind, "steps": [dataclasses.asdict(outcome) for outcome in steps],
                 "simulator": {"module": self.chip, "l4t": self.l4t} if self.simulated else None,
                 "differences": len(gathered.differences), "digest": compare.digest(gathered.differences)}
        members = {**gathered.members, "report.html": report.page(about, gathered.members).encode()}
        name, data = evidence.pack(members, about)
        # With --json the answer is the only thing on standard output.
        (self.say if self.args.json else print)(report.everything(about, members))
        target = self.output / name
        if not self.agreed(target, len(data)):
            self.say(f"Nothing was written. Everything lies in {self.work}; delete it when you do not need it.")
            if self.args.json:
                say.as_json({"file": None, "kept": str(self.work), **about})
            return say.PROBLEM
        target.write_bytes(data)
        page = target.with_suffix("").with_suffix(".html")
        page.write_bytes(members["report.html"])
        shutil.rmtree(self.work)
        if self.args.json:
            say.as_json({"file": str(target), "page": str(page), **about})
        else:
            print(f"Written: {target} ({len(data) >> 10} KiB), and the page {page}.")
        return say.OK

    def agreed(self, target: pathlib.Path, size: int) -> bool:
        """Whether the user agrees that the file is written."""
        if self.args.yes:
            return True
        if not sys.stdin.isatty():
            self.say("Nobody is here to agree: --yes writes the file.")
            return False
        try:
            return input(f"Write this to {target} ({size >> 10} KiB)? [y/N] ").strip().lower() in ("y", "yes")
        except EOFError:
            return False
