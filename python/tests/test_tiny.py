"""tinygrad's own test_tiny.py, as it was published, on the TEGRA interface."""

import os
import re

import pytest


def test_test_tiny_passes_completely(python):
    path = os.environ.get("TEGRARM_TEST_TINY")
    if not path:
        pytest.fail("TEGRARM_TEST_TINY is not set: run `make pytest`, which fetches tinygrad's source distribution")
    out = python(["-m", "tegrarm", "run", path, "-v"], env={"DEV": "TEGRA+NV"}, timeout=900)
    assert not re.search(r"FAILED|ERROR", out)
