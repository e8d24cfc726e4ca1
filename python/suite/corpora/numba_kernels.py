"""Kernels of Numba, which compiles Python without a GPU. nvJitLink assembles its PTX.

usage: numba_kernels CASE WAY     prints the PTX. It runs in another process, because Numba and the tests both have a module `cuda`.
"""
# ruff: noqa: D103 - each function yields the cases that its name says.
import dataclasses
import importlib.util
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy

sys.path.append(str(Path(__file__).parents[1] / "ptx"))


# With debug information, Numba makes several PTX files for some functions. Then there is no single PTX file to assemble.
PLAIN = ("default", "fast math")


@dataclasses.dataclass
class Compiled:
    """A Python function. It is compiled for the device and launched with an input and an output array."""

    name: str
    function: Callable
    given: numpy.ndarray
    reference: Callable
    block: int = 128
    grid: int = 1
    relative: float = 0
    ways: tuple = ("default", "-G", "fast math")

    def compiled(self, way):
        """The machine code that nvJitLink makes of Numba's PTX."""
        import link
        ptx = subprocess.run([sys.executable, __file__, self.name, way], capture_output=True, text=True)
        assert ptx.returncode == 0, ptx.stderr[-600:]
        return link.assembled(ptx.stdout, "O0" if way == "-G" else "O3")

    def ptx(self, way):
        """The PTX that Numba makes of the function."""
        from numba import cuda, from_dtype
        kind = from_dtype(self.given.dtype)
        out = from_dtype(self.reference(self.given).dtype)
        debug = way == "-G"
        text, _ = cuda.compile_ptx(self.function, (kind[::1], out[::1]), cc=(8, 7), debug=debug, opt=not debug, fastmath=way == "fast math")
        return text if isinstance(text, str) else text.decode()

    def execute(self, gpu, cubin):
        """Passes arrays as Numba passes them: seven words for each array."""
        kernel = next(name for name in names(cubin))
        out = numpy.zeros_like(self.reference(self.given))
        want = self.reference(self.given)
        gpu.launch(gpu.kernel(cubin, kernel), self.grid, self.block, *array(self.given.copy()), *array(out))
        if self.relative:
            numpy.testing.assert_allclose(out, want, self.relative)
        else:
            numpy.testing.assert_array_equal(out, want)


def array(x):
    """An array with one dimension: owner, parent, length, item size, data, shape, strides."""
    return [numpy.uint64(0), numpy.uint64(0), numpy.int64(x.size), numpy.int64(x.itemsize), x, numpy.int64(x.size), numpy.int64(x.itemsize)]


def names(cubin):
    """The kernels of a cubin. A kernel has a constant bank with parameters; other functions have only code."""
    from mutate import sections
    return (name.removeprefix(".nv.constant0.") for name, _, _ in sections(cubin) if name.startswith(".nv.constant0."))


def kernels():
    if not importlib.util.find_spec("numba"):
        return
    if __name__ == "__main__":
        from numba import cuda, float32, int32
    else:
        cuda = float32 = int32 = None  # the functions are compiled in another process
    floats = numpy.random.default_rng(1).normal(size=256).astype(numpy.float32)
    ints = numpy.random.default_rng(2).integers(-99, 99, 256).astype(numpy.int32)

    def scale(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * x[i] + 1

    def elementary(x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = math.sin(x[i]) + math.exp(x[i]) * math.sqrt(abs(x[i])) - math.atan2(x[i], 2.0) + math.log(abs(x[i]) + 1)

    def reverse(x, y):
        s = cuda.shared.array(256, int32)
        i = cuda.threadIdx.x
        s[i] = x[i]
        cuda.syncthreads()
        y[i] = s[255 - i]

    def histogram(x, y):
        i = cuda.grid(1)
        if i < x.size:
            cuda.atomic.add(y, (x[i] + 99) // 20, 1)

    def warp_sum(x, y):
        i = cuda.grid(1)
        total = x[i]
        d = 16
        while d > 0:
            total += cuda.shfl_xor_sync(-1, total, d)
            d //= 2
        y[i] = total

    def collatz(x, y):
        i = cuda.grid(1)
        n, steps = abs(x[i]) + 1, 0
        while n != 1:
            n = n // 2 if n % 2 == 0 else 3 * n + 1
            steps += 1
        y[i] = steps

    def local(x, y):
        a = cuda.local.array(8, float32)
        i = cuda.grid(1)
        for k in range(8):
            a[k] = x[(i + k) % x.size]
        best = a[0]
        for k in range(8):
            if a[(i + k) % 8] > best:
                best = a[(i + k) % 8]
        y[i] = best

    def divide(x, y):
        i = cuda.grid(1)
        y[i] = x[i] // 7 + x[i] % 7 + (x[i] >> 2) ** 2

    def steps(v):
        n, k = abs(int(v)) + 1, 0
        while n != 1:
            n, k = (n // 2 if n % 2 == 0 else 3 * n + 1), k + 1
        return k
    wide = floats.astype(float)
    yield Compiled("numba/scale", scale, floats, lambda x: x * x + numpy.float32(1), grid=2, relative=1e-6)
    yield Compiled("numba/elementary", elementary, floats, lambda x: (numpy.sin(wide) + numpy.exp(wide) * numpy.sqrt(abs(wide)) - numpy.arctan2(wide, 2)
                   + numpy.log(abs(wide) + 1)).astype(numpy.float32), grid=2, relative=1e-4)
    yield Compiled("numba/shared memory", reverse, ints, lambda x: x[::-1].copy(), block=256)
    yield Compiled("numba/atomics", histogram, ints, lambda x: numpy.bincount((x + 99) // 20, minlength=10).astype(numpy.int32), grid=2)
    yield Compiled("numba/shuffles", warp_sum, ints, lambda x: numpy.repeat(x.reshape(-1, 32).sum(1, dtype=x.dtype), 32), grid=2, ways=PLAIN)
    yield Compiled("numba/loops", collatz, ints, lambda x: numpy.array([steps(v) for v in x], numpy.int32), grid=2)
    yield Compiled("numba/local arrays", local, floats, lambda x: numpy.max([numpy.roll(x, -k) for k in range(8)], 0), grid=2)
    yield Compiled("numba/division", divide, ints, lambda x: x // 7 + x % 7 + (x >> 2) ** 2, grid=2, ways=PLAIN)


CASES = [kernels]

if __name__ == "__main__":
    print(next(k for k in kernels() if k.name == sys.argv[1]).ptx(sys.argv[2]))
