"""libtegrarm runs graphs of an unpatched tinygrad, and the results are equal to those of the jit. Each test is a fresh process."""

import pytest

OPEN = """
import tegrarm.tinygrad
from tegrarm import replay
from tinygrad import Tensor, TinyJit, Variable
import numpy as np
rng = np.random.default_rng(5)
def random(*shape): return rng.standard_normal(shape, dtype=np.float32)
def put(view, array): view[:] = np.ascontiguousarray(array).tobytes()
def got(view, *shape): return np.frombuffer(view, dtype=np.float32).reshape(shape)
"""
MATMUL = """
@TinyJit
def step(x, w): return ((x @ w).relu().contiguous() + 1).contiguous().realize(), (x * 2).contiguous().realize()
x, w = Tensor(random(8, 8)).realize(), Tensor(random(8, 8)).realize()
for _ in range(3): step(x, w)
"""


@pytest.mark.parametrize("target", ["TEGRA+NV:CUDA", "TEGRA+NV:NAK"])
def test_new_inputs_give_the_jits_results(python, target):
    python(OPEN + MATMUL + """
loop = replay.export(step, x, w)
for i in range(60):
    a, b = random(8, 8), random(8, 8)
    put(loop.inputs[0], a); put(loop.inputs[1], b)
    loop.run(timeout=60)
    for ours, theirs in zip(loop.outputs, step(Tensor(a).realize(), Tensor(b).realize())):
        assert ours.tobytes() == theirs.numpy().tobytes(), i
    np.testing.assert_allclose(got(loop.outputs[0], 8, 8), np.maximum(a @ b, 0) + 1, rtol=1e-4, atol=1e-4)
""", env={"DEV": target})


def test_several_graphs_and_lone_kernels(python):
    """With batches of two kernels and one kernel left, every piece is one step of the timeline."""
    python(OPEN + """
@TinyJit
def step(x):
    for i in range(5): x = (x * 1.5 + i).contiguous()
    return x.realize()
x = Tensor(random(33)).realize()
for _ in range(3): step(x)
loop = replay.export(step, x)
assert len(loop._graphs) >= 2, len(loop._graphs)
for _ in range(20):
    a = random(33)
    put(loop.inputs[0], a); loop.run(timeout=60)
    assert got(loop.outputs[0], 33).tolist() == step(Tensor(a).realize()).tolist()
""", env={"DEV": "TEGRA+NV:CUDA", "JIT_BATCH_SIZE": "2"})


def test_variables_are_values_of_each_run(python):
    python(OPEN + """
n = Variable("n", 1, 16)
@TinyJit
def step(x, k): return (x[:k].sum() * 2).contiguous().realize()
x = Tensor(random(16)).realize()
for k in (3, 5, 7): step(x, n.bind(k))
loop = replay.export(step, x, n.bind(7))
a = random(16)
put(loop.inputs[0], a)
for k in (1, 16, 4, 9):
    loop.run(timeout=60, n=k)
    np.testing.assert_allclose(got(loop.outputs[0], 1)[0], 2 * a[:k].sum(), rtol=1e-5)
""", env={"DEV": "TEGRA+NV:CUDA"})


def test_inputs_start_as_what_they_were(python):
    python(OPEN + MATMUL + """
want = [t.numpy() for t in step(x, w)]
loop = replay.export(step, x, w)
loop.run(timeout=60)
assert all((got(o, 8, 8) == t).all() for o, t in zip(loop.outputs, want))
""", env={"DEV": "TEGRA+NV:CUDA"})


def test_a_run_makes_no_kernel_call(python, tmp_path):
    """After this, the recording has no more calls, but it still has memory that the GPU wrote."""
    record = tmp_path / "calls.jsonl"
    python(OPEN + MATMUL + f"""
import json
def calls(): return sum(json.loads(line).get("call") not in (None, "memory") for line in open({str(record)!r}))
loop = replay.export(step, x, w)
loop.run(timeout=60)
before = calls()
assert before > 0
for _ in range(50): loop.run(timeout=60)
assert calls() == before
""", env={"DEV": "TEGRA+NV:CUDA", "TEGRARM_RECORD": str(record)})


def test_the_timeline_may_start_again(python):
    """tinygrad changes to another signal when its number gets large, and the replay follows."""
    python(OPEN + MATMUL + """
loop = replay.export(step, x, w)
for _ in range(3): loop.run(timeout=60)
first = loop.dev.timeline_signal
loop.dev.synchronize()
loop.dev.timeline_signal.value = loop.dev.timeline_value = (1 << 31) + 5
loop.dev.timeline_value += 1
a = random(8, 8)
for _ in range(3):
    put(loop.inputs[0], a); loop.run(timeout=60)
assert loop.dev.timeline_signal is not first
put(loop.inputs[0], a); loop.run(timeout=60)
assert (got(loop.outputs[1], 8, 8) == 2 * a).all()
""", env={"DEV": "TEGRA+NV:CUDA"})


def test_what_cannot_be_exported_says_why(python):
    out = python(OPEN + MATMUL + """
def why(f):
    try: f()
    except replay.NotExportable as e: print(e)
    else: raise SystemExit('exported')
why(lambda: replay.export(TinyJit(lambda x: x + 1), x))
why(lambda: replay.export(step, w))
@TinyJit
def transposed(x): return (x + 1).realize().permute(1, 0)
for _ in range(3): transposed(x)
why(lambda: replay.export(transposed, x))
""", env={"DEV": "TEGRA+NV:CUDA"})
    assert "captured nothing yet" in out and "other arguments" in out and "no contiguous buffer" in out, out
