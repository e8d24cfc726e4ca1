"""Published models as layers: their bytes, their work and the sizes of their outputs. There are shapes and no weights."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

from .model import Layer, Model
from .profile import DATA, ProfileError

Row = dict[str, Any]
ACTIVATION = 2.0  # the bytes of an element between layers, which is a float16


def decoder(row: Row, *, bits: float = 16) -> Model:
    """A decoder of Llama's kind, with one token per item and step: grouped attention over ``context`` cached tokens and a gated MLP."""
    width, context = row["width"], row["context"]
    keys = row["kv_heads"] * row["head"]
    weights = 2 * width * row["heads"] * row["head"] + 2 * width * keys + 3 * width * row["mlp"]
    block = Layer(
        "block", weight_bytes=weights * bits / 8, activation_bytes=width * ACTIVATION,
        matrix_work={"float16": 2.0 * weights + 4.0 * context * row["heads"] * row["head"]}, scalar_work={"float32": 20.0 * width},
        state_bytes=2.0 * context * keys * ACTIVATION, kernels=9)
    table = row["vocabulary"] * width * ACTIVATION
    layers = [Layer("embedding", table, width * ACTIVATION, scalar_work={"float32": width}, kernels=1, touched_bytes=width * ACTIVATION)]
    layers += [_named(block, f"block {i}") for i in range(row["layers"])]
    layers.append(Layer("head", table, row["vocabulary"] * ACTIVATION, {"float16": 2.0 * row["vocabulary"] * width}, kernels=2))
    suffix = "" if bits == 16 else f"-q{bits:g}"
    return Model(row["name"] + suffix, tuple(layers), autoregressive=True, unit="token")


def vit(row: Row) -> Model:
    """A vision transformer, with one image per item."""
    width, tokens = row["width"], (row["image"] // row["patch"]) ** 2 + 1
    weights = 4 * width * width + 2 * width * row["mlp"]
    between = tokens * width * ACTIVATION
    block = Layer("block", weights * 2.0, between, {"float16": 2.0 * weights * tokens + 4.0 * tokens * tokens * width},
                  {"float32": 30.0 * tokens * width}, kernels=9, traffic_bytes=6 * between)
    patches = 3 * row["patch"] ** 2 * width
    layers = [Layer("patches", patches * 2.0, between, {"float16": 2.0 * patches * tokens}, kernels=2)]
    layers += [_named(block, f"block {i}") for i in range(row["layers"])]
    layers.append(Layer("classes", width * row["classes"] * 2.0, row["classes"] * ACTIVATION,
                        {"float16": 2.0 * width * row["classes"]}, kernels=2))
    return Model(row["name"], tuple(layers), unit="image", input_bytes=3.0 * row["image"] ** 2)


class _Unet:
    """Builds the layers of a diffusion UNet and remembers which outputs are skipped to which inputs."""

    def __init__(self, row: Row):
        self.row = row
        self.layers: list[Layer] = []
        self.edges: list[tuple[int, int]] = []
        self.last: int | None = None

    def add(self, name: str, weights: float, work: float, out: float, extra: int | None = None, kernels: int = 4) -> None:
        """Adds one layer. The layer before it feeds it, and perhaps a skip does too."""
        here = len(self.layers)
        for source in (self.last, extra):
            if source is not None and (source, here) not in self.edges:
                self.edges.append((source, here))
        self.layers.append(Layer(name, weights * 2.0, out * ACTIVATION, {"float16": work}, {"float32": 20.0 * out},
                                 kernels=kernels, traffic_bytes=8.0 * out))
        self.last = here

    def unit(self, name: str, size: int, inside: int, out: int, attention: bool, skip: int | None = None) -> None:
        """Adds a residual unit, and its transformer block if the level has one."""
        weights = 9.0 * inside * out + 9.0 * out * out + self.row["time_width"] * out + (inside * out if inside != out else 0)
        pixels = float(size * size)
        work, kernels = 2 * weights * pixels, 8
        if attention:
            text, words = self.row["text_width"], self.row["text_tokens"]
            block = 2.0 * out * out + 4 * out * out + 2 * out * out + 2 * text * out + 8 * out * out + 4 * out * out
            weights += block
            work += 2 * block * pixels + 4 * pixels * pixels * out + 4 * pixels * words * out
            kernels += 16
        self.add(name, weights, work, pixels * out, skip, kernels)

    def model(self) -> Model:
        """Adds all layers: one denoising step of one latent per item."""
        row, size, channels = self.row, self.row["latent"], self.row["channels"]
        self.add("in", 9.0 * 4 * channels, 72.0 * channels * size * size, float(size * size * channels))
        outputs, width = [(self.last, channels)], channels
        levels = list(zip(row["multiples"], row["attention"], strict=True))
        for level, (multiple, attention) in enumerate(levels):
            for i in range(2):
                self.unit(f"down {level}.{i}", size, width, channels * multiple, attention)
                width = channels * multiple
                outputs.append((self.last, width))
            if level + 1 < len(levels):
                size //= 2
                self.add(f"down {level}", 9.0 * width * width, 18.0 * width * width * size * size, float(size * size * width), kernels=1)
                outputs.append((self.last, width))
        self.unit("middle 0", size, width, width, True)
        self.unit("middle 1", size, width, width, False)
        for level, (multiple, attention) in reversed(list(enumerate(levels))):
            for i in range(3):
                source, theirs = outputs.pop()
                self.unit(f"up {level}.{i}", size, width + theirs, channels * multiple, attention, source)
                width = channels * multiple
            if level:
                size *= 2
                self.add(f"up {level}", 9.0 * width * width, 18.0 * width * width * size * size, float(size * size * width), kernels=1)
        self.add("out", 9.0 * width * 4, 72.0 * width * size * size, 4.0 * size * size)
        return Model(row["name"], tuple(self.layers), tuple(self.edges), unit="image", input_bytes=8.0 * row["latent"] ** 2)


def unet(row: Row) -> Model:
    """A diffusion UNet, with one denoising step of one latent per item. Its skips make it a graph."""
    return _Unet(row).model()


def _named(layer: Layer, name: str) -> Layer:
    return Layer(**{**layer.__dict__, "name": name})


def names() -> list[str]:
    """All names that :func:`published` accepts."""
    return list(_builders())


@functools.cache
def _builders() -> dict[str, Callable[[], Model]]:
    rows = json.loads((DATA / "models.json").read_text())
    made: dict[str, Callable[[], Model]] = {}
    for row in rows["decoders"]:
        for bits, suffix in ((16, ""), (8, "-q8"), (4.5, "-q4.5")):
            made[row["name"] + suffix] = functools.partial(decoder, row, bits=bits)
    made |= {row["name"]: functools.partial(vit, row) for row in rows["vits"]}
    return made | {row["name"]: functools.partial(unet, row) for row in rows["unets"]}


def published(name: str) -> Model:
    """A model by its published name."""
    if name not in _builders():
        raise ProfileError(f"there is no model {name!r}; known are {', '.join(names())}, or a JSON file")
    return _builders()[name]()
