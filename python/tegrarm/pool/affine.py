"""A model without tinygrad. Every layer is ``y = y * a + b`` in integers on the device's own runtime, and sessions remember results.

Tests of the pool use it, because it is small enough for hundreds of runs and can stop its GPU on purpose.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from .._checked import number
from .cuda import Kernels, compiled
from .model import Layer, Model
from .stage import Part, StageCallable

SOURCE = """
extern "C" __global__ void affine(unsigned *y, unsigned a, unsigned b, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = y[i] * a + b;
}
extern "C" __global__ void astray(unsigned *y) { *y = 1; }
"""
THREADS = 128


def model(layers: int, width: int = 256) -> Model:
    """The model's shape for the planner."""
    row = Layer("affine", 8.0, 4.0 * width, scalar_work={"float32": 2.0 * width}, kernels=1)
    return Model("affine", (row,) * layers, unit="array", input_bytes=4.0 * width)


def expected(data: np.ndarray, layers: int, before: int = 0) -> np.ndarray:
    """The result of all layers for an array, after ``before`` earlier steps of the same session."""
    with np.errstate(over="ignore"):
        result = data.astype(np.uint32).copy()
        for i in range(layers):
            result = result * np.uint32(2 * i + 3) + np.uint32(i + 1 + before)
    return result


class OnDevice:
    """The layers ``start`` to ``stop - 1`` on a device of this process."""

    def __init__(self, part: Part, image: bytes):
        self.part, self.kernels, self.broken = part, Kernels(image), ""
        part.progress(0.5)
        self.room = 0
        self.handle, self.address, self.view = ctypes.c_void_p(), 0, np.empty(0, np.uint8)

    def _grow(self, size: int) -> None:
        if size > self.room:
            if self.room:
                self.kernels.release(self.handle)
            self.handle, self.address, self.view = self.kernels.buffer(size)
            self.room = size

    def __call__(self, data: np.ndarray, memory: dict[str, Any] | None) -> np.ndarray:
        """Runs all layers, with one kernel for each."""
        if data.dtype != np.uint32:
            raise ValueError(f"the array's elements are {data.dtype}, not uint32")
        step = 0 if memory is None else memory.get("step", 0)
        self._grow(data.nbytes)
        self.view[:data.nbytes] = data.view(np.uint8).reshape(-1)
        fence = 0
        for i in range(self.part.start, self.part.stop):
            numbers = {"x": (ctypes.c_uint64, self.address), "factor": (ctypes.c_uint32, 2 * i + 3),
                       "add": (ctypes.c_uint32, i + 1 + step), "n": (ctypes.c_int, data.size)}
            arguments = [number(type_, value, name) for name, (type_, value) in numbers.items()]
            fence = self._guarded("affine", -(-data.size // THREADS), arguments)
        self._wait(fence)
        if memory is not None:
            memory["step"] = step + 1
        return self.view[:data.nbytes].view(np.uint32).reshape(data.shape).copy()

    def _guarded(self, name: str, blocks: int, arguments: list[Any]) -> int:
        try:
            return self.kernels.launch(name, blocks, THREADS, arguments)
        except RuntimeError as error:
            self.broken = str(error)
            raise

    def _wait(self, fence: int) -> None:
        try:
            self.kernels.wait(fence)
        except RuntimeError as error:
            self.broken = str(error)
            raise

    def fault(self) -> str:
        """The reason why the device cannot be used any more."""
        return self.broken

    def break_device(self) -> None:
        """Stores to an address where nothing is mapped, which is a real MMU fault."""
        self._wait(self._guarded("astray", 1, [ctypes.c_uint64(0x6660000000)]))

    def close(self) -> None:
        """Closes the device."""
        self.kernels.close()


def factory() -> Any:
    """Makes stages of this model. The kernels are compiled once, in this call."""
    return functools.partial(_make, compiled(SOURCE))


def _make(image: bytes, part: Part) -> StageCallable:
    return OnDevice(part, image)
