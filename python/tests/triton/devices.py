"""The device of the tests: that of our own driver for Triton, or CUDA's, with Triton's own driver and launcher on libcuda.so.1."""

import ctypes
import math
import os

import numpy as np


def chosen():
    """The device that the variable TEGRARM_TEST_TRITON names: `cuda`, or ours without it."""
    if os.environ.get("TEGRARM_TEST_TRITON") == "cuda":
        return Cuda()
    import tegrarm.triton
    return tegrarm.triton.device()


class Cuda:
    """Arrays in memory of CUDA's driver interface, in the context that Triton's own driver makes current."""

    def __init__(self):
        from triton.backends.nvidia.driver import CudaDriver
        from triton.runtime import driver

        assert type(driver.active) is CudaDriver
        driver.active.get_current_device()
        self.library = ctypes.CDLL("libcuda.so.1")

    def call(self, name, *arguments):
        """Calls a function; numbers are pointers or sizes."""
        code = getattr(self.library, name)(*[ctypes.c_uint64(a) if type(a) is int else a for a in arguments])
        assert code == 0, f"{name}: {code}"

    def empty(self, shape, dtype="float32"):
        """An array that nobody has written."""
        return Array(self, shape, dtype)

    def array(self, data, dtype=None):
        """An array with these numbers."""
        data = np.ascontiguousarray(data, dtype)
        made = self.empty(data.shape, str(data.dtype))
        self.call("cuMemcpyHtoD_v2", made.address, data.ctypes.data, data.nbytes)
        return made

    def full(self, shape, value, dtype="float32"):
        """An array with one number everywhere."""
        return self.array(np.full(shape, value, dtype))

    def zeros(self, shape, dtype="float32"):
        """An array of zeroes."""
        return self.full(shape, 0, dtype)


class Type(str):
    """The name of a type of numbers, and how many bytes one has. numpy has no bfloat16."""

    @property
    def itemsize(self):
        """The bytes of a number."""
        return 2 if self == "bfloat16" else np.dtype(self).itemsize


class Array:
    """An array of CUDA's memory, of which Triton asks the type and the address."""

    def __init__(self, device, shape, dtype, whole=None):
        self.device, self.dtype, self.whole = device, Type(dtype), whole
        self.shape = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
        self.address = whole.address if whole else self._allocated()

    def _allocated(self):
        address = ctypes.c_uint64()
        self.device.call("cuMemAlloc_v2", ctypes.byref(address), math.prod(self.shape) * self.dtype.itemsize)
        return address.value

    def data_ptr(self):
        """The address, as Triton asks for it."""
        return self.address

    def view(self, dtype):
        """The same memory with another type."""
        return Array(self.device, self.shape, dtype, self)

    def numpy(self):
        """The numbers."""
        out = np.empty(self.shape, self.dtype)
        self.device.call("cuMemcpyDtoH_v2", out.ctypes.data, self.address, out.nbytes)
        return out

    def tolist(self):
        """The numbers as Python's."""
        return self.numpy().tolist()

    def __del__(self):
        if not self.whole:
            self.device.call("cuMemFree_v2", self.address)
