"""The work that a TinyJit captured, as tinygrad's graph: one replay of the library."""

from __future__ import annotations

import time
from typing import Any

from tinygrad.device import Buffer, Device, MultiBuffer
from tinygrad.engine.jit import GraphRunner
from tinygrad.helpers import PROFILE
from tinygrad.uop.ops import Ops, UOp

from . import releases
from .recording import Recording


def buffer_of(uop: UOp, shard: int) -> Buffer:
    """The buffer of an input, or that of one of its shards."""
    buffer = uop.buffer
    return buffer.bufs[shard] if isinstance(buffer, MultiBuffer) else buffer


class TegraGraph(GraphRunner):
    """The kernels and copies of one device. They are recorded when tinygrad makes the graph, and replayed at each call."""

    def __init__(self, linear: UOp, input_uops: tuple[UOp, ...] = ()):
        super().__init__(linear, input_uops)
        self.dev: Any = Device[self.calls[0][2][0].device]
        # The keys of its values are names of variables and, for an input, its number with that of the shard, if it is sharded.
        self.recording = Recording(self.dev)
        for index, ((_, ast, bufs, fixed), program) in enumerate(zip(self.calls, self.runtimes, strict=True)):
            if program is None:
                self.recording.copy(bufs[0], bufs[1])
            else:
                self._record_launch(index, ast, bufs, fixed, program)
        self.recording.end()
        self.again = self.recording.start  # starts a run with the values of the last run
        self.written = 0  # how often the values were written
        slots = self.recording.slots
        self._inputs = [(slot, *key) for key, slot in slots.items() if isinstance(key, tuple)]
        self._plain = [(slot, number) for slot, number, _ in self._inputs]
        self._names = [(slot, key) for key, slot in slots.items() if isinstance(key, str)]

    def _record_launch(self, index: int, ast: UOp, bufs: list[Buffer], fixed: dict[str, int], program: Any) -> None:
        order, names, shard = ast.arg.globals, [v.expr for v in ast.arg.vars], self.calls[index][0]
        replace = self.uop_replace[index]
        changing: dict[int, Any] = {order.index(at): (number, shard) for at, number in replace if at in order}
        changing |= {at: name for at, name in enumerate(names, len(order)) if name in self.vars and name not in fixed}
        self.recording.launch(ast, program, [bufs[i] for i in order], tuple(fixed.get(name, 0) for name in names), changing)

    # *** running ***

    def is_plain(self) -> bool:
        """Whether the only change between runs is which buffers are the inputs."""
        known = isinstance(self.estimates.ops, int) and isinstance(self.estimates.mem, int)
        return known and not self._names and all(shard == 0 for _, _, shard in self._inputs)

    def start(self, inputs: list[Buffer]) -> None:
        """Starts a run of a plain graph."""
        if self.dev.running is not None:
            self.dev.settle()
        values = self.recording.values
        for slot, number in self._plain:
            values[slot] = releases.address(inputs[number])
        self.written += 1
        self.again()

    def __call__(self, input_uops: tuple[UOp, ...], var_vals: dict[str, int], wait: bool = False) -> float | None:
        """Starts a run. The device's next work, or a synchronize, waits for it."""
        dev, values = self.dev, self.recording.values
        if dev.running is not None:
            dev.settle()
        if PROFILE:
            return self._one_by_one(input_uops, var_vals)
        self.written += 1
        for slot, number, shard in self._inputs:
            values[slot] = releases.address(buffer_of(input_uops[number], shard))
        for slot, name in self._names:
            values[slot] = var_vals[name]
        start = time.perf_counter() if wait else 0.0
        self.again()
        if not wait:
            return None
        dev.settle()
        return time.perf_counter() - start

    def _one_by_one(self, input_uops: tuple[UOp, ...], var_vals: dict[str, int]) -> float:
        """Launches each kernel on its own for the profiler, because a replay has no times for single kernels."""
        total = 0.0
        for (shard, ast, bufs, fixed), program, replace in zip(self.calls, self.runtimes, self.uop_replace, strict=True):
            now = list(bufs)
            for position, number in replace:
                now[position] = buffer_of(input_uops[number], shard)
            if program is None:
                self.dev.allocator._transfer(now[0]._buf, now[1]._buf, now[0].nbytes, self.dev, self.dev)
                continue
            values = {**var_vals, **fixed}
            grid, block = ast.arg.launch_dims(values)
            buffers, vals = [now[i]._buf for i in ast.arg.globals], ast.arg.vals(values)
            total += program(*buffers, global_size=grid, local_size=block, vals=vals, wait=True)
        return total

    @staticmethod
    def supports_uop(batch_devs: list, new_call: UOp) -> bool:
        """Whether a graph can have this: programs and copies of one TEGRA device with known sizes, whose copied buffers stay the same."""
        ast, devices = new_call.src[0], GraphRunner._all_devs(batch_devs, new_call)
        if len(devices) != 1 or devices[0].graph is not TegraGraph:
            return False
        if ast.op is Ops.COPY:
            return not any(b.op is Ops.PARAM for b in new_call.src[1:])
        sizes = (*ast.arg.global_size, *(ast.arg.local_size or ())) if ast.op is Ops.PROGRAM else (None,)
        return all(isinstance(size, int) for size in sizes)
