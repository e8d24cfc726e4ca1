"""The steps, from harmless to risky. Each runs in a process of its own and has a deadline."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable

READS, SUBMITS, FAULTS, HANGS, FREEZES = "reads", "submits work", "makes the GPU fault", "lets the GPU hang", "may freeze the board"


@dataclasses.dataclass(frozen=True)
class Step:
    """One step: its name, what it does, how risky that is, its deadline, and the function that does it."""

    name: str
    does: str
    risk: str
    seconds: int
    function: str
    # Makes its ioctls itself, on device nodes. The simulator's side of it needs `tegrarm-sim run`.
    raw: bool = False
    # The simulator is another machine, so there is nothing to compare.
    alone: bool = False
    # A recorder looks at all memory after each wait, which takes time and would be in the measurements.
    measured: bool = False

    @property
    def recorded(self) -> bool:
        """Whether the library records the step's kernel calls."""
        return not (self.raw or self.alone or self.measured)

    def load(self) -> Callable:
        """The function, which takes a :class:`tegrarm.validate.note.Note`."""
        module, _, name = self.function.partition(":")
        return getattr(importlib.import_module(f"{__package__}.{module}"), name)


STEPS = (
    Step("identity", "reads files: release, kernel, module, modes of the device nodes", READS, 30, "identity:machine", alone=True),
    Step("interface", "asks the kernel for its characteristics as bytes", READS, 30, "identity:interface"),
    Step("abi", "asks the device nodes what they refuse, and how", READS, 30, "abi:probe", raw=True),
    Step("open", "opens the device and lets it answer once", SUBMITS, 60, "scripts:opened"),
    Step("allocate", "allocates buffers of all kinds and notes their addresses", SUBMITS, 60, "scripts:allocate"),
    Step("from-va", "lets the GPU copy pages of the process", SUBMITS, 60, "scripts:from_va"),
    Step("channels", "makes queues of all kinds and priorities and uses each", SUBMITS, 60, "scripts:channels"),
    Step("launch", "runs kernels and compares their results", SUBMITS, 60, "scripts:launch"),
    Step("instructions", "runs every family of instructions with odd values", SUBMITS, 600, "instructions:run", measured=True),
    Step("kernels", "runs more than a hundred whole kernels", SUBMITS, 300, "instructions:whole", measured=True),
    Step("windows", "asks kernels where they see shared and local memory", SUBMITS, 30, "questions:windows"),
    Step("coherence", "lets the CPU and the GPU write the same memory in turns", SUBMITS, 120, "questions:coherence", measured=True),
    Step("release", "looks whether a kernel's stores are there when its fence is", SUBMITS, 120, "questions:release", measured=True),
    Step("timings", "measures latencies, clocks and temperature", SUBMITS, 120, "timings:latency", measured=True),
    Step("bandwidth", "measures the memory's bandwidth", SUBMITS, 120, "timings:bandwidth", measured=True),
    Step("rooflines", "measures what the GPU reaches at most", SUBMITS, 120, "timings:rooflines", measured=True),
    Step("fault-read", "lets a kernel read where nothing is mapped", FAULTS, 60, "faults:read"),
    Step("fault-write", "lets a kernel write to read-only memory", FAULTS, 60, "faults:write"),
    Step("fault-misaligned", "lets a kernel read a misaligned address", FAULTS, 60, "faults:misaligned"),
    Step("fault-window", "lets a kernel read global memory in the shared window", FAULTS, 60, "faults:window"),
    Step("fault-window-far", "lets a kernel read far above the window's base, to find its size", FAULTS, 60, "faults:window_far"),
    Step("fault-trap", "lets a kernel trap", FAULTS, 60, "faults:trap"),
    Step("hang-released", "lets a kernel wait for the CPU longer than the CPU waits for it", HANGS, 60, "faults:hang_released"),
    Step("hang-endless", "lets an endless kernel keep another channel waiting", HANGS, 120, "faults:hang_endless"),
    Step("high-address", "maps a buffer as high as the address space allows", FREEZES, 60, "risky:high_address"),
    Step("large-ring", "makes a channel whose ring has 65,536 entries", FREEZES, 60, "risky:large_ring"),
)
BY_NAME = {step.name: step for step in STEPS}


def chosen(risky: bool, only: list[str]) -> list[Step]:
    """The steps to run, in order. Identity and interface are always among them."""
    always = {"identity", "interface"}
    return [s for s in STEPS if (not only or s.name in only or s.name in always) and (risky or s.risk != FREEZES)]
