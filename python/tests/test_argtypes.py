"""`kernel.argtypes`: an array whose items are not those of the pointer is refused."""

import ctypes

import numpy as np
import pytest

import tegrarm
from tegrarm import compile as compiler

SOURCE = 'extern "C" __global__ void count(int *x, float by, const double *d) { x[threadIdx.x] += (int)by; }'


@pytest.fixture(scope="module")
def dev():
    with tegrarm.Device() as device:
        yield device


@pytest.fixture(params=["compile", "load"])
def kernel(dev, request):
    return (dev.compile(SOURCE) if request.param == "compile" else dev.load(compiler.compiled(SOURCE.encode(), "count.cu")))["count"]


@pytest.mark.parametrize("types", [["int *", "float", "const double *"], ["int32*", "float32", "float64*"],
                                   [ctypes.POINTER(ctypes.c_int), ctypes.c_float, ctypes.c_void_p],
                                   ["unsigned int*", np.float32, "void *"]])
def test_an_array_of_other_items_is_refused(dev, kernel, types):
    kernel.argtypes = types
    floats, ints, doubles = dev.array([1.5, 2.5], "float32"), dev.array([1, 2], "int32"), dev.zeros(2, "float64")
    with pytest.raises(TypeError, match=r"argument 0 of count is an array of float32, and the parameter is .*int"):
        kernel[1, 2](floats, 3, doubles)
    assert floats.tolist() == [1.5, 2.5]
    with pytest.raises(TypeError, match="argument 1 of count is an array of int32, and the parameter is"):
        kernel[1, 2](ints, ints, doubles)
    with pytest.raises(TypeError, match="argument 1 of count, 1e.40, .*too large"):
        kernel[1, 2](ints, 1e40, doubles)
    kernel[1, 2](ints, 3, doubles)  # a whole number for a float, also without the compiler's types
    kernel[1, 2](ints.view("uint32"), np.float32(4), doubles)
    assert ints.tolist() == [8, 9]
    if types[2] not in (ctypes.c_void_p, "void *"):
        with pytest.raises(TypeError, match="argument 2 of count is an array of int64"):
            kernel[1, 2](ints, 3, doubles.view("int64"))


def test_an_object_of_ctypes_of_another_kind_is_refused(dev, kernel):
    """Its bytes would be taken for something else: two floats of the CPU for an address, a float for an int."""
    kernel.argtypes = ["int *", "float", "const double *"]
    ints, doubles = dev.array([1, 2], "int32"), dev.zeros(2, "float64")
    with pytest.raises(TypeError, match=r"argument 0 of count is memory of the CPU .c_float_Array_2., .* Device.array"):
        kernel[1, 2]((ctypes.c_float * 2)(1, 2), 3, doubles)
    with pytest.raises(TypeError, match="argument 2 of count is a c_double, and the parameter is a pointer"):
        kernel[1, 2](ints, 3, ctypes.c_double(1))
    for wrong in (ctypes.c_int(3), ctypes.c_bool(True)):
        with pytest.raises(TypeError, match="argument 1 of count is a c_.*, and the parameter is a float"):
            kernel[1, 2](ints, wrong, doubles)
    kernel[1, 2](ctypes.c_uint64(ints.address), ctypes.c_float(3), ctypes.c_void_p(doubles.address))
    assert ints.tolist() == [4, 5]


def test_argtypes_fit_the_kernel(dev, kernel):
    assert kernel.argtypes is None
    with pytest.raises(TypeError, match="count has 3 parameters, and 2 types were given"):
        kernel.argtypes = ["int *", "float"]
    with pytest.raises(TypeError, match="parameter 1 of count has 4 bytes, and double has 8"):
        kernel.argtypes = ["int *", "double", "void *"]
    with pytest.raises(TypeError, match="'Pair' is no type of a parameter"):
        kernel.argtypes = ["int *", "Pair", "void *"]
    kernel.argtypes = ["int *", None, None]  # None: not checked
    with pytest.raises(TypeError, match="argument 0 of count is an array of float32"):
        kernel[1, 1](dev.zeros(1), 1.0, dev.zeros(1))
    kernel.argtypes = None
    kernel[1, 1](dev.zeros(1), 1.0, dev.zeros(1))
