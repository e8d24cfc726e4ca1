"""The compilers that pip installed. tinygrad itself looks only in the folders of the system."""

from __future__ import annotations

import importlib.util
import os
import pathlib


def folder(module: str) -> pathlib.Path | None:
    """The folder in which a wheel is installed."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    return pathlib.Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None


def use_wheels() -> None:
    """Makes tinygrad use the NVRTC, nvJitLink, NAK and CUDA headers that pip installed, unless the environment names others."""
    mesa = "tinymesa" if "LVP" not in os.environ.get("DEV", "").upper() else ""  # tinygrad's CPU device uses another Mesa
    for module, name, pattern in (("nvidia.cuda_nvrtc", "NVRTC_PATH", "lib/libnvrtc.so.*"), (mesa, "MESA_PATH", "libtinymesa.so"),
                                  ("nvidia.nvjitlink", "NVJITLINK_PATH", "lib/libnvJitLink.so.*")):
        if module and (wheel := folder(module)):
            for library in sorted(wheel.glob(pattern)):
                os.environ.setdefault(name, str(library))
    if headers := folder("nvidia.cuda_runtime"):
        os.environ.setdefault("CUDA_PATH", str(headers))
