"""What a program of a corpus is."""
import dataclasses
from collections.abc import Callable

import numpy


@dataclasses.dataclass
class Case:
    """A source of CUDA C++ and what is done with it: either launches that are compared, or a function of the device and the cubin.

    A launch is (kernel, grid, block, input, reference): the kernel gets the input and an output of the reference's type and size.
    """

    name: str
    source: str
    launches: list = dataclasses.field(default_factory=list)
    run: Callable | None = None
    options: tuple = ()
    relative: float = 0  # how far results may be off
    ways: tuple = ("default", "-G", "fast math")
    compiler: str | None = None  # the only one that takes it

    def execute(self, gpu, cubin):
        """Runs it; raises AssertionError where a result is wrong."""
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
