"""What tinygrad 0.12.0's tests import from their own `test/helpers.py`, which its source distribution leaves out.

Names and signatures are theirs; the code is ours.
"""

import os
import unittest

import numpy as np
from tinygrad.codegen import full_rewrite_to_sink, line_rewrite, pm_linearize_cleanups
from tinygrad.codegen.late.linearizer import linearize
from tinygrad.device import Device
from tinygrad.dtype import _to_np_dtype, dtypes
from tinygrad.engine.jit import GraphRunner

REAL_DEV = Device.DEFAULT

needs_second_gpu = unittest.skip("one GPU")


def not_support_multi_device() -> bool:
    """A Jetson has one GPU."""
    return True


def slow(test):
    """Runs where upstream's CI may leave it out (SKIP_SLOW_TEST)."""
    return unittest.skipIf(os.environ.get("SKIP_SLOW_TEST", "0") == "1", "slow")(test)


def assert_jit_cache_len(fxn, expected_len: int) -> None:
    """Counts the kernels a TinyJit captured, whether or not they became a graph."""
    items = fxn.jit_cache
    if len(items) == 1 and isinstance(items[0].prg, GraphRunner):
        items = items[0].prg.jit_cache
    assert len(items) == expected_len, f"{len(items)} kernels captured, {expected_len} expected"


def get_uops(sink, ren=None):
    """The linear list of operations that a kernel becomes."""
    return line_rewrite(linearize(full_rewrite_to_sink(sink, ren, optimize=sink.tag is None)), pm_linearize_cleanups)


def rand_for_dtype(dtype, size: int) -> np.ndarray:
    """Random values that every test of `dtype` can hold: small floats, every integer, both truth values."""
    if dtypes.is_unsigned(dtype):
        return np.random.randint(0, 100, size=size, dtype=_to_np_dtype(dtype))
    if dtypes.is_int(dtype):
        return np.random.randint(-100, 100, size=size, dtype=_to_np_dtype(dtype))
    if dtype == dtypes.bool:
        return np.random.choice([True, False], size=size)
    return np.random.uniform(-10, 10, size=size).astype(_to_np_dtype(dtype))
