"""CUB: every primitive for warps and for blocks, with types, sizes and algorithms; and for grids the look-back scan and a radix sort."""
# ruff: noqa: D103 - each function yields the cases that its name says.
from itertools import product

import numpy
from case import Case

TYPES = {"signed char": numpy.int8, "unsigned char": numpy.uint8, "short": numpy.int16, "unsigned short": numpy.uint16, "int": numpy.int32,
         "unsigned": numpy.uint32, "long long": numpy.int64, "unsigned long long": numpy.uint64, "float": numpy.float32, "double": numpy.float64}
SHAPES = ((32, 1), (64, 4), (128, 2), (256, 3))  # threads and items of each


def include(*names):
    return "".join(f"#include <cub/{name}.cuh>\n" for name in names) + "#include <cuda/functional>\n#include <cuda/std/functional>\n"


def kernel(name, block, items, body):
    """A kernel that reads items in blocked order, runs a body on `x`, and writes them in blocked order."""
    return (f'extern "C" __global__ void {name}(const T *in, T *out) {{ constexpr int B = {block}, N = {items}; int i = threadIdx.x; T x[N], y[N];\n'
            f"for (int k = 0; k < N; ++k) y[k] = x[k] = in[N * i + k];\n{body}\nfor (int k = 0; k < N; ++k) out[N * i + k] = y[k]; }}\n")


def values(dtype, count, seed=3):
    """Small integers, so that sums of floats are exact. Some of them overflow small types."""
    rng = numpy.random.default_rng(seed)
    return rng.integers(0, 100, count).astype(dtype) if numpy.dtype(dtype).kind != "i" else rng.integers(-50, 50, count).astype(dtype)


def family(name, headers, kernels):
    """One case for each type. Kernels are (name, block, items, body, reference)."""
    for spelled, dtype in TYPES.items():
        source = include(*headers) + f"using T = {spelled};\n" + "".join(kernel(k, b, n, body) for k, b, n, body, _ in kernels)
        launches = []
        for k, block, items, _, reference in kernels:
            x = values(dtype, block * items)
            launches.append((k, 1, block, x, lambda x, block=block, items=items, reference=reference: reference(x, block, items)))
        yield Case(f"cub/{name}/{spelled}", source, launches)


def shaped(name, body, reference, shapes=SHAPES):
    """A kernel for each number of threads and items."""
    for block, items in shapes:
        yield f"{name}_{block}_{items}", block, items, body, reference


def storage(kind, count="1", index="0"):
    return f"using P = {kind}; __shared__ typename P::TempStorage t[{count}]; P p(t[{index}]);"


# --- warps --------------------------------------------------------------------------------------------------------

def parts(x, width):
    return x.reshape(-1, width)


def broad(function, width):
    """One result for each group of lanes, which every lane of the group gets."""
    return lambda x, b, n: numpy.repeat(function(parts(x, width), 1), width)


def reduced(x, axis):
    return x.sum(axis, dtype=x.dtype)


def warp_reduce():
    kernels = []
    for width in (2, 4, 8, 16, 32):
        head = storage(f"cub::WarpReduce<T, {width}>", str(128 // width), f"i / {width}")
        give = f" y[0] = __shfl_sync(~0u, r, 0, {width});"
        kernels += [(f"sum_{width}", 128, 1, f"{head} T r = p.Sum(x[0]);{give}", broad(reduced, width)),
                    (f"max_{width}", 128, 1, f"{head} T r = p.Reduce(x[0], cuda::maximum<>{{}});{give}", broad(numpy.max, width)),
                    (f"some_{width}", 128, 1, f"{head} T r = p.Sum(x[0], {width} - 1);{give}", broad(lambda g, _: reduced(g[:, :-1], 1), width))]

    def segmented(x, tail):
        found = numpy.zeros_like(x)
        for w in range(0, len(x), 32):
            edges = [k for k in range(32) if (w + k) % 7 == 0]
            starts = sorted({0, *(k + 1 for k in edges if k < 31)} if tail else {0, *edges})
            for s, e in zip(starts, [*starts[1:], 32], strict=True):
                found[w + s] = x[w + s:w + e].sum(dtype=x.dtype)
        return found
    for tail, name in ((False, "Head"), (True, "Tail")):
        # Only the first lane of a segment has a result.
        first = "(i % 32 == 0 || (i - 1) % 7 == 0)" if tail else "(i % 32 == 0 || i % 7 == 0)"
        kernels.append((name.lower(), 128, 1, f"{storage('cub::WarpReduce<T>', '4', 'i / 32')} T r = p.{name}SegmentedSum(x[0], i % 7 == 0);"
                        f" y[0] = {first} ? r : T(0);", lambda x, b, n, tail=tail: segmented(x, tail)))
    yield from family("WarpReduce", ["warp/warp_reduce"], kernels)


def scans(x, width, exclusive):
    groups = parts(x, width)
    sums = groups.cumsum(1, dtype=x.dtype)
    return (sums - groups if exclusive else sums).ravel().astype(x.dtype)


def warp_scan():
    kernels = []
    for width in (4, 8, 32):
        head = storage(f"cub::WarpScan<T, {width}>", str(128 // width), f"i / {width}")
        kernels += [(f"inclusive_{width}", 128, 1, f"{head} p.InclusiveSum(x[0], y[0]);", lambda x, b, n, w=width: scans(x, w, False)),
                    (f"exclusive_{width}", 128, 1, f"{head} p.ExclusiveSum(x[0], y[0]);", lambda x, b, n, w=width: scans(x, w, True)),
                    (f"max_{width}", 128, 1, f"{head} p.InclusiveScan(x[0], y[0], cuda::maximum<>{{}});",
                     lambda x, b, n, w=width: numpy.maximum.accumulate(parts(x, w), 1).ravel()),
                    (f"first_{width}", 128, 1, f"{head} p.ExclusiveScan(x[0], y[0], T(3), cuda::std::plus<>{{}});",
                     lambda x, b, n, w=width: (scans(x, w, True) + x.dtype.type(3)).astype(x.dtype)),
                    (f"total_{width}", 128, 1, f"{head} T all; p.InclusiveSum(x[0], y[0], all); y[0] = y[0] + all;",
                     lambda x, b, n, w=width: (scans(x, w, False) + numpy.repeat(reduced(parts(x, w), 1), w)).astype(x.dtype)),
                    (f"broadcast_{width}", 128, 1, f"{head} y[0] = p.Broadcast(x[0], {width - 1});", broad(lambda g, _: g[:, -1], width))]
    yield from family("WarpScan", ["warp/warp_scan"], kernels)


def striped(x, width, n):
    """Changes items from blocked to striped order in groups of threads: item k of thread i is number k · width + i."""
    return x.reshape(-1, n, width).transpose(0, 2, 1).ravel()


def blocked(x, width, n):
    return x.reshape(-1, width, n).transpose(0, 2, 1).ravel()


def warp_moves():
    kernels = []
    for width, n in ((8, 2), (32, 3), (32, 4)):
        for algorithm in ("SMEM", "SHUFFLE") if n == 4 or width == 8 and n == 8 else ("SMEM",):
            kind = f"cub::WarpExchange<T, {n}, {width}, cub::WARP_EXCHANGE_{algorithm}>"
            head = storage(kind, str(64 // width), f"i / {width}")
            if algorithm == "SHUFFLE" and n > width:
                continue
            kernels += [(f"stripe_{algorithm}_{width}_{n}", 64, n, f"{head} p.BlockedToStriped(x, y);", lambda x, b, n, w=width: striped(x, w, n)),
                        (f"block_{algorithm}_{width}_{n}", 64, n, f"{head} p.StripedToBlocked(x, y);", lambda x, b, n, w=width: blocked(x, w, n))]
    for n in (1, 2, 4):
        head = storage(f"cub::WarpMergeSort<T, {n}, 32>", "2", "i / 32")
        for less, sign in (("less", 1), ("greater", -1)):
            kernels.append((f"sort_{less}_{n}", 64, n, f"{head} p.Sort(y, cuda::std::{less}<T>());",
                            lambda x, b, n, s=sign: numpy.sort(parts(x, 32 * n), 1)[:, ::s].ravel()))
    for n, how in product((2, 4), ("DIRECT", "STRIPED", "VECTORIZE", "TRANSPOSE")):
        load = storage(f"cub::WarpLoad<T, {n}, cub::WARP_LOAD_{how}, 32>", "2", "i / 32")
        store = f"using S = cub::WarpStore<T, {n}, cub::WARP_STORE_{how}, 32>; __shared__ typename S::TempStorage s[2];"
        turn = (lambda x, w, n: x) if how != "STRIPED" else striped
        kernels.append((f"load_{how}_{n}", 64, n, f"{load} p.Load(in + i / 32 * 32 * N, y);", lambda x, b, n, turn=turn: turn(x, 32, n)))
        back = (lambda x, w, n: x) if how != "STRIPED" else blocked
        kernels.append((f"store_{how}_{n}", 64, n, f"{store} S(s[i / 32]).Store(out + i / 32 * 32 * N, x); __syncthreads(); "
                        "for (int k = 0; k < N; ++k) y[k] = out[N * i + k]; __syncthreads();", lambda x, b, n, back=back: back(x, 32, n)))
    yield from family("WarpMoves", ["warp/warp_exchange", "warp/warp_merge_sort", "warp/warp_load", "warp/warp_store"], kernels)


# --- blocks -------------------------------------------------------------------------------------------------------

def everywhere(function):
    return lambda x, b, n: numpy.full(b * n, function(x), x.dtype)


SPREAD = " __shared__ T all; if (i == 0) all = r; __syncthreads(); for (int k = 0; k < N; ++k) y[k] = all;"


def block_reduce():
    kernels = []
    for how in ("RAKING", "RAKING_COMMUTATIVE_ONLY", "WARP_REDUCTIONS"):
        head = storage(f"cub::BlockReduce<T, B, cub::BLOCK_REDUCE_{how}>")
        kernels += shaped(f"sum_{how}", f"{head} T r = p.Sum(x);{SPREAD}", everywhere(lambda x: x.sum(dtype=x.dtype)))
        kernels += shaped(f"max_{how}", f"{head} T r = p.Reduce(x, cuda::maximum<>{{}});{SPREAD}", everywhere(numpy.max))
        kernels += shaped(f"some_{how}", f"{head} T r = p.Sum(x[0], B - 5);{SPREAD}", lambda x, b, n: numpy.full(
            b * n, x[::n][:b - 5].sum(dtype=x.dtype), x.dtype))
    yield from family("BlockReduce", ["block/block_reduce"], kernels)


def block_scan():
    kernels = []
    for how in ("RAKING", "RAKING_MEMOIZE", "WARP_SCANS"):
        head = storage(f"cub::BlockScan<T, B, cub::BLOCK_SCAN_{how}>")
        kernels += shaped(f"inclusive_{how}", f"{head} p.InclusiveSum(x, y);", lambda x, b, n: x.cumsum(dtype=x.dtype))
        kernels += shaped(f"exclusive_{how}", f"{head} T all; p.ExclusiveSum(x, y, all); y[0] = y[0] + all;", with_total)
        kernels += shaped(f"max_{how}", f"{head} p.InclusiveScan(x, y, cuda::maximum<>{{}});", lambda x, b, n: numpy.maximum.accumulate(x))
    yield from family("BlockScan", ["block/block_scan"], kernels)


def with_total(x, b, n):
    found = (x.cumsum(dtype=x.dtype) - x).astype(x.dtype)
    found[::n] += x.sum(dtype=x.dtype)
    return found


def block_sort():
    kernels = []
    radix, merge = storage("cub::BlockRadixSort<T, B, N>"), storage("cub::BlockMergeSort<T, B, N>")
    pairs = storage("cub::BlockRadixSort<T, B, N, T>")
    kernels += shaped("radix", f"{radix} p.Sort(y);", lambda x, b, n: numpy.sort(x))
    kernels += shaped("down", f"{radix} p.SortDescending(y);", lambda x, b, n: numpy.sort(x)[::-1])
    kernels += shaped("stripes", f"{radix} p.SortBlockedToStriped(y);", lambda x, b, n: striped(numpy.sort(x), b, n))
    kernels += shaped("pairs", f"{pairs} T v[N]; for (int k = 0; k < N; ++k) v[k] = T(x[k] + x[k]); p.Sort(x, v); for (int k = 0; k < N; ++k) y[k] = T(v[k]);",
                      lambda x, b, n: (numpy.sort(x) + numpy.sort(x)).astype(x.dtype))
    kernels += shaped("merge", f"{merge} p.Sort(y, cuda::std::less<T>());", lambda x, b, n: numpy.sort(x))
    kernels += shaped("stable", f"{merge} p.StableSort(y, cuda::std::greater<T>());", lambda x, b, n: numpy.sort(x)[::-1])
    yield from family("BlockSort", ["block/block_radix_sort", "block/block_merge_sort"], kernels)


def block_moves():
    kernels = []
    head = storage("cub::BlockExchange<T, B, N>")
    kernels += shaped("stripe", f"{head} p.BlockedToStriped(x, y);", lambda x, b, n: striped(x, b, n))
    kernels += shaped("block", f"{head} p.StripedToBlocked(x, y);", lambda x, b, n: blocked(x, b, n))
    kernels += shaped("warp_stripe", f"{head} p.BlockedToWarpStriped(x, y);", lambda x, b, n: striped(x, 32, n))
    kernels += shaped("warp_block", f"{head} p.WarpStripedToBlocked(x, y);", lambda x, b, n: blocked(x, 32, n))
    rank = "int r[N]; for (int k = 0; k < N; ++k) r[k] = B * N - 1 - (N * i + k);"
    kernels += shaped("scatter", f"{head} {rank} p.ScatterToBlocked(x, y, r);", lambda x, b, n: x[::-1])
    kernels += shaped("scatter_stripe", f"{head} {rank} p.ScatterToStriped(x, y, r);", lambda x, b, n: striped(x[::-1].copy(), b, n))
    shuffle = storage("cub::BlockShuffle<T, B>")
    kernels += shaped("offset", f"{shuffle} y[0] = x[0]; p.Offset(x[0], y[0], 1);", lambda x, b, n: numpy.append(x[1:], x[-1]), [(32, 1), (128, 1)])
    kernels += shaped("rotate", f"{shuffle} p.Rotate(x[0], y[0], 5);", lambda x, b, n: numpy.roll(x, -5), [(64, 1), (128, 1)])
    kernels += shaped("up", f"{shuffle} p.Up(x, y); if (i == 0) y[0] = 0;", lambda x, b, n: numpy.append(x.dtype.type(0), x[:-1]))
    for how in ("DIRECT", "STRIPED", "VECTORIZE", "TRANSPOSE", "WARP_TRANSPOSE"):
        load = storage(f"cub::BlockLoad<T, B, N, cub::BLOCK_LOAD_{how}>")
        store = f"using S = cub::BlockStore<T, B, N, cub::BLOCK_STORE_{how}>; __shared__ typename S::TempStorage s;"
        turn = (lambda x, b, n: striped(x, b, n)) if how == "STRIPED" else lambda x, b, n: x
        back = (lambda x, b, n: blocked(x, b, n)) if how == "STRIPED" else lambda x, b, n: x
        kernels += shaped(f"load_{how}", f"{load} p.Load(in, y);", turn)
        kernels += shaped(f"part_{how}", f"{load} p.Load(in, y, B * N - 7, T(9));", lambda x, b, n, turn=turn: turn(numpy.append(x[:-7], [9] * 7).astype(x.dtype), b, n))
        kernels += shaped(f"store_{how}", f"{store} S(s).Store(out, x); __syncthreads(); for (int k = 0; k < N; ++k) y[k] = out[N * i + k]; __syncthreads();", back)
    yield from family("BlockMoves", ["block/block_exchange", "block/block_shuffle", "block/block_load", "block/block_store"], kernels)


def block_neighbours():
    kernels = []
    head = storage("cub::BlockDiscontinuity<T, B>")
    kernels += shaped("heads", f"{head} int f[N]; p.FlagHeads(f, x, cuda::std::not_equal_to<T>()); for (int k = 0; k < N; ++k) y[k] = f[k];",
                      lambda x, b, n: numpy.append([1], x[1:] != x[:-1]).astype(x.dtype))
    kernels += shaped("tails", f"{head} int f[N]; p.FlagTails(f, x, cuda::std::not_equal_to<T>()); for (int k = 0; k < N; ++k) y[k] = f[k];",
                      lambda x, b, n: numpy.append(x[1:] != x[:-1], [1]).astype(x.dtype))
    difference = storage("cub::BlockAdjacentDifference<T, B>")
    kernels += shaped("left", f"{difference} p.SubtractLeft(x, y, cuda::std::minus<>{{}});", lambda x, b, n: numpy.append(x[:1], x[1:] - x[:-1]).astype(x.dtype))
    kernels += shaped("right", f"{difference} p.SubtractRight(x, y, cuda::std::minus<>{{}});", lambda x, b, n: numpy.append(x[:-1] - x[1:], x[-1:]).astype(x.dtype))
    for how in ("ATOMIC", "SORT"):
        body = (f"using P = cub::BlockHistogram<unsigned char, B, N, 128, cub::BLOCK_HISTO_{how}>; __shared__ typename P::TempStorage t; __shared__ unsigned h[128]; "
                "unsigned char c[N]; for (int k = 0; k < N; ++k) c[k] = (unsigned char)(int)x[k] & 127; P(t).Histogram(c, h); __syncthreads(); "
                "for (int k = 0; k < N; ++k) y[k] = N * i + k < 128 ? T(h[N * i + k]) : T(0);")

        def histogram(x, b, n):
            found = numpy.bincount(x.astype(numpy.int64) & 127, minlength=max(128, b * n))[:b * n]
            found[128:] = 0
            return found.astype(x.dtype)
        kernels += shaped(f"histogram_{how}", body, histogram, [(32, 1), (64, 4), (128, 2)])
    yield from family("BlockNeighbours", ["block/block_discontinuity", "block/block_adjacent_difference", "block/block_histogram"], kernels)


# --- grids --------------------------------------------------------------------------------------------------------

LOOK_BACK = include("block/block_scan", "block/block_load", "block/block_store", "agent/single_pass_scan_operators") + """
using S = cub::ScanTileState<T>;
extern "C" __global__ void begin(void *status, int tiles) { S s; s.Init(tiles, status, 0); s.InitializeStatus(tiles); }
extern "C" __global__ void scan(const T *in, T *out, void *status, int tiles, int *next) {
    constexpr int B = 128, N = 4;
    using Scan = cub::BlockScan<T, B>;
    using Prefix = cub::TilePrefixCallbackOp<T, cuda::std::plus<>, S>;
    using Load = cub::BlockLoad<T, B, N, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
    using Store = cub::BlockStore<T, B, N, cub::BLOCK_STORE_WARP_TRANSPOSE>;
    __shared__ union { typename Load::TempStorage load; typename Store::TempStorage store; struct { typename Prefix::TempStorage prefix; typename Scan::TempStorage scan; }; } t;
    __shared__ int which;
    S s; s.Init(tiles, status, 0);
    if (threadIdx.x == 0) which = atomicAdd(next, 1);
    __syncthreads();
    int tile = which;
    T x[N], sum;
    Load(t.load).Load(in + tile * B * N, x);
    __syncthreads();
    if (tile == 0) { Scan(t.scan).InclusiveSum(x, x, sum); if (threadIdx.x == 0) s.SetInclusive(0, sum); }
    else { Prefix prefix(s, t.prefix, cuda::std::plus<>{}, tile); Scan(t.scan).InclusiveSum(x, x, prefix); }
    __syncthreads();
    Store(t.store).Store(out + tile * B * N, x);
}"""


def look_back():
    for spelled, dtype in TYPES.items():
        tiles = 37
        x = values(dtype, tiles * 512)

        def run(gpu, cubin, x=x, tiles=tiles):
            out, status, counter = numpy.zeros_like(x), numpy.zeros(16 * (tiles + 64), numpy.uint8), numpy.zeros(1, numpy.int32)
            number = numpy.int32(tiles)
            gpu.launch(gpu.kernel(cubin, "begin"), 1, 128, status, number)
            gpu.launch(gpu.kernel(cubin, "scan"), tiles, 128, x, out, status, number, counter)
            numpy.testing.assert_array_equal(out, x.cumsum(dtype=x.dtype))
        # The headers of CUDA 12.9 include <iterator> here, which NVRTC does not have.
        source = LOOK_BACK.replace("using S =", f"using T = {spelled};\nusing S =", 1)
        yield Case(f"cub/look-back scan/{spelled}", source, run=run, compiler="13")


CASES = [warp_reduce, warp_scan, warp_moves, block_reduce, block_scan, block_sort, block_moves, block_neighbours, look_back]
