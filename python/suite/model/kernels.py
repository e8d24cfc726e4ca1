"""Benchmarks of the suite's own kernels: rates of the DRAM and of the L2 cache, of multiply-adds, of products, and the time of a launch.

Published figures stand beside some of them. The others stand beside what the constants of the model allow. The kernels are in kernels.cu.
"""

import functools
import pathlib
import re

import numpy
from board import Benchmark, checked, factors

FILE = "kernels.cu"
# The least bytes that are read or copied: sixteen times the L2 cache.
SIZE = 64 << 20
# An array of those that fit into the L2 cache together, and how often they are gone through.
SMALL, PASSES = 1 << 20, 64
# The launches that move 2000 MB of each array.

# The AGX Orin, on which the benchmarks without a published figure run: SMs, clock, slices of the L2 cache, and the DRAM.
SMS, HZ, SLICES, DRAM = 16, 1.3e9, 8, 204.8e9
MODEL = pathlib.Path(__file__).parents[3] / "crates/sm87-model/src"


def constant(name):
    """A constant of the model, from its sources."""
    text = "".join(path.read_text() for path in sorted(MODEL.glob("*.rs")))
    return int(re.search(rf"const {name}: u(?:32|64) = (\d+);", text)[1])


# What the constants of the model allow at most, or at least where it is a time, and how the page calls it.
LIMITS = {
    "dram": (constant("DRAM_ALL") / 1000 * DRAM, "what kernels get of the DRAM"),
    "dram_reads": (constant("DRAM_READS") / 1000 * DRAM, "the same if they only read"),
    "l2": (constant("SLICE") * SLICES * HZ, f"{constant('SLICE')} bytes a cycle of {SLICES} slices"),
    "single": (2 * 128 * SMS * HZ, "128 lanes of an SM"),
    "multiply": (2 * 64 * SMS * HZ, "64 lanes of an SM for products of integers"),
    "halves": (2 * constant("HALVES") * SMS * HZ, "matrix units, halves"),
    "bytes": (2 * constant("BYTES") * SMS * HZ, "matrix units, bytes"),
    "front_end": (1024e-9, "the front end"),
}


def moved(board, kernel, size, grid, *arguments):
    """Bytes per second of a kernel that moves so many."""
    return size / board.kernels(FILE).seconds(kernel, grid, 256, *arguments)


def buffer(board, size=SIZE):
    """An array of floats with so many bytes."""
    return board.empty(size // 4)


def read(board):
    """Read alone, by float4."""
    return moved(board, "read", SIZE, 512, buffer(board), SIZE // 16, buffer(board, 4))


def copy(board):
    """Copied by float4."""
    return moved(board, "copy", 2 * SIZE, 512, buffer(board), buffer(board), SIZE // 16)


def triad(board):
    """`a = b + s * c`, by float4."""
    b, c = (board.array(numpy.full(SIZE // 4, value, "f4")) for value in (1, 2))
    to = buffer(board)
    rate = moved(board, "triad", 3 * SIZE, 512, b, c, to, SIZE // 16, 3.0)
    return checked(rate, "triad", (to.numpy() == 7).all())


def again(kernel, arrays, board):
    """The same with arrays that the L2 cache has after the first pass."""
    buffers = [board.array(numpy.arange(SMALL // 4, dtype="f4")) for _ in range(arrays)]
    last = {"read_again": [buffer(board, 4)], "copy_again": [], "triad_again": [3.0]}[kernel]
    arguments = [*buffers, SMALL // 16, PASSES, *last]
    rate = moved(board, kernel, arrays * SMALL * PASSES, 96, *arguments)
    times = {"read_again": 1, "copy_again": 1, "triad_again": 4}[kernel]
    return checked(rate, kernel, (buffers[-1].numpy() == times * numpy.arange(SMALL // 4, dtype="f4")).all())


def copy_single(board):
    """Copied, a float for each thread."""
    return moved(board, "copy_single", 2 * SIZE, SIZE // 1024, buffer(board), buffer(board), SIZE // 4)


def write_single(board):
    """Written, a float for each thread."""
    return moved(board, "write_single", SIZE, SIZE // 1024, buffer(board), 1.0, SIZE // 4)


def chains(number, board):
    """Multiplications and additions per second of independent chains in each thread."""
    blocks, rounds = 96, 512
    time = board.kernels(FILE).seconds(f"fma{number}", blocks, 256, buffer(board, 4), 1.0001, 0.5, rounds)
    return 2 * number * rounds * blocks * 256 / time


def product(kernel, n, board):
    """Additions and multiplications per second of a product of two matrices with `n` rows."""
    a, b, right_product = factors(n)
    convert, kind = {
        "gemm_half": (lambda m: m.astype("f2"), "float32"),
        "gemm_bf16": (lambda m: (m.astype("f4").view("u4") >> 16).astype("u2"), "float32"),
        "gemm_int8": (lambda m: m.astype("i1"), "int32"),
        "gemm_float": (lambda m: m.astype("f4"), "float32"),
    }[kernel]
    second = b if kernel == "gemm_float" else b.T
    left, right = (board.array(convert(m)) for m in (a, second))
    out = board.empty((n, n), kind)
    block, shared = (256, 0) if kernel == "gemm_float" else (128, 3 * 2 * 128 * 80)
    time = board.kernels(FILE).seconds(kernel, (n // 128, n // 128), block, left, right, out, n, shared=shared)
    return checked(2 * n**3 / time, kernel, numpy.array_equal(out.numpy(), right_product.astype(kind)))


def tinygrad_product(kind, n, _board):
    """The same by the kernel that tinygrad writes, on the device TEGRA. It is timed by the GPU's clock, as a search of tinygrad does."""
    from tinygrad import Tensor, dtypes

    import tegrarm.tinygrad
    from tegrarm.tinygrad.program import TegraProgram
    assert tegrarm.tinygrad
    taken, launch = [], TegraProgram.__call__

    def timed(program, *buffers, **more):
        taken.append(launch(program, *buffers, **{**more, "wait": True}))
        return taken[-1]

    a, b, right_product = factors(n)
    element, sums = {"half": (dtypes.half, dtypes.float), "bf16": (dtypes.bfloat16, dtypes.float), "int8": (dtypes.int8, dtypes.int),
                     "float": (dtypes.float, dtypes.float)}[kind]
    left, right = (Tensor(m.astype("f4")).cast(element).contiguous().realize() for m in (a, b))
    TegraProgram.__call__ = timed
    out = left.matmul(right, dtype=sums).realize()
    return checked(2 * n**3 / sum(taken), f"tinygrad's product of {kind}", numpy.array_equal(out.numpy(), right_product))


def launch(board):
    """Seconds of the GPU's clock from the doorbell of a kernel that does nothing until its fence is there."""
    empty = board.kernels(FILE).module["empty"]
    for _ in range(2):
        before = board.device.time()[0]
        empty[1, 1]()
        board.device.wait()
    return (board.device.time()[0] - before) * 1e-9


def chains_of(number):
    """The benchmark of so many chains in each thread."""
    return Benchmark(f"FP32 multiply-adds, chains a thread: {number}", "op/s", functools.partial(chains, number), "single")


def product_of(kernel, what, n, limit):
    """The benchmark of a product by a kernel of the suite."""
    return Benchmark(f"product of {what}, {n}, CUDA C", "op/s", functools.partial(product, kernel, n), limit)


def tinygrad_product_of(kind, what, n, limit):
    """The benchmark of a product by tinygrad."""
    return Benchmark(f"product of {what}, {n}, tinygrad", "op/s", functools.partial(tinygrad_product, kind, n), limit)


BENCHMARKS = {
    "read": Benchmark("read, 64 MiB", "B/s", read, "dram_reads"),
    "copy": Benchmark("copy, 64 MiB", "B/s", copy, "dram"),
    "triad": Benchmark("triad, three arrays of 64 MiB", "B/s", triad, "dram"),
    "read_again": Benchmark("read, 1 MiB 64 times", "B/s", functools.partial(again, "read_again", 1), "l2"),
    "copy_again": Benchmark("copy, 1 MiB 64 times", "B/s", functools.partial(again, "copy_again", 2), "l2"),
    "triad_again": Benchmark("triad, three arrays of 1 MiB 64 times", "B/s", functools.partial(again, "triad_again", 3), "l2"),
    "copy_single": Benchmark("copy, a float for each thread", "B/s", copy_single, "dram"),
    "write_single": Benchmark("write, a float for each thread", "B/s", write_single, "dram"),
    **{f"fma{number}": chains_of(number) for number in (1, 2, 4, 8, 16, 32)},
    "gemm_half": product_of("gemm_half", "halves", 2048, "halves"),
    "gemm_bf16": product_of("gemm_bf16", "bfloat16", 2048, "halves"),
    "gemm_int8": product_of("gemm_int8", "bytes", 2048, "bytes"),
    "gemm_int8_1024": product_of("gemm_int8", "bytes", 1024, "bytes"),
    "gemm_float": product_of("gemm_float", "floats", 1024, "single"),
    "tinygrad_half": tinygrad_product_of("half", "halves", 1024, "halves"),
    "tinygrad_bf16": tinygrad_product_of("bf16", "bfloat16", 1024, "halves"),
    "tinygrad_int8": tinygrad_product_of("int8", "bytes", 1024, "multiply"),
    "tinygrad_float": tinygrad_product_of("float", "floats", 1024, "single"),
    "launch": Benchmark("launch of an empty kernel, doorbell to fence", "s", launch, "front_end"),
}
