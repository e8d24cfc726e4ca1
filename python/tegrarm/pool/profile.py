"""The properties of one device that a scheduler needs, as a dataclass and as JSON.

The names are not those of a vendor or a backend, and later versions only add fields at the end. All fields except ``shared_memory`` are
numbers with which the planner computes. ``shared_memory`` decides whether weights are mapped or copied.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
from typing import Any

DATA = pathlib.Path(__file__).with_name("data")
FORMAT = 1
# The bytes of an element of each dtype that rates and layers may name.
DTYPES = {"float32": 4.0, "float16": 2.0, "bfloat16": 2.0, "int8": 1.0, "int4": 0.5, "int32": 4.0}


class ProfileError(ValueError):
    """A profile, a link or a cluster description cannot be used. The sentence names the field."""


@dataclasses.dataclass(frozen=True)
class Profile:
    """One device. Rates are operations per second, where a multiply-add counts as two. Bandwidths are bytes per second."""

    name: str
    shared_memory: bool
    memory_size: int
    local_bandwidth: float
    transfer_bandwidth: float
    # The operations per second by dtype, with matrix hardware and without it.
    matrix_rates: dict[str, float] = dataclasses.field(default_factory=dict)
    scalar_rates: dict[str, float] = dataclasses.field(default_factory=dict)
    launch_latency: float = 10e-6
    compute_units: int = 0
    max_clock_hz: float = 0
    simulated: bool = False
    kind: str = ""
    # The origin of each number by field name: "device", "measured", "virtual-time", "host-time" or "data".
    sources: dict[str, str] = dataclasses.field(default_factory=dict)
    # The share of the peak figures that real kernels reach. It is 1 if the figures were measured with kernels.
    efficiency: float = 1.0
    # The share of the memory that weights and state may use. The system uses the rest, and needs most with shared memory.
    usable_memory: float = 0.9

    def __post_init__(self) -> None:
        for field in ("memory_size", "local_bandwidth", "transfer_bandwidth", "efficiency", "usable_memory"):
            if not getattr(self, field) > 0:
                raise ProfileError(f"profile {self.name!r}: {field} is {getattr(self, field)!r} and must be more than 0")
        if self.launch_latency < 0:
            raise ProfileError(f"profile {self.name!r}: launch_latency is {self.launch_latency!r} and must not be negative")
        if not self.matrix_rates and not self.scalar_rates:
            raise ProfileError(f"profile {self.name!r} has no rate of any dtype, so no time can be predicted for it")
        for dtype, rate in {**self.matrix_rates, **self.scalar_rates}.items():
            if dtype not in DTYPES or not rate > 0:
                raise ProfileError(f"profile {self.name!r}: rate {rate!r} of dtype {dtype!r}; known dtypes are {', '.join(DTYPES)}")

    @property
    def budget(self) -> float:
        """The bytes that weights, state and activations may use."""
        return self.memory_size * self.usable_memory

    def rate(self, dtype: str, *, matrix: bool) -> float:
        """The operations per second of ``dtype``. A device without this type computes in a wider type that it has."""
        order = [dtype, *(["float16"] if dtype == "bfloat16" else []), "float32"]
        if dtype == "int4":
            order = ["int4", "int8", "float16", "float32"]
        tables = [self.matrix_rates, self.scalar_rates] if matrix else [self.scalar_rates, self.matrix_rates]
        for table in tables:
            for name in order:
                if name in table:
                    return table[name] * self.efficiency
        return max({**self.matrix_rates, **self.scalar_rates}.values()) * self.efficiency

    @property
    def bandwidth(self) -> float:
        """The bytes per second that kernels get from the device's memory."""
        return self.local_bandwidth * self.efficiency

    def to_json(self) -> dict[str, Any]:
        """The dictionary that :meth:`from_json` takes."""
        return {"format": FORMAT, **dataclasses.asdict(self)}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Profile:
        """Makes a profile from a dictionary. Fields of later versions are ignored. A missing field that has no default is an error."""
        known = {f.name for f in dataclasses.fields(cls)}
        given = {k: v for k, v in data.items() if k in known}
        missing = [f.name for f in dataclasses.fields(cls) if f.name not in given
                   and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING]
        if missing:
            raise ProfileError(f"profile {data.get('name', '?')!r} lacks {', '.join(missing)}")
        return cls(**given)


@functools.cache
def catalogue() -> dict[str, Profile]:
    """The profiles that the package contains, by name. They are from data sheets."""
    rows = json.loads((DATA / "devices.json").read_text())
    common = rows["common"]
    return {row["name"]: Profile.from_json({**common, **row}) for row in rows["devices"]}


# The source of the figures that the library cannot give, by (SMs, whole MHz of the highest clock).
_MODULES = {(16, 1300): "agx-orin-64gb", (14, 930): "agx-orin-32gb", (8, 918): "orin-nx-16gb", (8, 624): "orin-nano-8gb",
            (8, 1173): "orin-nx-16gb-super", (8, 1020): "orin-nano-8gb-super",
            (8, 1300): "agx-orin-half"}


def rates(told: Any, kind: str) -> dict[str, float]:
    """The rates of the library's structure, by type of numbers. ``kind`` is "matrix" or "scalar". 0 means that the GPU has no such unit."""
    return {dtype: float(rate) for dtype in DTYPES if (rate := getattr(told, f"{kind}_rate_{dtype}", 0))}


def from_device(index: int = 0) -> Profile:
    """The profile of the device that the library has open in this process. Figures that the library does not give are from a data sheet."""
    from tegrarm import device_profile

    told = device_profile(index)
    module = _MODULES.get((told.compute_units, int(told.max_clock_hz / 1e6)), "agx-orin-64gb")
    sheet = catalogue()[module]
    sources = {f: "device" for f in ("shared_memory", "memory_size", "compute_units", "max_clock_hz", "simulated", "matrix_rates",
                                     "scalar_rates")}
    # The library gives the memory bandwidth of the largest module for every Orin. The smaller modules have at most half of it.
    bandwidth = min(float(told.local_bandwidth), sheet.local_bandwidth)
    sources |= {f: "data" for f in ("local_bandwidth", "transfer_bandwidth", "launch_latency")}
    return Profile(
        name=module, kind=sheet.kind, shared_memory=told.shared_memory, memory_size=told.memory_size, local_bandwidth=bandwidth,
        transfer_bandwidth=min(float(told.transfer_bandwidth), sheet.transfer_bandwidth),
        matrix_rates=rates(told, "matrix"), scalar_rates=rates(told, "scalar"), launch_latency=sheet.launch_latency,
        compute_units=told.compute_units, max_clock_hz=told.max_clock_hz, simulated=told.simulated, sources=sources,
        efficiency=sheet.efficiency, usable_memory=sheet.usable_memory)
