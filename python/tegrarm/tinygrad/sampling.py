"""Sampling of program counters (``PMA=1``, and ``VIZ=2``, which asks for it): refused with a sentence."""

from __future__ import annotations

import warnings

from tinygrad.helpers import PROFILE, getenv

NO_SAMPLING = "PC sampling (PMA) stays off on TEGRA: its samplers need streaming credits and registers of desktop GPUs"


def refuse() -> None:
    """Prints that nothing is sampled, if the user asked for it."""
    if PROFILE and getenv("PMA", int(abs(getenv("VIZ", 0)) >= 2)):
        warnings.warn(NO_SAMPLING, stacklevel=3)
