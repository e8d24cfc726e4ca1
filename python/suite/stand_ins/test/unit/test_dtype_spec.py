"""The names that tinygrad 0.12.0's `test_dtype.py` imports from a folder that its sdist leaves out."""

import numpy as np
from tinygrad.device import is_dtype_supported
from tinygrad.dtype import DTYPES_DICT, dtypes


def _usable(group) -> list:
    return [dtype for dtype in DTYPES_DICT.values() if group(dtype) and is_dtype_supported(dtype)]


core_dtypes = [*DTYPES_DICT.values()]
dtype_ints, dtype_floats = _usable(dtypes.is_int), _usable(dtypes.is_float)

# The largest finite numbers of the two 8-bit formats: 1.75 * 2^8 and 1.75 * 2^15.
FP8E4M3_MAX, FP8E5M2_MAX = 1.75 * 2**8, 1.75 * 2**15

FRACTION_BITS = {dtypes.float16: 10, dtypes.bfloat16: 7, dtypes.fp8e4m3: 3, dtypes.fp8e5m2: 2}


def _assert_eq(tensor, target_dtype, target, tol_target_dtype: float = 1e-7) -> None:
    """Compares type and values. The values may differ by two steps of a narrow type's precision."""
    assert tensor.dtype == target_dtype, f"{tensor.dtype}, not {target_dtype}"
    bits = FRACTION_BITS.get(target_dtype)
    np.testing.assert_allclose(tensor.numpy(), target, rtol=2.0 ** (1 - bits) if bits else tol_target_dtype)
