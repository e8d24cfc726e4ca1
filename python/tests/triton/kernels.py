"""Triton kernels for the operations of its tutorials, written for these tests."""

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    keep = tl.rand(seed, at) > p
    tl.store(out + at, tl.where(keep, tl.load(x + at, mask=inside) / (1 - p), 0.0), mask=inside)


@triton.jit
def softmax(out, x, stride, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf"))
    grown = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + at, grown / tl.sum(grown, axis=0), mask=at < columns)


@triton.jit
def layer_norm(x, weight, bias, out, means, scales, columns, epsilon, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0)
    mean = tl.sum(values, axis=0) / columns
    off = tl.where(inside, values - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(off * off, axis=0) / columns + epsilon)
    w, b = tl.load(weight + at, mask=inside), tl.load(bias + at, mask=inside)
    tl.store(out + row * columns + at, off * scale * w + b, mask=inside)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)


@triton.jit
def layer_norm_backward(x, weight, grad, means, scales, grad_x, grad_weight, grad_bias, columns, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=0.0)
    g = tl.load(grad + row * columns + at, mask=inside, other=0.0)
    w = tl.load(weight + at, mask=inside, other=0.0)
    mean, scale = tl.load(means + row), tl.load(scales + row)
    unit = tl.where(inside, (values - mean) * scale, 0.0)
    wg = w * g
    along = tl.sum(unit * wg, axis=0) / columns
    offset = tl.sum(wg, axis=0) / columns
    tl.store(grad_x + row * columns + at, (wg - unit * along - offset) * scale, mask=inside)
    tl.atomic_add(grad_weight + at, unit * g, mask=inside)
    tl.atomic_add(grad_bias + at, g, mask=inside)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, LEAKY: tl.constexpr,
           SUM: tl.constexpr = tl.float32):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=SUM)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + k + inner[None, :], mask=(rows[:, None] < M) & (k + inner[None, :] < K), other=0)
        right = tl.load(b + (k + inner[:, None]) * N + columns[None, :], mask=(k + inner[:, None] < K) & (columns[None, :] < N), other=0)
        total = tl.dot(left, right, total, out_dtype=SUM)
    if LEAKY:
        total = tl.where(total >= 0, total, 0.01 * total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))


@triton.jit
def described(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        total = tl.dot(a.load([row, k]), b.load([k, column]), total)
    c.store([row, column], total)


@triton.jit
def grouped(pointers, sizes, groups, PROGRAMS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tile, done = tl.program_id(0), 0
    for group in range(groups):
        M, N, K = tl.load(sizes + group * 3), tl.load(sizes + group * 3 + 1), tl.load(sizes + group * 3 + 2)
        across = tl.cdiv(N, BN)
        count = tl.cdiv(M, BM) * across
        a = tl.load(pointers + group * 3).to(tl.pointer_type(tl.float16))
        b = tl.load(pointers + group * 3 + 1).to(tl.pointer_type(tl.float16))
        c = tl.load(pointers + group * 3 + 2).to(tl.pointer_type(tl.float16))
        while tile < done + count:
            rows = (tile - done) // across * BM + tl.arange(0, BM)
            columns = (tile - done) % across * BN + tl.arange(0, BN)
            inner = tl.arange(0, BK)
            total = tl.zeros((BM, BN), dtype=tl.float32)
            for k in range(0, K, BK):
                left = tl.load(a + rows[:, None] * K + k + inner[None, :], mask=(rows[:, None] < M) & (k + inner[None, :] < K), other=0.0)
                right = tl.load(b + (k + inner[:, None]) * N + columns[None, :], mask=(k + inner[:, None] < K) & (columns[None, :] < N),
                                other=0.0)
                total = tl.dot(left, right, total)
            tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16), mask=(rows[:, None] < M) & (columns[None, :] < N))
            tile += PROGRAMS
        done += count


@triton.jit
def attention(q, k, v, out, logs, scale, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    head = tl.program_id(1).to(tl.int64) * T * D
    rows, at, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    query = tl.load(q + head + rows[:, None] * D + inner[None, :])
    most = tl.full((BM,), -float("inf"), dtype=tl.float32)
    norm = tl.zeros((BM,), dtype=tl.float32)
    total = tl.zeros((BM, D), dtype=tl.float32)
    end = (tl.program_id(0) + 1) * BM if CAUSAL else T
    for start in range(0, end, BN):
        key = tl.load(k + head + (start + at[None, :]) * D + inner[:, None])
        score = tl.dot(query, key) * scale
        if CAUSAL:
            score = tl.where(rows[:, None] >= start + at[None, :], score, -float("inf"))
        now = tl.maximum(most, tl.max(score, axis=1))
        weight = tl.exp(score - now[:, None])
        shrink = tl.exp(most - now)
        norm = norm * shrink + tl.sum(weight, axis=1)
        value = tl.load(v + head + (start + at[:, None]) * D + inner[None, :])
        total = tl.dot(weight.to(value.dtype), value, total * shrink[:, None])
        most = now
    tl.store(out + head + rows[:, None] * D + inner[None, :], (total / norm[:, None]).to(out.dtype.element_ty))
    tl.store(logs + tl.program_id(1) * T + rows, most + tl.log(norm))


@triton.jit
def attention_delta(out, grad, delta, D: tl.constexpr, BM: tl.constexpr):
    rows, inner = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    o = tl.load(out + rows[:, None] * D + inner[None, :]).to(tl.float32)
    g = tl.load(grad + rows[:, None] * D + inner[None, :]).to(tl.float32)
    tl.store(delta + rows, tl.sum(o * g, axis=1))


@triton.jit
def attention_backward(q, k, v, grad, logs, delta, grad_q, grad_k, grad_v, scale, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
                       CAUSAL: tl.constexpr):
    """One program for each block of keys. It sums the gradients of its keys and values, and adds to the gradients of the queries."""
    head, line = tl.program_id(1).to(tl.int64) * T * D, tl.program_id(1) * T
    columns, at, inner = tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BM), tl.arange(0, D)
    key = tl.load(k + head + columns[:, None] * D + inner[None, :])
    value = tl.load(v + head + columns[:, None] * D + inner[None, :])
    dk = tl.zeros((BN, D), dtype=tl.float32)
    dv = tl.zeros((BN, D), dtype=tl.float32)
    first = (tl.program_id(0) * BN) // BM * BM if CAUSAL else 0
    for start in range(first, T, BM):
        rows = start + at
        query = tl.load(q + head + rows[:, None] * D + inner[None, :])
        g = tl.load(grad + head + rows[:, None] * D + inner[None, :])
        score = tl.dot(query, tl.trans(key)) * scale
        weight = tl.exp(score - tl.load(logs + line + rows)[:, None])
        if CAUSAL:
            weight = tl.where(rows[:, None] >= columns[None, :], weight, 0.0)
        dv = tl.dot(tl.trans(weight).to(g.dtype), g, dv)
        dw = tl.dot(g, tl.trans(value))
        ds = (weight * (dw - tl.load(delta + line + rows)[:, None]) * scale).to(query.dtype)
        dk = tl.dot(tl.trans(ds), query, dk)
        tl.atomic_add(grad_q + head + rows[:, None] * D + inner[None, :], tl.dot(ds, key))
    tl.store(grad_k + head + columns[:, None] * D + inner[None, :], dk)
    tl.store(grad_v + head + columns[:, None] * D + inner[None, :], dv)


@triton.autotune(configs=[triton.Config({"BLOCK": size}, num_warps=warps) for size, warps in ((64, 1), (256, 2))], key=["n"])
@triton.jit
def tuned(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 3.0, mask=at < n)


@triton.jit
def every_type(a, b, c, d, e, f, out, flag: tl.constexpr):
    tl.store(out, a.to(tl.float64))
    tl.store(out + 1, b.to(tl.float64))
    tl.store(out + 2, c.to(tl.float64))
    tl.store(out + 3, d.to(tl.float64))
    tl.store(out + 4, e)  # 1 is a constant
    if f is not None:
        tl.store(out + 5, tl.load(f).to(tl.float64))
    if flag:
        tl.store(out + 6, 1.0)


@triton.jit
def scan(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.cumsum(tl.load(x + at, mask=at < n, other=0), 0), mask=at < n)


@triton.jit
def sort(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def arcsine(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, libdevice.asin(tl.load(x + at, mask=at < n)), mask=at < n)


@triton.jit
def kept(x, keep, out, n, p, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    chosen = tl.load(keep + at, mask=inside)
    tl.store(out + at, tl.where(chosen != 0, tl.load(x + at, mask=inside) / (1 - p), 0.0), mask=inside)
