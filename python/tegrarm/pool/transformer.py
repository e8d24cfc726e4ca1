"""A decoder in tinygrad as stages of a pool: a token embedding, blocks with a cache of keys and values, and an output head.

Each part is like a part of a real model: its weights are in one file, its state is in the session, and the environment chooses the device
(``DEV=TEGRA``, or ``DEV=TEGRA+NV``). Every block ends in a realized tensor, so that a split changes no kernel and the tokens stay the same.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import pathlib
from typing import Any

import numpy as np

from .model import Layer, Model
from .stage import Part, StageCallable
from .weights import Weights, save

Tensors = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Shape:
    """The sizes of the decoder."""

    vocabulary: int = 128
    width: int = 64
    heads: int = 4
    blocks: int = 6
    context: int = 32

    @property
    def head(self) -> int:
        """The width of one head."""
        return self.width // self.heads

    @property
    def layers(self) -> int:
        """The number of indivisible parts: the embedding, the blocks and the output."""
        return self.blocks + 2


def model(shape: Shape) -> Model:
    """The model's shape for the planner: float32 without matrix hardware, and one token per item."""
    w = shape.width
    block_weights = 12 * w * w + 4 * w
    block = Layer("block", 4.0 * block_weights, 4.0 * w, scalar_work={"float32": 2.0 * block_weights + 4.0 * shape.context * w},
                  state_bytes=8.0 * shape.context * w, kernels=9)
    table = 4.0 * shape.vocabulary * w
    return Model("small decoder", (
        Layer("embedding", table + 4.0 * shape.context * w, 4.0 * w, scalar_work={"float32": 2.0 * shape.vocabulary * w}, kernels=1),
        *(dataclasses.replace(block, name=f"block {i}") for i in range(shape.blocks)),
        Layer("output", table + 8.0 * w, 4.0 * shape.vocabulary, scalar_work={"float32": 2.0 * shape.vocabulary * w}, kernels=3)),
        autoregressive=True, unit="token")


def write_weights(path: pathlib.Path, shape: Shape, seed: int = 1) -> None:
    """Writes random weights. They are large enough that tokens differ from each other."""
    rng, w = np.random.default_rng(seed), shape.width

    def weight(*size: int) -> np.ndarray:
        return (rng.standard_normal(size) * 0.12).astype(np.float32)

    tensors = {"tokens": weight(shape.vocabulary, w), "places": weight(shape.context, w)}
    for i in range(shape.blocks):
        tensors |= {f"{i}.qkv": weight(w, 3 * w), f"{i}.out": weight(w, w), f"{i}.up": weight(w, 4 * w), f"{i}.down": weight(4 * w, w),
                    f"{i}.norms": np.ones((4, w), np.float32)}
    tensors |= {"last": np.ones((2, w), np.float32), "head": weight(w, shape.vocabulary)}
    save(path, tensors)


def _names(shape: Shape, layer: int) -> list[str]:
    """The names of the tensors of a layer."""
    if layer == 0:
        return ["tokens", "places"]
    if layer == shape.layers - 1:
        return ["last", "head"]
    return [f"{layer - 1}.{name}" for name in ("qkv", "out", "up", "down", "norms")]


class TinygradPart:
    """Some layers of the decoder on tinygrad's default device."""

    def __init__(self, shape: Shape, path: str, part: Part):
        import tegrarm.tinygrad  # noqa: F401  (gives tinygrad its device)

        self.shape, self.part, self.broken = shape, part, ""
        self.file = Weights(path)
        names = [name for layer in range(part.start, part.stop) for name in _names(shape, layer)]
        self.mapped = _Mapped(self.file) if part.shared_memory else None
        self.tensors: Tensors = {}
        for done, name in enumerate(names):
            self.tensors[name] = self._load(name)
            part.progress((done + 1) / len(names))

    def _load(self, name: str) -> Any:
        from tinygrad import Tensor
        return self.mapped.tensor(name) if self.mapped else Tensor(self.file[name].copy()).realize()

    def __call__(self, data: np.ndarray, memory: dict[str, Any] | None) -> np.ndarray:
        """Computes one token of every row. The session knows the position."""
        if memory is None:
            raise ValueError("a decoder needs a session: it remembers the tokens before this one")
        at = memory.setdefault("at", 0)
        if at >= self.shape.context:
            raise ValueError(f"the context is full: {self.shape.context} tokens")
        try:
            result = self._step(data, memory, at)
        except RuntimeError as error:
            self.broken = _device_fault(str(error))
            raise
        memory["at"] = at + 1
        return result

    def _step(self, data: np.ndarray, memory: dict[str, Any], at: int) -> np.ndarray:
        from tinygrad import Tensor, Variable

        position = Variable("at", 0, self.shape.context - 1).bind(at)
        x = Tensor(np.array(data)).realize()
        for layer in range(self.part.start, self.part.stop):
            if layer == 0:
                x = (self.tensors["tokens"][x] + self.tensors["places"][position:position + 1]).realize()
            elif layer == self.shape.layers - 1:
                x = (self._norm(x, self.tensors["last"]) @ self.tensors["head"]).realize()
            else:
                x = self._block(layer - 1, x, memory, position)
        return x.numpy()

    @staticmethod
    def _norm(x: Any, weights: Any) -> Any:
        return x.layernorm() * weights[0] + weights[1] - 1

    def _block(self, i: int, x: Any, memory: dict[str, Any], at: Any) -> Any:
        from tinygrad import Tensor

        s, t, rows = self.shape, self.tensors, x.shape[0]
        if f"cache {i}" not in memory:
            memory[f"cache {i}"] = Tensor.zeros(2, rows, s.heads, s.context, s.head).contiguous().realize()
        cache = memory[f"cache {i}"]
        norms = t[f"{i}.norms"]
        qkv = (self._norm(x, norms[:2]) @ t[f"{i}.qkv"]).reshape(rows, 3, s.heads, 1, s.head).permute(1, 0, 2, 3, 4)
        cache[:, :, :, at:at + 1].assign(qkv[1:]).realize()
        keys, values = cache[0, :, :, :at + 1], cache[1, :, :, :at + 1]
        mixed = (qkv[0] @ keys.transpose(-1, -2) * s.head ** -0.5).softmax() @ values
        x = x + mixed.reshape(rows, s.width) @ t[f"{i}.out"]
        return (x + (self._norm(x, norms[2:]) @ t[f"{i}.up"]).gelu() @ t[f"{i}.down"]).realize()

    def fault(self) -> str:
        """The reason why the device cannot be used any more."""
        return self.broken

    def break_device(self) -> None:
        """Runs a kernel that stores where nothing is mapped, on its own channel. The device belongs to this process and stops with that
        channel.
        """
        from .affine import SOURCE
        from .cuda import Kernels, compiled
        with Kernels(compiled(SOURCE)) as kernels:
            try:
                kernels.wait(kernels.launch("astray", 1, 1, [ctypes.c_uint64(0x6660000000)]))
            except RuntimeError as error:
                self.broken = str(error)
                raise


def _device_fault(text: str) -> str:
    """Returns the text if it is about a device that has stopped. Otherwise the result is empty."""
    return text if any(sign in text for sign in ("channel stopped", "GPU stopped answering", "NV_ERR_RESET_REQUIRED")) else ""


class _Mapped:
    """Tensors whose memory is the pages of a mapped file. The CPU and the GPU use the same memory, and nothing is copied."""

    def __init__(self, file: Weights):
        from tinygrad import Device

        self.file, self.device = file, Device.DEFAULT
        device: Any = Device[self.device]
        self.allocator = device.allocator
        # The NV device maps pages through its interface, the device TEGRA through its allocator.
        maps = device.iface if hasattr(device, "iface") else device.allocator
        self.pages = maps.pages(file.address, len(file.bytes))

    def tensor(self, name: str) -> Any:
        """One tensor of the file."""
        from tinygrad import Tensor, dtypes

        offset, shape, dtype = self.file.place(name)
        made = Tensor.empty(*shape, dtype=getattr(dtypes, dtype.name), device=self.device)
        size = int(np.prod(shape)) * dtype.itemsize
        buffer: Any = made.uop.buffer
        buffer.allocate(opaque=self.allocator._offset(self.pages, size, offset), external_ptr=self.file.address + offset)
        return made


def factory(shape: Shape, path: pathlib.Path) -> Any:
    """Makes parts. The file must have the same path on every node."""
    return functools.partial(_make, shape, str(path))


def _make(shape: Shape, path: str, part: Part) -> StageCallable:
    return TinygradPart(shape, path, part)


def decode(step: Any, prompts: np.ndarray, tokens: int) -> list[list[int]]:
    """Decodes greedily: ``step(array of one token per row)`` returns logits."""
    said: list[list[int]] = [[] for _ in prompts]
    current = prompts[:, 0]
    for i in range(prompts.shape[1] - 1 + tokens):
        logits = step(np.ascontiguousarray(current, dtype=np.int32))
        current = prompts[:, i + 1] if i + 1 < prompts.shape[1] else logits.argmax(axis=1)
        if i + 1 >= prompts.shape[1]:
            for row, token in zip(said, current, strict=True):
                row.append(int(token))
    return said
