"""Kernels with seeded bugs for the checker."""

# Each bug: what the report begins with, its code, and the kernel's launch. The line with BUG has it; a line with OTHER, if there is
# one, is the report's second place. `also` is what else the report says.
GRID, BLOCK = 1, 64
BUGS = {}


def bug(name, says, code, grid=GRID, block=BLOCK, arguments=(("int32", 100), 0), also="", **options):
    BUGS[name] = (says, also, code, grid, block, arguments, options)


# Bounds of buffers. The first argument has 100 numbers, which are 400 bytes of a page of 4,096.
for how, statement, what in [
    ("load", "p[0] = p[i];", "load of 4"), ("store", "p[i] = 1;", "store of 4"), ("atomic", "p[0] = atomicAdd(p + i, 1);", "atomic of 4"),
    ("reduction", "atomicMax(p + i, 1);", "atomic of 4"), ("swap", "p[0] = atomicCAS(p + i, 1, 2);", "atomic of 4"),
    ("byte", "((char *)p)[4 * i] = 1;", "store of 1"), ("half", "((short *)p)[2 * i] = 1;", "store of 2"),
    ("wide load", "p[0] = ((volatile int4 *)p)[i / 4].x;", "load of 4"),
    ("wide store", "((int4 *)p)[i / 4] = make_int4(1, 2, 3, 4);", "store of 16"),
]:
    bug(f"global {how}", f"memory: global {what} bytes at 0x", f"""
extern "C" __global__ void k(int *p, int zero) {{
    int i = zero + 100 + threadIdx.x;
    if (threadIdx.x == 5)
        {statement} // BUG
}}""")
bug("global straddling", "memory: global store of 8 bytes", """
extern "C" __global__ void k(int *p, int zero) {
    int i = zero + (int)threadIdx.x;
    ((long long *)p)[i] = i; // BUG
}""", block=32, arguments=(("int32", 63), 0))
bug("global last word", "memory: global load of 16 bytes", """
extern "C" __global__ void k(int *p, int zero) {
    int4 x = ((int4 *)p)[zero + threadIdx.x]; // BUG
    p[threadIdx.x] = x.x * x.y + x.z * x.w;
}""", block=25, arguments=(("int32", 99), 0), also="of which the last 4 are past the end of the 396-byte buffer")
bug("global generic", "memory: global store of 4 bytes", """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int own[64];
    int *at = threadIdx.x < 32 + zero ? own + threadIdx.x : p + 80 + threadIdx.x - 32;
    *at = zero; // BUG
    __syncthreads();
    p[0] = own[zero];
}""")
bug("global null", "memory: global load of 4 bytes at 0x8, which is a null pointer", """
extern "C" __global__ void k(int *p, int zero) {
    p[0] = *(int *)(long long)(zero + 8); // BUG
}""")
bug("global async copy", "memory: global load of 16 bytes", """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int4 own[64];
    unsigned to = __cvta_generic_to_shared(own + threadIdx.x);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(p + 4 * (threadIdx.x + zero))); // BUG
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    p[threadIdx.x] = own[threadIdx.x].y;
}""")
# Shared arrays, static and dynamic: the block's memory is larger than they are.
for how, statement, what in [
    ("load", "p[0] = own[i];", "load"), ("store", "own[i] = 1;", "store"), ("atomic", "atomicAdd(own + i, 3);", "atomic"),
    ("swap", "atomicCAS(own + i, 1, 3);", "atomic"),
]:
    bug(f"shared {how}", f"memory: shared {what} of 4 bytes at 0x90, outside of the 144 bytes", f"""
extern "C" __global__ void k(int *p, int zero) {{
    __shared__ int own[36];
    if (threadIdx.x < 36) own[threadIdx.x] = zero;
    __syncthreads();
    int i = zero + 31 + threadIdx.x;
    if (threadIdx.x == 5)
        {statement} // BUG
    __syncthreads();
    p[threadIdx.x] = own[zero];
}}""")
bug("shared dynamic", "memory: shared store of 4 bytes at 0x28, outside of the 40 bytes", """
extern "C" __global__ void k(int *p, int zero) {
    extern __shared__ int own[];
    if (threadIdx.x < 11)
        own[threadIdx.x] = zero; // BUG
    __syncthreads();
    p[threadIdx.x] = own[zero];
}""", shared=40)
bug("shared far", "memory: shared store of 4 bytes", """
extern "C" __global__ void k(int *p, int zero) {
    extern __shared__ int own[];
    own[100000 + zero] = zero; // BUG
}""", shared=40)
bug("shared generic", "memory: shared load of 4 bytes at 0x80, outside of the 128 bytes", """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int own[32];
    own[threadIdx.x & 31] = zero;
    __syncthreads();
    volatile int *at = zero ? p : own + 32;
    p[1] = *at; // BUG
}""")
# Local frames.
for how, index, says in [("past", 16, "past the end of the thread's frames"), ("below", -100, "below the frames of the thread")]:
    bug(f"local {how} store", "memory: local store of 4 bytes", f"""
extern "C" __global__ void k(int *p, int zero) {{
    int own[16];
    for (int i = 0; i < 16; i++) own[i + zero] = p[i];
    if (threadIdx.x == 3)
        ((volatile int *)own)[{index} + zero] = 7; // BUG
    p[threadIdx.x] = own[p[3] & 15];
}}""", also=says)
    bug(f"local {how} load", "memory: local load of 4 bytes", f"""
extern "C" __global__ void k(int *p, int zero) {{
    int own[16];
    for (int i = 0; i < 16; i++) own[i + zero] = p[i];
    if (threadIdx.x == 3)
        p[5] = ((volatile int *)own)[{index} + zero]; // BUG
    p[threadIdx.x] = own[p[3] & 15];
}}""", also=says)
# Barriers.
bug("barrier under a condition", "sync: a synchronisation under a condition that is not the same for all threads", """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int own[64];
    own[threadIdx.x] = p[threadIdx.x];
    if (threadIdx.x % 32 < 16)
        __syncthreads(); // BUG
    p[threadIdx.x] = own[63 - threadIdx.x];
}""")
bug("barriers in two branches", "sync: threads of one warp are at different barrier instructions", """
extern "C" __global__ void k(int *p, int zero) {
    if (threadIdx.x % 32 < 16) {
        p[threadIdx.x] = zero;
        asm volatile("bar.sync 0;"); // OTHER
        p[threadIdx.x] += 3;
    } else {
        p[threadIdx.x] = zero + 4;
        asm volatile("bar.sync 0;"); // BUG
        p[threadIdx.x] *= 5;
    }
}""")
bug("barrier that half the block never reaches", "sync: lanes 0xffffffff of warp 0 wait at barrier 1: some threads never come", """
extern "C" __global__ void k(int *p, int zero) {
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1, 64;"); // BUG
    else
        asm volatile("bar.sync 2, 64;"); // OTHER
    p[threadIdx.x] = zero;
}""")
bug("barrier that half a warp never comes to",
    "sync: a barrier that only a part of a warp comes to: lanes 0x0000ffff wait for lanes 0xffff0000", """
extern "C" __global__ void k(int *p, int zero) {
    if (blockIdx.x == 1) {
        for (int i = 0; i < 50; i++) __nanosleep(10000);
        if (threadIdx.x == 0) atomicExch(p + 90, zero - 1);
    } else if (threadIdx.x < 16) {
        p[threadIdx.x] = 1;
        __syncthreads(); // BUG
        p[0] = 2;
    } else if (threadIdx.x < 32) {
        while (((volatile int *)p)[90] != zero - 1); // OTHER
    }
}""", grid=2, also="which go on without them and wait for memory")
bug("barrier with two counts", "sync: threads name barrier 1 with different numbers of threads", """
extern "C" __global__ void k(int *p, int zero) {
    if (threadIdx.x < 32)
        asm volatile("bar.sync 1, 96;"); // OTHER
    else
        asm volatile("bar.sync 1, 64;"); // BUG
    p[threadIdx.x] = zero;
}""", block=96)
bug("barrier for more threads than there are", "sync: barrier 3 waits for 128 threads, and the block has 64", """
extern "C" __global__ void k(int *p, int zero) {
    asm volatile("bar.sync 3, 128;"); // BUG
    p[threadIdx.x] = zero;
}""")
bug("a warp synchronised without oneself", "sync: a thread synchronises with lanes 0x0000ffff of its warp, and is not among them", """
extern "C" __global__ void k(int *p, int zero) {
    int i = threadIdx.x;
    if (i % 32 > 15) {
        p[i] = 3;
        asm volatile("bar.warp.sync %0;" :: "r"(0xffff + zero) : "memory"); p[i ^ 1] += 5; // BUG
    } else
        p[i] = p[i] * p[i + 1];
}""")


# Races in shared memory.
for how, before, after, second in [
    ("load after store", "own[i] = p[i];", "p[i] = own[i ^ 32];", "earlier store"),
    ("store after load", "own[i] = p[i]; __syncthreads(); p[i] = own[i ^ 32];", "own[i] = zero;", "earlier load"),
    ("store after store", "own[i & 31] = i;", "own[(i & 31) + zero] = i + 100;", "earlier store"),
    ("load after atomic", "own[i] = 0; __syncthreads(); atomicAdd(own + (i ^ 32), 1);", "p[i] = own[i];", "earlier store"),
    ("atomic after store", "own[i] = zero;", "atomicAdd(own + (i ^ 32), 1);", "earlier store"),
    ("wide load", "own[i] = p[i];", "p[i] = ((int4 *)own)[i / 4 ^ 8].y;", "earlier store"),
    ("bytes", "((char *)own)[i] = p[i];", "p[i] = ((char *)own)[i ^ 32];", "earlier store"),
    ("a barrier of some", "own[i] = p[i]; if (i < 32) asm volatile(\"bar.sync 1, 32;\"); else asm volatile(\"bar.sync 2, 32;\");",
     "p[i] = own[i ^ 32];", "earlier store"),
]:
    bug(f"shared race: {how}", "race: shared memory at 0x", f"""
extern "C" __global__ void k(int *p, int zero) {{
    __shared__ __align__(16) int own[64];
    int i = threadIdx.x;
    {before} // OTHER
    {after} // BUG
    __syncthreads();
    p[i] += own[i];
}}""", also=f"    {second} by thread")
bug("shared race: a loop with one barrier", "race: shared memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int own[64];
    int i = threadIdx.x, sum = 0;
    for (int n = 0; n < 4 + zero; n++) {
        own[i] = p[i + n]; // BUG
        __syncthreads();
        sum += own[63 - i]; // OTHER
    }
    p[i] = sum;
}""")
bug("shared race: one instruction", "race: shared memory at 0x0 is accessed by threads of one instruction, with different values", """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int own[64];
    own[threadIdx.x / 2] = threadIdx.x; // BUG
    __syncthreads();
    p[threadIdx.x] = own[threadIdx.x];
}""", block=32)
bug("shared race: an asynchronous copy", "race: shared memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int own[64];
    int i = threadIdx.x;
    unsigned to = __cvta_generic_to_shared(own + i);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(p + i)); // OTHER
    asm volatile("cp.async.wait_all;" ::: "memory");
    p[i] = ((volatile int *)own)[i ^ 32]; // BUG
}""")
# Races in global memory: between warps, and between blocks.
bug("global race: warps", "race: global memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    int i = threadIdx.x;
    p[i] = i + 1000; // OTHER
    p[i + 64] = ((volatile int *)p)[i ^ 32]; // BUG
}""", arguments=(("int32", 200), 0))
bug("global race: blocks read what others store", "race: global memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    int i = blockIdx.x * 32 + threadIdx.x;
    int before = i ? p[i - 1] : 0; // BUG
    p[i] = before + 3; // OTHER
}""", grid=3, block=32)
bug("global race: blocks store different values", "race: global memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    if (threadIdx.x == 0)
        p[3] = blockIdx.x + 77; // BUG
}""", grid=3, block=32)
bug("global race: the last block without a fence", "race: global memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int last;
    p[blockIdx.x] = blockIdx.x + 50; // OTHER
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(p + 99, 1) == 99 + gridDim.x - 1;
    __syncthreads();
    if (last) p[50 + threadIdx.x] = p[threadIdx.x % gridDim.x]; // BUG
}""", grid=3, block=32)
bug("global race: a plain store to a counter", "race: global memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    if (threadIdx.x < 32)
        atomicAdd(p + 9, 1); // OTHER
    else
        p[9 + zero] = threadIdx.x; // BUG
}""")
# Values that were never written. The second argument of the kernels is a buffer that nobody has written.
NEVER_WRITTEN = (("int32", 100), ("unwritten", 100), 0)
for how, code, also in [
    ("a number", "p[threadIdx.x] = q[threadIdx.x] + 1; // BUG", "a result of it is stored"),
    ("a branch", "if (q[threadIdx.x] == 5) // BUG\n        p[threadIdx.x] = p[threadIdx.x + 1] * 3 + p[99 - threadIdx.x];", ""),
    ("an address", "p[threadIdx.x] = p[q[threadIdx.x] & 63]; // BUG", "it is part of an address"),
    ("a counter", "atomicAdd(q + 9, 1); // BUG", "an atomic changes it"),
    ("a half", "p[threadIdx.x] = ((short *)q)[threadIdx.x] * 3; // BUG", ""),
    ("one of four", "int4 x = ((int4 *)q)[threadIdx.x]; // BUG\n    p[threadIdx.x] = x.x + x.z;", ""),
    ("a copy of a copy", "int x = q[threadIdx.x]; // BUG\n    x = __shfl_xor_sync(~0u, x, 1);\n    p[threadIdx.x] = x / 3;", ""),
]:
    bug(f"init global: {how}", "init: global memory at 0x", f"""
extern "C" __global__ void k(int *p, int *q, int zero) {{
    {code}
}}""", block=32 if "copy" in how or "four" in how else 64, arguments=(("int32", 100), ("unwritten", 200), 0),
        also=also or "was never written, and")
bug("init global: the rest of a buffer", "init: global memory at 0x", """
extern "C" __global__ void k(int *p, int *q, int zero) {
    if (threadIdx.x < 60) q[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    p[threadIdx.x] = q[63 - threadIdx.x] * 7; // BUG
}""", arguments=NEVER_WRITTEN, also=" 252 bytes into the 400-byte buffer at 0x")
for how, write, read in [
    ("an array", "if (i < 63) own[i] = p[i];", "p[i] = own[63 - i] + 1;"),
    ("a byte", "if (i < 63) ((char *)own)[i] = i;", "p[i] = ((char *)own)[63 - i] + 1;"),
    ("a branch", "if (i != 20) own[i] = p[i];", "if (own[i ^ 1] > 30) p[i] = i * p[i + 3];"),
    ("an atomic", "if (i != 20) own[i] = 0;", "atomicAdd(own + i, 2);"),
    ("an asynchronous copy", "if (i < 60) own[i] = 0; if (i > 61) asm volatile(\"cp.async.ca.shared.global [%0], [%1], 4;\" :: "
     "\"r\"((int)__cvta_generic_to_shared(own + i)), \"l\"(p + i)); asm volatile(\"cp.async.wait_all;\" ::: \"memory\");",
     "p[i] = own[63 - i] + 1;"),
]:
    bug(f"init shared: {how}", "init: shared memory at 0x", f"""
extern "C" __global__ void k(int *p, int zero) {{
    __shared__ int own[64];
    int i = threadIdx.x;
    {write}
    __syncthreads();
    {read} // BUG
    __syncthreads();
    if (zero) p[i] = own[i];
}}""", also="was never written, and")
bug("init shared: dynamic", "init: shared memory at 0x80 was never written", """
extern "C" __global__ void k(int *p, int zero) {
    extern __shared__ int own[];
    if (threadIdx.x != 32) own[threadIdx.x] = p[threadIdx.x];
    __syncthreads();
    float x = own[threadIdx.x]; // BUG
    p[threadIdx.x] = x * x;
}""", shared=256)
for how, read in [("a number", "p[threadIdx.x] = own[p[threadIdx.x] & 15] + 3;"),
                  ("a branch", "if (own[p[threadIdx.x] & 15] == 7) p[threadIdx.x] = p[1] * p[2];")]:
    bug(f"init local: {how}", "init: local memory at 0x", f"""
extern "C" __global__ void k(int *p, int zero) {{
    int own[16];
    for (int i = 0; i < 15; i++) own[i + zero] = p[i];
    {read} // BUG
}}""", block=32, also="was never written, and")
for how, use, also in [
    ("a number", "p[threadIdx.x] = x * 3;", "a result of it is stored"),
    ("a branch", "if (x * 3 == 12) p[threadIdx.x] = p[threadIdx.x + 2] / 7;", ""),
    ("an address", "p[threadIdx.x] = own[x & 31];", "it is part of an address"),
    ("half of the threads", "p[threadIdx.x] = x * 3;", "a result of it is stored"),
]:
    bug(f"init register: {how}", "init: register R", f"""
extern "C" __global__ void k(int *p, int zero) {{
    __shared__ int own[32];
    own[threadIdx.x] = 3;
    int x;
    if ({"threadIdx.x < 16" if "half" in how else "zero"}) {{
        asm volatile("mov.b32 %0, %%clock;" : "=r"(x));
        own[3] = x;
    }}
    asm volatile("" : "+r"(x));
    {use} // BUG
}}""", block=32, also=also or "was never written, and")
# Races that only `race=strict` reports, in the same form.
STRICT = {}


def strict(name, says, code, grid=1, block=32, arguments=(("int32", 200), 0), also="", **options):
    STRICT[name] = (says, also, code, grid, block, arguments, options)


strict("one value by two warps", "race: shared memory at 0x0 is accessed by threads of warps with no barrier between them", """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int found;
    if (threadIdx.x == 0) found = 0;
    __syncthreads();
    if (threadIdx.x % 32 == 3) found = 1; // BUG
    __syncthreads();
    p[threadIdx.x] = found;
}""", block=64, also="does not show which accesses of shared memory are volatile")
strict("one value by two blocks", "race: global memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    if (threadIdx.x == 1) p[50] = 77; // BUG
}""", grid=2, also="of blocks that nothing orders")
strict("one value by one instruction", "race: global memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    if (p[threadIdx.x] & 1) p[150] = 7; // BUG
}""", also="of one warp with one instruction")
strict("a look before an atomic", "race: global memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    int i = blockIdx.x * 32 + threadIdx.x;
    if (p[150] < i + 500) // OTHER
        atomicMax(p + 150, i + 500); // BUG
}""", grid=2, also="only one access is strong")
strict("a look behind an atomic of another block", "race: global memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    if (threadIdx.x == 0 && blockIdx.x == 0) atomicAdd(p + 150, 1); // OTHER
    if (threadIdx.x == 0 && blockIdx.x == 1) p[0] = p[150]; // BUG
}""", grid=2, also="only one access is strong")
for how, between in [("nothing", ""), ("a shuffle", "x = __shfl_xor_sync(~0u, x, 3);"), ("a vote", "x += __any_sync(~0u, x == 5);"),
                     ("a branch", "if (x & 1) p[64 + i] = x; else x++;")]:
    strict(f"lanes with {how} between them", "race: shared memory at 0x", f"""
extern "C" __global__ void k(int *p, int zero) {{
    __shared__ int own[32];
    int i = threadIdx.x, x = p[i];
    own[i] = x; // OTHER
    {between}
    p[i] = own[i ^ 1] + x; // BUG
}}""", also="of one warp, without a __syncwarp between them")
strict("lanes of two tiles", "race: shared memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int own[32];
    int i = threadIdx.x;
    own[i] = p[i]; // OTHER
    unsigned mask = 0xffu << (i / 8 * 8);
    if (zero + (i & 8)) __syncwarp(mask); else __syncwarp(mask);
    int x = own[i ^ 7];
    p[i] = own[i ^ 8] + x; // BUG
}""", also="of one warp")
strict("an atomic for the own block", "race: global memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    if (threadIdx.x == 0) atomicAdd_block(p + 150, 1); // BUG
}""", grid=2, also="with a scope that is only the own block")
strict("a release without the other warps", "race: global memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    int i = threadIdx.x;
    if (blockIdx.x == 0) {
        p[i] = i + 500; // OTHER
        if (i == 63) { __threadfence(); atomicExch(p + 190, -1); }
    } else {
        if (i == 0) { while (atomicAdd(p + 190, 0) != -1) {} __threadfence(); }
        __syncthreads();
        p[100 + i] = p[i]; // BUG
    }
}""", grid=2, block=64)
strict("a load that no fence follows", "race: global memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    int i = threadIdx.x;
    if (blockIdx.x == 0 && i == 0) {
        p[1] = 500; // OTHER
        __threadfence();
        atomicExch(p + 190, -1);
    } else if (i == 0) {
        while (atomicAdd(p + 190, 0) != -1) {}
        p[2] = p[1]; // BUG
    }
}""", grid=2)
strict("a copy that its own thread does not wait for", "race: shared memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int own[64];
    int i = threadIdx.x;
    unsigned to = __cvta_generic_to_shared(own + i);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(p + i) : "memory"); // OTHER
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to + 128), "l"(p + i) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
    if (zero) asm volatile("cp.async.wait_group 1;" ::: "memory");
    p[i] = own[i]; // BUG
    asm volatile("cp.async.wait_all;" ::: "memory");
}""", also="an asynchronous copy that nobody has waited for")
strict("a copy whose source is overwritten", "race: global memory at 0x", """
extern "C" __global__ void k(int *p, int zero) {
    __shared__ int own[32];
    int i = threadIdx.x;
    unsigned to = __cvta_generic_to_shared(own + i);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(p + i) : "memory"); // OTHER
    p[i] = zero + 5; // BUG
    asm volatile("cp.async.wait_all;" ::: "memory");
    p[i] += own[i];
}""", also="an asynchronous copy that nobody has waited for")
