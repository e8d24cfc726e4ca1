"""A model as a planner sees it: layers with bytes and work, and which layer's output goes where."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from .profile import DTYPES, Profile, ProfileError


@dataclasses.dataclass(frozen=True)
class Layer:
    """One indivisible part. Per item means per token or per image, whatever a batch is counted in."""

    name: str
    weight_bytes: float
    # Bytes that go to the next layer, per item.
    activation_bytes: float
    # Operations per item, by dtype: those that matrix hardware does, and the rest.
    matrix_work: dict[str, float] = dataclasses.field(default_factory=dict)
    scalar_work: dict[str, float] = dataclasses.field(default_factory=dict)
    # Bytes kept per item in flight (a decoder's cache of keys and values), read by each item.
    state_bytes: float = 0.0
    kernels: int = 8
    # Bytes read and written once per item besides weights, state and input and output.
    traffic_bytes: float = 0.0
    # Bytes of the weights that one micro-batch reads, where that is less than all: an embedding's rows.
    touched_bytes: float | None = None

    def __post_init__(self) -> None:
        for dtype in {**self.matrix_work, **self.scalar_work}:
            if dtype not in DTYPES:
                raise ProfileError(f"layer {self.name!r}: unknown dtype {dtype!r}; known are {', '.join(DTYPES)}")
        if min(self.weight_bytes, self.activation_bytes, self.state_bytes, self.traffic_bytes) < 0:
            raise ProfileError(f"layer {self.name!r} has a negative number of bytes")

    def compute_seconds(self, profile: Profile, items: float) -> float:
        """Time of the arithmetic alone."""
        matrix = sum(work / profile.rate(dtype, matrix=True) for dtype, work in self.matrix_work.items())
        return items * (matrix + sum(work / profile.rate(dtype, matrix=False) for dtype, work in self.scalar_work.items()))

    def memory_seconds(self, profile: Profile, items: float) -> float:
        """Time of the memory traffic alone: the weights once per micro-batch, the rest once per item."""
        weights = self.weight_bytes if self.touched_bytes is None else min(self.weight_bytes, self.touched_bytes * items)
        return (weights + items * (self.state_bytes + self.traffic_bytes + 2 * self.activation_bytes)) / profile.bandwidth

    def seconds(self, profile: Profile, items: float) -> float:
        """Time of one micro-batch: arithmetic or memory, whichever takes longer, and the launches."""
        return max(self.compute_seconds(profile, items), self.memory_seconds(profile, items)) + self.kernels * profile.launch_latency


@dataclasses.dataclass(frozen=True)
class Model:
    """Layers and edges between them. Without edges it is a chain. Layers must come in an order in which they can run."""

    name: str
    layers: tuple[Layer, ...]
    edges: tuple[tuple[int, int], ...] = ()
    # True for a decoder: an item's next step starts when its last one has left the pipeline.
    autoregressive: bool = False
    unit: str = "item"
    # Bytes of one item at the entry of the model.
    input_bytes: float = 4.0

    def __post_init__(self) -> None:
        if not self.layers:
            raise ProfileError(f"model {self.name!r} has no layers")
        for a, b in self.edges:
            if not 0 <= a < b < len(self.layers):
                raise ProfileError(f"model {self.name!r}: edge {a} -> {b} must go to a later layer of its {len(self.layers)}")

    @functools.cached_property
    def all_edges(self) -> tuple[tuple[int, int], ...]:
        """The edges, those of a chain made explicit."""
        return self.edges or tuple((i, i + 1) for i in range(len(self.layers) - 1))

    @property
    def is_chain(self) -> bool:
        """Whether every layer feeds the next and nothing else."""
        return set(self.all_edges) == {(i, i + 1) for i in range(len(self.layers) - 1)}

    @functools.cached_property
    def cut_bytes(self) -> np.ndarray:
        """Bytes per item over a cut before layer j, for j from 0 to the number of layers. A tensor crosses a cut once."""
        cut = np.zeros(len(self.layers) + 1)
        cut[0] = self.input_bytes
        last_use = {i: max((b for a, b in self.all_edges if a == i), default=i) for i in range(len(self.layers))}
        for i, layer in enumerate(self.layers):
            cut[i + 1:last_use[i] + 1] += layer.activation_bytes
        return cut

    def linearised(self) -> Model:
        """The same layers in order as a chain whose activations are all that crosses each cut."""
        layers = tuple(dataclasses.replace(layer, activation_bytes=float(self.cut_bytes[i + 1]) or layer.activation_bytes)
                       for i, layer in enumerate(self.layers))
        return dataclasses.replace(self, layers=layers, edges=())

    def to_json(self) -> dict[str, Any]:
        """A dictionary that :meth:`from_json` takes."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Model:
        """Reads a dictionary."""
        return cls(**{**data, "layers": tuple(Layer(**row) for row in data["layers"]),
                      "edges": tuple((a, b) for a, b in data.get("edges", ()))})
