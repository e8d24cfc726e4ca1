"""The compilers of the device TEGRA: ``DEV=TEGRA:NVRTC``, ``DEV=TEGRA:PTX`` and ``DEV=TEGRA:NAK``. The first that works is the default."""

from __future__ import annotations

from tinygrad.codegen.opt.tc import TensorCore
from tinygrad.dtype import dtypes
from tinygrad.helpers import ALLOW_TF32
from tinygrad.renderer import cstyle, ptx


class ExactFloats:
    """Tensor cores multiply float32 with ten bits of fraction (TF32). They are used for it only if ``ALLOW_TF32=1`` allows that."""

    @property
    def tensor_cores(self) -> list[TensorCore]:
        """The tensor cores that tinygrad may use."""
        return [core for core in self._cores if core.dtype_in != dtypes.float or ALLOW_TF32]

    @tensor_cores.setter
    def tensor_cores(self, cores: list[TensorCore]) -> None:
        self._cores = cores


class NVRTCRenderer(ExactFloats, cstyle.CUDARenderer):
    """CUDA C that is compiled by NVIDIA's library."""


class PTXRenderer(ExactFloats, ptx.PTXRenderer):
    """PTX that is assembled by NVIDIA's nvJitLink."""


RENDERERS: list[type] = [NVRTCRenderer, PTXRenderer]
try:
    from .nak import NAKRenderer
    RENDERERS.append(NAKRenderer)
except (ImportError, AttributeError, OSError):
    pass  # without Mesa's library there are two compilers
