"""Published programs of a textbook of CUDA C: sums of integers within blocks, transposes, and sums of two arrays.

The kernels of textbook.cu were written for this project, after the algorithms and the launches of the programs.
"""

import functools

import numpy
from board import Benchmark, checked

FILE = "textbook.cu"
# The elements of the arrays, and the rows of the matrices.
COUNT, ROWS = 1 << 24, 4096
# The front end's part of a launch, which the counter of cycles does not have, and the clock with which the model's time becomes cycles.
FRONT_END, HZ = 1024e-9, 1.3e9
# The kernels that add integers, and how many elements a thread adds first.
SUMS = {"neighbored": 1, "neighbored_less": 1, "interleaved": 1, "unrolling2": 2, "unrolling4": 4, "unrolling8": 8, "unroll_warps8": 8,
        "complete_warps8": 8, "complete512": 8}
MOVES = ("copy_row", "copy_column", "naive_row", "naive_column", "unroll4_row", "unroll4_column", "diagonal_row", "diagonal_column")
SHAPES = ((32, 32), (32, 16), (16, 32), (16, 16), (64, 2), (128, 8), (256, 4))


def reduced(kernel, board):
    """Seconds of a sum of 2^24 integers, of which each block of 512 threads adds its part."""
    values = numpy.random.default_rng(7).integers(0, 256, COUNT, dtype="i4")
    part = 512 * SUMS[kernel]
    data, out = board.array(values), board.empty(COUNT // part, "int32")
    time = board.kernels(FILE).seconds(kernel, COUNT // part, 512, data, out, COUNT)
    return checked(time, kernel, numpy.array_equal(out.numpy(), values.reshape(-1, part).sum(1, dtype="i4")))


def cycles(kernel, board):
    """The same in cycles of the SMs."""
    return (reduced(kernel, board) - FRONT_END) * HZ


def moved(kernel, board):
    """Seconds of a copy or a transpose of floats by blocks of 16 x 16 threads."""
    values = numpy.random.default_rng(7).random((ROWS, ROWS), "f4")
    data, out = board.array(values), board.empty((ROWS, ROWS))
    grid = (ROWS // 16 // (4 if "unroll4" in kernel else 1), ROWS // 16)
    time = board.kernels(FILE).seconds(kernel, grid, (16, 16), out, data, ROWS, ROWS)
    return checked(time, kernel, numpy.array_equal(out.numpy(), values if "copy" in kernel else values.T))


def added(kernel, grid, block, more, board):
    """Seconds of a sum of two arrays of floats. An offset is the place where the reading or the writing begins."""
    a, b = (numpy.random.default_rng(i).integers(0, 99, COUNT).astype("f4") for i in range(2))
    x, y, z = (board.array(m) for m in (a, b, numpy.zeros(COUNT, "f4")))
    time = board.kernels(FILE).seconds(kernel, grid, block, x, y, z, *more)
    offset = more[1] if kernel in ("read_offset", "write_offset") else 0
    want = numpy.zeros(COUNT, "f4")
    if kernel == "read_offset":
        want[:COUNT - offset] = (a + b)[offset:]
    else:
        want[offset:] = (a + b)[:COUNT - offset]
    return checked(time, kernel, numpy.array_equal(z.numpy(), want))


def addition(kernel, name, grid, block, *more):
    """The benchmark of a sum of two arrays."""
    return Benchmark(name, "s", functools.partial(added, kernel, grid, block, more))


BENCHMARKS = {
    **{f"reduce_{kernel}": Benchmark(f"sum of integers, {kernel}", "s", functools.partial(reduced, kernel)) for kernel in SUMS},
    **{f"cycles_{kernel}": Benchmark(f"sum of integers, {kernel}", "cycles", functools.partial(cycles, kernel))
       for kernel in ("neighbored", "neighbored_less")},
    **{f"transpose_{kernel}": Benchmark(f"transpose, {kernel}", "s", functools.partial(moved, kernel)) for kernel in MOVES},
    **{f"sum_arrays_{block}": addition("sum_arrays", f"sum of two arrays, blocks of {block}", COUNT // block, block, COUNT)
       for block in (128, 256, 512, 1024)},
    **{f"sum_matrix_{x}x{y}": addition("sum_matrix", f"sum of matrices, blocks of {x} x {y}", (ROWS // x, ROWS // y), (x, y), ROWS, ROWS)
       for x, y in SHAPES},
    **{f"{kernel}_{offset}": addition(kernel, f"sum of two arrays, {kernel} {offset}", COUNT // 512, 512, COUNT, offset)
       for kernel in ("read_offset", "write_offset") for offset in (0, 11)},
}
