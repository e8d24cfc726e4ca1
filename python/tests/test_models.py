"""Whole models on the virtual Orin and on tinygrad's CPU device give the same results with the same weights. Each run is a fresh process.
"""

import json

import numpy as np

SEEDED = """
import json
import numpy as np
from tinygrad import Tensor, TinyJit, Variable, nn
if DEVICE != "CPU": import tegrarm.tinygrad
from tinygrad import Device
assert Device.DEFAULT == ("CPU" if DEVICE == "CPU" else "NV")
rng = np.random.default_rng(1)
def weight(*shape, scale=0.08): return Tensor((rng.standard_normal(shape) * scale).astype(np.float32))
"""

# The decoder has the shape of GPT-2: learned positions, layer norms before attention and MLP, GELU, a tied embedding, and a cache of keys
# and values that grows by a token per step.
GPT = """
VOCABULARY, WIDTH, HEADS, LAYERS, CONTEXT = 96, 48, 4, 2, 16
class Block:
    def __init__(self):
        self.norms = [nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)]
        self.qkv, self.out = weight(WIDTH, 3 * WIDTH), weight(WIDTH, WIDTH)
        self.up, self.down = weight(WIDTH, 4 * WIDTH), weight(4 * WIDTH, WIDTH)
        self.cache = weight(2, HEADS, CONTEXT, WIDTH // HEADS, scale=0).realize()
    def __call__(self, x, at):
        q, k, v = (self.norms[0](x) @ self.qkv).reshape(1, 3, HEADS, WIDTH // HEADS).permute(1, 2, 0, 3)
        self.cache[:, :, at:at + 1].assign(Tensor.stack(k, v)).realize()
        keys, values = self.cache[0, :, :at + 1], self.cache[1, :, :at + 1]
        weights = (q @ keys.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5).softmax()
        x = x + (weights @ values).permute(1, 0, 2).reshape(1, WIDTH) @ self.out
        return x + (self.norms[1](x) @ self.up).gelu() @ self.down
tokens, places, blocks, last = weight(VOCABULARY, WIDTH), weight(CONTEXT, WIDTH), [Block() for _ in range(LAYERS)], nn.LayerNorm(WIDTH)
@TinyJit
def step(token, at):
    x = tokens[token] + places[at:at + 1]
    for block in blocks: x = block(x, at)
    return (last(x) @ tokens.T).realize()
said, logits, token = [], [], 7
for i in range(8):
    row = step(Tensor([token]), Variable("at", 0, CONTEXT - 1).bind(i)).numpy()[0]
    token = int(row.argmax()); said.append(token); logits.append(row.tolist())
print(json.dumps([said, logits]))
"""

# The network has convolutions, batch norms, a residual block with a strided shortcut, and pooling. It is trained by SGD with momentum.
RESNET = """
class Unit:
    def __init__(self, i, o, stride):
        self.a, self.b, self.short = weight(o, i, 3, 3), weight(o, o, 3, 3), weight(o, i, 1, 1)
        self.na, self.nb, self.stride = nn.BatchNorm(o), nn.BatchNorm(o), stride
    def __call__(self, x):
        y = self.na(x.conv2d(self.a, stride=self.stride, padding=1)).relu()
        return (self.nb(y.conv2d(self.b, padding=1)) + x.conv2d(self.short, stride=self.stride)).relu()
class Net:
    def __init__(self): self.stem, self.norm, self.units, self.head = weight(8, 3, 3, 3), nn.BatchNorm(8), [Unit(8, 16, 2)], weight(16, 10)
    def __call__(self, x):
        x = self.norm(x.conv2d(self.stem, padding=1)).relu()
        for unit in self.units: x = unit(x)
        return x.mean((2, 3)) @ self.head
net = Net()
optimizer = nn.optim.SGD(nn.state.get_parameters(net), lr=0.05, momentum=0.9)
data, labels = weight(4, 3, 8, 8, scale=1.0).realize(), Tensor(rng.integers(0, 10, 4).astype(np.int32)).realize()
@TinyJit
def step():
    optimizer.zero_grad()
    loss = net(data).sparse_categorical_crossentropy(labels).backward()
    optimizer.step()
    return loss.realize()
losses = [step().item() for _ in range(5)]
print(json.dumps([losses, net.head.numpy().tolist(), net.units[0].a.numpy().ravel().tolist()]))
"""


def on_both(python, program, **env):
    """What it prints on our device and on the CPU, whose kernels are as they are written: tinygrad's optimizations are judged, too."""
    runs = []
    for device, more in (("TEGRA+NV", {}), ("CPU", {"NOOPT": "1"})):
        out = python(f"DEVICE = {device!r}\n" + SEEDED + program, env={"DEV": device, **more, **env})
        runs.append(json.loads(out.splitlines()[-1]))
    return runs


def test_a_transformer_decodes_the_same_tokens(python):
    (said, logits), (said_on_cpu, logits_on_cpu) = on_both(python, GPT)
    assert said == said_on_cpu and len(set(said)) > 1
    np.testing.assert_allclose(logits, logits_on_cpu, rtol=2e-4, atol=2e-5)


def test_a_residual_net_learns_the_same(python):
    (losses, *parameters), (losses_on_cpu, *parameters_on_cpu) = on_both(python, RESNET, TRAINING="1")
    assert losses[-1] < losses[0]
    np.testing.assert_allclose(losses, losses_on_cpu, rtol=1e-4)
    for here, there in zip(parameters, parameters_on_cpu, strict=True):
        np.testing.assert_allclose(here, there, rtol=1e-3, atol=1e-4)


def test_beam_search_finds_a_kernel_that_is_right(python):
    """Candidates are compiled and timed by the GPU's own timestamps, and the fastest one is run."""
    out = python("""
import tegrarm.tinygrad
import numpy as np
from tinygrad import Tensor
from tinygrad.codegen.opt import search
timed, measure = [], search._time_program
def note(*args, **kwargs):
    timed.append(measure(*args, **kwargs))
    return timed[-1]
search._time_program = note
a, b = np.random.default_rng(2).standard_normal((2, 32, 32), dtype=np.float32)
np.testing.assert_allclose((Tensor(a).realize() @ Tensor(b).realize()).numpy(), a @ b, rtol=1e-4, atol=1e-4)
good = [min(t) for t in timed if min(t) < 1]
print(len(good), min(good) > 0)
""", env={"DEV": "TEGRA+NV", "BEAM": "1", "IGNORE_BEAM_CACHE": "1", "PARALLEL": "0"})
    count, positive = out.split()
    assert int(count) > 3 and positive == "True", out
