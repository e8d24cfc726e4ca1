// Kernels of litmus.rs: tests of the memory model.
//
//     python3 ../compile.py libnvrtc.so.12 litmus.cu --device-int128

typedef unsigned int word;
typedef unsigned long long wide;

// An instruction of a role: what it does (bits 0 to 2), the logarithm of its bytes (4 to 6), whether it is an acquire, a release or a
// fence.sc (7), its scope (8 and 9), its place (12), and what it writes or where its result goes (16 to 18).
#define KIND(op) (op & 7)
#define BYTES(op) (1 << (op >> 4 & 7))
#define STRONG(op) (op >> 7 & 1)
#define SCOPE(op) (op >> 8 & 3)
#define PLACE(op) (op >> 12 & 1)
#define DATA(op) (op >> 16 & 7)
enum { NOTHING, STORE, LOAD, FENCE, REDUCE };

// What a load returns if it finds a part of what was stored.
#define TORN 0xbad

#define SCOPED(MAKE) MAKE(cta) MAKE(gpu) MAKE(sys)

#define ACCESSES(s) \
static __device__ void store_##s(char *p, int bytes, bool strong, word x) { \
    wide w = 0x0101010101010101ull * x; \
    if (strong) { \
        if (bytes == 4) asm volatile("st.release." #s ".u32 [%0], %1;" :: "l"(p), "r"((word)w) : "memory"); \
        else if (bytes == 8) asm volatile("st.release." #s ".u64 [%0], %1;" :: "l"(p), "l"(w) : "memory"); \
        else if (bytes == 16) asm volatile("{.reg .b128 t; mov.b128 t, {%1, %1}; st.release." #s ".b128 [%0], t;}" :: "l"(p), "l"(w) : "memory"); \
        else if (bytes == 2) asm volatile("st.release." #s ".u16 [%0], %1;" :: "l"(p), "h"((unsigned short)w) : "memory"); \
        else asm volatile("st.release." #s ".u8 [%0], %1;" :: "l"(p), "r"((word)w) : "memory"); \
    } else { \
        if (bytes == 4) asm volatile("st.relaxed." #s ".u32 [%0], %1;" :: "l"(p), "r"((word)w) : "memory"); \
        else if (bytes == 8) asm volatile("st.relaxed." #s ".u64 [%0], %1;" :: "l"(p), "l"(w) : "memory"); \
        else if (bytes == 16) asm volatile("{.reg .b128 t; mov.b128 t, {%1, %1}; st.relaxed." #s ".b128 [%0], t;}" :: "l"(p), "l"(w) : "memory"); \
        else if (bytes == 2) asm volatile("st.relaxed." #s ".u16 [%0], %1;" :: "l"(p), "h"((unsigned short)w) : "memory"); \
        else asm volatile("st.relaxed." #s ".u8 [%0], %1;" :: "l"(p), "r"((word)w) : "memory"); \
    } \
} \
static __device__ word load_##s(char *p, int bytes, bool strong) { \
    wide a = 0, b = 0; \
    word x = 0; unsigned short h = 0; \
    if (strong) { \
        if (bytes == 4) { asm volatile("ld.acquire." #s ".u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory"); a = b = x | (wide)x << 32; } \
        else if (bytes == 8) { asm volatile("ld.acquire." #s ".u64 %0, [%1];" : "=l"(a) : "l"(p) : "memory"); b = a; } \
        else if (bytes == 16) asm volatile("{.reg .b128 t; ld.acquire." #s ".b128 t, [%2]; mov.b128 {%0, %1}, t;}" : "=l"(a), "=l"(b) : "l"(p) : "memory"); \
        else if (bytes == 2) { asm volatile("ld.acquire." #s ".u16 %0, [%1];" : "=h"(h) : "l"(p) : "memory"); a = b = h * 0x0001000100010001ull; } \
        else { asm volatile("ld.acquire." #s ".u8 %0, [%1];" : "=r"(x) : "l"(p) : "memory"); a = b = x * 0x0101010101010101ull; } \
    } else { \
        if (bytes == 4) { asm volatile("ld.relaxed." #s ".u32 %0, [%1];" : "=r"(x) : "l"(p) : "memory"); a = b = x | (wide)x << 32; } \
        else if (bytes == 8) { asm volatile("ld.relaxed." #s ".u64 %0, [%1];" : "=l"(a) : "l"(p) : "memory"); b = a; } \
        else if (bytes == 16) asm volatile("{.reg .b128 t; ld.relaxed." #s ".b128 t, [%2]; mov.b128 {%0, %1}, t;}" : "=l"(a), "=l"(b) : "l"(p) : "memory"); \
        else if (bytes == 2) { asm volatile("ld.relaxed." #s ".u16 %0, [%1];" : "=h"(h) : "l"(p) : "memory"); a = b = h * 0x0001000100010001ull; } \
        else { asm volatile("ld.relaxed." #s ".u8 %0, [%1];" : "=r"(x) : "l"(p) : "memory"); a = b = x * 0x0101010101010101ull; } \
    } \
    return a == b && a == (a & 0xff) * 0x0101010101010101ull ? (word)a & 0xff : TORN; \
} \
static __device__ void reduce_##s(char *p, int bytes, word x) { \
    wide w = 0x0101010101010101ull * x; \
    if (bytes == 8) asm volatile("red.relaxed." #s ".global.or.b64 [%0], %1;" :: "l"(p), "l"(w) : "memory"); \
    else asm volatile("red.relaxed." #s ".global.or.b32 [%0], %1;" :: "l"(p), "r"((word)w) : "memory"); \
} \
static __device__ void fence_##s(bool consistent) { \
    if (consistent) asm volatile("fence.sc." #s ";" ::: "memory"); \
    else asm volatile("fence.acq_rel." #s ";" ::: "memory"); \
}
SCOPED(ACCESSES)

// What a role does: `rounds` times the instructions of its program, on other places each time. All roles begin together, and wait for
// each other again after every 16 rounds. Place 0 of an instance is at `instance * stride`, place 1 is `apart` bytes behind it.
extern "C" __global__ void litmus(char *v, word *out, volatile int *met, const word *program, int role, int roles, int rounds, int lanes, int stride, int apart) {
    int lane = threadIdx.x % lanes;
    role += threadIdx.x / lanes;
    const word *mine = program + 4 * role;
    for (int round = 0; round < rounds; round++) {
        if (round % 16 == 0) {
            if (lane == 0) {
                met[32 * role] = round + 1;
                for (int i = 0; i < roles; i++) while (met[32 * i] <= round);
            }
            __syncwarp();
        }
        int instance = round * lanes + lane;
        char *at = v + (wide)instance * stride;
        #pragma unroll 1
        for (int k = 0; k < 4; k++) {
            word op = mine[k];
            char *p = at + PLACE(op) * (wide)apart;
            int bytes = BYTES(op), scope = SCOPE(op);
            word x = DATA(op);
            #define DO(s, n) if (scope == n) { \
                if (KIND(op) == STORE) store_##s(p, bytes, STRONG(op), x); \
                else if (KIND(op) == LOAD) out[4 * instance + x] = load_##s(p, bytes, STRONG(op)); \
                else if (KIND(op) == FENCE) fence_##s(STRONG(op)); \
                else if (KIND(op) == REDUCE) reduce_##s(p, bytes, x); \
            }
            DO(cta, 0) else DO(gpu, 1) else DO(sys, 2)
        }
    }
}

// Two grids change bytes of the same words: one stores to the bytes 0 and 1 of each word, the other one to byte 2 and by a reduction to
// byte 3. No store may undo another one.
extern "C" __global__ void beside(unsigned char *v, volatile int *met, int role, int words) {
    if (threadIdx.x == 0) {
        met[32 * role] = 1;
        while (met[32 * (1 - role)] == 0);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < words; i += blockDim.x) {
        unsigned char *p = v + 4 * i;
        if (role == 0) {
            asm volatile("st.relaxed.gpu.u8 [%0], %1;" :: "l"(p), "r"(0x11) : "memory");
            asm volatile("st.relaxed.gpu.u8 [%0], %1;" :: "l"(p + 1), "r"(0x22) : "memory");
        } else {
            asm volatile("st.relaxed.gpu.u8 [%0], %1;" :: "l"(p + 2), "r"(0x33) : "memory");
            asm volatile("red.relaxed.gpu.global.or.b32 [%0], %1;" :: "l"(p), "r"(0x44000000) : "memory");
        }
    }
}
