"""Whole kernels, as programs have them: more than a hundred, each with a result for each thread.

A thread has four words of input, as numbers of several types, and makes one result of four or eight bytes. What threads of a block make
together goes through shared memory, shuffles and atomics of integers, whose result does not depend on the order.
"""

import random

ITEMS, WORDS = 256, 4

# Numbers of moderate size from a word, so that most results are numbers.
PRELUDE = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
typedef unsigned int u32; typedef unsigned long long u64; typedef unsigned char u8;
__device__ __forceinline__ float real(u32 w) { return (int)w * 0x1p-29f; }
__device__ __forceinline__ double wide(u32 a, u32 b) { return (int)a * 0x1p-29 + b * 0x1p-62; }
__device__ __forceinline__ u32 turn(u32 v, int n) { return __funnelshift_l(v, v, n); }
__device__ __forceinline__ u32 mix(u32 v) { v ^= v >> 16; v *= 0x7feb352du; v ^= v >> 15; v *= 0x846ca68bu; return v ^ v >> 16; }
__device__ __noinline__ u32 recursion(u32 n) { return n < 2 ? n : recursion(n - 1) + recursion(n - 2); }
#define IN const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t; \
    const u32 a = in[4 * i], b = in[4 * i + 1], c = in[4 * i + 2], d = in[4 * i + 3]; \
    const float x = real(a), y = real(b), z = real(c), w = real(d); const double p = wide(a, b), q = wide(c, d); \
    (void)t, (void)x, (void)y, (void)z, (void)w, (void)p, (void)q, (void)a, (void)b, (void)c, (void)d;
#define WORD(name, ...) extern "C" __global__ void name(u32 *out, const u32 *in) { IN out[i] = [&]() -> u32 { __VA_ARGS__ }(); }
#define FLOAT(name, ...) WORD(name, return __float_as_uint([&]() -> float { __VA_ARGS__ }());)
#define DOUBLE(name, ...) extern "C" __global__ void name(u64 *out, const u32 *in) { \
    IN out[i] = (u64)__double_as_longlong([&]() -> double { __VA_ARGS__ }()); }
#define LONG(name, ...) extern "C" __global__ void name(u64 *out, const u32 *in) { IN out[i] = [&]() -> u64 { __VA_ARGS__ }(); }
"""

# The same expressions in single and in double precision: T is the type, F and G are the two numbers.
MATHS = {
    "horner": "T s = G; for (int k = 1; k < 9; k++) s = s * F + T(k) / 7; return s;",
    "kahan": "T s = 0, lost = 0; for (int k = 1; k < 40; k++) { T v = F / k - lost, n = s + v; lost = (n - s) - v; s = n; } return s;",
    "divided": "return (F * G + 1) / (F - G) + G / (F + 3);",
    "roots": "return sqrt(fabs(F)) + T(1) / sqrt(fabs(G) + T(0.01)) + cbrt(F);",
    "circle": "return sin(F) * cos(G) + tan(F * T(0.3));",
    "arcs": "return atan2(F, G) + asin(F / 4) + acos(G / 4);",
    "powers": "return pow(fabs(F) + T(0.1), G) + exp(F) - log(fabs(G) + 1);",
    "hyperbolic": "return tanh(F) + sinh(G) + cosh(F - G) + asinh(G);",
    "errors": "return erf(F) + erfc(G) + lgamma(fabs(F) + T(0.5));",
    "whole_parts": "return floor(F * 5) + ceil(G * 3) + rint(F * G * 9) + trunc(F - G);",
    "remainders": "return fmod(F * 100, G) + remainder(F * 10, fabs(G) + T(0.1));",
    "scales": "int e; T m = frexp(F * 1000, &e); return ldexp(m, e % 5) + T(e) + logb(G);",
    "newton": "T v = 1 + fabs(F); for (int k = 0; k < 6; k++) v = v - (v * v * v - fabs(G)) / (3 * v * v); return v;",
    "pendulum": "T v = F, u = G; for (int k = 0; k < 64; k++) { u -= T(0.05) * sin(v); v += T(0.05) * u; } return v;",
    "extremes": "return fmax(fmin(F, G), F * G) + copysign(F, G) + fdim(F, G) + hypot(F, G);",
}

FLOATS = {
    "fast_circle": "return __sinf(x) * __cosf(y) + __tanf(z * 0.2f);",
    "fast_powers": "return __expf(x) + __logf(fabsf(y) + 0.1f) + __powf(fabsf(z), w) + exp2f(w);",
    "fast_divided": "return __fdividef(x, y + 5) + __frcp_rn(z) + rsqrtf(fabsf(w));",
    "rounded": "return __fadd_ru(x, y) + __fmul_rd(y, z) + __fmaf_rz(x, y, z) + __fsqrt_ru(fabsf(w)) + __fdiv_rd(x, w);",
    "saturated": "return __saturatef(x) + __saturatef(y * z) + fminf(__saturatef(w + 0.5f), x);",
    "half_divided": "__half h = __float2half(x), g = __float2half(y); return __half2float(__hfma(h, g, __hdiv(h, __hadd(g, __float2half(5.f)))));",
    "half_maths": "return __half2float(hsqrt(__float2half(fabsf(x)))) + __half2float(hexp(__float2half(y))) + __half2float(hsin(__float2half(z)));",
    "half_pairs": "__half2 h = __floats2half2_rn(x, y), g = __floats2half2_rn(z, w); for (int k = 0; k < 9; k++) h = __hfma2(h, g, g); "
                  "return __low2float(h) + __high2float(h);",
    "brain_fma": "__nv_bfloat16 h = __float2bfloat16(x), g = __float2bfloat16(y); return __bfloat162float(__hfma(h, g, h)) + x;",
    "brain_pairs": "__nv_bfloat162 h = __floats2bfloat162_rn(x, y), g = __floats2bfloat162_rn(z, w); "
                   "for (int k = 0; k < 9; k++) h = __hfma2(h, g, g); return __low2float(h) - __high2float(h);",
    "from_integers": "return (float)(int)a + (float)b + __ull2float_rd((u64)c << 20 | d) + __int2float_ru((int)d);",
    "singles_of_doubles": "return (float)(p * q) + __double2float_ru(p) - __double2float_rz(q);",
    "mandelbrot": "float u = 0, v = 0; int k = 0; for (; k < 100 && u * u + v * v < 4; k++) { float n = u * u - v * v + x * 0.5f; "
                  "v = 2 * u * v + y * 0.5f; u = n; } return k + u;",
    "sphere": "float o = x * z + y * w, n = x * x + y * y - 1, e = o * o - n; return e < 0 ? -1.f : -o - sqrtf(e);",
    "quaternion": "float n = rsqrtf(x * x + y * y + z * z + w * w + 0.01f), s = x * n, u = y * n, v = z * n, r = w * n; "
                  "return 1 - 2 * (u * u + v * v) + 2 * (s * u - r * v) + 2 * (s * v + r * u);",
    "bezier": "float s = __saturatef(x), r = 1 - s; return r * r * r * y + 3 * r * r * s * z + 3 * r * s * s * w + s * s * s * x;",
    "gelu": "return 0.5f * x * (1 + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));",
    "lu": "float m[3][3] = {{x + 5, y, z}, {y, z + 5, w}, {z, w, x + 6}}; for (int k = 0; k < 3; k++) for (int r = k + 1; r < 3; r++) { "
          "float f = m[r][k] / m[k][k]; for (int e = k; e < 3; e++) m[r][e] -= f * m[k][e]; } return m[0][0] * m[1][1] * m[2][2];",
    "local_array": "float v[16]; for (int k = 0; k < 16; k++) v[k] = x * k + y; float s = 0; "
                   "for (int k = 0; k < 16; k++) s += v[(a + k * 7) & 15] * v[(b + k) & 15]; return s;",
}

INTEGERS = {
    "divisions": "return a / (b | 1) + (u32)((int)c / (int)(d | 1)) + a % (c | 1) + (u32)((int)b % (int)(d >> 16 | 1));",
    "products": "return __umulhi(a, b) ^ (u32)__mulhi((int)c, (int)d) ^ a * d + (u32)__mul24(b, c);",
    "counts": "return __popc(a) << 16 | __clz(b) << 8 | __ffs(c) ^ __brev(d);",
    "shifts": "return (a << (b & 31)) ^ ((u32)((int)c >> (d & 31))) ^ __funnelshift_r(a, c, b) ^ __funnelshift_lc(b, d, a & 63);",
    "bytes": "return __byte_perm(a, b, c) ^ __byte_perm(c, d, 0x5140) ^ __vadd4(a, b) ^ __vsub2(c, d);",
    "lanes": "return __vabsdiffu4(a, b) + __vmaxs2(c, d) + __vcmpgtu4(a, d) + __vavgu4(b, c);",
    "dots": "return (u32)__dp4a((int)a, (int)b, (int)c) ^ __dp4a(a, c, d) ^ (u32)__dp2a_lo((int)a, (int)b, (int)c);",
    "sad": "return __sad((int)a, (int)b, c) + __usad(b, c, d) + __uhadd(a, d) + (u32)__rhadd((int)b, (int)d);",
    "from_floats": "return (u32)__float2int_rn(x * 1e9f) ^ __float2uint_ru(y * 1e9f) ^ (u32)__double2int_rd(p * 1e10) ^ (u32)(int)(z / w);",
    "gcd": "u32 m = a | 1, n = b | 1; while (n) { u32 r = m % n; m = n; n = r; } return m + c;",
    "collatz": "u64 v = a & 0xffff | 1; u32 n = 0; while (v > 1 && n < 300) { v = v & 1 ? 3 * v + 1 : v / 2; n++; } return n;",
    "isqrt": "u32 v = a, r = 0, bit = 1u << 30; for (; bit; bit >>= 2) { if (v >= r + bit) { v -= r + bit; r = (r >> 1) + bit; } else r >>= 1; } "
             "return r;",
    "crc": "u32 v = ~0u; const u32 m[4] = {a, b, c, d}; for (int k = 0; k < 16; k++) { v ^= m[k >> 2] >> 8 * (k & 3) & 255; "
           "for (int e = 0; e < 8; e++) v = v >> 1 ^ (v & 1 ? 0xedb88320u : 0); } return ~v;",
    "adler": "u32 r = 1, s = 0; for (int k = 0; k < 16; k++) { r = (r + (in[4 * i + (k >> 2)] >> 8 * (k & 3) & 255)) % 65521; "
             "s = (s + r) % 65521; } return s << 16 | r;",
    "murmur": "u32 h = d; const u32 m[3] = {a, b, c}; for (int k = 0; k < 3; k++) { h ^= turn(m[k] * 0xcc9e2d51u, 15) * 0x1b873593u; "
              "h = turn(h, 13) * 5 + 0xe6546b64u; } return mix(h);",
    "xorshift": "u32 v = a | 1; for (int k = 0; k < 32; k++) { v ^= v << 13; v ^= v >> 17; v ^= v << 5; } return v;",
    "philox": "u32 k0 = a, k1 = b, v[4] = {c, d, a, b}; for (int k = 0; k < 10; k++) { u32 h = __umulhi(0xd2511f53u, v[0]), l = 0xd2511f53u * v[0], "
              "g = __umulhi(0xcd9e8d57u, v[2]), m = 0xcd9e8d57u * v[2]; v[0] = g ^ v[1] ^ k0; v[1] = m; v[2] = h ^ v[3] ^ k1; v[3] = l; "
              "k0 += 0x9e3779b9u; k1 += 0xbb67ae85u; } return v[0] ^ v[1] ^ v[2] ^ v[3];",
    "chacha": "u32 e = a, f = b, g = c, h = d; for (int k = 0; k < 20; k++) { e += f; h = turn(h ^ e, 16); g += h; f = turn(f ^ g, 12); e += f; "
              "h = turn(h ^ e, 8); g += h; f = turn(f ^ g, 7); } return e ^ f ^ g ^ h;",
    "sha": "u32 e = a, f = b, g = c, h = d, m = 0x6a09e667u; for (int k = 0; k < 24; k++) { u32 n = h + (turn(e, 26) ^ turn(e, 21) ^ turn(e, 7)) + "
           "(e & f ^ ~e & g) + m; m = turn(m, 3) + n; h = g; g = f; f = e; e = n + (turn(m, 30) ^ turn(m, 19) ^ turn(m, 10)); } return e ^ f ^ g ^ h;",
    "tea": "u32 v = a, u = b, s = 0; for (int k = 0; k < 32; k++) { s += 0x9e3779b9u; v += (u << 4) + c ^ u + s ^ (u >> 5) + d; "
           "u += (v << 4) + d ^ v + s ^ (v >> 5) + c; } return v ^ u;",
    "sorted_four": "u32 v[4] = {a, b, c, d}; for (int k = 0; k < 3; k++) for (int e = 0; e < 3 - k; e++) if (v[e] > v[e + 1]) { u32 n = v[e]; "
                   "v[e] = v[e + 1]; v[e + 1] = n; } return v[1] - v[0] ^ v[3] - v[2];",
    "edit_distance": "u8 r[9]; for (int k = 0; k < 9; k++) r[k] = k; for (int m = 0; m < 8; m++) { u8 left = m + 1, over = m; for (int k = 0; k < 8; k++) { "
                     "u8 same = over + ((a >> 4 * m & 3) != (b >> 4 * k & 3)), n = min(min(r[k + 1] + 1, left + 1), (int)same); over = r[k + 1]; "
                     "r[k] = left; left = n; } r[8] = left; } return r[8] | r[4] << 8;",
    "bits_by_table": "u32 n = 0; for (int k = 0; k < 32; k += 4) n = n * 3 + (0x6996u >> (a >> k & 15) & 1) + (b >> k & 7); return n;",
    "switches": "u32 v = a; for (int k = 0; k < 12; k++) switch (v >> 2 * k & 3) { case 0: v += b; break; case 1: v ^= c; break; "
                "case 2: v = turn(v, 5); break; default: v -= d; } return v;",
    "colours": "int r = a & 255, g = a >> 8 & 255, e = a >> 16 & 255; return (66 * r + 129 * g + 25 * e + 128 >> 8) + 16 | "
               "(u32)((-38 * r - 74 * g + 112 * e + 128 >> 8) + 128 & 255) << 8;",
    "fibonacci": "return recursion(a % 12) ^ b;",
}

LONGS = {
    "long_products": "return ((u64)a * b + ((u64)c << 32)) * d ^ __umul64hi((u64)a << 32 | b, (u64)c << 32 | d);",
    "long_divisions": "u64 m = (u64)a << 32 | b, n = (u64)c << 7 | 1; return m / n ^ m % n ^ (u64)((long long)m / (long long)(n | 5));",
    "long_shifts": "u64 m = (u64)a << 32 | b; return m << (c & 63) ^ m >> (d & 63) ^ (u64)((long long)m >> (c >> 6 & 63));",
    "long_counts": "u64 m = (u64)a << 32 | b; return (u64)__popcll(m) << 32 | __clzll(m) ^ __brevll((u64)c << 32 | d);",
    "montgomery": "u64 m = (u64)a << 32 | b, n = (u64)c << 32 | d | 1, v = n; for (int k = 0; k < 5; k++) v *= 2 - n * v; "
                  "return __umul64hi(m, m) - __umul64hi(m * m * v, n);",
    "fnv": "u64 h = 0xcbf29ce484222325ull; for (int k = 0; k < 16; k++) h = (h ^ (in[4 * i + (k >> 2)] >> 8 * (k & 3) & 255)) * 0x100000001b3ull; "
           "return h;",
    "from_doubles": "return (u64)(p * 1e17) ^ (u64)__double2ll_rd(q * 1e18) ^ __float2ull_ru(x * 1e15f);",
    "splitmix": "u64 v = (u64)a << 32 | b; for (int k = 0; k < 8; k++) { v += 0x9e3779b97f4a7c15ull; v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9ull; } return v;",
}

# What the threads of a warp or of a block make together. Blocks have 64 threads.
TOGETHER = {
    "warp_sum": "float s = x; for (int k = 16; k; k >>= 1) s += __shfl_xor_sync(~0u, s, k); return __float_as_uint(s);",
    "warp_scan": "u32 s = a; for (int k = 1; k < 32; k <<= 1) { u32 n = __shfl_up_sync(~0u, s, k); if ((t & 31) >= k) s += n; } return s;",
    "warp_turn": "return __shfl_sync(~0u, a, b & 31) ^ __shfl_down_sync(~0u, c, d & 7) ^ __shfl_sync(~0u, d, t + 3, 8);",
    "votes": "return __ballot_sync(~0u, a & 1) ^ (__any_sync(~0u, b < 1u << 28) ? c : d) ^ (u32)__all_sync(~0u, c | 1);",
    "matches": "int all; return __match_any_sync(~0u, a & 3) ^ __match_all_sync(~0u, b & 0, &all) ^ (u32)all;",
    "redux": "return __reduce_add_sync(~0u, a) ^ __reduce_max_sync(~0u, b) ^ __reduce_xor_sync(~0u, c) ^ __reduce_min_sync(~0u, d);",
    "half_warps": "u32 s = a; if (t & 1) { s = __reduce_add_sync(0xaaaaaaaau, b); } else { s ^= __shfl_xor_sync(0x55555555u, c, 2); } return s;",
    "block_sum": "__shared__ float s[64]; s[t] = x * y; __syncthreads(); for (int k = 32; k; k >>= 1) { if (t < k) s[t] += s[t + k]; __syncthreads(); } "
                 "return __float_as_uint(s[0]) + t;",
    "block_scan": "__shared__ u32 s[64]; s[t] = a; for (int k = 1; k < 64; k <<= 1) { __syncthreads(); u32 n = t >= k ? s[t - k] : 0; __syncthreads(); "
                  "s[t] += n; } return s[t];",
    "block_sort": "__shared__ u32 s[64]; s[t] = a; for (int m = 2; m <= 64; m <<= 1) for (int k = m >> 1; k; k >>= 1) { __syncthreads(); int o = t ^ k; "
                  "if (o > t) { u32 u = s[t], v = s[o]; if ((u > v) == !(t & m)) s[t] = v, s[o] = u; } } __syncthreads(); return s[t];",
    "block_turned": "__shared__ u32 s[8][9]; s[t >> 3][t & 7] = a; __syncthreads(); return s[t & 7][t >> 3] ^ b;",
    "histogram": "__shared__ u32 s[64]; s[t] = 0; __syncthreads(); atomicAdd(&s[a & 15], 1); atomicAdd(&s[b >> 4 & 63], 3); __syncthreads(); return s[t];",
    "block_atomics": "__shared__ u32 s[4]; if (t < 4) s[t] = t & 1 ? ~0u : 0; __syncthreads(); atomicMax(&s[0], a); atomicMin(&s[1], b); atomicXor(&s[2], c); "
                     "atomicAnd(&s[3], d | 0xff); __syncthreads(); return s[t & 3];",
    "compare_and_swap": "__shared__ u64 s; if (!t) s = 0; __syncthreads(); u64 m, n = 0; do { m = n; n = atomicCAS(&s, m, m + a); } while (m != n); "
                        "__syncthreads(); return (u32)s ^ (u32)(s >> 32) + t;",
    "product": "__shared__ float l[8][8], r[8][8]; l[t >> 3][t & 7] = x; r[t >> 3][t & 7] = y; __syncthreads(); float s = z; "
               "for (int k = 0; k < 8; k++) s += l[t >> 3][k] * r[k][t & 7]; return __float_as_uint(s);",
    "product_of_integers": "__shared__ u32 l[8][8], r[8][8]; l[t >> 3][t & 7] = a; r[t >> 3][t & 7] = b; __syncthreads(); u32 s = c; "
                           "for (int k = 0; k < 8; k++) s += l[t >> 3][k] * r[k][t & 7]; return s;",
    "softmax": "__shared__ float s[64]; s[t] = x; __syncthreads(); float m = x; for (int k = 0; k < 64; k++) m = fmaxf(m, s[k]); float n = 0; "
               "for (int k = 0; k < 64; k++) n += expf(s[k] - m); return __float_as_uint(expf(x - m) / n);",
    "layer_norm": "__shared__ float s[64]; s[t] = x; __syncthreads(); float m = 0, v = 0; for (int k = 0; k < 64; k++) m += s[k]; m /= 64; "
                  "for (int k = 0; k < 64; k++) v += (s[k] - m) * (s[k] - m); return __float_as_uint((x - m) * rsqrtf(v / 64 + 1e-5f));",
    "stencil": "__shared__ float s[66]; s[t + 1] = x; if (!t) s[0] = s[65] = 0; __syncthreads(); "
               "for (int k = 0; k < 8; k++) { float n = 0.25f * s[t] + 0.5f * s[t + 1] + 0.25f * s[t + 2]; __syncthreads(); s[t + 1] = n; __syncthreads(); } "
               "return __float_as_uint(s[t + 1]);",
    "convolution": "__shared__ float s[10][10]; for (int k = t; k < 100; k += 64) s[k / 10][k % 10] = 0; __syncthreads(); s[t / 8 + 1][t % 8 + 1] = x; "
                   "__syncthreads(); float n = 0; for (int e = 0; e < 9; e++) n += s[t / 8 + e / 3][t % 8 + e % 3] * (e - 3.5f); "
                   "return __float_as_uint(n);",
    "life": "__shared__ u8 s[64]; s[t] = a & 1; for (int g = 0; g < 8; g++) { __syncthreads(); int n = 0; for (int e = 0; e < 9; e++) if (e != 4) "
            "n += s[(t / 8 + e / 3 + 7) % 8 * 8 + (t + e % 3 + 7) % 8]; __syncthreads(); s[t] = n == 3 || (n == 2 && s[t]); } return s[t] | (t << 8);",
    "fourier": "__shared__ float2 s[64]; s[__brev(t) >> 26] = make_float2(x, y); for (int m = 1; m < 64; m <<= 1) { __syncthreads(); if (t < 32) { "
               "int k = t % m, o = t / m * 2 * m + k; float e, f; sincospif(-(float)k / m, &e, &f); float2 u = s[o], v = s[o + m]; "
               "float2 n = make_float2(v.x * f - v.y * e, v.x * e + v.y * f); s[o] = make_float2(u.x + n.x, u.y + n.y); "
               "s[o + m] = make_float2(u.x - n.x, u.y - n.y); } } __syncthreads(); return __float_as_uint(s[t].x) ^ __float_as_uint(s[t].y);",
    "largest": "__shared__ u32 s[64], n[64]; s[t] = a; n[t] = t; __syncthreads(); for (int k = 32; k; k >>= 1) { if (t < k && s[t + k] > s[t]) { "
               "s[t] = s[t + k]; n[t] = n[t + k]; } __syncthreads(); } return n[0] << 16 | t;",
    "compaction": "__shared__ u32 s[64], n; s[t] = 0; if (!t) n = 0; __syncthreads(); u32 on = a & 1, low = __ballot_sync(~0u, on), from = 0; "
                  "for (int k = 0; k < 2; k++) { __syncthreads(); if (t / 32 == k) { from = n; } __syncthreads(); "
                  "if (t == 32 * k) n += __popc(low); } __syncthreads(); if (on) s[from + __popc(low & (1u << (t & 31)) - 1)] = b; __syncthreads(); return s[t];",
    "bodies": "__shared__ float3 s[64]; s[t] = make_float3(x, y, z); __syncthreads(); float n = 0; for (int k = 0; k < 64; k++) { float e = s[k].x - x, "
              "f = s[k].y - y, g = s[k].z - z, r = rsqrtf(e * e + f * f + g * g + 0.1f); n += e * r * r * r; } return __float_as_uint(n);",
    "chain": "__shared__ volatile u32 s[64]; s[t] = a; __syncthreads(); for (int k = 0; k < 64; k++) { if (t == k) s[(k + 1) & 63] = mix(s[k]); "
             "__syncthreads(); } return s[t];",
    "means": "__shared__ float s[4]; __shared__ u32 n[4]; if (t < 4) s[t] = t - 1.5f; __syncthreads(); int m = 0; for (int k = 1; k < 4; k++) "
             "if (fabsf(x - s[k]) < fabsf(x - s[m])) m = k; if (t < 4) n[t] = 0; __syncthreads(); atomicAdd(&n[m], 1); __syncthreads(); return n[m] << 8 | m;",
    "wavelet": "__shared__ float s[64]; s[t] = x; for (int m = 64; m > 1; m >>= 1) { __syncthreads(); float e = 0, f = 0; if (t < m / 2) { "
               "e = (s[2 * t] + s[2 * t + 1]) * 0.70710678f; f = (s[2 * t] - s[2 * t + 1]) * 0.70710678f; } __syncthreads(); "
               "if (t < m / 2) s[t] = e, s[t + m / 2] = f; } __syncthreads(); return __float_as_uint(s[t]);",
}

# Products of matrices: the fragments of a warp are the words of its threads.
MATRICES = {
    "tensor_half": ("m16n8k16.row.col.f32.f16.f16.f32", 4, 2, "f"),
    "tensor_half_half": ("m16n8k8.row.col.f32.f16.f16.f32", 2, 1, "f"),
    "tensor_brain": ("m16n8k16.row.col.f32.bf16.bf16.f32", 4, 2, "f"),
    "tensor_tf32": ("m16n8k8.row.col.f32.tf32.tf32.f32", 4, 2, "f"),
    "tensor_bytes": ("m16n8k32.row.col.s32.s8.s8.s32", 4, 2, "r"),
    "tensor_unsigned": ("m16n8k32.row.col.s32.u8.u8.s32", 4, 2, "r"),
}
# Two halves or two bfloat16 of moderate size in a word; other words are as they are.
OPERANDS = {"f16": "__half2 h = __floats2half2_rn(real(v), real(mix(v))); return *(u32 *)&h;",
            "bf16": "__nv_bfloat162 h = __floats2bfloat162_rn(real(v), real(mix(v))); return *(u32 *)&h;",
            "tf32": "return __float_as_uint(real(v)) & ~0x1fffu;", "s8": "return v;", "u8": "return v;"}


def matrix(name: str, shape: str, left: int, right: int, kind: str) -> str:
    """A kernel with one product of matrices."""
    words = [f"m({word})" for word in ("a", "b", "c", "d", "a ^ d", "b + c")[:left + right]]
    operands = ", ".join(f'"r"({word})' for word in words)
    first = 4 + left
    text = ("{{{}}}, {{{}}}, {{{}}}, {{{}}};".format(*(", ".join(f"%{n}" for n in numbers) for numbers in (
        range(4), range(4, first), range(first, first + right), range(4)))))
    number = "float" if kind == "f" else "int"
    start = "s[k] = real(in[4 * i + k]);" if kind == "f" else "s[k] = (int)in[4 * i + k] >> 4;"
    asm = f'asm("mma.sync.aligned.{shape} {text}" : ' + ", ".join(f'"+{kind}"(s[{k}])' for k in range(4)) + f" : {operands});"
    as_word = "__float_as_uint(s[k])" if kind == "f" else "(u32)s[k]"
    return (f"WORD({name}, auto m = [](u32 v) -> u32 {{ {OPERANDS[shape.split('.')[4]]} }}; {number} s[4]; for (int k = 0; k < 4; k++) {start} "
            f"{asm} u32 n = 0; for (int k = 0; k < 4; k++) n = turn(n, 9) ^ {as_word}; return n;)")


def maths(kind: str) -> dict[str, tuple[str, int]]:
    """The expressions in one precision: their kernels, and the bytes of a result."""
    macro, number, names, width = {"single": ("FLOAT", "float", ("x", "y"), 4), "double": ("DOUBLE", "double", ("p", "q"), 8)}[kind]
    head = f"using T = {number}; const T F = {names[0]}, G = {names[1]};"
    return {f"{kind}_{name}": (f"{macro}({kind}_{name}, {head} {body})", width) for name, body in MATHS.items()}


def kernels() -> dict[str, tuple[str, int]]:
    """All kernels: their text, and the bytes of a result."""
    found = maths("single") | maths("double")
    for macro, bodies, width in (("FLOAT", FLOATS, 4), ("WORD", INTEGERS, 4), ("LONG", LONGS, 8), ("WORD", TOGETHER, 4)):
        found |= {name: (f"{macro}({name}, {body})", width) for name, body in bodies.items()}
    return found | {name: (matrix(name, *about), 4) for name, about in MATRICES.items()}


def source() -> str:
    """The text of all kernels in CUDA C++."""
    return PRELUDE + "\n".join(text for text, _ in kernels().values()) + "\n"


def words() -> bytes:
    """The input of all kernels."""
    chance = random.Random("whole kernels")
    return b"".join(chance.getrandbits(32).to_bytes(4, "little") for _ in range(ITEMS * WORDS))
