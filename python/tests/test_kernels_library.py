"""The functions that CUDA C++ expects from a driver, with CUDA's headers: printf, malloc, free, new, delete, assert, traps, grid.sync()."""

import ctypes
import os
import subprocess
import sys

import cuda
import numpy
import pytest

from tegrarm import _ffi
from tegrarm.rm import RmError

RESET_REQUIRED = 0x62


@pytest.fixture(params=cuda.TRIED)
def way(request):
    return request.param


def run(gpu, source, way, grid, block, *arguments, name="k", **how):
    gpu.launch(gpu.kernel(cuda.compiled(source, way), name), grid, block, *arguments, **how)


# --- printf -----------------------------------------------------------------------------------------------------------------

CONVERSIONS = r"""
extern "C" __global__ void k(const char *text, const float *numbers) {
    char local[8] = {'a', 'b', 'c', 0};
    local[1] = 'B' + (numbers[0] > 5);
    printf("plain\n");
    printf("%d %5d|%-5d|%05d|%+d|%i %u %x %X %#x %o %c%%\n", -1, 42, 42, 42, 42, 1 << 31, ~0u, 255, 255, 255, 8, 'z');
    printf("%lld %llu %ld %lx %zu %hd %hhd\n", -1ll << 63, ~0ull, -5l, 0x123456789abl, sizeof(int), 0x12345, 0x1ff);
    printf("%f %.3f %10.2f|%e %G %g %a\n", numbers[0], numbers[1], numbers[2], 12345.678, 1e-10, 1e10, 1.0);
    printf("[%s] [%10s] [%-10s] [%.2s] [%s]\n", text, local, "left", "precise", (const char *)0);
    printf("%*d|%-*d|%.*f|%*.*s|\n", 6, 1, 6, 2, 2, 3.14159, 8, 3, "abcdef");
    printf("%d %lld %d %f %d %s %d\n", 1, 2ll, 3, 4.0, 5, "six", 7);
    printf("%p %p\n", (void *)0x1234, (void *)0);
    int count = printf("%s%d%c", "", 1, 'x');
    printf("\n%d %d %d\n", count, printf("none"), printf("%*d", 3, 4));
}"""
WANTED = """plain
-1    42|42   |00042|+42|-2147483648 4294967295 ff FF 0xff 10 z%
-9223372036854775808 18446744073709551615 -5 123456789ab 4 9029 -1
1.500000 2.250       3.12|1.234568e+04 1E-10 1e+10 0x1p+0
[from global memory] [       aBc] [left      ] [pr] [(null)]
     1|2     |3.14|     abc|
1 2 3 4.000000 5 six 7
0x1234 (nil)
1xnone  4
3 0 2
"""


def test_conversions(gpu, way):
    texts = gpu.printed()
    text = numpy.frombuffer(b"from global memory\0", numpy.uint8)
    run(gpu, CONVERSIONS, way, 1, 1, text, numpy.array([1.5, 2.25, 3.125], numpy.float32))
    assert b"".join(texts).decode() == WANTED


THREADS = r"""
extern "C" __global__ void k(int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int r = 0; r < n; r++)
        if (i % 3 != r % 3) printf("%d.%d %s %f\n", i, r, i & 1 ? "odd" : "even, which is longer", i * 0.5);
}"""


def lines_of_threads(threads, n):
    return {f"{i}.{r} {'odd' if i & 1 else 'even, which is longer'} {i * 0.5:f}\n".encode()
            for i in range(threads) for r in range(n) if i % 3 != r % 3}


def test_many_threads_print_once_each_and_in_their_own_order(gpu, way):
    texts = gpu.printed()
    run(gpu, THREADS, way, 7, 96, numpy.int32(4))
    assert len(texts) == len(set(texts)) and set(texts) == lines_of_threads(7 * 96, 4)
    rounds = {}
    for line in texts:
        thread, r = line.split()[0].split(b".")
        rounds.setdefault(thread, []).append(int(r))
    assert all(seen == sorted(seen) for seen in rounds.values())


def test_the_ring_goes_round(gpu):
    """Prints more than the buffer can hold, with a wait after each part."""
    assert gpu.limit(_ffi.TEGRARM_LIMIT_PRINTF_SIZE, 1 << 14) == 1 << 14
    kernel, texts = gpu.kernel(cuda.compiled(THREADS), "k"), gpu.printed()
    for _ in range(20):
        gpu.launch(kernel, 1, 64, numpy.int32(3))
        assert set(texts) == lines_of_threads(64, 3) and len(texts) == 128
        texts.clear()


def test_what_finds_no_room_is_told_and_the_rest_is_whole(gpu):
    gpu.limit(_ffi.TEGRARM_LIMIT_PRINTF_SIZE, 4096)
    texts = gpu.printed()
    run(gpu, THREADS, "12", 8, 128, numpy.int32(3))
    all_lines = lines_of_threads(1024, 3)
    *lines, told = texts
    assert len(lines) >= 30 and set(lines) < all_lines and len(set(lines)) == len(lines)
    assert f"{len(all_lines) - len(lines)} calls of printf were lost".encode() in told and b"TEGRARM_LIMIT_PRINTF_SIZE" in told
    texts.clear()
    run(gpu, THREADS, "12", 1, 16, numpy.int32(1))
    assert set(texts) == lines_of_threads(16, 1), "afterwards there is room again, and nothing more to tell"


def test_a_text_that_is_longer_than_the_buffer_is_lost(gpu):
    gpu.limit(_ffi.TEGRARM_LIMIT_PRINTF_SIZE, 4096)
    texts = gpu.printed()
    source = 'extern "C" __global__ void k(const char *t, int *r) { r[0] = printf("%s", t); r[1] = printf("%.5s", t); }'
    said = numpy.zeros(2, numpy.int32)
    run(gpu, source, "12", 1, 1, numpy.full(5000, ord("x"), numpy.uint8), said)
    assert said.tolist() == [-2, 1]
    assert texts[0] == b"xxxxx" and b"1 calls of printf were lost" in texts[1]


def test_standard_output_is_where_text_goes_without_a_callback(gpu, capfd):
    run(gpu, 'extern "C" __global__ void k() { printf("thread %d\\n", threadIdx.x); }', "12", 1, 3)
    assert capfd.readouterr().out == "thread 0\nthread 1\nthread 2\n"
    texts = gpu.printed()
    run(gpu, 'extern "C" __global__ void k() { printf("to the callback"); }', "12", 1, 1)
    assert texts == [b"to the callback"]
    cuda.call("tegrarm_printf", gpu.handle, _ffi.PrintfCallback(), None)
    run(gpu, 'extern "C" __global__ void k() { printf("and back"); }', "12", 1, 1)
    assert capfd.readouterr().out == "and back"


# --- malloc, free, new, delete ----------------------------------------------------------------------------------------------

HEAP = r"""
struct Shape { virtual ~Shape() {} virtual int area() const = 0; };
struct Square : Shape { int a; __device__ Square(int a) : a(a) {} __device__ int area() const override { return a * a; } };
struct Row : Shape {
    int *cells, n;
    __device__ Row(int n) : cells(new int[n]), n(n) { for (int i = 0; i < n; i++) cells[i] = i + n; }
    __device__ ~Row() { delete[] cells; }
    __device__ int area() const override { int s = 0; for (int i = 0; i < n; i++) s += cells[i]; return s; }
};

// Each thread keeps several blocks of different sizes, frees them in another order, and checks that no other thread wrote into them.
extern "C" __global__ void k(int rounds, int *wrong, int *missing) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned seed = i * 2654435761u + 1;
    unsigned *kept[4] = {0, 0, 0, 0};
    int sizes[4];
    for (int r = 0; r < rounds; r++) {
        seed = seed * 1664525u + 1013904223u;
        int slot = seed >> 30, words = 1 + (seed >> 16 & 63);
        if (kept[slot]) {
            for (int w = 0; w < sizes[slot]; w++) if (kept[slot][w] != i * 4 + slot) atomicAdd(wrong, 1);
            free(kept[slot]);
            kept[slot] = 0;
        } else {
            kept[slot] = (unsigned *)malloc(words * 4);
            if (!kept[slot]) { atomicAdd(missing, 1); continue; }
            if ((unsigned long long)kept[slot] % 16) atomicAdd(wrong, 1000);
            sizes[slot] = words;
            for (int w = 0; w < words; w++) kept[slot][w] = i * 4 + slot;
        }
    }
    for (int s = 0; s < 4; s++) free(kept[s]);
}
extern "C" __global__ void objects(int *out) {
    Shape *shape = threadIdx.x % 2 ? (Shape *)new Square(threadIdx.x) : new Row(threadIdx.x);
    out[threadIdx.x] = shape->area();
    delete shape;
}
// One thread allocates and another one frees. The blocks have all sizes up to the size of the heap.
extern "C" __global__ void handed(int **table) {
    table[threadIdx.x] = new int(threadIdx.x * 3);
    __syncthreads();
    int other = (threadIdx.x + 37) % blockDim.x;
    int value = *table[other];
    __syncthreads();
    delete table[other];
    __syncthreads();
    ((int *)table)[threadIdx.x * 2] = value;
}
extern "C" __global__ void most(unsigned long long *out) {
    unsigned long long size = 1ull << 17;
    void *p = 0;
    while (size && !(p = malloc(size))) size -= 16;
    out[0] = size;
    out[1] = (unsigned long long)malloc(16);
    out[2] = (unsigned long long)malloc(~0ull);
    free(p);
    free(0);
    p = malloc(size);
    out[3] = p != 0;
    free(p);
    out[4] = (unsigned long long)malloc(0);
}"""


def nothing_is_in_use(gpu):
    """The size of the heap can change only while kernels have no memory of it."""
    size = gpu.limit(_ffi.TEGRARM_LIMIT_HEAP_SIZE)
    return gpu.limit(_ffi.TEGRARM_LIMIT_HEAP_SIZE, size) == size


@pytest.mark.parametrize(("grid", "block", "rounds"), [(1, 1, 300), (1, 32, 60), (6, 96, 24)])
def test_blocks_never_overlap_and_all_come_back(gpu, way, grid, block, rounds):
    wrong, missing = numpy.zeros(1, numpy.int32), numpy.zeros(1, numpy.int32)
    run(gpu, HEAP, way, grid, block, numpy.int32(rounds), wrong, missing)
    assert (wrong[0], missing[0]) == (0, 0) and nothing_is_in_use(gpu)


def test_objects_with_virtual_functions(gpu, way):
    out = numpy.zeros(64, numpy.int32)
    run(gpu, HEAP, way, 1, 64, out, name="objects")
    assert out.tolist() == [i * i if i % 2 else sum(range(i, 2 * i)) for i in range(64)] and nothing_is_in_use(gpu)


def test_another_thread_may_free(gpu, way):
    table = numpy.zeros(128, numpy.int64)
    run(gpu, HEAP, way, 1, 128, table, name="handed")
    assert [int(v) & 0xFFFFFFFF for v in table] == [(i + 37) % 128 * 3 for i in range(128)] and nothing_is_in_use(gpu)


def test_the_whole_heap_is_one_block_again(gpu):
    assert gpu.limit(_ffi.TEGRARM_LIMIT_HEAP_SIZE) == 8 << 20, "CUDA's"
    gpu.limit(_ffi.TEGRARM_LIMIT_HEAP_SIZE, 1 << 16)
    wrong = numpy.zeros(2, numpy.int32)
    run(gpu, HEAP, "12", 2, 64, numpy.int32(40), wrong[:1], wrong[1:])
    out = numpy.ones(5, numpy.uint64)
    run(gpu, HEAP, "12", 1, 1, out, name="most")
    assert out.tolist() == [(1 << 16) - 32, 0, 0, 1, 0], "everything but what the heap needs itself; no more; not too much; again; nothing"


def test_a_heap_in_use_keeps_its_size(gpu):
    run(gpu, 'extern "C" __global__ void k() { malloc(100); }'.replace("malloc(100);", "*(int *)malloc(100) = 1;"), "12", 1, 1)
    with pytest.raises(RmError, match="kernels have not freed"):
        gpu.limit(_ffi.TEGRARM_LIMIT_HEAP_SIZE, 1 << 20)


def test_memory_stays_from_kernel_to_kernel_and_module_to_module(gpu):
    give = 'extern "C" __global__ void k(int **out) { *out = (int *)malloc(400); for (int i = 0; i < 100; i++) (*out)[i] = i; }'
    take = 'extern "C" __global__ void k(int **in, int *sum) { for (int i = 0; i < 100; i++) *sum += (*in)[i]; free(*in); }'
    place, total = numpy.zeros(1, numpy.uint64), numpy.zeros(1, numpy.int32)
    run(gpu, give, "12", 1, 1, place)
    run(gpu, take, "13", 1, 1, place, total)
    assert total[0] == 4950 and nothing_is_in_use(gpu)


def test_a_module_may_be_far_from_the_library(gpu):
    """The functions of the library are in memory before a module whose data takes 32 MiB, and its code is behind that."""
    source = """extern "C" { __device__ char data[%d << 20]; __global__ void k(int *out) {
        int *p = (int *)malloc(64); p[3] = 7; *out = p[3]; free(p); } }"""
    for megabytes in (1, 32, 2):
        out = numpy.zeros(1, numpy.int32)
        run(gpu, source % megabytes, "12", 1, 1, out)
        assert out[0] == 7, megabytes
    assert nothing_is_in_use(gpu)


ALIGNED = """
struct alignas(128) Line { int x[32]; };
extern "C" __global__ void k(unsigned long long *out) {
    Line *lines[4];
    for (int i = 0; i < 4; i++) { lines[i] = new Line; lines[i]->x[31] = threadIdx.x + i; }
    int *odd = (int *)malloc(4 + threadIdx.x);
    void *large = __nv_aligned_device_malloc(10, 4096);
    *(int *)large = *odd = 1;
    out[2 * threadIdx.x] = (unsigned long long)large % 4096;
    int sum = 0;
    for (int i = 0; i < 4; i++) { out[2 * threadIdx.x] += (unsigned long long)lines[i] % 128; sum += lines[i]->x[31]; delete lines[i]; }
    out[2 * threadIdx.x + 1] = sum;
    free(odd);
    free(large);
}"""


def test_alignment_may_be_asked_for(gpu, way):
    out = numpy.zeros((64, 2), numpy.uint64)
    run(gpu, ALIGNED, way, 1, 64, out)
    assert out.tolist() == [[0, 4 * i + 6] for i in range(64)] and nothing_is_in_use(gpu)


# --- assert and traps -------------------------------------------------------------------------------------------------------

ASSERT = """


extern "C" __global__ void k(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (in[i] < 0) printf("before\\n");
    assert(in[i] >= 0 && "all are positive");
    out[i] = in[i] + 1;
}
"""


def stops(gpu, *what):
    """Runs a kernel that stops the device. Returns the sentence of the fault, which a failed wait has too."""
    with pytest.raises(RmError) as e:
        run(gpu, *what)
    assert e.value.status == RESET_REQUIRED
    sentence = gpu.fault().sentence.decode()
    assert sentence in str(e.value) and sentence.startswith(gpu.fault().text.decode()[:200])
    return sentence


def test_an_assertion_that_holds_changes_nothing(gpu, way):
    numbers, out = numpy.arange(128, dtype=numpy.int32), numpy.zeros(128, numpy.int32)
    run(gpu, ASSERT, way, 4, 32, numbers, out)
    assert (out == numbers + 1).all()


def test_an_assertion_that_fails_says_where(gpu, way):
    numbers, out, texts = numpy.arange(128, dtype=numpy.int32), numpy.zeros(128, numpy.int32), gpu.printed()
    numbers[77] = -1
    sentence = stops(gpu, ASSERT, way, 4, 32, numbers, out)
    assert "assertion `in[i] >= 0 && \"all are positive\"` failed at test.cu:7 in" in sentence
    assert "block (2, 0, 0), thread (13, 0, 0)" in sentence
    assert gpu.fault().cause == _ffi.TEGRARM_FAULT_ASSERT and texts == [b"before\n"]
    # The same again in another thread, after a recovery.
    assert gpu.recover() == 1 and gpu.fault().cause == _ffi.TEGRARM_FAULT_NONE
    numbers[[77, 1]] = 1, -5
    assert "block (0, 0, 0), thread (1, 0, 0)" in stops(gpu, ASSERT, way, 4, 32, numbers, out)
    assert gpu.recover() == 1
    numbers[1] = 3
    run(gpu, ASSERT, way, 4, 32, numbers, out)
    assert (out == numbers + 1).all()


def test_when_many_threads_assert_one_of_them_says_so(gpu, way):
    sentence = stops(gpu, ASSERT, way, 4, 32, numpy.full(128, -1, numpy.int32), numpy.zeros(128, numpy.int32))
    assert "failed at test.cu:7" in sentence and "thread (" in sentence


def test_a_trap_is_told_apart(gpu, way):
    sentence = stops(gpu, 'extern "C" __global__ void k() { if (threadIdx.x == 3) __trap(); }', way, 1, 32)
    assert "was stopped by a trap" in sentence and "assertion" not in sentence
    assert gpu.fault().cause == _ffi.TEGRARM_FAULT_TRAP


@pytest.mark.parametrize(("body", "what"), [
    ("void *p = malloc(40); *(int *)p = 1; free(p); free(p);", "that memory was freed before"),
    ("void *p = malloc(40), *q = malloc(40); *(int *)q = *(int *)p = 1; free(q); free(p); free(q);", "that memory was freed before"),
    ("free((void *)(out + 1));", "malloc never gave that address"),
    ("char *p = (char *)malloc(400); p[0] = 1; free(p + 32);", "malloc never gave that address"),
])
def test_memory_that_is_not_to_be_freed(gpu, way, body, what):
    source = f'extern "C" __global__ void k(int *out) {{ if (threadIdx.x == 5) {{ {body} }} }}'
    sentence = stops(gpu, source, way, 1, 32, numpy.zeros(64, numpy.int32))
    assert sentence.startswith("free(0x") and what in sentence and "thread (5, 0, 0)" in sentence
    assert gpu.fault().cause == _ffi.TEGRARM_FAULT_FREE


# --- grid.sync() ------------------------------------------------------------------------------------------------------------

GRID = """
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(int *a, int *b, int rounds) {
    cg::grid_group grid = cg::this_grid();
    int n = grid.size(), i = grid.thread_rank();
    for (int r = 0; r < rounds; r++) {
        b[i] = a[(i + 33) % n] + r;
        grid.sync();
        a[i] = b[(i + n - 1) % n] * 3 + (i ^ r);
        grid.sync();
    }
    if (!grid.is_valid()) a[i] = -1;
}
"""


def grid_reference(n, rounds):
    a, i = numpy.arange(n, dtype=numpy.int32), numpy.arange(n, dtype=numpy.int32)
    for r in range(rounds):
        b = numpy.roll(a, -33) + numpy.int32(r)
        a = numpy.roll(b, 1) * numpy.int32(3) + (i ^ numpy.int32(r))
    return a


@pytest.mark.parametrize(("grid", "block"), [(1, 1), (16, 64), ((4, 3, 2), (8, 4, 2)), (40, 96)])
@pytest.mark.parametrize("cooperative", [False, True])
def test_blocks_of_a_grid_wait_for_each_other(gpu, grid, block, cooperative):
    n = int(numpy.prod(grid) * numpy.prod(block))
    a = numpy.arange(n, dtype=numpy.int32)
    run(gpu, GRID, "13" if cooperative else "12", grid, block, a, numpy.zeros(n, numpy.int32), numpy.int32(5), cooperative=cooperative)
    assert (a == grid_reference(n, 5)).all()


def test_grids_wait_at_every_way_of_compiling_and_again(gpu, way):
    kernel = gpu.kernel(cuda.compiled(GRID, way), "k")
    for _ in range(3):
        a = numpy.arange(512, dtype=numpy.int32)
        gpu.launch(kernel, 8, 64, a, numpy.zeros(512, numpy.int32), numpy.int32(3), cooperative=True)
        assert (a == grid_reference(512, 3)).all()


STUCK = GRID + """
extern "C" __global__ void stuck(int stop) { if (stop && blockIdx.x == 1) __trap(); cg::this_grid().sync(); }
"""


def test_after_a_fault_the_next_grid_begins_anew(gpu):
    kernel = gpu.kernel(cuda.compiled(STUCK), "stuck")
    for _ in range(10):
        with pytest.raises(RmError, match="a trap"):
            gpu.launch(kernel, 4, 32, numpy.int32(1))
        assert gpu.recover() == 1
        gpu.launch(kernel, 4, 32, numpy.int32(0))


# --- what is linked, and what is refused ------------------------------------------------------------------------------------

UNUSED = """
struct Base { virtual __device__ ~Base() {} virtual __device__ int f() { return 1; } };
struct Derived : Base { int x; __device__ Derived(int x) : x(x) {} virtual __device__ int f() { return x; } };
extern "C" __global__ void k(int *out) { Derived d(threadIdx.x + 5); Base *b = threadIdx.x & 1 ? &d : new Base; out[threadIdx.x] = b->f(); }
extern "C" __global__ void local(int *out) { Derived d(threadIdx.x + 5); Base *b = &d; out[threadIdx.x] = b->f(); }
"""


def test_a_destructor_that_nobody_calls_keeps_no_module_from_loading(gpu, way):
    out = numpy.zeros(32, numpy.int32)
    run(gpu, UNUSED, way, 1, 32, out, name="local")
    assert out.tolist() == list(range(5, 37))
    run(gpu, UNUSED, way, 1, 32, out)
    assert out.tolist() == [i + 5 if i & 1 else 1 for i in range(32)]


def test_a_kernel_has_room_for_what_it_calls(gpu):
    """A kernel needs at least the registers and the stack of the largest function that it calls."""
    source = 'extern "C" __global__ void k() { printf("x"); }\n'
    plain = 'extern "C" __global__ void k(int *x) { *x = 1; }\n'
    with_it, without = (attributes(gpu.kernel(cuda.compiled(s), "k")) for s in (source, plain))
    assert 24 <= with_it.registers <= 40 and with_it.stack_size > 64 and without.registers < 24 and without.stack_size == 0


def attributes(kernel):
    told = _ffi.KernelAttributes(size=ctypes.sizeof(_ffi.KernelAttributes))
    cuda.call("tegrarm_kernel_attributes", kernel, ctypes.byref(told))
    return told


LAUNCHES = """
__global__ void child(int *out) { *out = 1; }
extern "C" __global__ void k(int *out) { child<<<1, 1>>>(out); }
"""


def test_dynamic_parallelism_is_refused_by_name(gpu, way):
    with pytest.raises(RmError, match=r"__cudaCDP2LaunchDeviceV2: dynamic parallelism \(kernels that launch kernels\)"):
        gpu.module(cuda.compiled(LAUNCHES, way, "--relocatable-device-code=true"))


def test_groups_of_several_grids_are_refused_by_name(gpu):
    source = """#include <cooperative_groups.h>
        extern "C" __global__ void k() { cooperative_groups::this_multi_grid().sync(); }"""
    with pytest.raises(RmError, match="cudaCGSynchronize: groups of several grids"):
        gpu.module(cuda.compiled(source, "12", "--relocatable-device-code=true"))


SETTINGS = f"""
import sys
sys.path.insert(0, {os.path.dirname(__file__)!r})
import cuda
from tegrarm import _ffi
gpu = cuda.Gpu()
print(gpu.limit(_ffi.TEGRARM_LIMIT_HEAP_SIZE), gpu.limit(_ffi.TEGRARM_LIMIT_PRINTF_SIZE))
"""


@pytest.mark.parametrize(("heap", "printf", "said"), [
    ("", "", f"{8 << 20} {1 << 20}"), ("1000000", "70000", f"{1003520} {1 << 17}"), ("0", "1", "0 4096"),
])
def test_settings(heap, printf, said):
    environment = os.environ | {"TEGRARM_HEAP_SIZE": heap, "TEGRARM_PRINTF_SIZE": printf}
    out = subprocess.run([sys.executable, "-c", SETTINGS], env=environment, capture_output=True, text=True, check=True)
    assert out.stdout.split() == said.split()


def test_a_setting_that_is_no_size_is_refused():
    environment = os.environ | {"TEGRARM_HEAP_SIZE": "8M"}
    out = subprocess.run([sys.executable, "-c", SETTINGS], env=environment, capture_output=True, text=True)
    assert out.returncode and "TEGRARM_HEAP_SIZE=8M: must be a number of bytes" in out.stderr
