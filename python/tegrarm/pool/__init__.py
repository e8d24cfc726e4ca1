"""A model over several devices: profiles, a planner, a runtime on Ray and a simulation of it. It needs ``tegrarm[pool]``.

Importing this package loads neither Ray nor scipy nor simpy. Each is loaded by the function that needs it.
"""

from __future__ import annotations

import importlib
from typing import Any

# Each name has the module that defines it. A module is loaded when its name is asked for.
_WHERE = {
    "Cluster": "cluster", "Link": "cluster", "Node": "cluster",
    "Layer": "model", "Model": "model", "published": "shapes",
    "Plan": "planner", "plan": "planner", "replan": "planner", "evaluate": "planner",
    "Pool": "runtime", "RequestFailed": "requests", "Profile": "profile",
    "simulate": "simulation",
}
__all__ = sorted(_WHERE)


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
