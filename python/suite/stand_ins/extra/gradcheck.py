"""What tinygrad 0.12.0's `test_tensor.py` imports from `extra/gradcheck.py`, which its source distribution leaves out."""

import numpy as np
from tinygrad import Tensor


def _one_hot(like: np.ndarray, index: int, value: float) -> np.ndarray:
    mask = np.zeros(like.size, dtype=like.dtype)
    mask[index] = value
    return mask.reshape(like.shape)


def jacobian(func, x: Tensor) -> np.ndarray:
    """d func(x)[row] / d x[column], one backward pass per row."""
    rows = []
    output = func(x).numpy()
    for row in range(output.size):
        x.grad = None
        (func(x) * Tensor(_one_hot(output, row, 1.0))).sum().backward()
        rows.append(x.grad.numpy().reshape(-1))
    return np.stack(rows).astype(np.float32)


def numerical_jacobian(func, x: Tensor, eps: float = 1e-3) -> np.ndarray:
    """The same from central differences with step `eps`."""
    at, columns = x.numpy(), []
    for column in range(at.size):
        step = _one_hot(at, column, eps)
        above, below = (func(Tensor(at + sign * step)).numpy().reshape(-1) for sign in (1, -1))
        columns.append((above - below) / (2 * eps))
    return np.stack(columns, axis=1).astype(np.float32)


def gradcheck(func, x: Tensor, eps: float = 1e-3, atol: float = 1e-3, rtol: float = 1e-3) -> bool:
    """Whether both agree."""
    return np.allclose(jacobian(func, x), numerical_jacobian(func, x, eps), atol=atol, rtol=rtol)
