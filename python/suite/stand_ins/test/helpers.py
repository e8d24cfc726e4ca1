"""The functions that tinygrad 0.12.0's tests import from their own `test/helpers.py`, which its source distribution leaves out.

The names and signatures are tinygrad's. The code was written for this project.
"""

import unittest

import numpy as np
from tinygrad.device import Device
from tinygrad.dtype import _to_np_dtype, dtypes
from tinygrad.engine.jit import GraphRunner

REAL_DEV = Device.DEFAULT

needs_second_gpu = unittest.skip("one GPU")


def not_support_multi_device() -> bool:
    """Always true, because a Jetson has one GPU."""
    return True


def slow(test):
    """Marks tests that upstream's CI may leave out."""
    return test


def assert_jit_cache_len(fxn, expected_len: int) -> None:
    """Counts the kernels a TinyJit captured, whether or not they became a graph."""
    items = fxn.jit_cache
    if len(items) == 1 and isinstance(items[0].prg, GraphRunner):
        items = items[0].prg.jit_cache
    assert len(items) == expected_len, f"{len(items)} kernels captured, {expected_len} expected"


def get_uops(sink, ren=None):
    """The linear list of operations that a kernel becomes: in 0.12."""
    from tinygrad.codegen import full_rewrite_to_sink, line_rewrite, pm_linearize_cleanups
    from tinygrad.codegen.late.linearizer import linearize
    lowered = full_rewrite_to_sink(sink, ren, optimize=sink.tag is None)
    return line_rewrite(linearize(lowered), pm_linearize_cleanups)


# Values that every type of a kind can hold. Sums of a few of them fit too.
RANGES = ((dtypes.is_unsigned, 0, 99), (dtypes.is_int, -99, 99), (dtypes.is_float, -9.0, 9.0))


def rand_for_dtype(dtype, size: int) -> np.ndarray:
    """Random values of a type."""
    if dtype == dtypes.bool:
        return np.random.random(size) < 0.5
    low, high = next((low, high) for kind, low, high in RANGES if kind(dtype))
    return np.random.uniform(low, high, size).astype(_to_np_dtype(dtype))
