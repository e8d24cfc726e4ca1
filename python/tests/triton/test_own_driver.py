"""What our own driver for Triton does: `make test-triton`."""

import kernels
import numpy as np
import pytest
import triton

import tegrarm
import tegrarm.triton

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def dev():
    return tegrarm.triton.device()


def floats(*shape, dtype=np.float32):
    return (RNG.random(shape, dtype=np.float32) - 0.5).astype(dtype)


def test_the_autotuner_measures_on_the_gpu(dev):
    x, out = dev.array(floats(1000)), dev.empty(1000)
    kernels.tuned[lambda meta: (triton.cdiv(1000, meta["BLOCK"]),)](x, out, 1000)
    np.testing.assert_array_equal(out.numpy(), x.numpy() * np.float32(3))
    assert kernels.tuned.best_config.kwargs["BLOCK"] in (64, 256)


def test_what_is_no_array_of_the_device_is_refused(dev):
    class Elsewhere:
        dtype = "float32"

        def data_ptr(self):
            return 256

    x = dev.empty(4)
    with pytest.raises(TypeError, match="ndarray"):
        kernels.add[(1,)](floats(4), x, x, 4, BLOCK=4)
    with pytest.raises(TypeError, match=r"type \*fp32 is a Elsewhere"):
        kernels.add[(1,)](Elsewhere(), x, x, 4, BLOCK=4)
    with tegrarm.Device() as other, pytest.raises(ValueError, match="another device"):
        kernels.add[(1,)](x, x, other.empty(4), 4, BLOCK=4)


def test_another_device_is_taken(dev):
    with tegrarm.Device() as other:
        assert tegrarm.triton.use(other) is other
        x = other.full(8, 2.0)
        kernels.add[(1,)](x, x, x, 8, BLOCK=8)
        assert x.tolist() == [4.0] * 8
    tegrarm.triton.use(dev)


def test_a_fault_says_what_happened(python_code):
    out = python_code("""
import sys; sys.path.insert(0, "python/tests/triton")
import kernels, tegrarm, tegrarm.triton
dev = tegrarm.triton.device()
x = dev.array([0x1234567000, 0, 0], "int64")
kernels.grouped[(1,)](x, dev.array([16, 16, 16], "int32"), 1, PROGRAMS=1, BM=16, BN=16, BK=16)
try: dev.wait()
except tegrarm.RmError as error: print(error.name, dev.fault().text.decode())
""")
    assert "NV_ERR_RESET_REQUIRED" in out


@pytest.fixture
def python_code(python):
    return python
