// One kernel for each function that the compiler leaves to the driver.

extern "C" __device__ void __assertfail(const char *, const char *, unsigned, const char *, size_t);

extern "C" __global__ void prints(int x) {
    printf("block %d, thread %d: %d and %.2f\n", blockIdx.x, threadIdx.x, x, x * 0.5);
}

extern "C" __global__ void allocates(unsigned long long *out) {
    int *p = (int *)malloc(100);
    p[24] = threadIdx.x;
    out[threadIdx.x] = p[24];
    free(p);
}

extern "C" __global__ void asserts(int x) {
    if (threadIdx.x == 5) __assertfail("x > 0", "functions.cu", x, "asserts", 1);
}
