"""A model as a planner sees it: its layers with their bytes and their work, and the layers that use the output of each."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from .profile import DTYPES, Profile, ProfileError


@dataclasses.dataclass(frozen=True)
class Layer:
    """One indivisible part. Per item means per token or per image, depending on what a batch counts."""

    name: str
    weight_bytes: float
    # The bytes per item that go to the next layer.
    activation_bytes: float
    # The operations per item, by dtype: those that matrix hardware does, and the others.
    matrix_work: dict[str, float] = dataclasses.field(default_factory=dict)
    scalar_work: dict[str, float] = dataclasses.field(default_factory=dict)
    # The bytes that are kept for each item in flight (such as a decoder's cache of keys and values). Each item reads them.
    state_bytes: float = 0.0
    kernels: int = 8
    # The bytes that are read and written once per item, in addition to weights, state, input and output.
    traffic_bytes: float = 0.0
    # The bytes of the weights that one micro-batch reads, if it does not read all of them. An embedding reads some rows.
    touched_bytes: float | None = None

    def __post_init__(self) -> None:
        for dtype in {**self.matrix_work, **self.scalar_work}:
            if dtype not in DTYPES:
                raise ProfileError(f"layer {self.name!r}: unknown dtype {dtype!r}; known are {', '.join(DTYPES)}")
        if min(self.weight_bytes, self.activation_bytes, self.state_bytes, self.traffic_bytes) < 0:
            raise ProfileError(f"layer {self.name!r} has a negative number of bytes")

    def compute_seconds(self, profile: Profile, items: float) -> float:
        """The time of the arithmetic alone."""
        matrix = sum(work / profile.rate(dtype, matrix=True) for dtype, work in self.matrix_work.items())
        return items * (matrix + sum(work / profile.rate(dtype, matrix=False) for dtype, work in self.scalar_work.items()))

    def memory_seconds(self, profile: Profile, items: float) -> float:
        """The time of the memory traffic alone. Weights are read once per micro-batch, and the rest once per item."""
        weights = self.weight_bytes if self.touched_bytes is None else min(self.weight_bytes, self.touched_bytes * items)
        return (weights + items * (self.state_bytes + self.traffic_bytes + 2 * self.activation_bytes)) / profile.bandwidth

    def seconds(self, profile: Profile, items: float) -> float:
        """The time of one micro-batch: that of the arithmetic or of the memory traffic, whichever is longer, and that of the launches."""
        return max(self.compute_seconds(profile, items), self.memory_seconds(profile, items)) + self.kernels * profile.launch_latency


@dataclasses.dataclass(frozen=True)
class Model:
    """The layers and the edges between them. Without edges the model is a chain. Layers must be in an order in which they can run."""

    name: str
    layers: tuple[Layer, ...]
    edges: tuple[tuple[int, int], ...] = ()
    # Whether the model is a decoder. An item's next step then starts when its last one has left the pipeline.
    autoregressive: bool = False
    unit: str = "item"
    # The bytes of one item at the entry of the model.
    input_bytes: float = 4.0

    def __post_init__(self) -> None:
        if not self.layers:
            raise ProfileError(f"model {self.name!r} has no layers")
        for a, b in self.edges:
            if not 0 <= a < b < len(self.layers):
                raise ProfileError(f"model {self.name!r}: edge {a} -> {b} must go to a later layer of its {len(self.layers)}")

    @functools.cached_property
    def all_edges(self) -> tuple[tuple[int, int], ...]:
        """The edges, including those of a chain."""
        return self.edges or tuple((i, i + 1) for i in range(len(self.layers) - 1))

    @functools.cached_property
    def cut_bytes(self) -> np.ndarray:
        """The bytes per item over a cut before layer j, for j from 0 to the number of layers. A tensor crosses a cut once."""
        cut = np.zeros(len(self.layers) + 1)
        cut[0] = self.input_bytes
        last_use = {i: max((b for a, b in self.all_edges if a == i), default=i) for i in range(len(self.layers))}
        for i, layer in enumerate(self.layers):
            cut[i + 1:last_use[i] + 1] += layer.activation_bytes
        return cut

    def to_json(self) -> dict[str, Any]:
        """The dictionary that :meth:`from_json` takes."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Model:
        """Makes a model from a dictionary."""
        return cls(**{**data, "layers": tuple(Layer(**row) for row in data["layers"]),
                      "edges": tuple((a, b) for a, b in data.get("edges", ()))})
