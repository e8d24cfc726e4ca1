"""tinygrad finds the device TEGRA here: it imports ``tinygrad.runtime.ops_NAME`` and uses the class NAMEDevice."""

from tegrarm.tinygrad.device import TegraDevice

__all__ = ["TegraDevice"]
