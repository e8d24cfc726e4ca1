"""What a TinyJit captured, as replays, for a tinygrad that has no graphs: 0.14 without them, and what comes after it.

Such a tinygrad keeps what it captured as a list of calls, and runs the list at each call of the TinyJit. Calls of our device that follow
each other become one replay here, at the first run. Anything else is left to tinygrad: copies that the processor makes, sizes that change,
several devices, and every call while ``DEBUG`` is 2 or more or ``PROFILE`` is set. No file of tinygrad is changed.
"""

from __future__ import annotations

import functools
import itertools
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from tinygrad.device import Buffer, Device
from tinygrad.engine import jit
from tinygrad.engine.jit import CapturedJit, run_linear
from tinygrad.engine.realize import estimate_uop, get_call_arg_uops, get_runtime
from tinygrad.helpers import DEBUG, JIT, PROFILE, GlobalCounters
from tinygrad.renderer import Estimates
from tinygrad.uop.ops import Ops, UOp, sym_infer

from . import releases
from .program import TegraProgram
from .recording import Recording

# What each list became: replays, and lists for tinygrad.
PIECES: weakref.WeakKeyDictionary[UOp, list[Any]] = weakref.WeakKeyDictionary()
COPIES = (Ops.COPY, Ops.STORE)  # the copy of a buffer, before and after it became a store


class Argument:
    """An argument of a call: a buffer, and its place in an input, if it is one or a part of one."""

    def __init__(self, uop: UOp, inputs: Sequence[UOp]):
        self.buffer = with_inputs(uop, inputs).buffer
        while uop.op not in (Ops.PARAM, Ops.BUFFER) and uop.src:
            uop = uop.src[0]
        self.number = uop.arg.slot if uop.op is Ops.PARAM else None
        self.base = inputs[uop.arg.slot].buffer if uop.op is Ops.PARAM else self.buffer

    def is_on(self, device: Any) -> bool:
        """Whether it is one buffer of this device, and an input or a part of it, too."""
        return all(isinstance(b, Buffer) and b.device == device for b in (self.buffer, self.base))

    def key(self) -> tuple[int, int] | None:
        """The number of the input and the distance from its start. It is None for a buffer that stays the same."""
        if self.number is None:
            return None
        return self.number, releases.address(self.buffer) - releases.address(self.base)


def with_inputs(uop: UOp, inputs: Sequence[UOp]) -> UOp:
    """A buffer, an input or a part of one of them, with the input itself in the place of its parameter."""
    if uop.op is Ops.PARAM:
        return inputs[uop.arg.slot]
    return uop if uop.op is Ops.BUFFER or not uop.src else uop.replace(src=(with_inputs(uop.src[0], inputs), *uop.src[1:]))


class Call:
    """A call of a list, with what it needs now."""

    def __init__(self, call: UOp, inputs: Sequence[UOp]):
        self.whole, self.call = call, getattr(call, "without_after", call)
        self.ast = self.call.src[0]
        self.device = self.call.src[1].device if len(self.call.src) > 1 else None
        self.arguments: list[Argument] = []
        if isinstance(self.device, str) and self.ast.op in (Ops.PROGRAM, *COPIES):
            uops = get_call_arg_uops(self.call)
            if all(uop.device == self.device for uop in uops):
                self.arguments = [Argument(uop, inputs) for uop in uops]

    def replayable_on(self) -> str:
        """The device of ours whose replay can have it, or an empty string."""
        if not self.arguments or not all(a.is_on(self.device) for a in self.arguments) or not is_ours(self.device):
            return ""
        if self.ast.op in COPIES:
            return self.device if len(self.arguments) == 2 and all(a.number is None for a in self.arguments) else ""
        info = self.ast.arg
        sizes = (*info.global_size, *(info.local_size or ()))
        return self.device if all(isinstance(s, int) for s in sizes) and not getattr(info, "runtimevars", None) else ""

    def record(self, recording: Recording) -> None:
        """Adds it to a replay."""
        for argument in self.arguments:
            argument.buffer.ensure_allocated()
            argument.base.ensure_allocated()
        if self.ast.op in COPIES:
            recording.copy(*(a.buffer for a in self.arguments))
            return
        arguments = [self.arguments[i] for i in self.ast.arg.globals]
        names = [v.expr for v in self.ast.arg.vars]
        changing: dict[int, Any] = {at: key for at, a in enumerate(arguments) if (key := a.key()) is not None}
        changing |= dict(enumerate(names, len(arguments)))
        program: TegraProgram = get_runtime(self.device, self.ast)
        recording.launch(self.ast, program, [a.buffer for a in arguments], (0,) * len(names), changing)


def is_ours(device: str) -> bool:
    """Whether a device is one of this package."""
    return device.partition(":")[0] == "TEGRA"


class Replay:
    """Calls of one device that follow each other."""

    def __init__(self, calls: list[Call]):
        self.recording = Recording(Device[calls[0].device])
        for call in calls:
            call.record(self.recording)
        self.recording.end()
        slots = self.recording.slots
        self.inputs = [(slot, *key) for key, slot in slots.items() if isinstance(key, tuple)]
        self.names = [(slot, key) for key, slot in slots.items() if isinstance(key, str)]
        self.count, self.estimates = len(calls), sum((estimate_uop(c.call) for c in calls), Estimates()).simplify()

    def run(self, inputs: Sequence[UOp], var_vals: dict[str, int], update_stats: bool) -> None:
        """Starts a run, and counts it as tinygrad counts its calls."""
        values = self.recording.values
        self.recording.dev.settle()  # the run before may still read the values
        for slot, number, offset in self.inputs:
            values[slot] = releases.address(inputs[number].buffer.ensure_allocated()) + offset
        for slot, name in self.names:
            values[slot] = var_vals[name]
        self.recording.start()
        if update_stats:
            GlobalCounters.kernel_count += self.count
            GlobalCounters.global_ops += sym_infer(self.estimates.ops, var_vals)
            GlobalCounters.global_mem += sym_infer(self.estimates.mem, var_vals)


def pieces_of(linear: UOp, inputs: Sequence[UOp]) -> list[Any]:
    """A replay for each row of calls that can be one, and a list for tinygrad of what is between them."""
    pieces: list[Any] = []
    for device, row in itertools.groupby([Call(c, inputs) for c in linear.src], key=Call.replayable_on):
        calls = list(row)
        pieces.append(Replay(calls) if device else linear.replace(src=tuple(c.whole for c in calls)))
    return pieces


def replayed(run: Callable) -> Callable:
    """Puts the replays before tinygrad's function, which runs a list."""
    @functools.wraps(run)
    def run_linear(linear: UOp, var_vals: dict[str, int] | None = None, input_uops: Sequence[UOp] = (), update_stats: bool = True,
                   jit: bool = False, **more: Any) -> None:
        rest = {"input_uops": input_uops, "update_stats": update_stats, "jit": jit, **more}
        if not jit or any(more.values()) or DEBUG >= 2 or PROFILE or JIT.value > 1 or not any(calls_ours(c) for c in linear.src):
            return run(linear, var_vals, **rest)
        if (pieces := PIECES.get(linear)) is None:
            pieces = PIECES[linear] = pieces_of(linear, input_uops)
        for piece in pieces:
            if isinstance(piece, Replay):
                piece.run(input_uops, var_vals or {}, update_stats)
            else:
                run(piece, var_vals, **rest)
        return None

    run_linear.tegra = True  # type: ignore[attr-defined]
    return run_linear


def calls_ours(call: UOp) -> bool:
    """Whether the first argument of a call is a buffer of our device."""
    call = getattr(call, "without_after", call)
    return len(call.src) > 1 and isinstance(call.src[1].device, str) and is_ours(call.src[1].device)


def unplanned(plan: Any) -> functools.cached_property:
    """Later releases have a plan of a captured list besides, which launches kernel by kernel. A list of ours has none."""
    def _fast_plan(self: Any) -> Any:
        return None if any(calls_ours(c) for c in self.linear.src) else plan.func(self)

    return functools.cached_property(_fast_plan)


def freeing(free: Callable) -> Callable:
    """Drops the replays of memory that is freed. The next call records them anew."""
    @functools.wraps(free)
    def free_intermediates(self: Any) -> None:
        PIECES.pop(self.linear, None)
        free(self)

    return free_intermediates


def put_in() -> None:
    """Wraps what tinygrad has, but only once."""
    if getattr(jit.run_linear, "tegra", False):
        return
    jit.run_linear = replayed(run_linear)
    CapturedJit.free_intermediates = freeing(CapturedJit.free_intermediates)
    if (plan := CapturedJit.__dict__.get("_fast_plan")) is not None:
        CapturedJit._fast_plan = unplanned(plan)
        CapturedJit._fast_plan.__set_name__(CapturedJit, "_fast_plan")

