"""Computes derivatives in two ways. tinygrad 0.12.0's `test_tensor.py` imports these names from a folder that its sdist leaves out."""

import numpy as np
from tinygrad import Tensor


def jacobian(func, x: Tensor) -> np.ndarray:
    """Computes the derivatives with tinygrad: a row for each output, from a backward pass of that output alone."""
    outputs, rows = func(x).reshape(-1), []
    for number in range(outputs.shape[0]):
        x.grad = None
        func(x).reshape(-1)[number].backward()
        rows.append(x.grad.flatten().numpy())
    return np.array(rows, dtype=np.float32)


def numerical_jacobian(func, x: Tensor, eps: float = 1e-3) -> np.ndarray:
    """Computes the derivatives by differences: a column for each input, which goes up and down by `eps`."""
    point = x.numpy()
    shifts = eps * np.eye(point.size, dtype=point.dtype).reshape(-1, *point.shape)
    slopes = [(func(Tensor(point + shift)) - func(Tensor(point - shift))).flatten().numpy() / (2 * eps) for shift in shifts]
    return np.array(slopes, dtype=np.float32).T


def gradcheck(func, x: Tensor, eps: float = 1e-3, atol: float = 1e-3, rtol: float = 1e-3) -> bool:
    """Whether the two results agree."""
    return bool(np.isclose(jacobian(func, x), numerical_jacobian(func, x, eps), rtol, atol).all())
