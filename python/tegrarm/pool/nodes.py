"""The places of devices: virtual Orins on this computer, or nodes of a Ray cluster that announce their devices."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import Any

import numpy as np

from .cluster import Cluster, Link, Node, known_links
from .profile import Profile, catalogue

# A custom resource for each device, because Ray does not find an Orin by itself. The text after the prefix is the profile's name.
PREFIX = "tegrarm:"

# The modules of the virtual Orin (TEGRARM_SIM_CHIP), and the profiles for which they stand.
MODULES = {"agx-orin": "agx-orin-32gb", "agx-orin-pg": "agx-orin-half", "orin-nx": "orin-nx-16gb", "orin-nano": "orin-nano-8gb",
           "orin-nx-super": "orin-nx-16gb-super", "orin-nano-super": "orin-nano-8gb-super"}

# The name of tinygrad's device on the node of a stage. The default is the device of the C interface; a setting can replace it.
TINYGRAD_DEVICE = "TEGRA"


@dataclasses.dataclass(frozen=True)
class Place:
    """A place at which a worker can be started."""

    node: Node
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    # The node of Ray, if the worker has to run on a certain one.
    ray_node: str = ""


def resources(profile: Profile, count: int = 1) -> dict[str, float]:
    """The text for ``ray start --resources`` at a node with such devices."""
    return {PREFIX + profile.name: float(count)}


def virtual_profile(module: str) -> Profile:
    """The profile of a virtual Orin, with the figures that the library gives for that module."""
    if module not in MODULES:
        raise ValueError(f"there is no virtual module {module!r}; known are {', '.join(MODULES)}")
    sheet = catalogue()[MODULES[module]]
    if module == "agx-orin":  # the virtual AGX Orin has all its units and the smaller memory
        full = catalogue()["agx-orin-64gb"]
        sheet = dataclasses.replace(full, name="agx-orin", memory_size=sheet.memory_size)
    return dataclasses.replace(sheet, name=module, simulated=True)


def virtual(modules: list[str], link: str = "10gbe", dev: str = TINYGRAD_DEVICE) -> tuple[Cluster, dict[str, Place]]:
    """A cluster of virtual Orins, each in its own process on this computer, with the given link between any two."""
    nodes, places = [], {}
    for i, module in enumerate(modules):
        name = f"{module}-{i}"
        node = Node(name, virtual_profile(module), name)
        nodes.append(node)
        places[name] = Place(node, {**virtual_environment(dev), "TEGRARM_SIM_CHIP": module})
    return Cluster(tuple(nodes), known_links()[link], {}, "virtual Orins"), places


def virtual_environment(dev: str = TINYGRAD_DEVICE) -> dict[str, str]:
    """The environment of a process that computes on a virtual Orin with this process's library. ``dev`` is the device's name in tinygrad.
    """
    kept = {k: v for k in ("TEGRARM_LIB", "NVRTC_PATH", "CUDA_PATH", "CC", "PYTHONPATH") if (v := os.environ.get(k))}
    return {**kept, "TEGRARM_BACKEND": "sim", "DEV": dev}


def discovered(ray: Any, link: Link | str = "1gbe") -> tuple[Cluster, dict[str, Place]]:
    """The devices of the Ray cluster that this process has joined, with one :class:`Node` for each custom resource."""
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
    """The bandwidth and the latency from one worker to another over Ray itself, in host time. The measurement sends an array that stays
    there.
    """
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
