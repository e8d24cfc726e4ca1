// Accesses of all sizes, with addresses that a test chooses for each lane. `how` is the operation: 0 to 4 load from global
// memory, 5 to 9 store there, 10 to 14 load from shared memory, 15 to 19 store there, with 1, 2, 4, 8 and 16 bytes each.
__device__ __forceinline__ uint4 load_global(unsigned long long at, int size) {
  uint4 x = {0, 0, 0, 0};
  switch (size) {
    case 0: asm volatile("ld.global.u8 %0, [%1];" : "=r"(x.x) : "l"(at)); break;
    case 1: asm volatile("ld.global.s16 %0, [%1];" : "=r"(x.x) : "l"(at)); break;
    case 2: asm volatile("ld.global.u32 %0, [%1];" : "=r"(x.x) : "l"(at)); break;
    case 3: asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "l"(at)); break;
    case 4: asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "l"(at)); break;
  }
  return x;
}

__device__ __forceinline__ void store_global(unsigned long long at, uint4 x, int size) {
  switch (size) {
    case 0: asm volatile("st.global.u8 [%0], %1;" :: "l"(at), "r"(x.x)); break;
    case 1: asm volatile("st.global.u16 [%0], %1;" :: "l"(at), "h"((unsigned short)x.x)); break;
    case 2: asm volatile("st.global.u32 [%0], %1;" :: "l"(at), "r"(x.x)); break;
    case 3: asm volatile("st.global.v2.u32 [%0], {%1, %2};" :: "l"(at), "r"(x.x), "r"(x.y)); break;
    case 4: asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" :: "l"(at), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)); break;
  }
}

__device__ __forceinline__ uint4 load_shared(unsigned at, int size) {
  uint4 x = {0, 0, 0, 0};
  switch (size) {
    case 0: asm volatile("ld.shared.u8 %0, [%1];" : "=r"(x.x) : "r"(at)); break;
    case 1: asm volatile("ld.shared.s16 %0, [%1];" : "=r"(x.x) : "r"(at)); break;
    case 2: asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x.x) : "r"(at)); break;
    case 3: asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(at)); break;
    case 4: asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w) : "r"(at)); break;
  }
  return x;
}

__device__ __forceinline__ void store_shared(unsigned at, uint4 x, int size) {
  switch (size) {
    case 0: asm volatile("st.shared.u8 [%0], %1;" :: "r"(at), "r"(x.x)); break;
    case 1: asm volatile("st.shared.u16 [%0], %1;" :: "r"(at), "h"((unsigned short)x.x)); break;
    case 2: asm volatile("st.shared.u32 [%0], %1;" :: "r"(at), "r"(x.x)); break;
    case 3: asm volatile("st.shared.v2.u32 [%0], {%1, %2};" :: "r"(at), "r"(x.x), "r"(x.y)); break;
    case 4: asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" :: "r"(at), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)); break;
  }
}

extern "C" __global__ void lanes(uint4* out, const uint4* in, const unsigned long long* where, unsigned mask, int how) {
  __shared__ uint4 memory[64];
  unsigned t = threadIdx.x;
  memory[t] = in[t];
  memory[t + 32] = in[t + 32];
  uint4 x = in[t];
  unsigned long long at = where[t];
  __syncwarp();
  if (mask >> t & 1) {
    if (how < 5) out[t] = load_global(at, how);
    else if (how < 10) store_global(at, x, how - 5);
    else if (how < 15) out[t] = load_shared((unsigned)at, how - 10);
    else store_shared((unsigned)at, x, how - 15);
  }
  __syncwarp();
  if (how >= 15) {
    out[t] = memory[t];
    out[t + 32] = memory[t + 32];
  }
}
