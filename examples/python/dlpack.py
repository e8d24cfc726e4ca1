"""Arrays of numpy and arrays of the GPU share memory: DLPack in both directions, without a copy."""

import numpy as np

import tegrarm

SOURCE = """
extern "C" __global__ void twice(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}
"""


def main() -> None:
    with tegrarm.Device() as device:
        twice = device.compile(SOURCE)["twice"]

        ours = device.array(np.arange(6, dtype=np.float32).reshape(2, 3))
        view = np.from_dlpack(ours)  # numpy's view of the GPU's memory
        twice[1, 32](ours, 6).wait()
        print("numpy sees what the GPU wrote:", view.tolist())

        theirs = np.ones(1000, dtype=np.float32)
        array = device.from_dlpack(theirs)  # the GPU's view of numpy's memory
        twice[8, 128](array, 1000).wait()
        print("the GPU wrote numpy's memory: ", theirs[:3].tolist())
        assert view.ctypes.data == ours.pointer and theirs.ctypes.data == array.pointer


if __name__ == "__main__":
    main()
