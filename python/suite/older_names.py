"""A plugin for pytest: names that tinygrad 0.12's tests import and later releases have no more. What still exists stays.

With it the tests of 0.12, the last release that carries them, run on the installed tinygrad, on its CPU device and on TEGRA alike.
"""

import functools
import inspect
from typing import Any

import tinygrad.device
import tinygrad.dtype
import tinygrad.engine.realize
import tinygrad.helpers
import tinygrad.tensor
from tinygrad.device import Device
from tinygrad.dtype import DType, _to_np_dtype, dtypes
from tinygrad.helpers import Context, ContextVar
from tinygrad.tensor import Tensor


def is_dtype_supported(dtype: Any, device: str | None = None) -> bool:
    """Whether the compiler of a device takes a type."""
    return dtype in Device[device or Device.DEFAULT].renderer.supported_dtypes()


def run_schedule(schedule: Any) -> None:
    """Runs what `Tensor.schedule` gave."""
    tinygrad.engine.realize.run_linear(schedule)


def get_program(*_: Any) -> Any:
    """Is gone. The one test that calls it fails on CPU, too."""
    raise AttributeError("tinygrad has no get_program any more")


class Absent:
    """Stands for a class that is gone: nothing is one."""


class Training(ContextVar):
    """The variable TRAINING, with its value where it was before: in an attribute of `Tensor`."""

    @property
    def value(self) -> bool:
        """Whether layers and optimizers train."""
        return Tensor.training

    @value.setter
    def value(self, on: bool) -> None:
        Tensor.training = bool(on)


def train(mode: bool = True) -> Context:
    """A context, or a decorator, in which layers and optimizers train."""
    return Context(TRAINING=mode)


def fields() -> dict[str, DType]:
    """The types by name, without those that 0.12 has not."""
    return {name: dtype for name, dtype in vars(tinygrad.dtype.DTypes).items()
            if isinstance(dtype, DType) and not name.startswith(("_", "void", "weak")) and not name.endswith("fnuz")}


NAMES = [
    (tinygrad.helpers, "CI", False),
    *((tinygrad.helpers, name, ContextVar(name, default)) for name, default in (("CPU_LLVM", 0), ("AMD_LLVM", 0), ("EMULATE", ""))
      if not hasattr(tinygrad.helpers, name)),
    (tinygrad.tensor, "_to_np_dtype", _to_np_dtype),
    (tinygrad.device, "is_dtype_supported", is_dtype_supported),
    (tinygrad.engine.realize, "run_schedule", run_schedule),
    (tinygrad.engine.realize, "CompiledRunner", Absent),
    (tinygrad.engine.realize, "get_program", get_program),
    (type(dtypes), "fields", staticmethod(fields)),
    (type(dtypes), "max", staticmethod(lambda dtype: dtype.max)),
    (type(dtypes), "min", staticmethod(lambda dtype: dtype.min)),
]
# What makes a tensor. Later tensors have gradients without being told.
MAKERS = ["__init__", "empty", "zeros", "ones", "full", "arange", "eye", "rand", "randn", "randint", "normal", "uniform"]


def without_requires_grad(make: Any) -> Any:
    """The same function, which takes an argument that it has no more."""

    @functools.wraps(make)
    def made(*arguments: Any, requires_grad: bool | None = None, **keywords: Any) -> Any:
        return make(*arguments, **keywords)

    return made


for name in MAKERS:
    maker = inspect.getattr_static(Tensor, name)
    plain = getattr(maker, "__func__", maker)
    if "requires_grad" not in inspect.signature(plain).parameters:
        wrapped = without_requires_grad(plain)
        setattr(Tensor, name, wrapped if plain is maker else type(maker)(wrapped))
if not hasattr(Tensor, "training"):
    Tensor.training, Tensor.train = False, staticmethod(train)
    tinygrad.helpers.TRAINING.__class__ = Training
if isinstance(default := inspect.getattr_static(type(dtypes), "default_float"), property):
    type(dtypes).default_float = default.setter(lambda _, dtype: setattr(tinygrad.dtype.DEFAULT_FLOAT, "value", dtype))
for module, name, value in NAMES:
    if not hasattr(module, name):
        setattr(module, name, value)
