"""Two published programs: products of matrices, and a sum of two arrays of which one is multiplied.

The kernels of products.cu were written for this project, after the algorithms, tiles, launches and compile options of the programs.
"""

import functools

import numpy
from board import Benchmark, checked, factors

FILE = "products.cu"
# What the first program is compiled with. The second one's PTX is compiled as it is.
OPTIONS = ("--maxrregcount=64", "--use_fast_math", "-std=c++14")
# The tile of a block, and its threads.
BLOCKS = {"plain": ((16, 16), (16, 16)), "tiled": ((32, 32), (32, 32)), "warps": ((64, 16), 128)}
# The rows of a block's tile, and the bytes of shared memory, of each kernel of the second program. All tiles have 64 columns, and `mmn` has
# no tile.
TILES = {"mm": (64, 32768), "mmm": (64, 32768), "mmm_swz": (64, 36864), "mmm_wide_m2": (128, 57344), "mmm_wide_m4_s1": (256, 49152),
         "mmm_wide_m4": (256, 98304), "mmm_wide_b_m4_s1": (256, 50176), "mmm_wide_b_m4": (256, 100352), "mmm_wide_b_m2": (128, 59392)}
# What the second program's kernels do, as the table calls it.
KINDS = {"mmn": "FP32 product, an element for each thread", "mm": "FP32 product, 64 x 64", "mmm": "TF32 product, 64 x 64, rounded",
         "mmm_swz": "TF32 product, 64 x 64, ldmatrix", "mmm_wide_m2": "TF32 product, 128 x 64", "mmm_wide_m4": "TF32 product, 256 x 64",
         "mmm_wide_m4_s1": "TF32 product, 256 x 64, one stage", "mmm_wide_b_m2": "TF32 product, 128 x 64, B turned",
         "mmm_wide_b_m4": "TF32 product, 256 x 64, B turned", "mmm_wide_b_m4_s1": "TF32 product, 256 x 64, B turned, one stage"}


def product(kernel, n, board):
    """Seconds of a product of two matrices with `n` rows by the first program."""
    a, b, right_product = factors(n)
    element = "f2" if kernel == "warps" else "f4"
    left, right = (board.array(m.astype(element)) for m in (a, b))
    out = board.empty((n, n))
    tile, block = BLOCKS[kernel]
    time = board.kernels(FILE, *OPTIONS).seconds(kernel, (n // tile[0], n // tile[1]), block, left, right, out, n)
    return checked(time, kernel, numpy.array_equal(out.numpy(), right_product))


def rate(kernel, n, board):
    """Additions and multiplications per second of a product by the second program."""
    a, b, right_product = factors(n)
    left, right = (board.array(m.astype("f4")) for m in (a, b))
    out = board.empty((n, n))
    rows, shared = TILES.get(kernel, (16, 0))
    grid = (n // (64 if kernel in TILES else 16), n // rows)
    time = board.kernels(FILE).seconds(kernel, grid, (16, 16), left, right, out, n, n, n, shared=shared)
    return checked(2 * n**3 / time, kernel, numpy.array_equal(out.numpy(), right_product))


def saxpy(each, board):
    """Bytes per second of `y = a * x + y` with 2^20 elements, so many for each thread."""
    n = 1 << 20
    x, y = (numpy.random.default_rng(i).integers(-9, 10, n).astype("f4") for i in range(2))
    left, right = board.array(x), board.array(y)
    time = board.kernels(FILE).seconds(f"saxpy{each}", n // 256 // each, 256, left, right, 2.0, n)
    return checked(12 * n / time, "saxpy", numpy.array_equal(right.numpy(), 2 * x + y))


BENCHMARKS = {
    **{f"{kernel}_{n}": Benchmark(f"{what}, {n}", "s", functools.partial(product, kernel, n)) for n in (256, 512, 1024) for kernel, what in
       {"plain": "an element for each thread", "tiled": "tiles of 32 x 32", "warps": "a tile of 16 x 16 for each warp"}.items()},
    **{f"{kernel}_{n}": Benchmark(f"{what}, {n}", "op/s", functools.partial(rate, kernel, n))
       for n in (512, 1024, 2048) for kernel, what in KINDS.items()},
    **{f"saxpy{each}": Benchmark(f"saxpy, elements a thread: {each}", "B/s", functools.partial(saxpy, each)) for each in (1, 4)},
}
