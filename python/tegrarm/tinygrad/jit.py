"""The call of a TinyJit whose work is replays, without the steps that tinygrad repeats in each call.

tinygrad examines the arguments of each call in a general way, which takes many times as long as starting a replay. A call whose arguments
have the form of an earlier call does not need that, and uses the shortcut here. Any other call is tinygrad's own. So is every call while
``DEBUG`` or ``PROFILE`` is set. No file of tinygrad is changed. The method is wrapped when the first device TEGRA is opened, and only if
tinygrad has what this module uses.
"""

from __future__ import annotations

import functools
import os
import weakref
from collections.abc import Callable
from typing import Any

from tinygrad import Tensor
from tinygrad.device import Buffer
from tinygrad.engine import jit, realize
from tinygrad.helpers import DEBUG, JIT, JIT_BATCH_SIZE, PROFILE, GlobalCounters
from tinygrad.uop.ops import Ops, UOp, buffers

from .graph import TegraGraph
from .releases import HAS_STORAGE

LOOKED_INTO = (UOp, tuple, list, dict)  # tinygrad looks for tensors inside of such arguments, so that they cannot use the shortcut
ATTRIBUTE = "_tegra_shortcut"


def tensors_of(args: tuple, kwargs: dict) -> tuple[list[Tensor], tuple] | None:
    """The tensors among the arguments, and their places. It is None if tinygrad would look for more."""
    every = [*enumerate(args), *sorted(kwargs.items())] if kwargs else list(enumerate(args))
    found, names = [], []
    for name, value in every:
        if value.__class__ is Tensor:
            found.append(value)
            names.append(name)
        elif isinstance(value, LOOKED_INTO):
            return None
    return found, tuple(names)


def form(uop: UOp) -> tuple[UOp, tuple] | None:
    """The buffer of a tensor, and the reshape that is applied to it. It is None for anything else."""
    reshape: tuple = ()
    if uop.op is Ops.RESHAPE:
        reshape, uop = (uop.arg, uop.src[1:]), uop.src[0]
    return (uop, reshape) if uop.op is Ops.BUFFER else None


class Shortcut:
    """What one call has found out. It is valid for as long as the jit keeps what it captured."""

    def __init__(self, captured: Any, graphs: list[TegraGraph], names: tuple, forms: list[tuple]):
        self.captured, self.graphs, self.names, self.forms = captured, graphs, names, forms
        self.last: list[tuple] = []
        self.written: list[int] = []
        self.ops, self.memory = (sum(getattr(g.estimates, what) for g in graphs) for what in ("ops", "mem"))

    @staticmethod
    def of(captured: Any, args: tuple, kwargs: dict) -> Shortcut | None:
        """Makes the shortcut of a call that has been made. It is None if there is no shortcut."""
        found = tensors_of(args, kwargs)
        calls = [call.src[0] for call in captured.linear.src]
        graphs = [realize.graph_cache.get(ast) for ast in calls if ast.op is Ops.CUSTOM_FUNCTION]
        if found is None or len(graphs) != len(calls) or not all(type(g) is TegraGraph and g.is_plain() for g in graphs):
            return None
        forms = [(form(t.uop) or (None,), t.uop) for t in found[0]]
        if any(f[0] is None for f, _ in forms):
            return None
        bases = [buffers.get(f[0]) for f, _ in forms]
        if not all(type(b) is Buffer for b in bases):
            return None
        return Shortcut(captured, graphs, found[1], [(f[1], b.size, b.dtype, b.device) for (f, _), b in zip(forms, bases, strict=True)])

    def run(self, args: tuple, kwargs: dict) -> bool:
        """Starts the graphs, if the arguments have the form of those before."""
        if self.is_last(args, kwargs):
            for graph in self.graphs:
                graph.again()
            return self.count()
        found = tensors_of(args, kwargs)
        if found is None or found[1] != self.names:
            return False
        inputs, seen = [], set()
        for tensor, (reshape, size, dtype, device) in zip(found[0], self.forms, strict=True):
            known = form(tensor.uop)
            buffer = buffers.get(known[0]) if known is not None and known[1] == reshape else None
            if buffer is None or (buffer.size, buffer.dtype, buffer.device) != (size, dtype, device) or not buffer.is_initialized():
                return False
            if known[0] in self.captured._written_uops:
                return False
            seen.add(known[0])
            inputs.append(buffer)
        if len(seen) != len(inputs):
            return False
        for graph in self.graphs:
            graph.start(inputs)
        uops = [weakref.ref(tensor.uop) for tensor in found[0]]
        self.last = list(zip(uops, inputs, [buffer._bufs[buffer.device] for buffer in inputs], strict=True))
        self.written = [graph.written for graph in self.graphs]
        return self.count()

    def is_last(self, args: tuple, kwargs: dict) -> bool:
        """Whether these are the same tensors as in the last call by shortcut, with the same memory."""
        if kwargs or len(args) != len(self.last) or not args:
            return False
        for tensor, (uop, buffer, memory) in zip(args, self.last, strict=True):
            if tensor.__class__ is not Tensor or tensor.uop is not uop() or buffer._bufs.get(buffer.device) is not memory:
                return False
        return self.written == [graph.written for graph in self.graphs]

    def count(self) -> bool:
        """Changes tinygrad's counters as its own call does."""
        GlobalCounters.kernel_count += len(self.graphs)
        GlobalCounters.global_ops += self.ops
        GlobalCounters.global_mem += self.memory
        return True


def shortened(call: Callable) -> Callable:
    """Puts the shortcut before tinygrad's method."""
    @functools.wraps(call)
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        shortcut = self.__dict__.get(ATTRIBUTE)
        watched = DEBUG.value or PROFILE.value or not JIT.value
        if shortcut is not None and shortcut.captured is self.captured and not watched and shortcut.run(args, kwargs):
            self.cnt += 1
            return shortcut.captured.ret
        result = call(self, *args, **kwargs)
        if not watched and self.captured is not None and (shortcut is None or shortcut.captured is not self.captured):
            self.__dict__[ATTRIBUTE] = Shortcut.of(self.captured, args, kwargs)
        return result

    __call__.tegra = True  # type: ignore[attr-defined]
    return __call__


def take_whole() -> None:
    """Makes tinygrad give all work of a jit to one graph, unless the user set how much a graph gets. It would cut the work into pieces of
    32, 64 and so on.
    """
    if JIT_BATCH_SIZE.key not in os.environ:
        JIT_BATCH_SIZE.value = 0


def with_single_kernels(split: Callable) -> Callable:
    """Makes a graph of each kernel of ours that stands alone among what a jit captured. tinygrad makes graphs of two and more, and examines
    the arguments of every call anew for a kernel that is in none.
    """
    @functools.wraps(split)
    def graph_split_rewrite(linear: UOp, *args: Any, **kwargs: Any) -> UOp:
        linear = split(linear, *args, **kwargs)
        alone = [call.src[0].op is Ops.PROGRAM and TegraGraph.supports_uop([], call) for call in linear.src]
        return linear.replace(src=tuple(jit.create_graph_call([c]) if a else c for a, c in zip(alone, linear.src, strict=True)))

    graph_split_rewrite.tegra = True  # type: ignore[attr-defined]
    return graph_split_rewrite


def take_single() -> None:
    """Wraps tinygrad's function that makes graphs, but only once, and only if tinygrad has it."""
    split = getattr(jit, "graph_split_rewrite", None)
    if split is not None and hasattr(jit, "create_graph_call") and not getattr(split, "tegra", False):
        jit.graph_split_rewrite = with_single_kernels(split)


def shorten() -> None:
    """Wraps the method, but only once. Where memory is a storage, every call is tinygrad's own."""
    if HAS_STORAGE:
        return
    kind = getattr(jit, "_TinyJit", None) or jit.TinyJit
    needed = [(jit.CapturedJit, "_written_uops"), (realize, "graph_cache")]
    if isinstance(kind, type) and all(hasattr(*pair) for pair in needed) and not getattr(kind.__call__, "tegra", False):
        kind.__call__ = shortened(kind.__call__)
