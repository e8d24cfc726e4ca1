/* Kernels that are compiled twice from this text: by NVRTC for sm_87 (kernels.hex beside it, made by
 * `compile.py LIBNVRTC kernels.c --fmad=false > kernels.hex`) and, when the test runs, by the C compiler for the CPU. Item i reads
 * IN words and writes OUT words; both sides must write the same bits. Nothing here may have behaviour that C leaves
 * open, and contraction is off on both sides. */

typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef long long s64;

#ifdef __CUDACC_RTC__
#define KERNEL(name, IN, OUT)                                                                                          \
    static __device__ void name##_item(u32* out, const u32* in);                                                       \
    extern "C" __global__ void name(u32* out, const u32* in, int n) {                                                  \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                                                                 \
        if (i < n) name##_item(out + i * OUT, in + i * IN);                                                            \
    }                                                                                                                  \
    static __device__ void name##_item(u32* out, const u32* in)
#define FUNCTION static __device__
FUNCTION float as_f32(u32 x) { return __int_as_float(x); }
FUNCTION u32 as_u32(float x) { return __float_as_int(x); }
FUNCTION double as_f64(u64 x) { return __longlong_as_double(x); }
FUNCTION u64 as_u64(double x) { return __double_as_longlong(x); }
FUNCTION u32 high32(u32 a, u32 b) { return __umulhi(a, b); }
FUNCTION s32 high32s(s32 a, s32 b) { return __mulhi(a, b); }
FUNCTION u64 high64(u64 a, u64 b) { return __umul64hi(a, b); }
FUNCTION u32 leading(u32 a) { return __clz(a); }
FUNCTION u32 leading64(u64 a) { return __clzll(a); }
FUNCTION u32 ones(u32 a) { return __popc(a); }
FUNCTION u32 reversed(u32 a) { return __brev(a); }
FUNCTION u32 funnel(u32 low, u32 high, u32 by) { return __funnelshift_l(low, high, by); }
FUNCTION u32 bytes_dot(u32 a, u32 b, u32 c) { return __dp4a(a, b, c); }
FUNCTION u32 bytes_dots(u32 a, u32 b, u32 c) { return (u32)__dp4a((int)a, (int)b, (int)c); }
FUNCTION u32 halves_dot(u32 a, u32 b, u32 c) { return __dp2a_lo(a, b, c); }
FUNCTION u32 halves_dots(u32 a, u32 b, u32 c) { return (u32)__dp2a_hi((int)a, (int)b, (int)c); }
FUNCTION u32 difference4(u32 a, u32 b) { return __vabsdiffu4(a, b); }
FUNCTION u32 differences(u32 a, u32 b) { return __vsadu4(a, b); }
FUNCTION u32 difference(u32 a, u32 b, u32 c) { return __usad(a, b, c); }
FUNCTION u32 differenced(u32 a, u32 b, u32 c) { return __sad((int)a, (int)b, c); }
FUNCTION u32 permuted(u32 a, u32 b, u32 by) { return __byte_perm(a, b, by & 0x7777); }
FUNCTION u32 highest(u32 a) { u32 r; asm("bfind.s32 %0, %1;" : "=r"(r) : "r"(a)); return r; }
FUNCTION u32 masked(u32 at, u32 n) { u32 r; asm("bmsk.clamp.b32 %0, %1, %2;" : "=r"(r) : "r"(at), "r"(n)); return r; }
FUNCTION u32 extended(u32 a, u32 n) { u32 r; asm("szext.wrap.s32 %0, %1, %2;" : "=r"(r) : "r"(a), "r"(n)); return r; }
FUNCTION u32 inserted(u32 a, u32 b, u32 at, u32 n) {
    u32 r;
    asm("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(r) : "r"(a), "r"(b), "r"(at), "r"(n));
    return r;
}
FUNCTION double smaller(double a, double b) { return fmin(a, b); }
FUNCTION double larger(double a, double b) { return fmax(a, b); }
FUNCTION float smallerf(float a, float b) { return fminf(a, b); }
FUNCTION float largerf(float a, float b) { return fmaxf(a, b); }
FUNCTION u32 to_half(float x) { unsigned short h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); return h; }
FUNCTION u32 to_half64(double x) { unsigned short h; asm("cvt.rn.f16.f64 %0, %1;" : "=h"(h) : "d"(x)); return h; }
FUNCTION float from_half(u32 x) { float f; asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"((unsigned short)x)); return f; }
FUNCTION u32 half_op(int op, u32 a, u32 b, u32 c) {
    unsigned short r, x = a, y = b, z = c;
    if (op == 0) asm("add.rn.f16 %0, %1, %2;" : "=h"(r) : "h"(x), "h"(y));
    else if (op == 1) asm("mul.rn.f16 %0, %1, %2;" : "=h"(r) : "h"(x), "h"(y));
    else asm("fma.rn.f16 %0, %1, %2, %3;" : "=h"(r) : "h"(x), "h"(y), "h"(z));
    return r;
}
#else
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define KERNEL(name, IN, OUT)                                                                                          \
    static void name##_item(u32* out, const u32* in);                                                                  \
    static void name(u32* out, const u32* in, int n) {                                                                 \
        for (int i = 0; i < n; i++) name##_item(out + i * OUT, in + i * IN);                                           \
    }                                                                                                                  \
    static void name##_item(u32* out, const u32* in)
#define FUNCTION static inline
FUNCTION float as_f32(u32 x) { float y; memcpy(&y, &x, 4); return y; }
FUNCTION u32 as_u32(float x) { u32 y; memcpy(&y, &x, 4); return y; }
FUNCTION double as_f64(u64 x) { double y; memcpy(&y, &x, 8); return y; }
FUNCTION u64 as_u64(double x) { u64 y; memcpy(&y, &x, 8); return y; }
FUNCTION u32 high32(u32 a, u32 b) { return (u64)a * b >> 32; }
FUNCTION s32 high32s(s32 a, s32 b) { return (s64)a * b >> 32; }
FUNCTION u64 high64(u64 a, u64 b) { return (unsigned __int128)a * b >> 64; }
FUNCTION u32 leading(u32 a) { return a ? __builtin_clz(a) : 32; }
FUNCTION u32 leading64(u64 a) { return a ? __builtin_clzll(a) : 64; }
FUNCTION u32 ones(u32 a) { return __builtin_popcount(a); }
FUNCTION u32 reversed(u32 a) { u32 r = 0; for (int i = 0; i < 32; i++) r |= (a >> i & 1) << (31 - i); return r; }
FUNCTION u32 funnel(u32 low, u32 high, u32 by) { return (((u64)high << 32 | low) << (by & 31)) >> 32; }
FUNCTION u32 bytes_dot(u32 a, u32 b, u32 c) {
    for (int i = 0; i < 32; i += 8) c += (a >> i & 255) * (b >> i & 255);
    return c;
}
FUNCTION u32 bytes_dots(u32 a, u32 b, u32 c) {
    for (int i = 0; i < 32; i += 8) c += (u32)((signed char)(a >> i) * (signed char)(b >> i));
    return c;
}
FUNCTION u32 halves_dot(u32 a, u32 b, u32 c) { return c + (a & 0xffff) * (b & 255) + (a >> 16) * (b >> 8 & 255); }
FUNCTION u32 halves_dots(u32 a, u32 b, u32 c) {
    return c + (u32)((short)a * (signed char)(b >> 16)) + (u32)((short)(a >> 16) * (signed char)(b >> 24));
}
FUNCTION u32 difference(u32 a, u32 b, u32 c) { return (a > b ? a - b : b - a) + c; }
FUNCTION u32 differenced(u32 a, u32 b, u32 c) { return ((s32)a > (s32)b ? a - b : b - a) + c; }
FUNCTION u32 difference4(u32 a, u32 b) {
    u32 r = 0;
    for (int i = 0; i < 32; i += 8) r |= difference(a >> i & 255, b >> i & 255, 0) << i;
    return r;
}
FUNCTION u32 differences(u32 a, u32 b) {
    u32 r = 0;
    for (int i = 0; i < 32; i += 8) r += difference(a >> i & 255, b >> i & 255, 0);
    return r;
}
FUNCTION u32 permuted(u32 a, u32 b, u32 by) {
    u32 r = 0;
    for (int i = 0; i < 4; i++) r |= (u32)(((u64)b << 32 | a) >> (by >> 4 * i & 7) * 8 & 255) << 8 * i;
    return r;
}
FUNCTION u32 highest(u32 a) { a = (s32)a < 0 ? ~a : a; return a ? 31 - leading(a) : ~0u; }
FUNCTION u32 masked(u32 at, u32 n) { return at > 31 ? 0 : (n > 31 ? ~0u : (1u << n) - 1) << at; }
FUNCTION u32 extended(u32 a, u32 n) { n &= 31; return n ? (u32)((s32)(a << (32 - n)) >> (32 - n)) : 0; }
FUNCTION u32 inserted(u32 a, u32 b, u32 at, u32 n) {
    at &= 255;
    n &= 255;
    u32 mask = masked(at, n);
    return at > 31 ? b : (b & ~mask) | (a << at & mask);
}
/* C libraries disagree about signalling NaN. */
FUNCTION double smaller(double a, double b) { return a < b || b != b ? a : b; }
FUNCTION double larger(double a, double b) { return a > b || b != b ? a : b; }
FUNCTION float smallerf(float a, float b) { return a < b || b != b ? a : b; }
FUNCTION float largerf(float a, float b) { return a > b || b != b ? a : b; }
/* Halves from their definition: the nearest multiple of the last place, ties to even. A double's NaN keeps its sign and
 * the upper bits of its payload. */
FUNCTION u32 to_half64(double x) {
    u32 sign = as_u64(x) >> 48 & 0x8000;
    if (x != x) return sign | 0x7e00 | (as_u64(x) >> 42 & 0x1ff);
    x = fabs(x);
    int e = x < 0x1p-14 ? -14 : x >= 65536 ? 16 : ilogb(x);
    double q = rint(x * exp2(10 - e));
    u32 bits = e == 16 ? 0x7c00 : (u32)q + ((u32)(e + 14) << 10);
    return sign | (bits > 0x7c00 ? 0x7c00 : bits);
}
FUNCTION u32 to_half(float x) { return x != x ? 0x7fff : to_half64(x); }
FUNCTION float from_half(u32 x) {
    int e = x >> 10 & 31, m = x & 1023;
    float f = e == 31 ? (m ? NAN : INFINITY) : e ? ldexpf(1024 + m, e - 25) : ldexpf(m, -24);
    return x >> 15 & 1 ? -f : f;
}
FUNCTION u32 half_op(int op, u32 a, u32 b, u32 c) {
    double x = from_half(a), y = from_half(b), z = from_half(c);
    double r = op == 0 ? x + y : op == 1 ? x * y : x * y + z;
    return r != r ? 0x7fff : to_half64(r);
}
#endif

/* A NaN has many bit patterns; the CPU's differ from the GPU's. */
FUNCTION u32 word(float x) { return x != x ? 0x7fffffff : as_u32(x); }
FUNCTION void pair(u32* out, double x) {
    u64 bits = x != x ? 0x7ff8000000000000ull : as_u64(x);
    out[0] = (u32)bits;
    out[1] = (u32)(bits >> 32);
}
FUNCTION void wide(u32* out, u64 x) { out[0] = (u32)x; out[1] = (u32)(x >> 32); }
FUNCTION u64 join(const u32* in) { return (u64)in[1] << 32 | in[0]; }

KERNEL(singles, 4, 16) {
    float a = as_f32(in[0]), b = as_f32(in[1]), c = as_f32(in[2]);
    out[0] = word(a + b);
    out[1] = word(a - b * c);
    out[2] = word(fmaf(a, b, -c));
    out[3] = word(a / b);
    out[4] = word(sqrtf(fabsf(a)));
    out[5] = word(smallerf(a, b) + 0.0f);
    out[6] = word(largerf(a, b) + 0.0f);
    out[7] = word(rintf(a));
    out[8] = word(floorf(b));
    out[9] = word(ceilf(c));
    out[10] = word(truncf(a));
    out[11] = (a < b) | (a <= c) << 1 | (a == b) << 2 | (b != c) << 3 | (a > c) << 4 | !(a >= b) << 5;
    out[12] = word(copysignf(a, b));
    out[13] = word(1.0f / c);
    out[14] = word(a > b ? a * 0.5f : b < c ? c * 3.0f : -a);
    out[15] = word((a + b) * (a - b) + c / 3.0f);
}

KERNEL(doubles, 6, 20) {
    double a = as_f64(join(in)), b = as_f64(join(in + 2)), c = as_f64(join(in + 4));
    pair(out, a + b);
    pair(out + 2, a * b - c);
    pair(out + 4, fma(a, b, c));
    pair(out + 6, a / b);
    pair(out + 8, sqrt(fabs(c)));
    pair(out + 10, smaller(a, b) + 0.0);
    pair(out + 12, larger(b, c) + 0.0);
    pair(out + 14, rint(a));
    pair(out + 16, floor(b) + trunc(c));
    out[18] = (a < b) | (a <= c) << 1 | (a == b) << 2 | (b != c) << 3 | (a > c) << 4 | !(a >= b) << 5;
    out[19] = word((float)a);
}

KERNEL(words, 4, 20) {
    u32 a = in[0], b = in[1], c = in[2], d = b | 1;
    s32 x = (s32)a, y = (s32)(b >> 1 | 1);
    out[0] = a + b - c;
    out[1] = a * b + c;
    out[2] = high32(a, b);
    out[3] = (u32)high32s(x, (s32)b);
    out[4] = a / d;
    out[5] = a % d;
    out[6] = (u32)(x / y);
    out[7] = (u32)(x % y);
    out[8] = a << (b & 31) | c >> (b & 31);
    out[9] = (u32)(x >> (c & 31));
    out[10] = leading(a) + 100 * ones(b) + 10000 * leading(~c);
    out[11] = reversed(a) ^ funnel(a, b, c);
    out[12] = (a & b) | (~a & c);
    out[13] = (a ^ b ^ c) + ((a & b) | (a & c) | (b & c));
    out[14] = x < (s32)b ? a : b > c ? b : c;
    out[15] = (u32)(x < 0 ? -x : x) + (a > b ? a - b : b - a);
    out[16] = a / 7 + a % 10 * 1000 + (u32)(x / 1000);
    out[17] = (a >> 8 & 0xff) * (b & 0xff) + (u32)((signed char)(c >> 16) * (short)a);
    out[18] = (a << 3) + b + (c >> 5);
    out[19] = (u32)(((u64)a * b + ((u64)c << 32 | a)) >> 16);
}

KERNEL(longs, 6, 20) {
    u64 a = join(in), b = join(in + 2), c = join(in + 4);
    s64 x = (s64)a, y = (s64)(b >> 1 | 1);
    wide(out, a + b - c);
    wide(out + 2, a * b + c);
    wide(out + 4, high64(a, b));
    wide(out + 6, a / (b | 1));
    wide(out + 8, a % (c | 1));
    wide(out + 10, (u64)(x / y));
    wide(out + 12, (u64)(x % y) ^ a / 10);
    wide(out + 14, a << (c & 63) | b >> (c & 63));
    wide(out + 16, (u64)(x >> (c & 63)));
    out[18] = leading64(a) + (x < (s64)b) * 100 + (a < b) * 1000 + (a == c) * 10000 + (b >= c) * 100000;
    out[19] = (u32)((c + a) >> 32) + (u32)(x < 0);
}

/* A float as an integer where it has one, else 7. */
FUNCTION s32 to_s32(double x) { return x > -2147483649.0 && x < 2147483648.0 ? (s32)x : 7; }
FUNCTION u32 to_u32(double x) { return x > -1.0 && x < 4294967296.0 ? (u32)x : 7; }
FUNCTION s64 to_s64(double x) { return x >= -0x1p63 && x < 0x1p63 ? (s64)x : 7; }
FUNCTION u64 to_u64(double x) { return x > -1.0 && x < 0x1p64 ? (u64)x : 7; }
FUNCTION s32 to_s32f(float x) { return x >= -0x1p31f && x < 0x1p31f ? (s32)x : 7; }
FUNCTION u64 to_u64f(float x) { return x > -1.0f && x < 0x1p64f ? (u64)x : 7; }

KERNEL(conversions, 6, 32) {
    float f = as_f32(in[0]);
    double d = as_f64(join(in + 2));
    u64 w = join(in + 4);
    out[0] = word((float)(s32)in[1]);
    out[1] = word((float)in[1]);
    out[2] = word((float)(s64)w);
    out[3] = word((float)w);
    pair(out + 4, (double)(s32)in[1]);
    pair(out + 6, (double)(s64)w);
    pair(out + 8, (double)w);
    pair(out + 10, (double)f);
    out[12] = word((float)d);
    out[13] = (u32)to_s32f(f);
    out[14] = (u32)to_s32(d);
    out[15] = to_u32(d);
    wide(out + 16, (u64)to_s64(d));
    wide(out + 18, to_u64(d));
    wide(out + 20, to_u64f(f));
    out[22] = (u32)to_s32f(rintf(f)) + (u32)to_s32(rint(d)) * 3;
    out[23] = word((float)(unsigned char)(in[1] >> 8) + (float)(signed char)(in[1] >> 16));
    out[24] = word((float)(unsigned short)(in[1] >> 16) * (float)(short)in[1]);
    out[25] = to_half(f) | to_half64(d) << 16;
    out[26] = word(from_half(in[0] >> 16)) ^ word(from_half(in[0] & 0xffff));
    out[27] = half_op(0, in[0] & 0xffff, in[1] & 0xffff, 0);
    out[28] = half_op(1, in[0] >> 16, in[1] >> 16, 0);
    out[29] = half_op(2, in[0] & 0xffff, in[0] >> 16, in[1] & 0xffff);
    out[30] = (u32)(unsigned char)to_s32f(f) | (u32)(unsigned short)to_s32(d) << 16;
    out[31] = (f == f) + (d < (double)f) * 2;
}

KERNEL(video, 4, 13) {
    u32 a = in[0], b = in[1], c = in[2], d = in[3];
    out[0] = bytes_dot(a, b, c);
    out[1] = bytes_dots(a, b, c);
    out[2] = halves_dot(a, b, c);
    out[3] = halves_dots(b, c, d);
    out[4] = difference4(a, b);
    out[5] = differences(b, c);
    out[6] = difference(a, c, d);
    out[7] = differenced(a, c, d);
    out[8] = permuted(a, b, c);
    out[9] = highest(a);
    out[10] = masked(b & 63, c & 63);
    out[11] = extended(c, d);
    out[12] = inserted(a, b, c & 63, d & 63);
}

/* Elementary functions: each library has its own last bits, so these are compared with a tolerance.
 * Arguments of sine and cosine stay below where the code would want its table of 2/pi; NaN is left out, because C
 * libraries disagree about signalling ones. */
FUNCTION double number(double x) { return x == x ? x : 1.5; }

KERNEL(elementary, 2, 14) {
    float a = (float)number(as_f32(in[0])), b = (float)number(as_f32(in[1])), small = (float)(s32)in[0] * 0x1p-27f, positive = fabsf(b);
    out[0] = word(expf(a));
    out[1] = word(exp2f(b));
    out[2] = word(logf(positive));
    out[3] = word(log2f(positive));
    out[4] = word(sinf(small));
    out[5] = word(cosf(small));
    out[6] = word(tanhf(a));
    out[7] = word(1.0f / sqrtf(positive));
    out[8] = word(cbrtf(a));
    out[9] = word(atanf(b));
    out[10] = word(erff(a));
    out[11] = word(powf(positive, small * 0.125f));
    out[12] = word(expm1f(a));
    out[13] = word(hypotf(a, b));
}

KERNEL(elementary64, 4, 12) {
    double a = number(as_f64(join(in))), b = number(as_f64(join(in + 2))), small = (double)(s32)in[0] * 0x1p-27, positive = fabs(b);
    pair(out, exp(a));
    pair(out + 2, log(positive));
    pair(out + 4, tanh(b));
    pair(out + 6, cbrt(a));
    pair(out + 8, pow(positive, small));
    pair(out + 10, atan(a));
}

/* Control flow: loops of different length per thread, early exits, a switch, indexed local arrays, a call. */
KERNEL(crc, 4, 2) {
    u32 crc = ~in[0];
    for (int i = 1; i < 4; i++) {
        for (u32 bits = in[i], left = 32; left; left--, bits >>= 1)
            crc = crc >> 1 ^ ((crc ^ bits) & 1 ? 0xedb88320u : 0);
    }
    out[0] = ~crc;
    u32 hash = 2166136261u;
    for (int i = 0; i < 16; i++) hash = (hash ^ (in[i / 4] >> i % 4 * 8 & 0xff)) * 16777619u;
    out[1] = hash;
}

KERNEL(sorting, 4, 16) {
    u32 x[16], seed = in[0] | 1;
    for (int i = 0; i < 16; i++) {
        seed = seed * 1664525u + in[i & 3];
        x[i] = seed >> (in[1] & 15);
    }
    for (int i = 1; i < 16; i++) {
        u32 item = x[i];
        int j = i;
        while (j > 0 && x[j - 1] > item) {
            x[j] = x[j - 1];
            j--;
        }
        x[j] = item;
    }
    for (int i = 0; i < 16; i++) out[i] = x[(i + in[2]) & 15];
}

KERNEL(machine, 4, 4) {
    u32 stack[8] = {0}, top = 0, a = in[0], b = in[1], steps = 0;
    for (u32 program = in[2]; program && steps < 200; steps++) {
        u32 op = program & 7;
        program = program >> 3 | (steps % 5 ? 0 : program << 29);
        switch (op) {
        case 0: a += b; break;
        case 1: stack[top++ & 7] = a; break;
        case 2: b = stack[--top & 7]; break;
        case 3: if (a < b) continue; a -= b; break;
        case 4: while (a && !(a & 1)) a >>= 1; break;
        case 5: a = a * 3 + 1; if (a == in[3]) goto done; break;
        case 6: b ^= a << 7 | a >> 25; break;
        default: program ^= b & 0x3fffffff;
        }
    }
done:
    out[0] = a;
    out[1] = b;
    out[2] = steps;
    out[3] = stack[top & 7];
}

KERNEL(mandelbrot, 2, 3) {
    float cx = (float)(s32)in[0] * 0x1p-30f, cy = (float)(s32)in[1] * 0x1p-30f, x = 0, y = 0;
    int count = 0;
    while (count < 300 && x * x + y * y < 4.0f) {
        float t = x * x - y * y + cx;
        y = 2.0f * x * y + cy;
        x = t;
        count++;
    }
    out[0] = (u32)count;
    out[1] = word(x);
    out[2] = word(y);
}

#ifdef __CUDACC_RTC__
__noinline__
#endif
FUNCTION u32 ackermann(u32 m, u32 n) { return !m ? n + 1 : !n ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1)); }

KERNEL(recursion, 2, 1) { out[0] = ackermann(in[0] % 3, in[1] & 7); }

#ifndef __CUDACC_RTC__
/* NAME IN OUT: items from standard input to standard output. */
int main(int argc, char** argv) {
    static const struct { const char* name; void (*run)(u32*, const u32*, int); } kernels[] = {
        {"video", video}, {"elementary", elementary}, {"elementary64", elementary64},
        {"singles", singles}, {"doubles", doubles},       {"words", words},         {"longs", longs},
        {"crc", crc},         {"conversions", conversions}, {"sorting", sorting},     {"machine", machine},
        {"mandelbrot", mandelbrot}, {"recursion", recursion},
    };
    if (argc != 4) return 2;
    int in = atoi(argv[2]), out = atoi(argv[3]);
    u32 from[64], to[64];
    for (unsigned k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        if (strcmp(kernels[k].name, argv[1])) continue;
        while (fread(from, 4, in, stdin) == (size_t)in) {
            kernels[k].run(to, from, 1);
            fwrite(to, 4, out, stdout);
        }
        return 0;
    }
    return 3;
}
#endif
