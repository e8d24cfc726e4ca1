"""What tinygrad 0.12.0's `test_dtype.py` imports from `test/unit/test_dtype_spec.py`, which its source distribution leaves out."""

import numpy as np
from tinygrad.device import is_dtype_supported
from tinygrad.dtype import DTYPES_DICT, DType, dtypes
from tinygrad.tensor import Tensor

core_dtypes = list(DTYPES_DICT.values())
dtype_ints = [dtype for dtype in core_dtypes if dtypes.is_int(dtype) and is_dtype_supported(dtype)]
dtype_floats = [dtype for dtype in core_dtypes if dtypes.is_float(dtype) and is_dtype_supported(dtype)]

FP8E4M3_MAX = 448.0
FP8E5M2_MAX = 57344.0

# Two steps of each type's precision: 2^(1 - mantissa bits).
TOLERANCE = {dtypes.float16: 2**-9, dtypes.bfloat16: 2**-6, dtypes.fp8e4m3: 2**-2, dtypes.fp8e5m2: 2**-1}


def _assert_eq(tensor: Tensor, target_dtype: DType, target, tol_target_dtype: float = 1e-7) -> None:
    assert tensor.dtype == target_dtype, f"{tensor.dtype}, not {target_dtype}"
    np.testing.assert_allclose(tensor.numpy(), target, rtol=TOLERANCE.get(target_dtype, tol_target_dtype))
