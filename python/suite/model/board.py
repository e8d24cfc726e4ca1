"""The virtual module of which a benchmark reads the model's clock, and what every benchmark is."""

import functools
import pathlib
from typing import NamedTuple

import numpy

FOLDER = pathlib.Path(__file__).parent


class Board:
    """A virtual module."""

    @functools.cached_property
    def device(self):
        """The library's device."""
        import tegrarm
        return tegrarm.Device()

    @functools.cached_property
    def modules(self):
        """What has been compiled, by file and options."""
        return {}

    def kernels(self, file, *options):
        """The kernels of a file."""
        key = file, options
        if key not in self.modules:
            self.modules[key] = self.device.compile((FOLDER / file).read_text(), options=list(options))
        return Kernels(self.device, self.modules[key])

    def array(self, values):
        """An array with these values."""
        return self.device.array(numpy.ascontiguousarray(values))

    def empty(self, shape, kind="float32"):
        """An array that a kernel writes."""
        return self.device.empty(shape, kind)


class Kernels(NamedTuple):
    """The kernels of a file on a virtual module."""

    device: object
    module: object

    def seconds(self, kernel, grid, block, *arguments, shared=0):
        """What one launch takes on the module."""
        function = self.module[kernel]
        with self.device.profile() as records:
            function[grid, block, shared](*arguments)
        return (records[0].end_ns - records[0].start_ns) * 1e-9


class Benchmark(NamedTuple):
    """A benchmark: what runs it and what its figure is. `limit` names what the model's constants allow, for the second table."""

    name: str
    unit: str
    run: object
    limit: str = ""


def checked(value, kernel, is_right):
    """A figure, if the kernel has computed what numpy does."""
    if not is_right:
        raise SystemExit(f"{kernel} computes something else than numpy")
    return value


def factors(n):
    """Two matrices of small whole numbers with `n` rows, which have exact products, and the product."""
    pick = numpy.random.default_rng(n)
    a, b = (pick.integers(-4, 5, (n, n)) for _ in range(2))
    return a, b, a.astype("f4") @ b.astype("f4")


def steady(seconds, few, many):
    """Seconds for each round of a loop, without what begins and ends a launch."""
    return (seconds(many) - seconds(few)) / (many - few)
