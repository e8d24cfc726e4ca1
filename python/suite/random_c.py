"""Random C programs (Csmith) run as kernels, and the host's compiler says what is right (`make test-random`).

Csmith writes C programs without undefined behaviour, to find mistakes of compilers. Here each program becomes a class: its globals are
members, and its functions are methods. So each of 96 threads executes the program with globals of its own in global memory. The number of
the thread changes the first values of some globals, so that the lanes of a warp take different ways through the same branches, loops,
pointers, bit fields and calls. The hash of all globals at the end must be the one that a program for the host computes, which g++ makes of
the same text. Integers are exact in C, and programs with floats are compiled without FMA, so each bit has to be the same. The checker must
have no report.

A program that the host does not end in a second is left out, and so are one with an undefined conversion and what a compiler cannot
compile. NVRTC optimises some programs, and others are compiled with -G or with ptxas -O1, which keep more variables in memory.

NVRTC of CUDA 13 compiles, unless NVRTC_PATH names another one. That of CUDA 12.9 has mistakes: for the seeds 71196 and 72096 its ptxas -O2
exchanges two stores to one address.

usage: random_c.py [--first SEED] [--count N] [--check MODES]
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).parents[1] / "tests"))
import cuda  # noqa: E402

THREADS = 96
# The host may execute a program for so many seconds, all threads together.
LIMIT_S = 1.0
# Csmith's own library of operations that never overflow. It takes its types and the names of its functions from PRELUDE.
SAFE_MATH = pathlib.Path("/usr/include/csmith/safe_math.h")
SIZES = ((8, "", ""), (16, "", ""), (32, "", "u"), (64, "l", "ul"))
LIMITS = "\n".join(f"""#define INT{bits}_MAX {2 ** (bits - 1) - 1}{signed}
#define INT{bits}_MIN (-INT{bits}_MAX - 1)
#define UINT{bits}_MAX {2**bits - 1}{unsigned}""" for bits, signed, unsigned in SIZES)
# `NULL` is often the right side of a comma here, where C++ takes nothing but `nullptr` for a pointer.
PRELUDE = f"""
#ifdef __CUDACC__
typedef signed char int8_t; typedef short int16_t; typedef int int32_t; typedef long int64_t;
typedef unsigned char uint8_t; typedef unsigned short uint16_t; typedef unsigned uint32_t; typedef unsigned long uint64_t;
{LIMITS}
#define INT_MAX INT32_MAX
#define INT_MIN INT32_MIN
#define CHAR_BIT 8
#define FLT_MAX 0x1.fffffep+127f
#define DBL_MAX 0x1.fffffffffffffp+1023
#else
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdio>
#endif
#undef NULL
#define NULL nullptr
#define STATIC static inline
#define FUNC_NAME(name) safe_##name
#define UNDEFINED(value) value
#define LOG_INDEX
#define LOG_EXEC
"""
HASH = """
    uint64_t hash = 0xcbf29ce484222325ull;
    void transparent_crc(uint64_t value, const char *, int) { hash = (hash ^ value) * 0x100000001b3ull; hash ^= hash >> 29; }
    void transparent_crc_bytes(const volatile void *bytes, int count, const char *, int) {
        for (int i = 0; i < count; i++) transparent_crc(((const volatile unsigned char *)bytes)[i], "", 0);
    }
"""
ROOM = "(sizeof(Program) + 255) / 256 * 256"
HOST = f"""
int main() {{
    printf("%lu\\n", (unsigned long)({ROOM}));
    for (int thread = 0; thread < {THREADS}; thread++) printf("%lu\\n", (unsigned long)(new Program())->run(thread));
}}
"""
KERNEL = f"""
struct Place {{ void *at; }};
inline void *operator new(unsigned long, Place place) {{ return place.at; }}
extern "C" __global__ void execute(uint64_t *hashes, char *room) {{
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    hashes[thread] = (new (Place{{room + thread * ({ROOM})}}) Program())->run(thread);
}}
"""
# Csmith lets floats become integers that cannot hold them, which C does not define. Such a program ends with an error.
GPLUSPLUS = ("g++", "-w", "-O1", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-fpermissive", "-std=c++17",
             "-fsanitize=float-cast-overflow", "-fno-sanitize-recover=float-cast-overflow")
# `Device.compile` makes functions and variables without a mark those of the GPU.
NVRTC = ("--fmad=false", "--std=c++17", "-w")
WAYS = {"optimised": (), "-G": ("--device-debug",), "ptxas -O1": ("--ptxas-options=-O1",)}
# C++ does not copy volatile structures, so a program has either these or volatile variables.
KINDS = (("--no-volatiles", "--no-volatile-pointers"), ("--no-structs", "--no-unions"),
         ("--no-volatiles", "--no-volatile-pointers", "--float"), ("--no-structs", "--no-unions", "--float"))


def as_class(text: str) -> str:
    """Makes a class of a program of Csmith."""
    main = re.search(r"^int main \(void\)\n\{\n(.*?)^\}", text, re.M | re.S)
    lines, salts = [], []
    for line in text[: main.start()].splitlines():
        forward = re.match(r"static .*\bfunc_\d+\(.*\);$", line)
        if line.startswith(("#include", "static long __undefined")) or forward:
            continue
        lines.append(re.sub("^static ", "", line))
        scalar = re.match(r"static (?:volatile )?(u?int(?:8|16|32|64)_t) (g_\d+) = ", line)
        if scalar:
            salts.append(salt(len(salts), *scalar.groups()))
    body = re.sub(r"if \(print_hash_value\) printf\([^;]*;", ";", main[1])
    body = re.sub(r"int print_hash_value = 0;|platform_main_\w+\(.*\);|crc32_gentab\(\);|return 0;", "", body)
    run = ["    uint64_t run(unsigned long long thread) {", *salts, body.replace("print_hash_value", "0"), "        return hash;", "    }"]
    return "\n".join(["struct Program {", *lines, HASH, *run, "};"])


def salt(number: int, kind: str, name: str) -> str:
    """A statement with which some threads change a global before the program begins."""
    if number % 3 == 1:
        return ""
    factor = 0x9E3779B97F4A7C15 >> number % 3 * 8
    return f"        if (thread & {1 << number % 6}) {name} ^= ({kind})(thread * {factor}ull >> {number * 7 % 40});"


def on_host(text: str, place: pathlib.Path) -> list[int] | None:
    """The bytes of a thread's globals, and the hash of each thread, or nothing if the program does not end."""
    (place / "host.cpp").write_text(text + HOST)
    if subprocess.run([*GPLUSPLUS, "-o", "host", "host.cpp"], cwd=place, capture_output=True, check=False).returncode != 0:
        return None
    try:
        done = subprocess.run([place / "host"], capture_output=True, text=True, timeout=LIMIT_S, check=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        return None
    return [int(line) for line in done.stdout.split()]


def judged(seed: int) -> str:
    """Runs the program of a seed in this process, and says what came of it."""
    import tegrarm

    kind, way = KINDS[seed % len(KINDS)], list(WAYS)[seed // len(KINDS) % len(WAYS)]
    options = ["--seed", str(seed), "--lang-cpp", "--no-argc", "--concise", "--no-packed-struct", *kind]
    with tempfile.TemporaryDirectory() as place:
        # Csmith writes a file about the host into the folder in which it runs.
        program = subprocess.run(["csmith", *options], cwd=place, capture_output=True, text=True, check=True).stdout
        text = PRELUDE + SAFE_MATH.read_text() + as_class(program)
        right = on_host(text, pathlib.Path(place))
    if right is None:
        return "left out by the host"
    room, hashes = right[0], right[1:]
    try:
        with tegrarm.Device() as device:
            kernel = device.compile(text + KERNEL, options=(*NVRTC, *WAYS[way]))["execute"]
            out, globals_ = device.array([0] * THREADS, "int64"), device.array([0] * (THREADS * room // 8), "int64")
            kernel[THREADS // 32, 32](out, globals_)
            device.wait()
            found = [number % 2**64 for number in out.tolist()]
    except tegrarm.CompileError:
        return "left out by NVRTC"
    except tegrarm.RmError as error:
        return f"FAILED, {way}: {error}"
    wrong = [thread for thread in range(THREADS) if found[thread] != hashes[thread]]
    return f"FAILED, {way}: wrong in {len(wrong)} threads, first in {wrong[0]}" if wrong else f"right, {way}"


def apart(seed: int) -> str:
    """Runs the program of a seed in a process of its own, and says what came of it and what the checker said."""
    child = subprocess.run([sys.executable, __file__, "--only", str(seed)], capture_output=True, text=True, check=False)
    if child.returncode != 0:
        return f"FAILED: status {child.returncode} of the process\n{child.stdout}{child.stderr[-2000:]}"
    return child.stdout.strip()


def main() -> int:
    """Runs programs, and prints a table of what came of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=1, metavar="SEED", help="the first seed")
    parser.add_argument("--count", type=int, default=200, metavar="N", help="so many programs")
    parser.add_argument("--check", default="memory,init,race=strict", metavar="MODES", help="the checks of the checker, or off")
    parser.add_argument("--only", type=int, metavar="SEED", help="one program, in this process")
    options = parser.parse_args()
    if options.only is not None:
        print(judged(options.only))
        return 0
    if not shutil.which("csmith") or not SAFE_MATH.exists():
        sys.exit("random_c.py: install Debian's packages csmith and libcsmith-dev")
    os.environ["TEGRARM_BACKEND"] = "sim"
    os.environ.setdefault("NVRTC_PATH", str(cuda.installed(cuda.PLACES["13"][0])))
    if options.check != "off":
        os.environ |= {"TEGRARM_SIM_CHECK": options.check, "TEGRARM_SIM_CHECK_EXIT": "3"}
    table: collections.Counter[str] = collections.Counter()
    seeds = range(options.first, options.first + options.count)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for seed, what in zip(seeds, pool.map(apart, seeds), strict=True):
            table[what.split(":")[0]] += 1
            if what.startswith("FAILED"):
                print(f"seed {seed}: {what}", flush=True)
    print("\n".join(f"{count:6} {what}" for what, count in sorted(table.items())))
    return any(what.startswith("FAILED") for what in table) or not any(what.startswith("right") for what in table)


if __name__ == "__main__":
    sys.exit(main())
