"""Compares Triton's kernels with numpy, on our driver and with Triton's own on libcuda.so.1: `make test-triton`."""

import itertools

import devices
import kernels
import numpy as np
import pytest
import triton
import triton.language as tl

RNG = np.random.default_rng(0)


@pytest.fixture(scope="module")
def dev():
    return devices.chosen()


def floats(*shape, dtype=np.float32):
    return (RNG.random(shape, dtype=np.float32) - 0.5).astype(dtype)


def test_add(dev):
    x, y = floats(1000), floats(1000)
    out = dev.empty(1000)
    compiled = kernels.add[(triton.cdiv(1000, 256),)](dev.array(x), dev.array(y), out, 1000, BLOCK=256)
    np.testing.assert_array_equal(out.numpy(), x + y)
    assert compiled.n_regs > 0 and compiled.asm["cubin"][:4] == b"\x7fELF" and compiled.metadata.target.arch == 87


@pytest.mark.parametrize("columns", [1, 100, 781])
def test_softmax(dev, columns):
    x = floats(7, columns) * 8
    out = dev.empty((7, columns))
    kernels.softmax[(7,)](out, dev.array(x), columns, columns, BLOCK=triton.next_power_of_2(columns))
    grown = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out.numpy(), grown / grown.sum(1, keepdims=True), rtol=2e-6, atol=1e-7)


def test_dropout_is_the_same_for_the_same_seed(dev):
    x = dev.full(2000, 1.0)
    outs = [dev.empty(2000) for _ in range(3)]
    for out, seed in zip(outs, (123, 123, 512), strict=True):
        kernels.dropout[(2,)](x, out, 2000, 0.5, seed, BLOCK=1024)
    first, second, third = (out.numpy() for out in outs)
    assert (first == second).all() and (first != third).any()
    assert set(first.tolist()) == {0.0, 2.0} and 800 < (first > 0).sum() < 1200


def test_dropout_of_what_a_mask_leaves(dev):
    x, keep = floats(1000), RNG.random(1000) > 0.3
    out = dev.empty(1000)
    kernels.kept[(1,)](dev.array(x), dev.array(keep.astype(np.int32)), out, 1000, 0.3, BLOCK=1024)
    np.testing.assert_allclose(out.numpy(), np.where(keep, x / np.float32(0.7), 0), rtol=1e-6)


def test_a_function_of_libdevice(dev):
    x = floats(1000) * 2
    out = dev.empty(1000)
    kernels.arcsine[(4,)](dev.array(x), out, 1000, BLOCK=256)
    np.testing.assert_allclose(out.numpy(), np.arcsin(x), rtol=1e-6, atol=1e-7)


def test_layer_norm_forward_and_backward(dev):
    rows, columns, epsilon = 5, 100, 1e-5
    x, weight, bias, grad = floats(rows, columns), floats(columns), floats(columns), floats(rows, columns)
    out, means, scales = dev.empty((rows, columns)), dev.empty(rows), dev.empty(rows)
    dx, dw, db = dev.array(x), dev.array(weight), dev.array(bias)
    kernels.layer_norm[(rows,)](dx, dw, db, out, means, scales, columns, epsilon, BLOCK=128)
    mean, scale = x.mean(1, keepdims=True), 1 / np.sqrt(x.var(1, keepdims=True) + epsilon)
    unit = (x - mean) * scale
    np.testing.assert_allclose(out.numpy(), unit * weight + bias, rtol=1e-5, atol=1e-6)
    grads = [dev.zeros((rows, columns)), dev.zeros(columns), dev.zeros(columns)]
    kernels.layer_norm_backward[(rows,)](dx, dw, dev.array(grad), means, scales, *grads, columns, BLOCK=128)
    wg = weight * grad
    want = (wg - unit * (unit * wg).mean(1, keepdims=True) - wg.mean(1, keepdims=True)) * scale
    for got, wanted in zip(grads, (want, (unit * grad).sum(0), grad.sum(0)), strict=True):
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int8"])
@pytest.mark.parametrize("shape", [(64, 64, 64), (50, 70, 90)])
def test_matmul(dev, dtype, shape):
    m, n, k = shape
    grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
    if dtype == "int8":
        a, b = (RNG.integers(-128, 128, size, dtype=np.int8) for size in ((m, k), (k, n)))
        c = dev.empty((m, n), "int32")
        kernels.matmul[grid](dev.array(a), dev.array(b), c, m, n, k, BM=32, BN=32, BK=32, LEAKY=False, SUM=tl.int32)
        np.testing.assert_array_equal(c.numpy(), a.astype(np.int32) @ b.astype(np.int32))
        return
    a, b = floats(m, k, dtype=dtype), floats(k, n, dtype=dtype)
    want = a.astype(np.float32) @ b.astype(np.float32)
    c = dev.empty((m, n))
    kernels.matmul[grid](dev.array(a), dev.array(b), c, m, n, k, BM=32, BN=32, BK=32, LEAKY=True)
    # With float32, the tensor cores compute in TF32, which is Triton's default.
    np.testing.assert_allclose(c.numpy(), np.where(want >= 0, want, 0.01 * want), rtol=1e-2, atol=5e-3)


@pytest.mark.parametrize("stages,warps", list(itertools.product((1, 2, 4), (1, 4, 8))))
def test_matmul_in_every_way_of_pipelining(dev, stages, warps):
    a, b = floats(64, 128, dtype=np.float16), floats(128, 64, dtype=np.float16)
    c = dev.empty((64, 64), "float16")
    kernels.matmul[(1, 1)](dev.array(a), dev.array(b), c, 64, 64, 128, BM=64, BN=64, BK=32, LEAKY=False, num_stages=stages, num_warps=warps)
    np.testing.assert_allclose(c.numpy().astype(np.float32), a.astype(np.float32) @ b.astype(np.float32), rtol=1e-2, atol=2e-2)


def test_matmul_by_descriptors(dev):
    from triton.tools.tensor_descriptor import TensorDescriptor
    a, b, c = floats(50, 64, dtype=np.float16), floats(64, 48, dtype=np.float16), dev.empty((50, 48))
    arrays = [dev.array(a), dev.array(b), c]
    blocks = ([32, 32], [32, 16], [32, 16])
    described = [TensorDescriptor(x, list(x.shape), [x.shape[1], 1], block) for x, block in zip(arrays, blocks, strict=True)]
    kernels.described[(2, 3)](*described, 64, BM=32, BN=16, BK=32)
    np.testing.assert_allclose(c.numpy(), a.astype(np.float32) @ b.astype(np.float32), rtol=1e-2, atol=1e-2)


def test_grouped_matmul(dev):
    shapes = [(32, 48, 64), (80, 16, 32), (16, 16, 16)]
    pairs = [(floats(m, k, dtype=np.float16), floats(k, n, dtype=np.float16)) for m, n, k in shapes]
    arrays = [(dev.array(a), dev.array(b), dev.empty((m, n), "float16")) for (a, b), (m, n, _) in zip(pairs, shapes, strict=True)]
    pointers = dev.array([array.address for group in arrays for array in group], "int64")
    kernels.grouped[(4,)](pointers, dev.array(np.array(shapes, np.int32)), len(shapes), PROGRAMS=4, BM=16, BN=16, BK=16)
    for (a, b), (*_, c) in zip(pairs, arrays, strict=True):
        np.testing.assert_allclose(c.numpy().astype(np.float32), a.astype(np.float32) @ b.astype(np.float32), rtol=1e-2, atol=1e-2)


def reference(q, k, v, grad, scale, causal):
    """Attention and its gradients, computed in float64."""
    q, k, v, grad = (x.astype(np.float64) for x in (q, k, v, grad))
    score = q @ k.swapaxes(-1, -2) * scale
    if causal:
        score = np.where(np.tril(np.ones(score.shape[-2:], bool)), score, -np.inf)
    weight = np.exp(score - score.max(-1, keepdims=True))
    weight /= weight.sum(-1, keepdims=True)
    out = weight @ v
    dw = grad @ v.swapaxes(-1, -2)
    ds = weight * (dw - (grad * out).sum(-1, keepdims=True)) * scale
    return out, ds @ k, ds.swapaxes(-1, -2) @ q, weight.swapaxes(-1, -2) @ grad


@pytest.mark.parametrize("causal", [False, True])
def test_attention_forward_and_backward(dev, causal):
    heads, length, width, scale = 2, 64, 32, 0.2
    q, k, v, grad = (floats(heads, length, width, dtype=np.float16) for _ in range(4))
    dq, dk, dv, dgrad = (dev.array(x) for x in (q, k, v, grad))
    out, logs, delta = dev.empty((heads, length, width), "float16"), dev.empty((heads, length)), dev.empty((heads, length))
    kernels.attention[(length // 32, heads)](dq, dk, dv, out, logs, scale, length, D=width, BM=32, BN=32, CAUSAL=causal)
    wanted = reference(q, k, v, grad, scale, causal)
    np.testing.assert_allclose(out.numpy(), wanted[0], rtol=1e-2, atol=2e-3)
    kernels.attention_delta[(heads * length // 32,)](out, dgrad, delta, D=width, BM=32)
    grads = [dev.zeros((heads, length, width)) for _ in range(3)]
    kernels.attention_backward[(length // 32, heads)](dq, dk, dv, dgrad, logs, delta, *grads, scale, length, D=width, BM=32, BN=32,
                                                      CAUSAL=causal)
    for got, want in zip(grads, wanted[1:], strict=True):
        np.testing.assert_allclose(got.numpy(), want, rtol=2e-2, atol=3e-3)


def test_every_type_of_argument(dev):
    out, one = dev.zeros(7, "float64"), dev.array([9], "int16")
    kernels.every_type[(1,)](True, -5, 1 << 40, 2.5, 1, one, out, flag=True)
    assert out.tolist() == [1.0, -5.0, float(1 << 40), 2.5, 1.0, 9.0, 1.0]
    kernels.every_type[(1,)](False, 16, 7, 0.5, -1, None, out, flag=False)
    assert out.tolist()[:5] == [0.0, 16.0, 7.0, 0.5, -1.0]


def test_scans_and_sorts(dev):
    x = RNG.integers(-50, 50, 128, dtype=np.int32)
    out = dev.empty(128, "int32")
    kernels.scan[(1,)](dev.array(x), out, 128, BLOCK=128)
    np.testing.assert_array_equal(out.numpy(), np.cumsum(x))
    kernels.sort[(1,)](dev.array(x), out, BLOCK=128)
    np.testing.assert_array_equal(out.numpy(), np.sort(x))


def test_bfloat16(dev):
    x = floats(256)
    bits = (x.view(np.uint32) >> 16).astype(np.uint16)
    a = dev.array(bits).view("bfloat16")
    out = dev.empty(256, "bfloat16")
    kernels.add[(1,)](a, a, out, 256, BLOCK=256)
    got = (out.view("uint16").numpy().astype(np.uint32) << 16).view(np.float32)
    np.testing.assert_array_equal(got, (bits.astype(np.uint32) << 16).view(np.float32) * 2)
