"""Where devices are: virtual Orins on this computer, or the nodes of a Ray cluster that say what they have."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import Any

import numpy as np

from .cluster import Cluster, Link, Node, known_links
from .profile import Profile, catalogue

# A custom resource per device: Ray does not find an Orin by itself. The part after the prefix is the profile's name.
PREFIX = "tegrarm:"

# Modules of the virtual Orin (TEGRARM_SIM_CHIP) and the profiles they stand for.
MODULES = {"agx-orin": "agx-orin-32gb", "agx-orin-pg": "agx-orin-half", "orin-nx": "orin-nx-16gb", "orin-nano": "orin-nano-8gb"}

# What tinygrad is told where a stage uses it. A device of another name can take its place.
TINYGRAD_DEVICE = "TEGRA+NV:CUDA"


@dataclasses.dataclass(frozen=True)
class Place:
    """A device that a worker can be started at."""

    node: Node
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    # Ray's node, if the worker has to be at that one.
    ray_node: str = ""


def resources(profile: Profile, count: int = 1) -> dict[str, float]:
    """What ``ray start --resources`` is given at a node with such devices."""
    return {PREFIX + profile.name: float(count)}


def virtual_profile(module: str) -> Profile:
    """The profile of a virtual Orin, with the figures that the library tells of that module."""
    if module not in MODULES:
        raise ValueError(f"there is no virtual module {module!r}; known are {', '.join(MODULES)}")
    sheet = catalogue()[MODULES[module]]
    if module == "agx-orin":  # the virtual AGX Orin has all its units and the smaller memory
        full = catalogue()["agx-orin-64gb"]
        sheet = dataclasses.replace(full, name="agx-orin", memory_size=sheet.memory_size)
    return dataclasses.replace(sheet, name=module, simulated=True)


def virtual(modules: list[str], link: str = "10gbe", dev: str = TINYGRAD_DEVICE) -> tuple[Cluster, dict[str, Place]]:
    """Virtual Orins, each a process of its own on this computer, as a cluster with the given link between any two."""
    nodes, places = [], {}
    for i, module in enumerate(modules):
        name = f"{module}-{i}"
        node = Node(name, virtual_profile(module), name)
        nodes.append(node)
        places[name] = Place(node, {**virtual_environment(dev), "TEGRARM_SIM_CHIP": module})
    return Cluster(tuple(nodes), known_links()[link], {}, "virtual Orins"), places


def virtual_environment(dev: str = TINYGRAD_DEVICE) -> dict[str, str]:
    """What a process needs to compute on a virtual Orin with this process's library; ``dev`` is tinygrad's name of the device."""
    kept = {k: v for k in ("TEGRARM_LIB", "NVRTC_PATH", "CUDA_PATH", "CC", "PYTHONPATH") if (v := os.environ.get(k))}
    return {**kept, "TEGRARM_BACKEND": "sim", "DEV": dev}


def discovered(ray: Any, link: Link | str = "1gbe") -> tuple[Cluster, dict[str, Place]]:
    """The devices of the Ray cluster that this process has joined, one :class:`Node` per custom resource."""
    nodes, places = [], {}
    for computer in ray.nodes():
        if not computer["Alive"]:
            continue
        site = computer["NodeID"]
        for resource, count in sorted(computer["Resources"].items()):
            if not resource.startswith(PREFIX):
                continue
            kind = resource.removeprefix(PREFIX)
            if kind not in MODULES and kind not in catalogue():
                raise ValueError(f"node {site} has a device {kind!r} that no profile describes; known are {', '.join(catalogue())}")
            profile = virtual_profile(kind) if kind in MODULES else catalogue()[kind]
            environment = {**virtual_environment(), "TEGRARM_SIM_CHIP": kind} if kind in MODULES else {}
            for i in range(int(count)):
                node = Node(f"{kind}-{i}@{site[:8]}", profile, site)
                nodes.append(node)
                places[node.name] = Place(node, environment, site)
    between = known_links()[link] if isinstance(link, str) else link
    links = {(n.site, n.site): known_links()["same-host"] for n in nodes}
    return Cluster(tuple(nodes), between, links, "Ray cluster"), places


def measured_link(ray: Any, source: Any, target: Any, *, size: int = 8 << 20, rounds: int = 3) -> Link:
    """Bandwidth and latency from one worker to another over Ray itself, in host time: an array that goes there and stays there."""
    def seconds(length: int) -> float:
        best = float("inf")
        for _ in range(rounds):
            made = source.echo.remote(np.ones(length, np.uint8))
            ray.wait([made], fetch_local=False)
            started = time.perf_counter()
            ray.get(target.arrived.remote(made))
            best = min(best, time.perf_counter() - started)
        return best

    small, large = seconds(1), seconds(size)
    return Link(size / max(large - small, 1e-6), small, "measured over Ray")
