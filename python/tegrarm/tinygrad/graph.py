"""The work that a TinyJit captured, as one replay of the library. A run writes what changes and rings one doorbell."""

from __future__ import annotations

import ctypes
import time
from typing import Any

from tinygrad.device import Buffer, Device, MultiBuffer
from tinygrad.engine.jit import GraphRunner
from tinygrad.helpers import PROFILE
from tinygrad.uop.ops import Ops, UOp

from .. import _ffi
from ..calls import call, made, wait
from ..rm import check
from . import releases


def buffer_of(uop: UOp, shard: int) -> Buffer:
    """The buffer of an input, or that of one of its shards."""
    buffer = uop.buffer
    return buffer.bufs[shard] if isinstance(buffer, MultiBuffer) else buffer


class TegraGraph(GraphRunner):
    """The kernels and copies of one device. They are recorded when tinygrad makes the graph, and replayed at each call."""

    def __init__(self, linear: UOp, input_uops: tuple[UOp, ...] = ()):
        super().__init__(linear, input_uops)
        self.dev: Any = Device[self.calls[0][2][0].device]
        self.replay = made("replay_create", self.dev.handle)
        self.slots: dict[Any, int] = {}  # of a variable's name, or of an input's number (with that of the shard, if it is sharded)
        for index, ((_, ast, bufs, fixed), program) in enumerate(zip(self.calls, self.runtimes, strict=True)):
            if program is None:
                self._record_copy(bufs)
            else:
                self._record_launch(index, ast, bufs, fixed, program)
        self.written = 0  # how often the values were written
        self._values = (ctypes.c_uint64 * max(len(self.slots), 1))()
        self._inputs = [(slot, *key) for key, slot in self.slots.items() if isinstance(key, tuple)]
        self._plain = [(slot, number) for slot, number, _ in self._inputs]
        self._names = [(slot, key) for key, slot in self.slots.items() if isinstance(key, str)]
        self._submit, self._arguments = _ffi.lib().tegrarm_replay_submit.unchecked, (self.replay, self._values, len(self.slots))

    # *** recording ***

    def _record_copy(self, bufs: list[Buffer]) -> None:
        dest, src = releases.memory(bufs[0]), releases.memory(bufs[1])
        call("replay_copy", self.replay, dest.handle, dest.offset, src.handle, src.offset, bufs[0].nbytes)

    def _record_launch(self, index: int, ast: UOp, bufs: list[Buffer], fixed: dict[str, int], program: Any) -> None:
        order, names = ast.arg.globals, [v.expr for v in ast.arg.vars]
        grid, block = ast.arg.launch_dims({})
        vals = tuple(fixed.get(name, 0) for name in names)
        _, kernel, *how, _ = program.fill(tuple(bufs[i]._buf for i in order), grid, block, vals)
        launch = ctypes.c_uint32()
        call("replay_launch", self.replay, kernel, *how, ctypes.byref(launch))
        shard = self.calls[index][0]
        for position, number in self.uop_replace[index]:
            if position in order:
                self._from_slot(launch, order.index(position), (number, shard))
        for argument, name in enumerate(names, len(order)):
            if name in self.vars and name not in fixed:
                self._from_slot(launch, argument, name)

    def _from_slot(self, launch: ctypes.c_uint32, argument: int, key: Any) -> None:
        call("replay_argument", self.replay, launch, argument, self.slots.setdefault(key, len(self.slots)))

    # *** running ***

    def is_plain(self) -> bool:
        """Whether the only change between runs is which buffers are the inputs."""
        known = isinstance(self.estimates.ops, int) and isinstance(self.estimates.mem, int)
        return known and not self._names and all(shard == 0 for _, _, shard in self._inputs)

    def start(self, inputs: list[Buffer]) -> None:
        """Starts a run of a plain graph."""
        if self.dev.running is not None:
            self.dev.settle()
        for slot, number in self._plain:
            self._values[slot] = releases.address(inputs[number])
        self.written += 1
        self.again()

    def again(self) -> None:
        """Starts a run with the values of the last run."""
        if self.dev.running is not None:
            self.dev.settle()
        if status := self._submit(*self._arguments):
            check("tegrarm_replay_submit", status)
        self.dev.running = self

    def __call__(self, input_uops: tuple[UOp, ...], var_vals: dict[str, int], wait: bool = False) -> float | None:
        """Starts a run. The device's next work, or a synchronize, waits for it."""
        dev, values = self.dev, self._values
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
        if status := self._submit(*self._arguments):
            check("tegrarm_replay_submit", status)
        dev.running = self
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

    def finish(self) -> None:
        """Waits for the run."""
        wait("replay_wait", self.replay)

    def __del__(self) -> None:
        if getattr(self, "replay", None) and self.dev.is_ours():
            if self.dev.running is self:
                self.dev.running = None
            _ffi.lib().tegrarm_replay_destroy(self.replay)  # this waits for a run in flight

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
