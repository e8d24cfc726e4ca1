// Two kernels in one module: the plainest one, and one whose parameters need alignment and padding.
extern "C" __global__ void vecadd(const float *a, const float *b, float *c, unsigned n)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        c[i] = a[i] + b[i];
}

struct Scale {
    float factor;
    double offset;
    unsigned char shift;
};

extern "C" __global__ void __launch_bounds__(128) scale(unsigned char flag, const float *in, struct Scale s, short bias, float *out)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = flag ? in[i] * s.factor + (float)s.offset + (float)(bias >> s.shift) : in[i];
}
