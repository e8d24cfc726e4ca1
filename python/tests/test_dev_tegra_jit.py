"""``DEV=TEGRA``: a TinyJit is one replay, with tinygrad's graphs and without them. Each test is a fresh process."""

import pytest
from test_dev_tegra import OPEN, TARGETS, env

# tinygrad after 0.14 has no graphs. What it captured is then a list of calls, which becomes a replay when it is run.
GRAPHS = "from tinygrad.engine import jit\n"
WAYS = pytest.mark.parametrize("graphs", [GRAPHS, GRAPHS + "del jit.GraphRunner\n"], ids=["graphs", "lists"])


@pytest.mark.parametrize("target", TARGETS)
def test_a_jit_is_one_replay(python, target):
    python(OPEN + """
from tegrarm.tinygrad.graph import TegraGraph
from tinygrad.engine import realize
@TinyJit
def step(x, w):
    for _ in range(40): x = (x + w).contiguous()
    return x.realize()
w = Tensor([1, 2]).realize()
for i in range(12):
    assert step(Tensor([i, i + 1]).realize(), w).tolist() == [i + 40, i + 81], i
from tegrarm import replay
try: replay.export(step, Tensor([1, 2]).realize(), w)
except replay.NotExportable as e: assert "each call is a replay already" in str(e)
else: raise SystemExit("exported")
graphs = [graph for graph in realize.graph_cache.values() if len(graph.calls) > 1]
assert len(graphs) == 1 and type(graphs[0]) is TegraGraph and len(graphs[0].calls) == 40
""", env=env(target))


@WAYS
def test_a_jit_takes_variables(python, graphs):
    python(graphs + OPEN + """
@TinyJit
def step(x, i): return ((x + i).contiguous() * 2).contiguous().realize()
x = Tensor([1, 2, 3]).realize()
for n in (1, 2, 3, 4, 5): assert step(x, Variable("i", 1, 9).bind(n)).tolist() == [2 * (k + n) for k in (1, 2, 3)]
@TinyJit
def first(x): return (x.sum() + 1).contiguous().realize()
cache = Tensor(np.arange(10, dtype=np.int32)).realize()
for n in (2, 3, 4, 5): assert first(cache[:Variable("n", 1, 9).bind(n)]).item() == sum(range(n)) + 1
""", env=env())


def test_a_jit_goes_the_short_way_only_with_arguments_of_one_form(python):
    """What tinygrad refuses or copies it still does; what it counts is counted."""
    python(OPEN + """
from tinygrad.helpers import GlobalCounters
from tegrarm.tinygrad.jit import ATTRIBUTE, Shortcut
ways = []
run = Shortcut.run
Shortcut.run = lambda self, args, kwargs: ways.append(run(self, args, kwargs)) or ways[-1]
@TinyJit
def step(x, w, name="a"): return ((x + 1).contiguous() * w).contiguous().realize()
make = lambda *v: Tensor(np.array(v, dtype=np.int32)).realize()
w, other = make(2, 3), make(5, 7)
for i in range(3): step(make(i, i), w)
del ways[:]
for i in range(5): assert step(make(i, 2 * i), w).tolist() == [2 * (i + 1), 3 * (2 * i + 1)], i
x = make(1, 2)
for _ in range(3): assert step(x, w).tolist() == [4, 9]
assert step(x, other).tolist() == [10, 21] and step(x, w).tolist() == [4, 9]
x.uop.buffer.as_memoryview(force_zero_copy=True).cast("i")[0] = 9
assert step(x, w).tolist() == [20, 9]
assert ways and all(ways)
GlobalCounters.reset(); step(x, w); short = GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem
step.__dict__.pop(ATTRIBUTE); GlobalCounters.reset(); step(x, w)
assert short == (GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem) and short[1] > 0
step(x, w)
for wrong in ((make(1, 2).reshape(2, 1), w), (x.cast(dtypes.float).realize(), w), (x, x), (x,)):
    try: step(*wrong)
    except Exception as e: assert type(e).__name__ == "JitError", e
    else: raise SystemExit(f"took {wrong}")
assert step(x, w).tolist() == [20, 9]
out = step(x, w)
assert step(out, w).tolist() == [42, 30]  # its own result as an input is copied first
""", env=env())


def test_a_jit_of_one_kernel_goes_the_short_way(python):
    """tinygrad makes graphs of two kernels and more. One that stands alone, or between copies of the processor, is a replay, too."""
    python(OPEN + """
from tinygrad.helpers import GlobalCounters
from tegrarm.tinygrad.jit import ATTRIBUTE, Shortcut
ways = []
run = Shortcut.run
Shortcut.run = lambda self, args, kwargs: ways.append(run(self, args, kwargs)) or ways[-1]
make = lambda *v: Tensor(np.array(v, dtype=np.int32)).realize()
@TinyJit
def step(x, w): return (x * w).realize()
w = make(2, 3)
for i in range(6): assert step(make(i, 2 * i), w).tolist() == [2 * i, 6 * i], i
x = make(4, 5)
for _ in range(3): assert step(x, w).tolist() == [8, 15]
assert len(ways) == 7 and all(ways), ways
GlobalCounters.reset(); step(x, w); short = GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem
step.__dict__.pop(ATTRIBUTE); GlobalCounters.reset(); step(x, w)
assert short == (GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem) and short[0] == 1 and short[1] > 0
assert step(step(x, w), w).tolist() == [16, 45]  # its own result as an input is copied first
@TinyJit
def there_and_back(x): return ((x + 1).to("CPU") * 3).to(Device.DEFAULT).contiguous().realize()
for i in range(5): assert there_and_back(make(i, 7)).tolist() == [3 * i + 3, 24]
from tinygrad import Variable
@TinyJit
def moved(x, i): return (x + i).realize()
for n in (1, 2, 3, 4, 5): assert moved(x, Variable("i", 1, 9).bind(n)).tolist() == [4 + n, 5 + n]
""", env=env())


@WAYS
def test_what_comes_after_a_run_waits_for_it(python, graphs):
    """A replay runs on a channel of its own: kernels, copies, other replays and reads that follow see its results."""
    python(graphs + OPEN + """
@TinyJit
def slow(x):
    for _ in range(3): x = (x @ x).contiguous()
    return x.realize()
@TinyJit
def twice(x): return ((x + x).contiguous() + 1).contiguous().realize()
for i in range(6):
    a = Tensor(np.eye(96, dtype=np.float32)).realize()
    y = slow(a)
    assert d.running is not None or i == 0
    z = twice(y)
    assert (z.numpy() == 2 * np.eye(96) + 1).all()
    y = slow(a)
    assert ((y * 3).numpy() == 3 * np.eye(96)).all()
    y = slow(a)
    copy = Tensor(np.zeros((96, 96), dtype=np.float32)).realize()
    d.allocator._transfer(copy.uop.buffer._buf, y.uop.buffer._buf, 96 * 96 * 4, d, d)
    assert (copy.numpy() == np.eye(96)).all()
slow.captured.free_intermediates(); del slow, y, a
assert d.running is None or True
d.synchronize()
""", env=env())


@WAYS
def test_two_jits_and_their_graphs_end(python, graphs):
    python(graphs + OPEN + """
import gc, os
def maps(): return sum(1 for _ in open('/proc/self/maps'))
def one():
    @TinyJit
    def step(x): return ((x + 1).contiguous() * 2).contiguous().realize()
    for i in range(3): assert step(Tensor([i]).realize()).tolist() == [2 * i + 2]
one(); gc.collect(); before = maps()
for _ in range(5): one(); gc.collect()
assert maps() <= before + 4, (before, maps())
""", env=env())


def test_without_graphs_a_jit_is_one_replay(python):
    """What a replay cannot have is left to tinygrad, in its place. What tinygrad counts is counted."""
    python(GRAPHS + "del jit.GraphRunner\n" + OPEN + """
from tinygrad.helpers import Context, GlobalCounters
from tegrarm.tinygrad import captured
from tegrarm.tinygrad.program import TegraProgram
launches, launch = [], TegraProgram.__call__
TegraProgram.__call__ = lambda self, *a, **k: launches.append(self.name) or launch(self, *a, **k)
make = lambda *v: Tensor(np.array(v, dtype=np.int32)).realize()
def shapes(step): return [getattr(p, "count", -1) for p in captured.PIECES[step.captured.linear]]
def counted(step, *args):
    GlobalCounters.reset(); step(*args)
    return GlobalCounters.kernel_count, GlobalCounters.global_ops, GlobalCounters.global_mem
@TinyJit
def step(x, w):
    for _ in range(40): x = (x + w).contiguous()
    return x.realize()
w = make(1, 2)
for i in range(6):
    if i == 2: del launches[:]
    assert step(make(i, i + 1), w).tolist() == [i + 40, i + 81], i
assert shapes(step) == [40] and not launches
from tegrarm import replay
try: replay.export(step, make(1, 2), w)
except replay.NotExportable as e: assert "needs the graphs" in str(e) and "GraphRunner" in str(e), e
else: raise SystemExit("exported")
short = counted(step, make(1, 2), w)
with Context(JIT=2): assert counted(step, make(1, 2), w) == short
assert len(launches) == 40 and short[0] == 40 and short[1] > 0
assert step(step(make(1, 2), w), w).tolist() == [81, 162], "its own result as an input is copied first"
step.captured.free_intermediates()
assert step.captured.linear not in captured.PIECES and step(make(3, 4), w).tolist() == [43, 84]
@TinyJit
def over(x):
    y = ((x + 1).contiguous() * 2).contiguous().realize().to("CPU").realize() + 1
    z = y.contiguous().realize().to("TEGRA").realize()
    return ((z + 1).contiguous() * 3).contiguous().realize()
for i in range(4): assert over(make(i, i + 1)).tolist() == [3 * (2 * (i + 1) + 2), 3 * (2 * (i + 2) + 2)], i
assert shapes(over) == [2, -1, 2]
@TinyJit
def one(x): return (x + 1).realize()
for i in range(4): assert one(make(i, 5)).tolist() == [i + 1, 6]
assert shapes(one) == [1]
""", env=env())
