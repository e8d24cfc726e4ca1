"""tinygrad finds the device TEGRA here: it imports ``tinygrad.runtime.ops_NAME`` and uses the class NAMEDevice."""

from tegrarm.tinygrad import fit

try:
    from tegrarm.tinygrad.device import TegraDevice
except fit.MISSING as error:
    raise fit.say("TEGRA", error) from None

__all__ = ["TegraDevice"]
