// Kernels of litmus/mixed.rs: accesses of several kinds to the same sixteen bytes, and sums of two grids in the same words.
//
//     python3 ../compile.py libnvrtc.so.12 mixed.cu --device-int128

typedef unsigned int word;
typedef unsigned long long wide;
typedef unsigned short half;

// Both roles begin together.
static __device__ void meet(volatile int *met, int role) {
    if (threadIdx.x == 0) {
        met[32 * role] = 1;
        while (met[32 * (1 - role)] == 0);
    }
    __syncthreads();
}

// Stores sixteen equal bytes. Returns something of what was there, if the way tells, so that an ATOM does not become a RED.
static __device__ wide put(char *p, int way, wide w) {
    word x = (word)w, found = 0;
    half h = (half)w;
    wide old = 0;
    if (way == 0) asm volatile("st.global.v4.u32 [%0], {%1, %1, %1, %1};" :: "l"(p), "r"(x) : "memory");
    if (way == 1) asm volatile("st.global.v2.u64 [%0], {%1, %1};" :: "l"(p), "l"(w) : "memory");
    if (way == 2) asm volatile("st.v4.u32 [%0], {%1, %1, %1, %1};" :: "l"(p), "r"(x) : "memory");
    if (way == 3) asm volatile("{.reg .b128 t; mov.b128 t, {%1, %1}; st.relaxed.gpu.global.b128 [%0], t;}" :: "l"(p), "l"(w) : "memory");
    for (int i = 0; i < 16; i += 8) {
        if (way == 4) asm volatile("st.global.u64 [%0], %1;" :: "l"(p + i), "l"(w) : "memory");
        if (way == 5) asm volatile("st.v2.u32 [%0], {%1, %1};" :: "l"(p + i), "r"(x) : "memory");
        if (way == 6) asm volatile("atom.global.exch.b64 %0, [%1], %2;" : "=l"(old) : "l"(p + i), "l"(w) : "memory");
        if (way == 7) {
            asm volatile("ld.relaxed.gpu.u64 %0, [%1]; atom.cas.b64 %0, [%1], %0, %2;" : "=&l"(old) : "l"(p + i), "l"(w) : "memory");
        }
    }
    for (int i = 0; i < 16; i += 4) {
        if (way == 8) asm volatile("st.global.u32 [%0], %1;" :: "l"(p + i), "r"(x) : "memory");
        if (way == 9) asm volatile("atom.exch.b32 %0, [%1], %2;" : "=r"(found) : "l"(p + i), "r"(x) : "memory");
    }
    for (int i = 0; i < 16; i += 2) if (way == 10) asm volatile("st.global.u16 [%0], %1;" :: "l"(p + i), "h"(h) : "memory");
    for (int i = 0; i < 16; i++) if (way == 11) asm volatile("st.u8 [%0], %1;" :: "l"(p + i), "r"(x) : "memory");
    return old + found;
}

// Loads sixteen bytes. `own` is shared memory of the lane.
static __device__ void get(char *p, int way, uint4 *own, wide &a, wide &b) {
    word x = 0, y = 0, z = 0, t = 0;
    if (way == 0) asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(t) : "l"(p) : "memory");
    if (way == 1) asm volatile("ld.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x), "=r"(y), "=r"(z), "=r"(t) : "l"(p) : "memory");
    a = x | (wide)y << 32, b = z | (wide)t << 32;
    if (way == 2) asm volatile("ld.global.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "l"(p) : "memory");
    if (way == 3) asm volatile("{.reg .b128 t; ld.relaxed.gpu.global.b128 t, [%2]; mov.b128 {%0, %1}, t;}" : "=l"(a), "=l"(b) : "l"(p) : "memory");
    word at = (word)__cvta_generic_to_shared(own);
    if (way == 4) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(at), "l"(p) : "memory");
    for (int i = 0; i < 16; i += 8) {
        wide w = 0;
        if (way == 5) asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"(at + i), "l"(p + i) : "memory");
        if (way == 6) asm volatile("ld.global.u64 %0, [%1];" : "=l"(w) : "l"(p + i) : "memory");
        if (way == 7) {
            asm volatile("ld.v2.u32 {%0, %1}, [%2];" : "=r"(x), "=r"(y) : "l"(p + i) : "memory");
            w = x | (wide)y << 32;
        }
        if (way == 8) asm volatile("atom.global.or.b64 %0, [%1], 0;" : "=l"(w) : "l"(p + i) : "memory");
        (i ? b : a) |= w;
    }
    for (int i = 0; i < 16; i += 4) {
        word w = 0;
        if (way == 9) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at + i), "l"(p + i) : "memory");
        if (way == 10) asm volatile("ld.global.u32 %0, [%1];" : "=r"(w) : "l"(p + i) : "memory");
        if (way == 11) asm volatile("atom.or.b32 %0, [%1], 0;" : "=r"(w) : "l"(p + i) : "memory");
        (i < 8 ? a : b) |= (wide)w << 8 * (i & 7);
    }
    for (int i = 0; i < 16; i += 2) {
        half h = 0;
        if (way == 12) asm volatile("ld.global.u16 %0, [%1];" : "=h"(h) : "l"(p + i) : "memory");
        (i < 8 ? a : b) |= (wide)h << 8 * (i & 7);
    }
    if (way == 4 || way == 5 || way == 9) {
        asm volatile("cp.async.wait_all;" ::: "memory");
        asm volatile("ld.shared.v2.u64 {%0, %1}, [%2];" : "=l"(a), "=l"(b) : "r"(at) : "memory");
    }
}

// Whether each `unit` bytes are equal.
static __device__ bool whole(wide x, int unit) {
    wide mask = unit >= 8 ? ~0ull : (1ull << 8 * unit) - 1;
    for (int i = 0; i < 8; i += unit) {
        wide part = x >> 8 * i & mask;
        if (part != ((part & 0xff) * 0x0101010101010101ull & mask)) return false;
    }
    return true;
}

// Role 0 stores sixteen bytes again and again, role 1 loads them. What is both stored and loaded at once has equal bytes: `unit` of them.
extern "C" __global__ void mixed(char *v, word *wrong, volatile int *met, int role, int way, int unit, int rounds, int stride) {
    __shared__ uint4 own[32];
    char *p = v + (wide)threadIdx.x * stride;
    meet(met, role);
    for (int round = 0; round < rounds; round++) {
        if (role == 0) {
            if (put(p, way, (round & 0xff) * 0x0101010101010101ull) == 1) atomicAdd(wrong, 1);
        } else {
            wide a, b;
            get(p, way, own + threadIdx.x, a, b);
            if (!whole(a, unit) || !whole(b, unit) || unit == 16 && a != b) atomicAdd(wrong, 1);
        }
    }
}

// Both roles add one to a word of each lane, `rounds` times.
extern "C" __global__ void sums(char *v, volatile int *met, int role, int way, int size, int rounds) {
    char *p = v + (wide)threadIdx.x * size;
    meet(met, role);
    word x = 0;
    wide w = 0;
    half h = 0;
    for (int round = 0; round < rounds; round++) {
        if (way == 0) asm volatile("red.global.add.u32 [%0], 1;" :: "l"(p) : "memory");
        if (way == 1) asm volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(x) : "l"(p) : "memory");
        if (way == 2) asm volatile("red.global.add.u64 [%0], 1;" :: "l"(p) : "memory");
        if (way == 3) asm volatile("atom.add.u64 %0, [%1], 1;" : "=l"(w) : "l"(p) : "memory");
        if (way == 4) asm volatile("red.global.add.noftz.f16x2 [%0], %1;" :: "l"(p), "r"(0x3c003c00) : "memory");
        if (way == 5) asm volatile("atom.global.add.noftz.f16x2 %0, [%1], %2;" : "=r"(x) : "l"(p), "r"(0x3c003c00) : "memory");
        if (way == 6) asm volatile("red.global.add.noftz.f16 [%0], %1;" :: "l"(p), "h"((half)0x3c00) : "memory");
        if (way == 7) {
            half old;
            do {
                asm volatile("ld.relaxed.gpu.global.u16 %0, [%1];" : "=h"(old) : "l"(p) : "memory");
                asm volatile("atom.global.cas.b16 %0, [%1], %2, %3;" : "=h"(h) : "l"(p), "h"(old), "h"((half)(old + 1)) : "memory");
            } while (h != old);
        }
        if (way == 8) asm volatile("red.global.add.f32 [%0], %1;" :: "l"(p), "f"(1.0f) : "memory");
        if (way == 9) asm volatile("red.global.add.f64 [%0], %1;" :: "l"(p), "d"(1.0) : "memory");
    }
    // An ATOM of which nothing is used would become a RED.
    if (x + w + h == ~0u) met[1] = 1;
}
