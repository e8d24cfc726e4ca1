// 64-bit division: a subroutine that ptxas adds.
extern "C" __global__ void divide(const long long *a, const long long *b, long long *quotient, long long *rest)
{
    unsigned i = threadIdx.x;
    quotient[i] = a[i] / b[i];
    rest[i] = a[i] % b[i];
}

extern "C" __global__ void udivide(const unsigned long long *a, const unsigned long long *b, unsigned long long *q)
{
    unsigned i = threadIdx.x;
    q[i] = a[i] / b[i];
}
