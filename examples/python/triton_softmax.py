"""A softmax in Triton, on a Jetson without CUDA or without a GPU at all: python examples/python/triton_softmax.py.

It needs `pip install tegrarm[triton]`. Triton's wheel brings the compiler and the assembler.
"""

import numpy as np
import triton
import triton.language as tl

import tegrarm.triton


@triton.jit
def softmax(out, x, columns, BLOCK: tl.constexpr):
    """One program for each row."""
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=-float("inf"))
    grown = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + at, grown / tl.sum(grown, axis=0), mask=inside)


def main() -> None:
    device = tegrarm.triton.device()
    x = np.random.default_rng(0).random((16, 300), dtype=np.float32)
    out = device.empty(x.shape)
    softmax[(16,)](out, device.array(x), 300, BLOCK=triton.next_power_of_2(300))
    grown = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out.numpy(), grown / grown.sum(1, keepdims=True), rtol=1e-5)
    print(f"softmax of 16 x 300 numbers by Triton {triton.__version__} on {device.name}: right")


if __name__ == "__main__":
    main()
