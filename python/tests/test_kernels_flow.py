"""Recursion, indirect calls and early exits in code that diverges: every lane computes what one thread alone computes.

Each kernel is a function of one number. The reference is the same text, compiled by the C++ compiler of this machine.
"""

import ctypes
import os
import shutil
import subprocess

import cuda
import numpy
import pytest
from conftest import ZIG

N = 4 * 96

WALK = """
DEVICE int walk(int n, int d) {
    if (n <= 0) return d;
    int r = 0;
    if (n & 1) r += walk(n - 1, d + 1) * 3; else r += walk(n - 2, d + 2) + 1;
    if (n % 3 == 0) r ^= walk(n / 3, d);
    return r + n;
}
DEVICE int f(int x) { return x & 1 ? walk(x % 13, 0) : x & 2 ? walk(x % 11 + 3, 1) : x; }
"""
FIB = ("DEVICE int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n"
       "DEVICE int f(int x) { return x % 3 ? fib(x % 12) : -fib(x % 5); }")
ACKERMANN = """
DEVICE int ackermann(int m, int n) { return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }
DEVICE int f(int x) { return ackermann(x % 3, x % 5); }
"""
MUTUAL = """
DEVICE int odd(int n, int &calls);
DEVICE int even(int n, int &calls) { calls++; if (n == 0) return 1; int r = odd(n - 1, calls);
    if (n % 4 == 2) r += even(n / 2, calls); return r; }
DEVICE int odd(int n, int &calls) { calls += 3; if (n == 0) return 0; if (n % 5 == 0) calls += odd(n / 5, calls);
    return even(n - 1, calls); }
DEVICE int f(int x) { int calls = 0, r = x & 4 ? even(x % 17, calls) : odd(x % 9, calls); return r * 1000 + calls; }
"""
QUICKSORT = """
DEVICE void quicksort(int *a, int low, int high) {
    if (low >= high) return;
    int pivot = a[(low + high) / 2], i = low, j = high;
    while (i <= j) {
        while (a[i] < pivot) i++;
        while (a[j] > pivot) j--;
        if (i <= j) { int t = a[i]; a[i++] = a[j]; a[j--] = t; }
    }
    quicksort(a, low, j);
    quicksort(a, i, high);
}
DEVICE int f(int x) {
    int a[16], n = x % 16, h = 0;
    for (int i = 0; i < 16; i++) a[i] = (x * (i + 7) * 2654435761u) >> 20;
    quicksort(a, 0, n);
    for (int i = 0; i < 16; i++) h = h * 31 + a[i];
    return h;
}
"""
TREE = """
struct Node { short left, right; int value; };
DEVICE int insert(Node *t, int &used, int at, int value) {
    if (at < 0) { t[used] = Node{-1, -1, value}; return used++; }
    if (value < t[at].value) t[at].left = insert(t, used, t[at].left, value);
    else if (value > t[at].value) t[at].right = insert(t, used, t[at].right, value);
    return at;
}
DEVICE int depth(const Node *t, int at) { if (at < 0) return 0;
    int l = depth(t, t[at].left), r = depth(t, t[at].right); return 1 + (l > r ? l : r); }
DEVICE int fold(const Node *t, int at, int h) { return at < 0 ? h : fold(t, t[at].right, fold(t, t[at].left, h) * 31 + t[at].value); }
DEVICE int f(int x) {
    Node t[12]; int used = 0, root = -1;
    for (int i = 0; i < x % 12; i++) root = insert(t, used, root, (x + i) * 40503u >> 3 & 255);
    return fold(t, root, 7) * 16 + depth(t, root);
}
"""
VIRTUAL = """
struct Shape { int a; DEVICE Shape(int a) : a(a) {} DEVICE virtual int area(int n) const = 0;
    DEVICE virtual int twice(int n) const { return 2 * area(n); } };
struct Square : Shape { DEVICE Square(int a) : Shape(a) {}
    DEVICE int area(int n) const override { return n <= 0 ? a * a : area(n - 1) + n; } };
struct Circle : Shape { DEVICE Circle(int a) : Shape(a) {} DEVICE int area(int n) const override { return 3 * a * a; }
    DEVICE int twice(int n) const override { return n > 2 ? 7 * twice(n - 2) : area(n) + 1; } };
struct Line : Shape { DEVICE Line(int a) : Shape(a) {} DEVICE int area(int n) const override { Square s(n);
    const Shape &r = s; return n ? r.twice(n / 2) : a; } };
DEVICE int f(int x) {
    Square s(x % 10); Circle c(x % 11); Line l(x % 12);
    const Shape *which[3] = {&s, &c, &l};
    int r = 0;
    for (int i = 0; i < 3 + (x & 3); i++) r = r * 5 + which[(x + i) % 3]->twice(x % 6) - which[x / 3 % 3]->area(i);
    return r;
}
"""
POINTERS = """
DEVICE int add(int a, int b) { return a + b; }
DEVICE int mul(int a, int b) { return a * b + 1; }
DEVICE int down(int a, int b);
typedef int (*Function)(int, int);
DEVICE Function pick(int i) { switch (i & 3) { case 0: return add; case 1: return mul; case 2: return down; default: return 0; } }
DEVICE int down(int a, int b) { if (b <= 0) return a; Function g = pick(b);
    return g && g != down ? g(a, b) + down(a, b - 3) : down(a + 1, b - 1); }
DEVICE int f(int x) { int r = x; for (int i = 0; i < x % 7; i++) { Function g = pick(x >> i);
    if (g) r = g(r, i + x % 9); else r -= i; } return r; }
"""
EXITS = """
DEVICE int f(int x) {
    int r = 0;
    for (int i = 0; i < 20; i++) {
        if (i * 7 % (x % 9 + 2) == 1) continue;
        for (int j = 0; ; j++) {
            if (j > x % 11) break;
            if ((i ^ j) == x % 23) { r += 1000; goto out; }
            switch ((x + i + j) % 7) {
                case 0: r += 3; break;
                case 1: r ^= j; continue;
                case 2: if (x % 31 == i) return r - 5;
                case 3: r += i; break;
                case 4: goto next;
                case 5: while (r % 5) { if (r % 11 == 3) break; r++; }
                default: r = r * 3 + 1;
            }
            if (r > 100000) { r >>= 7; break; }
        }
        next: r += 2;
        do { r++; if (r % 13 == 5) break; } while (r % 17);
    }
    out: return r;
}
"""
BACK = """
DEVICE int f(int x) {
    int r = x, n = 0;
    again: if (++n > 60) return r;
    if (r % 3 == 0) { r /= 3; goto again; }
    if (r % 2 == 0) { r /= 2; if (r % 5 == 1) goto end; goto again; }
    middle: r = r * 5 + 1;
    if (r % 7 == 2 && n < 40) { n++; goto middle; }
    r &= 0xffff;
    if (r > 3) goto again;
    end: return r * 100 + n;
}
"""
LOOPS = """
DEVICE int hailstone(int n) { int s = 0; while (n != 1) { n = n & 1 ? 3 * n + 1 : n / 2; if (++s > 300) break; } return s; }
DEVICE int search(int n, int d) { for (int i = d; i * i <= n; i++) { if (n % i == 0) return i + search(n / i, i); } return n; }
DEVICE int f(int x) { int r = 0; for (int i = x % 5; i < 6; i++) { if ((x ^ i) & 1) r += hailstone(x % 97 + i + 1);
    else if (i == 4) continue; else r -= search(x % 211 + 2, 2); } return r; }
"""
PROGRAMS = {"walk": WALK, "fib": FIB, "ackermann": ACKERMANN, "mutual": MUTUAL, "quicksort": QUICKSORT, "tree": TREE, "virtual": VIRTUAL,
            "pointers": POINTERS, "exits": EXITS, "back": BACK, "loops": LOOPS}
KERNEL = """
extern "C" __global__ void k(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, x = in[i], r = 0;
    CALL
    out[i] = r;
}"""
# How the kernel calls the function: all lanes at once; some twice and some never; with warp functions and a barrier between.
CALLS = {
    "all": "r = f(x);",
    "some": "if (x % 5 == 1) r = f(x) + f(x + 1); else if (x % 5 < 4) for (int n = 0; n < x % 4; n++) r += f(x + n);",
    "between": "r = f(x); __syncthreads(); if (x & 1) r += f(x / 2); __syncwarp(); r += __shfl_sync(~0u, 0, 3) + (x & 6 ? f(x + 3) : 1); "
               "__syncthreads();",
}
HOST = """
int __shfl(int x) { return x; }
extern "C" void host(const int *in, int *out, int n) { for (int i = 0; i < n; i++) { int x = in[i], r = 0; CALL out[i] = r; } }
"""


@pytest.fixture
def gpu():
    device = cuda.Gpu(stack=1 << 14)
    yield device
    device.close()


def compiler():
    """This machine's C++ compiler, or the one that we link with, where there is none."""
    own = os.environ.get("CXX", "c++")
    return [own] if shutil.which(own) else [ZIG, "-m", "ziglang", "c++", "-fno-sanitize=all"]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """What a program gives for every input, however it is called."""
    folder, made = tmp_path_factory.mktemp("host"), {}

    def results(name, how, values):
        if (name, how) not in made:
            call = CALLS[how].replace("__syncthreads();", "").replace("__syncwarp();", "").replace("__shfl_sync(~0u, 0, 3)", "0")
            source = folder / f"{name}-{how}.cpp"
            source.write_text(PROGRAMS[name].replace("DEVICE", "") + HOST.replace("CALL", call))
            library = source.with_suffix(".so")
            subprocess.run([*compiler(), "-O1", "-fwrapv", "-shared", "-fPIC", "-w", "-o", library, source], check=True)
            out = numpy.zeros_like(values)
            ctypes.CDLL(str(library)).host(ctypes.c_void_p(values.ctypes.data), ctypes.c_void_p(out.ctypes.data), len(values))
            made[name, how] = out
        return made[name, how]

    return results


@pytest.mark.parametrize("how", CALLS)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("way", cuda.TRIED)
def test_every_lane_computes_what_a_thread_does(gpu, reference, way, name, how):
    values = numpy.random.default_rng(7).integers(0, 1 << 20, N).astype(numpy.int32)
    values[:64] = numpy.arange(64)
    out = numpy.zeros(N, numpy.int32)
    source = PROGRAMS[name].replace("DEVICE", "__device__") + KERNEL.replace("CALL", CALLS[how])
    gpu.launch(gpu.kernel(cuda.compiled(source, way), "k"), 4, 96, values, out)
    want = reference(name, how, values)
    assert (out == want).all(), (values[out != want][:8], out[out != want][:8], want[out != want][:8])
