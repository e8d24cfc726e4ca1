"""The captured TinyJit of the next release: no graphs, calls that wait for others, copies that are stores, and a plan that launches each
kernel by itself. ``put_in()`` puts it into the installed tinygrad, after the memory.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from tinygrad.engine import jit, realize
from tinygrad.uop.ops import Ops, UOp, buffers

from .memory import Buffer


class CapturedJit:
    """A list of calls that is run again and again."""

    def __init__(self, linear: UOp):
        self._linear = linear

    @cached_property
    def linear(self) -> UOp:
        return self._linear

    @cached_property
    def _fast_plan(self) -> list[Any] | None:
        calls = [call.without_after for call in self.linear.src]
        return calls if all(call.src[0].op is Ops.PROGRAM for call in calls) else None

    def __call__(self, input_uops: list[UOp], var_vals: dict[str, int]) -> None:
        if self._fast_plan is None or var_vals:
            jit.run_linear(self.linear, var_vals, input_uops=tuple(input_uops), jit=True)
            return
        for call in self._fast_plan:
            ast, resolved = call.src[0], realize.resolve_params(call, tuple(input_uops))
            grid, block = ast.arg.launch_dims({})
            program = realize.get_runtime(call.src[1].device, ast)
            program(*[resolved[i].buffer.ensure_allocated()._buf for i in ast.arg.globals], global_size=grid, local_size=block)

    def free_intermediates(self) -> None:
        for call in self.linear.src:
            for uop in call.without_after.src[1:]:
                if uop.op is Ops.BUFFER and buffers[uop]._storage is not None:
                    buffers[uop].deallocate()


def place(buffer: Buffer) -> UOp:
    """The operand that stands for a buffer."""
    uop = UOp.new_buffer(buffer.device, buffer.size, buffer.dtype)
    buffers[uop] = buffer
    return uop


def put_in() -> None:
    """Replaces the class."""
    jit.CapturedJit = CapturedJit
