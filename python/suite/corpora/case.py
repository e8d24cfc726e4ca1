"""One program of a corpus."""
import dataclasses
from collections.abc import Callable

import numpy


@dataclasses.dataclass
class Case:
    """CUDA C++ and how it is tested: either launches with expected results, or a function that gets the device and the cubin.

    A launch is (kernel, grid, block, input, reference). The kernel gets the input, and an output of the type and size of the reference.
    """

    name: str
    source: str
    launches: list = dataclasses.field(default_factory=list)
    run: Callable | None = None
    options: tuple = ()
    relative: float = 0  # the largest relative error of a result
    ways: tuple = ("default", "-G", "fast math")
    compiler: str | None = None  # the only compiler that accepts it

    def execute(self, gpu, cubin):
        """Runs the program. A wrong result raises AssertionError."""
        if self.run:
            self.run(gpu, cubin)
        for kernel, grid, block, given, reference in self.launches:
            want = reference(given)
            out = numpy.zeros_like(want)
            gpu.launch(gpu.kernel(cubin, kernel), grid, block, given.copy(), out)
            if self.relative:
                numpy.testing.assert_allclose(out, want, self.relative, err_msg=kernel)
            else:
                numpy.testing.assert_array_equal(out, want, kernel)
