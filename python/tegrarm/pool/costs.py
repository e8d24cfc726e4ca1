"""The costs of a run of layers on a device and of a cut on a link. Every planner minimises these numbers."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from .cluster import Cluster, Link, Node
from .model import Model
from .profile import Profile


@dataclasses.dataclass(frozen=True)
class Work:
    """A model and its batch: ``batch`` items in ``micro_batches`` equal parts."""

    model: Model
    batch: int
    micro_batches: int

    def __post_init__(self) -> None:
        if self.batch < 1 or not 1 <= self.micro_batches <= self.batch or self.batch % self.micro_batches:
            raise ValueError(f"{self.batch} items do not divide into {self.micro_batches} equal micro-batches")

    @property
    def items(self) -> int:
        """The number of items in a micro-batch."""
        return self.batch // self.micro_batches

    @functools.cached_property
    def cut(self) -> np.ndarray:
        """The bytes of one micro-batch that go over a cut before layer j."""
        return self.model.cut_bytes * self.items

    @functools.cached_property
    def resident(self) -> np.ndarray:
        """``resident[i, j]`` is the number of bytes that layers i to j - 1 need on their device: weights, state of all items, and buffers.
        """
        layers = self.model.layers
        held = np.concatenate([[0], np.cumsum([x.weight_bytes + self.batch * x.state_bytes for x in layers])])
        widest = np.empty((len(layers) + 1, len(layers) + 1))
        for i in range(len(layers) + 1):
            widest[i, i:] = np.maximum.accumulate(self.cut[i:])
            widest[i, :i] = 0
        return held[None, :] - held[:, None] + 2 * widest

    def layer_seconds(self, profile: Profile) -> np.ndarray:
        """The time of each layer on a device, for one micro-batch."""
        return np.array([layer.seconds(profile, self.items) for layer in self.model.layers])

    def copy_seconds(self, profile: Profile) -> np.ndarray:
        """The time of the copy between the memories of host and device at each cut. It is zero if both are one memory."""
        return np.zeros_like(self.cut) if profile.shared_memory else self.cut / profile.transfer_bandwidth


class Costs:
    """The stage costs of one kind of device: three numbers for a stage from layer i to layer j."""

    def __init__(self, work: Work, profile: Profile):
        self.profile = profile
        self.prefix = np.concatenate([[0], np.cumsum(work.layer_seconds(profile))])
        self.copy = work.copy_seconds(profile)
        n = len(self.prefix)
        self.allowed = (work.resident <= profile.budget) & (np.arange(n)[:, None] < np.arange(n)[None, :])

    @functools.cached_property
    def bottleneck(self) -> np.ndarray:
        """The time between two micro-batches of this stage alone: that of its kernels or of its copies, because both run at the same time.
        """
        busy = self.prefix[None, :] - self.prefix[:, None]
        busy = np.maximum(busy, np.maximum(self.copy[:, None], self.copy[None, :]))
        return np.where(self.allowed, busy, np.inf)

    @functools.cached_property
    def latency(self) -> np.ndarray:
        """The time of one micro-batch from the entry of the stage to its exit."""
        return np.where(self.allowed, self.prefix[None, :] - self.prefix[:, None] + self.copy[:, None] + self.copy[None, :], np.inf)


@dataclasses.dataclass(frozen=True)
class Group:
    """Devices that are the same for a planner: they have the same profile and the same links to all other devices."""

    nodes: tuple[Node, ...]
    profile: Profile
    place: str  # the name of the site; empty if the site has only this device and no link of its own


def groups(cluster: Cluster) -> list[Group]:
    """The devices of a cluster in groups of equal devices."""
    population: dict[str, int] = {}
    for node in cluster.nodes:
        population[node.site] = population.get(node.site, 0) + 1
    linked = {site for pair in cluster.links for site in pair}
    found: dict[tuple[int, str], list[Node]] = {}
    profiles: dict[str, int] = {}
    for node in cluster.nodes:
        lone = population[node.site] == 1 and node.site not in linked
        number = profiles.setdefault(repr(dataclasses.replace(node.profile, name="", sources={})), len(profiles))
        found.setdefault((number, "" if lone else node.site), []).append(node)
    return [Group(tuple(nodes), nodes[0].profile, place) for (_, place), nodes in found.items()]


def place_link(cluster: Cluster, source: str, target: str) -> Link:
    """The link between two different devices, by the places of their groups."""
    if not source or not target:
        return cluster.between
    return cluster.site_link(source, target)
