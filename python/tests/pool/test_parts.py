"""Parts of the decoder on tinygrad's devices: where their weights are stored, and what they compute."""

import json

import pytest

pytest.importorskip("nvidia.cuda_nvrtc")

DEVICES = ["TEGRA", "TEGRA+NV:CUDA"]
PART = """
import json, pathlib, sys, tempfile
import numpy as np
from tegrarm.pool import transformer
from tegrarm.pool.stage import Part
shape, path = transformer.Shape(blocks=2), pathlib.Path(tempfile.mkdtemp(), "weights.safetensors")
transformer.write_weights(path, shape)
def part(start, stop, shared): return transformer.factory(shape, path)(Part(start, stop, shape.layers, "here", shared))
"""


@pytest.mark.parametrize("dev", DEVICES)
@pytest.mark.parametrize("shared", [True, False])
def test_weights_are_mapped_where_memory_is_shared_and_copied_once_where_it_is_not(python, dev, shared):
    """A store into the file must change the tensor if the device shares memory with the CPU, and must not change it otherwise."""
    out = json.loads(python(PART + f"""
from tinygrad.helpers import GlobalCounters
made = part(1, 2, {shared})
used, name = GlobalCounters.mem_used, "0.qkv"
file = made.file[name]
same = bool((made.tensors[name].numpy() == file).all())
size = sum(made.file[n].nbytes for n in made.tensors)
file[0, 0] = 1234.5
print(json.dumps([same, float(made.tensors[name].numpy()[0, 0]) == 1234.5, used, size]))
""", env={"DEV": dev}))
    same, reached, used, size = out
    assert same and reached == shared
    assert used == 0 if shared else used >= size, "bytes that were allocated for weights"


@pytest.mark.parametrize("dev", DEVICES)
def test_a_split_says_the_same_tokens(python, dev):
    said = json.loads(python(PART + """
prompts = np.array([[3, 5, 7], [2, 4, 8]], np.int32)
def tokens(*parts):
    memories = [{} for _ in parts]
    def step(data):
        for stage, memory in zip(parts, memories): data = stage(data, memory)
        return data
    return transformer.decode(step, prompts, 3)
print(json.dumps([tokens(part(0, 4, True)), tokens(part(0, 1, True), part(1, 3, False), part(3, 4, True))]))
""", env={"DEV": dev}))
    assert said[0] == said[1] and len(said[0]) == 2 and len(said[0][0]) == 3
