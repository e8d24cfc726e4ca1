#!/usr/bin/env python3
"""Compiles the same kernels with NVRTC of every CUDA from 11.8 on, runs all of them, and compares their results bit for bit.

usage: compilers --cache FOLDER [VERSION...]

VERSION is that of a wheel of NVRTC; without one, all of WHEELS are taken. The wheels are downloaded into FOLDER/compilers once. The status
is 1 if a kernel was refused by its compiler or the library, or if its results differ from those of another compiler.
"""
import argparse
import collections
import ctypes
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))
import cuda  # noqa: E402
import numpy  # noqa: E402

# One version of each CUDA. A package contains the compiler of one CUDA, and no headers.
WHEELS = ("11.8.89", "12.0.140", "12.1.105", "12.2.140", "12.3.107", "12.4.127", "12.5.82", "12.6.85", "12.8.93", "12.9.86",
          "13.0.88", "13.1.115", "13.2.86", "13.3.33", "13.4.92", "13.5.37")
PACKAGES = {"11": "nvidia-cuda-nvrtc-cu11", "12": "nvidia-cuda-nvrtc-cu12"}
THREADS, BLOCKS = 64, 3
N = THREADS * BLOCKS

# The body of a kernel that makes another number of the number `x` of each thread, what stands in front of it, and what its declaration has.
Kernel = collections.namedtuple("Kernel", "name before body bounds", defaults=("",))
POINTERS = """
__device__ unsigned triple(unsigned x) { return x * 3; }
__device__ unsigned squared(unsigned x) { return x * x + 1; }
__device__ unsigned chosen(unsigned x) {
    switch (x % 9) {
    case 0: x ^= 77; break;  case 1: x *= 5; break;  case 2: x = ~x; break;  case 3: x /= 7; break;  case 4: x -= 8; break;
    case 5: x = x << 3 | x >> 29; break;  case 6: x %= 1001; break;  case 7: x += 99; break;
    }
    return x;
}
__device__ unsigned (*table[3])(unsigned) = {triple, squared, chosen};
"""
CLASSES = """
struct Shape { virtual __device__ unsigned area(unsigned x) = 0; virtual __device__ ~Shape() {} };
struct Square : Shape { unsigned *left; __device__ unsigned area(unsigned x) { return x * x; } __device__ ~Square() { *left += 5; } };
struct Strip : Shape { unsigned *left; __device__ unsigned area(unsigned x) { return 7 * x; } __device__ ~Strip() { *left ^= 9; } };
__device__ __noinline__ unsigned measured(Shape *s, unsigned x) { return s->area(x); }
"""
KERNELS = [
    Kernel("plain", "", "x = x * 2654435761u + n;"),
    Kernel("launch bounds", "", "x ^= x >> 5;", "__launch_bounds__(128, 2)"),
    Kernel("recursion", "__device__ unsigned fib(unsigned n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }\n", "x = fib(x % 13);"),
    Kernel("warp", "", "x += __shfl_xor_sync(~0u, x, 1); x ^= __shfl_down_sync(~0u, x, 2); x += __reduce_add_sync(~0u, x & 255);"
           "x ^= __ballot_sync(~0u, x & 1) ^ __match_any_sync(~0u, x & 3);"),
    Kernel("shared", "", "__shared__ unsigned own[64]; own[threadIdx.x] = x; __syncthreads();"
           "x = own[63 - threadIdx.x] + own[threadIdx.x ^ 5];" 'asm volatile("bar.sync 3, 64;");'),
    Kernel("atomics", "__device__ unsigned sum, one; __device__ unsigned short small[2];\n",
           "atomicAdd_system(&sum, 3); atomicMax(&one, x); __threadfence_system();"
           "atomicCAS(small, (unsigned short)0, (unsigned short)7); x += small[0];"),
    Kernel("pointers", POINTERS, "x = table[x % 3](x);"),
    Kernel("classes", CLASSES, "unsigned left = x; Square square; Strip strip; square.left = strip.left = &left;"
           "Shape *s = x & 1 ? (Shape *)&square : &strip; x = measured(s, x); s->~Shape(); x += left;"),
    Kernel("constants", "__constant__ unsigned numbers[8] = {3, 1, 4, 1, 5, 9, 2, 6};\n",
           "x += numbers[x & 7] + numbers[threadIdx.x & 3];"),
    Kernel("doubles", "", "double d = x + 0.5; d = sqrt(d) / 3.0 + fma(d, d, 1.25); x ^= __double2loint(d) ^ __double2hiint(d);"),
    Kernel("singles", "", "float f = x % 1000 + 0.25f; f = sqrtf(f) / 3.0f + fmaf(f, f, 1.25f); x ^= __float_as_uint(f);"),
    Kernel("division", "", "unsigned long long l = x * 123456789012345ull + 1;"
           "x ^= (unsigned)(l / (x % 97 + 1)) + (unsigned)(l % (x % 89 + 1));"),
    Kernel("local", "", "unsigned a[40]; for (int i = 0; i < 40; i++) a[i] = x * i; x = a[x % 40] + a[n % 40];"),
    Kernel("heap", "", "unsigned *p = (unsigned *)malloc(64); p[x % 16] = x + 1; x = p[x % 16]; free(p);"),
    Kernel("printf", "", 'if (x == 1u << 31) printf("never %u\\n", x); x += 2;'),
    Kernel("trap", "", "if (x == 1u << 31) __trap(); x -= 3;"),
    Kernel("barriers", "", "__shared__ unsigned long long b; unsigned at = (unsigned)__cvta_generic_to_shared(&b);"
           'if (!threadIdx.x) asm volatile("mbarrier.init.shared.b64 [%0], 64;" :: "r"(at)); __syncthreads(); unsigned long long state;'
           'asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(state) : "r"(at)); unsigned over = 0;'
           'while (!over) asm volatile("{.reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"'
           ' : "=r"(over) : "r"(at), "l"(state)); x += over;'),
    Kernel("cp.async", "", "__shared__ unsigned four[4 * 64]; unsigned at = (unsigned)__cvta_generic_to_shared(four + 4 * threadIdx.x);"
           'asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" :: "r"(at), "l"(in + (i & ~3)) : "memory");'
           'asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory"); x = four[4 * threadIdx.x + (x & 3)];'),
    Kernel("mma", "", "unsigned c[2] = {0, 0}, a = 0x3c003c00u;"
           'asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1},{%2,%2,%2,%2},{%2,%3},{%0,%1};"'
           ' : "+r"(c[0]), "+r"(c[1]) : "r"(a), "r"(0x40004000u)); x ^= c[0] ^ c[1];'),
    Kernel("z", "", "x += blockIdx.z + 3 * gridDim.z + 5 * blockDim.x;"),
]
# CUDA 12.1 and later take more than 4,096 bytes of parameters.
LARGE = {size: """struct B { unsigned v[SIZE]; };
extern "C" __global__ void k(const __grid_constant__ B b, unsigned *out, const unsigned *in, unsigned n) {
    const unsigned *from = n & 1 ? b.v : in;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = b.v[i % SIZE] + from[7] + b.v[SIZE - 1];
}""".replace("SIZE", str(size)) for size in (64, 8000)}


def source(kernel):
    """The text of a kernel."""
    return (f'{kernel.before}extern "C" __global__ void {kernel.bounds} k(unsigned *out, const unsigned *in, unsigned n) {{\n'
            f"unsigned i = blockIdx.x * blockDim.x + threadIdx.x, x = in[i];\n{kernel.body}\nout[i] = x; }}")


def sources():
    """All kernels by their names: the text, and the bytes of a parameter in front of the others."""
    plain = {kernel.name: (source(kernel), None) for kernel in KERNELS}
    return plain | {f"{4 * size} bytes of parameters": (text, numpy.arange(size, dtype=numpy.uint32) * 31) for size, text in LARGE.items()}


def result(gpu, cubin, first):
    """What a kernel writes."""
    numbers = (numpy.arange(N, dtype=numpy.uint32) * numpy.uint32(40503)) >> numpy.uint32(3)
    out = numpy.zeros(N, numpy.uint32)
    before = [] if first is None else [numpy.void(first.tobytes())]
    gpu.launch(gpu.kernel(cubin, "k"), BLOCKS, THREADS, *before, out, numbers, numpy.uint32(5))
    return out.tobytes()


def results(way):
    """The result of each kernel, compiled in one way: its bytes, or why the compiler did not take it. A refused kernel raises RmError."""
    found = {}
    gpu = cuda.Gpu()
    for name, (text, first) in sources().items():
        try:
            cubin = cuda.compiled(text, way)
        except ValueError as why:
            found[name] = str(why).strip().splitlines()[0]
            continue
        found[name] = result(gpu, cubin, first)
    gpu.close()
    return found


def differing(all_results):
    """The kernels whose results differ: each name with the ways that have each result."""
    different = {}
    for name in sources():
        ways = collections.defaultdict(list)
        for way, of in all_results.items():
            if isinstance(of[name], bytes):
                ways[of[name]].append(way)
        if len(ways) != 1:
            different[name] = list(ways.values())
    return different


def fetched(version, cache):
    """The compiler of a wheel."""
    folder = cache / "compilers" / version
    if not (folder / ".installed").exists():
        package = PACKAGES.get(version.split(".")[0], "nvidia-cuda-nvrtc")
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target", folder,
                        f"{package}=={version}"], check=True)
        (folder / ".installed").touch()
    # Not every compiler finds its second library by itself. One that is loaded already is found.
    for builtins in folder.glob("nvidia/*/lib/libnvrtc-builtins.so.*"):
        ctypes.CDLL(str(builtins))
    found, = (p for p in folder.glob("nvidia/*/lib/libnvrtc.so.*") if "alt" not in p.name)
    return found


def lacking(way, found):
    """The kernels that a compiler should have taken, and did not."""
    version = tuple(map(int, way.split()[0].split(".")[:2]))
    return [name for name, result in found.items() if isinstance(result, str) and (version >= (12, 1) or "bytes of parameters" not in name)]


def main():
    """Runs the command line that is described above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True)
    parser.add_argument("versions", nargs="*", metavar="VERSION", default=WHEELS)
    given = parser.parse_args()
    found, bad = {}, 0
    for version in given.versions:
        cuda.PLACES[version] = (str(fetched(version, given.cache)), *cuda.PLACES["12"][1:])
        for way, options in ((version, ()), (f"{version} -G", ("--device-debug",))):
            cuda.WAYS[way] = (version, *options)
            found[way] = results(way)
            bad += len(lacking(way, found[way]))
            not_taken = [f"{name} ({why})" for name, why in found[way].items() if isinstance(why, str)]
            taken = f"{way:14} {len(found[way]) - len(not_taken):3} of {len(found[way])} kernels"
            print("; not compiled: ".join([taken, *not_taken]), flush=True)
    different = differing(found)
    for name, ways in different.items():
        print(f"{name}: the results differ between {ways}")
    print(f"{len(found)} ways to compile, {len(sources()) - len(different)} of {len(sources())} kernels with the same results in all")
    return int(bool(different or bad))


if __name__ == "__main__":
    sys.exit(main())
