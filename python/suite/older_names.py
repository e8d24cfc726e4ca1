"""A plugin for pytest: names that tinygrad 0.12's tests import and later releases have no more. What still exists stays.

With it the tests of 0.12, the last release that carries them, run on the installed tinygrad, on its CPU device and on TEGRA alike.
"""

import inspect
from typing import Any

import tinygrad.device
import tinygrad.engine.realize
import tinygrad.helpers
import tinygrad.tensor
from tinygrad.device import Device
from tinygrad.dtype import _to_np_dtype
from tinygrad.helpers import ContextVar


def is_dtype_supported(dtype: Any, device: str | None = None) -> bool:
    """Whether the compiler of a device takes a type."""
    return dtype in Device[device or Device.DEFAULT].renderer.supported_dtypes()


def run_schedule(schedule: Any) -> None:
    """Runs what `Tensor.schedule` gave."""
    tinygrad.engine.realize.run_linear(schedule)


class Absent:
    """Stands for a class that is gone: nothing is one."""


NAMES = [
    (tinygrad.helpers, "CI", False),
    *((tinygrad.helpers, name, ContextVar(name, default)) for name, default in (("CPU_LLVM", 0), ("AMD_LLVM", 0), ("EMULATE", ""))
      if not hasattr(tinygrad.helpers, name)),
    (tinygrad.tensor, "_to_np_dtype", _to_np_dtype),
    (tinygrad.device, "is_dtype_supported", is_dtype_supported),
    (tinygrad.engine.realize, "run_schedule", run_schedule),
    (tinygrad.engine.realize, "CompiledRunner", Absent),
]
CONSTRUCTOR = tinygrad.tensor.Tensor.__init__


def without_requires_grad(self: Any, *arguments: Any, requires_grad: bool | None = None, **keywords: Any) -> None:
    """Later tensors have gradients without being told."""
    CONSTRUCTOR(self, *arguments, **keywords)


if "requires_grad" not in inspect.signature(CONSTRUCTOR).parameters:
    tinygrad.tensor.Tensor.__init__ = without_requires_grad
for module, name, value in NAMES:
    if not hasattr(module, name):
        setattr(module, name, value)
