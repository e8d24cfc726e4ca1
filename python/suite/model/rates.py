"""Published latencies, rates of instructions, and rates of caches of an AGX Orin with a locked clock.

The source describes each loop, so the kernels of rates.cu were written after the descriptions.
"""

import functools

import numpy
from board import Benchmark, checked, steady

FILE = "rates.cu"
SMS, HZ = 16, 1.3e9
# The arguments of each class of instructions, and how many instructions a step of a chain has.
CLASSES = {"ffma": ((1.0001, 0.5), 1), "imad": ((3, 5), 1), "alu": ((0x7fffffff, 3), 2)}
# The instructions of a round of four chains.
ROUND = 64


def latency(size, few, many, board):
    """Cycles of a load whose address is that of the load before it: lines of 64 bytes in a random order."""
    count = size // 64
    order = numpy.random.default_rng(1).permutation(count)
    place = board.empty(size // 8, "uint64")
    links = numpy.zeros((count, 8), "u8")
    links[order, 0] = place.address + 64 * numpy.roll(order, -1).astype("u8")
    place.copy_from(links.reshape(-1))
    out = board.empty(1, "uint64")

    def seconds(steps):
        time = board.kernels(FILE).seconds("chase", 1, 1, place.address + 64 * int(order[0]), out, steps)
        return checked(time, "chase", out.item() == place.address + 64 * int(order[steps % count]))
    return steady(seconds, few, many) * HZ


def loop(kernel, threads, arguments, board):
    """Seconds of a round of a loop, with a block of so many threads on each SM."""
    return steady(lambda loops: board.kernels(FILE).seconds(kernel, SMS, threads, board.empty(4), loops, *arguments), 50, 150)


def issued(kernel, threads, board):
    """Instructions of a class for each cycle and scheduler."""
    arguments, each = CLASSES[kernel]
    return each * ROUND * threads / 32 / 4 / (loop(kernel, threads, arguments, board) * HZ)


def side_by_side(one, other, board):
    """How much faster two classes are side by side than one after the other."""
    alone = sum(loop(name, 256, CLASSES[name][0], board) for name in (one, other))
    return alone / loop(f"{one}_{other}", 512, (*CLASSES[one][0], *CLASSES[other][0]), board)


def chain(kernel, lanes, board):
    """Operations per second of one chain of multiply-adds in each thread, with so many numbers in a register."""
    threads = 96 * 256
    data = board.array(numpy.zeros(threads, "f4"))
    each = steady(lambda loops: board.kernels(FILE).seconds(kernel, 96, 256, data, loops, 0.25), 8, 24)
    # The first launch leaves 1/4 in each element v, and the second one comes close to x = v x + 1/4, which is 1/3.
    found = data.view("float16").numpy() if lanes == 2 else data.numpy()
    return checked(2 * lanes * ROUND * threads / each, kernel, numpy.abs(found - 1 / 3).max() < 1e-3)


def dot(board):
    """Operations per second of __dp4a, with a block of 512 threads on each SM."""
    each = steady(lambda loops: board.kernels(FILE).seconds("dp4a", SMS, 512, board.empty(4, "int32"), loops, 3, 5), 20, 60)
    return 8 * 64 * SMS * 512 / each


def matrix(kernel, products, board):
    """Operations per second of matrix instructions with so many products each: six chains in each warp, and 32 warps on each SM."""
    out = board.empty(SMS * 1024, "int32" if kernel == "mma_byte" else "float32")
    return 2 * products * 24 * 32 * SMS / steady(lambda loops: board.kernels(FILE).seconds(kernel, SMS, 1024, out, loops, 0), 8, 24)


def cache(kernel, board):
    """Bytes per second that an SM reads of its L1 cache, or copies: one block of 1024 threads, and 64 KiB for each round."""
    values = numpy.random.default_rng(3).random(SMS * 16384, "f4")
    is_copy = kernel == "l1_copy"
    data, to = board.array(values), board.empty(SMS * 16384 if is_copy else 4)
    each = steady(lambda passes: board.kernels(FILE).seconds(kernel, SMS, 1024, data, to, passes, *(() if is_copy else (0,))), 100, 200)
    half = SMS * 8192
    return checked(65536 / each, kernel, not is_copy or numpy.array_equal(to.numpy()[:half], values[:half]))


# The bytes that a chain goes through, and the steps of both launches whose difference is taken.
CHAINS = {"l1": (16 << 10, 4096, 8192), "l2": (1 << 20, 1 << 15, 1 << 16), "dram": (64 << 20, 1 << 13, 1 << 15)}
ISSUED = (("ffma", 512), ("ffma", 256), ("imad", 512), ("alu", 512))
PAIRS = (("ffma", "imad"), ("ffma", "alu"), ("alu", "imad"))
# The numbers in a register, and the products of an instruction.
LANES = {"ert_float": 1, "ert_half2": 2}
PRODUCTS = {"mma_half": 16 * 8 * 16, "mma_tf32": 16 * 8 * 8, "mma_byte": 16 * 8 * 32}
BENCHMARKS = {
    **{f"latency_{place}": Benchmark(f"chain of loads, {place}", "cycles", functools.partial(latency, *walk))
       for place, walk in CHAINS.items()},
    **{f"issue_{kind}_{threads}": Benchmark(f"{kind}, {threads} threads", "1/cycle", functools.partial(issued, kind, threads))
       for kind, threads in ISSUED},
    **{f"together_{one}_{other}": Benchmark(f"{one} and {other}", "times", functools.partial(side_by_side, one, other))
       for one, other in PAIRS},
    **{kernel: Benchmark(f"one chain a thread, {kernel}", "op/s", functools.partial(chain, kernel, lanes))
       for kernel, lanes in LANES.items()},
    "dp4a": Benchmark("dp4a", "op/s", dot),
    **{kernel: Benchmark(f"matrix instructions, {kernel}", "op/s", functools.partial(matrix, kernel, number))
       for kernel, number in PRODUCTS.items()},
    **{kernel: Benchmark(f"an SM's own rate, {kernel}", "B/s", functools.partial(cache, kernel)) for kernel in ("l1_read", "l1_copy")},
}
