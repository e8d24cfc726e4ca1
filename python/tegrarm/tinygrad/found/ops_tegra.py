"""Where tinygrad finds the device TEGRA: it imports ``tinygrad.runtime.ops_NAME`` and takes the class NAMEDevice."""

from tegrarm.tinygrad.device import TegraDevice

__all__ = ["TegraDevice"]
