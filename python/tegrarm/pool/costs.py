"""What a run of layers costs on a device and what a cut costs on a link: the numbers that every planner minimises."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from .cluster import Cluster, Link, Node
from .model import Model
from .profile import Profile


@dataclasses.dataclass(frozen=True)
class Work:
    """A model and how it is fed: ``batch`` items in ``micro_batches`` equal parts."""

    model: Model
    batch: int
    micro_batches: int

    def __post_init__(self) -> None:
        if self.batch < 1 or not 1 <= self.micro_batches <= self.batch or self.batch % self.micro_batches:
            raise ValueError(f"{self.batch} items do not divide into {self.micro_batches} equal micro-batches")

    @property
    def items(self) -> int:
        """Items of a micro-batch."""
        return self.batch // self.micro_batches

    @functools.cached_property
    def cut(self) -> np.ndarray:
        """Bytes of one micro-batch over a cut before layer j."""
        return self.model.cut_bytes * self.items

    @functools.cached_property
    def resident(self) -> np.ndarray:
        """``resident[i, j]``: bytes that layers i to j - 1 need on their device, weights, state of all items and buffers."""
        layers = self.model.layers
        held = np.concatenate([[0], np.cumsum([x.weight_bytes + self.batch * x.state_bytes for x in layers])])
        widest = np.empty((len(layers) + 1, len(layers) + 1))
        for i in range(len(layers) + 1):
            widest[i, i:] = np.maximum.accumulate(self.cut[i:])
            widest[i, :i] = 0
        return held[None, :] - held[:, None] + 2 * widest

    def layer_seconds(self, profile: Profile) -> np.ndarray:
        """Time of each layer on a device, for one micro-batch."""
        return np.array([layer.seconds(profile, self.items) for layer in self.model.layers])

    def copy_seconds(self, profile: Profile) -> np.ndarray:
        """Time of the copy between the host's memory and the device's at each cut: none where they are one."""
        return np.zeros_like(self.cut) if profile.shared_memory else self.cut / profile.transfer_bandwidth


class Costs:
    """Stage costs of one kind of device: the three numbers that a stage from layer i to layer j has."""

    def __init__(self, work: Work, profile: Profile):
        self.profile = profile
        self.prefix = np.concatenate([[0], np.cumsum(work.layer_seconds(profile))])
        self.copy = work.copy_seconds(profile)
        n = len(self.prefix)
        self.allowed = (work.resident <= profile.budget) & (np.arange(n)[:, None] < np.arange(n)[None, :])

    @functools.cached_property
    def bottleneck(self) -> np.ndarray:
        """Time between two micro-batches of a stage alone: its kernels, or its copies, which run beside them."""
        busy = self.prefix[None, :] - self.prefix[:, None]
        busy = np.maximum(busy, np.maximum(self.copy[:, None], self.copy[None, :]))
        return np.where(self.allowed, busy, np.inf)

    @functools.cached_property
    def latency(self) -> np.ndarray:
        """Time of one micro-batch from the stage's entry to its exit."""
        return np.where(self.allowed, self.prefix[None, :] - self.prefix[:, None] + self.copy[:, None] + self.copy[None, :], np.inf)


@dataclasses.dataclass(frozen=True)
class Group:
    """Devices that a planner cannot tell apart: the same profile, the same links to everything."""

    nodes: tuple[Node, ...]
    profile: Profile
    place: str  # the site's name; empty where the site has this one device and no link of its own


def groups(cluster: Cluster) -> list[Group]:
    """The devices of a cluster by what distinguishes them."""
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
    """The link between two different devices by the places of their groups."""
    if not source or not target:
        return cluster.between
    return cluster.site_link(source, target)
