// The kernels of python/suite/model/textbook.py: sums of integers within blocks, transposes, and sums of two arrays.
// TIMES is how many elements a thread adds before the block halves what is left.
#define START(TIMES) \
    unsigned t = threadIdx.x, at = blockIdx.x * blockDim.x * TIMES + threadIdx.x; \
    int *mine = in + blockIdx.x * blockDim.x * TIMES;
#define FINISH if (t == 0) out[blockIdx.x] = mine[0];
#define EIGHT if (at + 7 * blockDim.x < n) { \
        int p0 = in[at], p1 = in[at + blockDim.x], p2 = in[at + 2 * blockDim.x], p3 = in[at + 3 * blockDim.x], p4 = in[at + 4 * blockDim.x], \
            p5 = in[at + 5 * blockDim.x], p6 = in[at + 6 * blockDim.x], p7 = in[at + 7 * blockDim.x]; \
        in[at] = p0 + p1 + p2 + p3 + p4 + p5 + p6 + p7; } \
    __syncthreads();
#define HALVES(LEAST) for (int step = blockDim.x / 2; step > LEAST; step >>= 1) { if (t < step) mine[t] += mine[t + step]; __syncthreads(); }
#define WARP if (t < 32) { \
        volatile int *v = mine; \
        v[t] += v[t + 32]; v[t] += v[t + 16]; v[t] += v[t + 8]; v[t] += v[t + 4]; v[t] += v[t + 2]; v[t] += v[t + 1]; \
    }
extern "C" __global__ void neighbored(int *in, int *out, unsigned n) {
    START(1)
    if (at >= n) return;
    for (int step = 1; step < blockDim.x; step *= 2) { if ((t % (2 * step)) == 0) mine[t] += mine[t + step]; __syncthreads(); }
    FINISH
}
extern "C" __global__ void neighbored_less(int *in, int *out, unsigned n) {
    START(1)
    if (at >= n) return;
    for (int step = 1; step < blockDim.x; step *= 2) {
        int place = 2 * step * t;
        if (place < blockDim.x) mine[place] += mine[place + step];
        __syncthreads();
    }
    FINISH
}
extern "C" __global__ void interleaved(int *in, int *out, unsigned n) {
    START(1)
    if (at >= n) return;
    HALVES(0)
    FINISH
}
extern "C" __global__ void unrolling2(int *in, int *out, unsigned n) {
    START(2)
    if (at + blockDim.x < n) in[at] += in[at + blockDim.x];
    __syncthreads();
    HALVES(0)
    FINISH
}
extern "C" __global__ void unrolling4(int *in, int *out, unsigned n) {
    START(4)
    if (at + 3 * blockDim.x < n) {
        int p0 = in[at], p1 = in[at + blockDim.x], p2 = in[at + 2 * blockDim.x], p3 = in[at + 3 * blockDim.x];
        in[at] = p0 + p1 + p2 + p3;
    }
    __syncthreads();
    HALVES(0)
    FINISH
}
extern "C" __global__ void unrolling8(int *in, int *out, unsigned n) { START(8) EIGHT HALVES(0) FINISH }
extern "C" __global__ void unroll_warps8(int *in, int *out, unsigned n) { START(8) EIGHT HALVES(32) WARP FINISH }
#define STEPS(SIZE) if (SIZE >= 1024 && t < 512) mine[t] += mine[t + 512]; __syncthreads(); \
    if (SIZE >= 512 && t < 256) mine[t] += mine[t + 256]; __syncthreads(); \
    if (SIZE >= 256 && t < 128) mine[t] += mine[t + 128]; __syncthreads(); \
    if (SIZE >= 128 && t < 64) mine[t] += mine[t + 64]; __syncthreads();
extern "C" __global__ void complete_warps8(int *in, int *out, unsigned n) { START(8) EIGHT STEPS(blockDim.x) WARP FINISH }
extern "C" __global__ void complete512(int *in, int *out, unsigned n) { START(8) EIGHT STEPS(512) WARP FINISH }

// Copies and transposes of a matrix: where a thread is, and from where it reads and to where it writes, along rows or columns.
#define PLACE unsigned x = blockDim.x * blockIdx.x + threadIdx.x, y = blockDim.y * blockIdx.y + threadIdx.y;
#define TURN unsigned by = blockIdx.x, bx = (blockIdx.x + blockIdx.y) % gridDim.x; \
    unsigned x = blockDim.x * bx + threadIdx.x, y = blockDim.y * by + threadIdx.y;
#define MOVE(NAME, WHERE, TO, FROM) extern "C" __global__ void NAME(float *out, float *in, const int nx, const int ny) { \
    WHERE if (x < nx && y < ny) out[TO] = in[FROM]; }
MOVE(copy_row, PLACE, y * nx + x, y * nx + x)
MOVE(copy_column, PLACE, x * ny + y, x * ny + y)
MOVE(naive_row, PLACE, x * ny + y, y * nx + x)
MOVE(naive_column, PLACE, y * nx + x, x * ny + y)
MOVE(diagonal_row, TURN, x * ny + y, y * nx + x)
MOVE(diagonal_column, TURN, y * nx + x, x * ny + y)
#define PLACE4 unsigned x = blockDim.x * blockIdx.x * 4 + threadIdx.x, y = blockDim.y * blockIdx.y + threadIdx.y, r = y * nx + x, c = x * ny + y; \
    if (x + 3 * blockDim.x < nx && y < ny)
extern "C" __global__ void unroll4_row(float *out, float *in, const int nx, const int ny) {
    PLACE4 {
        out[c] = in[r];
        out[c + ny * blockDim.x] = in[r + blockDim.x];
        out[c + ny * 2 * blockDim.x] = in[r + 2 * blockDim.x];
        out[c + ny * 3 * blockDim.x] = in[r + 3 * blockDim.x];
    }
}
extern "C" __global__ void unroll4_column(float *out, float *in, const int nx, const int ny) {
    PLACE4 {
        out[r] = in[c];
        out[r + blockDim.x] = in[c + blockDim.x * ny];
        out[r + 2 * blockDim.x] = in[c + 2 * blockDim.x * ny];
        out[r + 3 * blockDim.x] = in[c + 3 * blockDim.x * ny];
    }
}
extern "C" __global__ void sum_arrays(float *a, float *b, float *c, const int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void sum_matrix(float *a, float *b, float *c, int nx, int ny) {
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, i = y * nx + x;
    if (x < nx && y < ny) c[i] = a[i] + b[i];
}
extern "C" __global__ void read_offset(float *a, float *b, float *c, const int n, int offset) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, k = i + offset;
    if (k < n) c[i] = a[k] + b[k];
}
extern "C" __global__ void write_offset(float *a, float *b, float *c, const int n, int offset) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, k = i + offset;
    if (k < n) c[k] = a[i] + b[i];
}
