"""Keeps tinygrad from releasing signals through launch descriptors (QMD).

The memory of a launch descriptor is written again for the next launch of a schedule. On Tegra the CPU may do so before the GPU has read
it, and a release in it then has the value of the next launch: a result is taken for finished that is not. A release from the pushbuffer
has words of its own. How a queue is told to use it depends on the release of tinygrad.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from tinygrad.runtime import ops_nv


def _names(function: Any) -> tuple[str, ...]:
    return function.__code__.co_names if isinstance(function, types.FunctionType) else ()


def install(tegra: type) -> str:
    """Protects devices of the class ``tegra``. Returns why that is not possible, which is empty if it is."""
    queue = getattr(ops_nv, "NVComputeQueue", None)
    own = vars(queue) if isinstance(queue, type) else {}
    if getattr(own.get("release"), "tegra", False):
        return ""
    if {"prev_qmd", "set_release"} <= set(_names(own.get("release"))):
        queue.release = _from_pushbuffer(own["release"], tegra)  # type: ignore[union-attr]
        return ""
    if "active_qmd" in _names(own.get("signal")) and "hw_compute_queue_t" in _names(ops_nv.NVDevice.__mro__[1].__init__):
        from .hcq import TegraComputeQueue
        tegra.hw_compute_queue_t = Fixed(lambda dev: TegraComputeQueue)  # type: ignore[attr-defined]
        return ""
    return "its compute queue has neither `release` with `prev_qmd` nor `signal` with `active_qmd`, so that releases of signals through "\
        "launch descriptors, which lose results on a Tegra, cannot be turned off"


def _from_pushbuffer(release: Any, tegra: type) -> Any:
    """Queues of compiled schedules: a queue that knows of no previous launch releases from the pushbuffer."""
    @functools.wraps(release)
    def from_pushbuffer(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self.dev, tegra):
            self.prev_qmd = None
        return release(self, *args, **kwargs)

    from_pushbuffer.tegra = True  # type: ignore[attr-defined]
    return from_pushbuffer


class Fixed:
    """An attribute that tinygrad's constructor sets for a desktop GPU and that has another value here."""

    def __init__(self, value: Any):
        self.value = value

    def __get__(self, dev: Any, _owner: Any = None) -> Any:
        return self if dev is None else self.value(dev)

    def __set__(self, dev: Any, value: Any) -> None:
        pass
