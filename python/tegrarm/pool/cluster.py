"""Devices and their connections.

Every device is at a site, which is a computer or a switch that all devices of a rack use. Two devices of one site use the site's own link,
and two devices of different sites use the link between these sites. If every device has its own site, this is a table of all pairs.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
import re
from typing import Any

from .profile import DATA, Profile, ProfileError, catalogue


@dataclasses.dataclass(frozen=True)
class Link:
    """One direction of a connection."""

    bandwidth: float
    latency: float = 0.0
    name: str = ""

    def __post_init__(self) -> None:
        if not self.bandwidth > 0 or self.latency < 0:
            raise ProfileError(f"link {self.name!r}: bandwidth {self.bandwidth!r} must be more than 0, "
                               f"latency {self.latency!r} not negative")

    def seconds(self, size: float) -> float:
        """The time that ``size`` bytes take."""
        return self.latency + size / self.bandwidth


@functools.cache
def known_links() -> dict[str, Link]:
    """The links that the package contains, by name."""
    return {row["name"]: Link(row["bandwidth"], row["latency"], row["name"])
            for row in json.loads((DATA / "devices.json").read_text())["links"]}


@dataclasses.dataclass(frozen=True)
class Node:
    """One device of a cluster."""

    name: str
    profile: Profile
    site: str


@dataclasses.dataclass(frozen=True)
class Cluster:
    """Devices, and links by pairs of sites. ``between`` is the link of two sites that ``links`` does not name."""

    nodes: tuple[Node, ...]
    between: Link
    links: dict[tuple[str, str], Link] = dataclasses.field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        names = [n.name for n in self.nodes]
        if twice := sorted({n for n in names if names.count(n) > 1}) if len(set(names)) != len(names) else []:
            raise ProfileError(f"cluster {self.name!r} has two devices named {', '.join(twice)}")

    def link(self, source: Node, target: Node) -> Link:
        """The link over which bytes go from one device to another."""
        return self.site_link(source.site, target.site)

    def site_link(self, source: str, target: str) -> Link:
        """The link between two sites, or within one site."""
        return self.links.get((source, target)) or self.links.get((target, source)) or self.between

    def node(self, name: str) -> Node:
        """The device with that name."""
        for node in self.nodes:
            if node.name == name:
                return node
        raise ProfileError(f"cluster {self.name!r} has no device {name!r}; it has {', '.join(n.name for n in self.nodes)}")

    def without(self, *names: str) -> Cluster:
        """The same cluster without these devices."""
        for name in names:
            self.node(name)
        return dataclasses.replace(self, nodes=tuple(n for n in self.nodes if n.name not in names))

    def joined_by(self, *nodes: Node) -> Cluster:
        """The same cluster with these devices in addition."""
        return dataclasses.replace(self, nodes=(*self.nodes, *nodes))

    def to_json(self) -> dict[str, Any]:
        """The dictionary that :func:`read` takes."""
        return {"name": self.name, "between": dataclasses.asdict(self.between),
                "nodes": [{"name": n.name, "site": n.site, "profile": n.profile.to_json()} for n in self.nodes],
                "links": [{"from": a, "to": b, **dataclasses.asdict(link)} for (a, b), link in self.links.items()]}


def _link(value: str | dict[str, Any]) -> Link:
    if isinstance(value, dict):
        return Link(value["bandwidth"], value.get("latency", 0.0), value.get("name", ""))
    if value not in known_links():
        raise ProfileError(f"there is no link {value!r}; known are {', '.join(known_links())}")
    return known_links()[value]


def _profile(value: str | dict[str, Any]) -> Profile:
    if isinstance(value, dict):
        return Profile.from_json(value)
    if value not in catalogue():
        raise ProfileError(f"there is no profile {value!r}; known are {', '.join(catalogue())}")
    return catalogue()[value]


def from_json(data: dict[str, Any]) -> Cluster:
    """A cluster from a dictionary. Profiles and links are names of the catalogue, or they have all their fields."""
    nodes = []
    for row in data["nodes"]:
        profile = _profile(row["profile"])
        for i in range(count := row.get("count", 1)):
            name = row.get("name", profile.name) + (f"-{i}" if count > 1 else "")
            nodes.append(Node(name, profile, row.get("site", name)))
    links = {(row["from"], row["to"]): _link(row["link"] if "link" in row else row) for row in data.get("links", [])}
    return Cluster(tuple(nodes), _link(data.get("between", "1gbe")), links, data.get("name", ""))


def read(text: str) -> Cluster:
    """A cluster from a JSON file, from a name of the package's clusters, or from a short form.

    The short form is ``2*agx-orin-64gb+orin-nx-16gb@10gbe``: a number of each device, each at its own site, and one link for all.
    """
    path = pathlib.Path(text)
    if path.suffix == ".json":
        return from_json(json.loads(path.read_text()))
    if text in (packaged := named()):
        return packaged[text]
    devices, _, link = text.partition("@")
    nodes: list[dict[str, Any]] = []
    for part in devices.split("+"):
        if not (match := re.fullmatch(r"(?:(\d+)\*)?([\w.-]+)", part.strip())):
            raise ProfileError(f"{part!r} in {text!r} is not COUNT*PROFILE; a cluster is a JSON file, one of {', '.join(packaged)}, "
                               "or like 2*agx-orin-64gb+orin-nx-16gb@10gbe")
        nodes.append({"profile": match[2], "count": int(match[1] or 1), "name": f"{match[2]}.{len(nodes)}"})
    return from_json({"name": text, "nodes": nodes, "between": link or "1gbe"})


@functools.cache
def named() -> dict[str, Cluster]:
    """The clusters that the package contains, by name."""
    rows = json.loads((DATA / "clusters.json").read_text())
    return {name: from_json({"name": name, **row}) for name, row in rows.items()}
