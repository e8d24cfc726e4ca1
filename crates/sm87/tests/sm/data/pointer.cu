// A kernel of flow.rs that reaches code only through a pointer.
//
//     python3 ../compile.py libnvrtc.so.12 pointer.cu

__constant__ int table[8] = {3, 1, 4, 1, 5, 9, 2, 6};

// What the pointer leads to. As a kernel it is decoded with its own image; behind a pointer nobody knows it before the launch.
extern "C" __global__ void indexed(int *out) {
    out[threadIdx.x] = table[threadIdx.x & 7];
}

extern "C" __global__ void through(int *out, void (*f)(int *)) {
    if (threadIdx.x == 1 << 20) out[0] = 1;
    f(out);
}
