"""Replays: recorded work that runs again and again with new values. A run makes no system call and allocates no memory.

:class:`Replay` has the functions of the C interface (``tegrarm_replay_*``). :func:`export` makes a replay of a tinygrad ``TinyJit``::

    step = TinyJit(function)
    for _ in range(2): step(x)            # tinygrad captures its graph
    loop = tegrarm.replay.export(step, x)
    loop.inputs[0][:] = ...               # a memoryview of what is copied in at the start of each run
    loop.run()
    loop.outputs[0]                       # a memoryview of what the last run returned
"""

from __future__ import annotations

import ctypes
import os
import struct

from . import _ffi
from ._checked import number
from .queues import nanoseconds
from .rm import check

CONSTANT, TIMELINE = _ffi.TEGRARM_REPLAY_SOURCE_CONSTANT, _ffi.TEGRARM_REPLAY_SOURCE_TIMELINE
KICK, SLOT = _ffi.TEGRARM_REPLAY_SOURCE_KICK, _ffi.TEGRARM_REPLAY_SOURCE_SLOT
WORD, LONG = (1 << 32) - 1, (1 << 64) - 1
FOREVER = _ffi.TEGRARM_WAIT_FOREVER


class Replay:
    """A replay for channels of the caller. It is recorded with the methods below and then run. C functions accept its ``handle`` too."""

    def __init__(self):
        self.pid, self.handle = os.getpid(), ctypes.c_void_p()
        self._kept: list = []  # memory whose addresses the library has
        self._call("create", None, ctypes.byref(self.handle), on=())

    def _call(self, name: str, *args, on=None) -> None:
        function = getattr(_ffi.lib(), f"tegrarm_replay_{name}")
        check(f"tegrarm_replay_{name}", function(*((self.handle,) if on is None else on), *args))

    def channel(self, *, ring: int, entries: int, token: int, gp_put: int, doorbell: int, put: ctypes.c_uint64, notifier: int = 0) -> int:
        """Adds a channel. Addresses are those of the CPU. Each run reads and advances ``put``. Returns the channel's index."""
        self._kept.append(put)
        what = _ffi.ReplayChannel(ctypes.sizeof(_ffi.ReplayChannel), ring, entries, token, gp_put, doorbell,
                                  ctypes.addressof(put), notifier or None)
        index = ctypes.c_uint32()
        self._call("add_channel", ctypes.byref(what), ctypes.byref(index))
        return index.value

    def timeline(self, signal: int, value: ctypes.c_uint64, step: int, kick: ctypes.c_uint64) -> None:
        """Says how a run ends: when the number at address ``signal`` reaches ``value`` + ``step``."""
        self._kept += [value, kick]
        self._call("timeline", ctypes.cast(signal, ctypes.POINTER(ctypes.c_uint64)), ctypes.byref(value), step, ctypes.byref(kick))

    def patch(self, where: int, size: int, source: int, *, slot=0, add=0, shift=0, mask=LONG, keep=0) -> None:
        """Makes each run write ``(source + add) >> shift & mask`` to ``size`` bytes, except for the bits of ``keep``."""
        value = _ffi.ReplayValue(source, slot, add & LONG, mask, shift)
        self._call("patch", where, size, keep, ctypes.byref(value))

    def push(self, channel: int, address: int, words: int) -> None:
        """Makes each run submit ``words`` words at a GPU address to a channel."""
        self._call("push", channel, address, words)

    def input(self, to: int, size: int) -> memoryview:
        """The memory that is copied to address ``to`` at the start of each run. The caller writes it between two runs."""
        return self._copied("input", size, lambda ours: (to, ours))

    def output(self, source: int, size: int) -> memoryview:
        """The memory to which the end of each run copies from address ``source``. The caller reads it between two runs."""
        return self._copied("output", size, lambda ours: (ours, source))

    def _copied(self, call: str, size: int, places) -> memoryview:
        staging = (ctypes.c_uint8 * number(ctypes.c_size_t, size, "the size").value)()
        self._kept.append(staging)
        self._call(call, *places(ctypes.addressof(staging)), size)
        return memoryview(staging).cast("B")

    def run(self, values=None, count: int = 0, timeout_ns: int = FOREVER) -> None:
        """Runs once, and waits for the end. ``values`` is a ctypes array of ``count`` c_uint64."""
        check("tegrarm_replay_run", _ffi.lib().tegrarm_replay_run(self.handle, values, count, timeout_ns))

    def close(self) -> None:
        """Ends the replay, after a run in flight. It may be called again."""
        handle, self.handle = self.handle, ctypes.c_void_p()
        if handle and os.getpid() == self.pid:
            check("tegrarm_replay_destroy", _ffi.lib().tegrarm_replay_destroy(handle))


class NotExportable(RuntimeError):
    """The graph does something that a replay cannot do. The message says what."""


def export(jit, *args, **kwargs) -> GraphReplay:
    """A replay of what ``jit`` captured, for arguments like those of its calls.

    Tensors among ``args`` give shapes and buffers, and ``inputs`` changes their contents. Bound variables among them are values that
    ``run`` takes by name. Raises NotExportable with the reason if the graph cannot be replayed.
    """
    return GraphReplay(jit, args, kwargs)


class GraphReplay:
    """The work that a ``TinyJit`` captured, run by libtegrarm. Use it and the jit in any order, from one thread at a time."""

    def __init__(self, jit, args, kwargs):
        try:
            from tinygrad.engine import jit as engine
            prepare, _ = engine._prepare_jit_inputs, (engine.create_graph_call, engine.GraphRunner)
        except (ImportError, AttributeError) as error:
            raise NotExportable(f"exporting needs the graphs of tinygrad 0.14 ({error}). On DEV=TEGRA each call is a replay "
                                "already") from error
        if (captured := getattr(jit, "captured", None)) is None:
            raise NotExportable("the jit has captured nothing yet: call it twice first")
        inputs, self._vars, names, info = prepare(args, kwargs)
        if (captured.expected_names, captured.expected_input_info) != (names, info):
            raise NotExportable(f"other arguments than the captured ones: {names} {info}")
        if any(u in captured._written_uops for u in inputs):
            raise NotExportable("the graph writes to one of its inputs")
        self._inputs = tuple(inputs)
        self._graphs = [self._graph(engine, call) for call in captured.linear.src]
        if any(type(graph).__name__ == "TegraGraph" for graph in self._graphs):
            raise NotExportable("the graph is of DEV=TEGRA, where each call is a replay already: DEV=TEGRA+NV has what is exported")
        devices = {d for graph in self._graphs for d in graph.devices}
        if len(devices) != 1 or type(next(iter(devices))).__name__ != "TegraDevice":
            raise NotExportable(f"the graph uses {', '.join(sorted(d.device for d in devices))}: it has to be one TEGRA device")
        self.dev, = devices
        self._returned = [_buffer_of(t) for t in _tensors(captured.ret)]
        self._channels = [self.dev.compute_gpfifo, self.dev.dma_gpfifo]
        self._timeline, self._kick = ctypes.c_uint64(), ctypes.c_uint64()
        self._put = [ctypes.c_uint64() for _ in self._channels]
        self.replay: Replay | None = None
        self._build()

    def _graph(self, engine, call):
        """A graph that is made for this replay, so that the graphs of the jit are not changed."""
        from tinygrad.device import Device
        from tinygrad.uop.ops import Ops
        ast = call.src[0]
        if ast.op in (Ops.PROGRAM, Ops.COPY):
            call = engine.create_graph_call([call])
            ast = call.src[0]
        if ast.op is not Ops.CUSTOM_FUNCTION or ast.arg != "graph":
            raise NotExportable(f"the captured work has a {ast.op} that is no part of a graph")
        device = Device[ast.device if isinstance(ast.device, str) else ast.device[0]]
        if device.graph is None:
            raise NotExportable(f"{device.device} has no graphs that can be exported. Replays are of libtegrarm's device: set "
                                "DEV=TEGRA+NV, and TEGRARM_BACKEND=sim where there is no board")
        return device.graph(ast, input_uops=self._inputs)

    # *** recording ***

    def _build(self) -> None:
        if self.replay is not None:
            self.replay.close()
        self.dev.synchronize()
        self.replay, self._signal, self._symbols = Replay(), self.dev.timeline_signal, []
        for iidx in {iidx for graph in self._graphs for iidx, _ in graph.input_replace_map[self.dev]}:
            self.dev.allocator._map(self._inputs[iidx].buffer._buf)
        for index, graph in enumerate(self._graphs):
            self._patch(graph, index)
        # Everything is written before the first doorbell rings, including the kick.
        for graph in self._graphs:
            for signal in graph.queue_signals_to_reset:
                self.replay.patch(_address(signal), 8, CONSTANT)
            for signal in graph.kick_signals.values():
                self.replay.patch(_address(signal), 8, KICK)
        channels = [self._channel(fifo, put) for fifo, put in zip(self._channels, self._put, strict=True)]
        for graph in self._graphs:
            for queue, channel in self._queues(graph, channels):
                self.replay.push(channel, queue.hw_page.va_addr, len(queue._q))
        self.replay.timeline(_address(self._signal), self._timeline, len(self._graphs), self._kick)
        buffers = [u.buffer.ensure_allocated() for u in self._inputs]
        self.inputs = [self.replay.input(b._buf.cpu_view().addr, b.nbytes) for b in buffers]
        for view, buffer in zip(self.inputs, buffers, strict=True):
            ctypes.memmove(ctypes.addressof(ctypes.c_uint8.from_buffer(view)), buffer._buf.cpu_view().addr, buffer.nbytes)
        self.outputs = [self.replay.output(b._buf.cpu_view().addr, b.nbytes) for b in self._returned]
        self._values = (ctypes.c_uint64 * max(len(self._symbols), 1))()
        self._evaluate(self._vars)

    def _channel(self, fifo, put) -> int:
        notifiers = self.dev.iface.notifiers
        notifier = notifiers[self._channels.index(fifo)].view.addr if len(notifiers) >= len(self._channels) else 0
        return self.replay.channel(ring=fifo.ring.addr, entries=fifo.entries_count, token=fifo.token, gp_put=fifo.gpput.addr,
                                   doorbell=self.dev.gpu_mmio.addr + 0x90, put=put, notifier=notifier)

    def _queues(self, graph, channels):
        yield graph.comp_queues[self.dev], channels[0]
        for queue in graph._dev_copy_queues(self.dev):
            yield queue, channels[1]

    def _patch(self, graph, index: int) -> None:
        """Makes patch points for values that tinygrad writes before each submit. Values that never change are written now."""
        known = {f"timeline_sig_{graph.dev_name(self.dev)}": _address(self._signal, gpu=True), **graph.device_vars.get(self.dev, {})}
        for j, replace in enumerate(graph.uop_replace):
            for position, iidx in replace:
                known[graph.input_replace_to_var[(j, position)].expr] = self._inputs[iidx].buffer._buf.va_addr
        moving = {graph.kickoff_var.expr: (KICK, 0), f"timeline_var_{graph.dev_name(self.dev)}": (TIMELINE, index)}
        for queue, _ in self._queues(graph, (0, 1)):
            values = [self._value(sym, known, moving) for sym in queue.syms]
            places = [(queue._q, offset, sym, None) for offset, sym in queue.q_sints] + queue.mv_sints
            for view, offset, sym, mask in places:
                self._place(view, offset, values[sym], mask)

    def _place(self, view, offset: int, value, mask: int | None) -> None:
        size = struct.calcsize(view.fmt)
        everything = (1 << 8 * size) - 1
        if isinstance(value, int):
            view[offset] = value if mask is None else (view[offset] & ~mask) | value
            return
        source, how = value
        self.replay.patch(view.addr + offset * size, size, source, keep=0 if mask is None else ~mask & everything, **how)

    def _value(self, sym, known: dict, moving: dict):
        """A number, or the (source, how) of a patch point."""
        from tinygrad.uop.ops import sym_infer
        names = {v.expr for v in sym.variables()}
        if names <= known.keys():
            return sym_infer(sym, known)
        if not names & moving.keys():
            self._symbols.append((sym, known))
            return SLOT, {"slot": len(self._symbols) - 1}
        (name,), rest = names & moving.keys(), names - moving.keys()
        if not rest <= known.keys():
            raise NotExportable(f"a value made of {', '.join(sorted(names))}")
        source, ahead = moving[name]
        return source, _form(lambda x: sym_infer(sym, {**known, name: x + ahead}))

    def _evaluate(self, var_vals: dict) -> None:
        from tinygrad.uop.ops import sym_infer
        for slot, (sym, known) in enumerate(self._symbols):
            self._values[slot] = sym_infer(sym, {**known, **var_vals}) & LONG

    # *** running ***

    def run(self, timeout: float | None = None, **var_vals: int) -> None:
        """Copies ``inputs`` in, runs the graph and copies ``outputs`` out. ``timeout`` is in seconds."""
        dev = self.dev
        if dev.timeline_value > 1 << 31 or self._signal.value < dev.timeline_value - 1:
            dev.synchronize()  # other work may still read the inputs, and at 2^31 tinygrad starts another timeline
        if dev.timeline_signal is not self._signal:
            self._build()
        if var_vals:
            self._evaluate({**self._vars, **var_vals})
        self._timeline.value = dev.timeline_value - 1
        for fifo, put in zip(self._channels, self._put, strict=True):
            put.value = fifo.put_value
        try:
            self.replay.run(self._values, len(self._symbols), nanoseconds(timeout))
        finally:
            dev.timeline_value = self._timeline.value + 1
            for fifo, put in zip(self._channels, self._put, strict=True):
                fifo.put_value = put.value

    def close(self) -> None:
        """Ends the replay. It may be called again."""
        if self.replay is not None:
            self.replay.close()


def _address(signal, gpu: bool = False) -> int:
    return signal.base_buf.va_addr if gpu else signal.base_buf.cpu_view().addr


def _form(function) -> dict:
    """The form in which a patch point expresses ``function`` of one number. It is found by trying the few forms that tinygrad uses."""
    probes = (0, 1, 2, 0x1234, 0x7fff_fffe, 0xffff_fff0)
    for shift, mask in ((0, LONG), (0, WORD), (32, WORD)):
        for add in {function(0), 0, 1, 2, 3}:
            if all(function(x) == (x + add & LONG) >> shift & mask for x in probes):
                return {"add": add, "shift": shift, "mask": mask}
    raise NotExportable(f"a value that is {[function(x) for x in probes]} of {probes}")


def _tensors(returned) -> list:
    if returned is None:
        return []
    if isinstance(returned, (tuple, list, dict)):
        return [t for item in (returned.values() if isinstance(returned, dict) else returned) for t in _tensors(item)]
    return [returned]


def _buffer_of(tensor):
    """The buffer of a tensor that the jit returns."""
    if tensor.uop.contiguous_view() is None or tensor.uop.base.realized is None:
        raise NotExportable("the jit returns a tensor that is no contiguous buffer: return .contiguous().realize()")
    return tensor.uop.buffer.ensure_allocated()
