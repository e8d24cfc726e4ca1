"""Two queues at work at the same time: one copies the next frame while the other computes on the last one.

The GPU's own time stamps show it: a copy lies within a kernel. With TEGRARM_TRACE the timeline shows it too.
"""

import numpy as np

import tegrarm

SOURCE = """
extern "C" __global__ void grind(float *x, int n, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  for (int r = 0; r < rounds; r++) v = v * 0.5f + 1.0f;
  x[i] = v;
}
"""
N, FRAMES, ROUNDS = 1 << 12, 4, 100_000  # a kernel lasts long enough for a busy host to begin a copy meanwhile


def main() -> None:
    with tegrarm.Device() as device:
        grind = device.compile(SOURCE)["grind"]
        frames = [device.array(np.full(N, number, np.float32)) for number in range(FRAMES)]
        slots = [device.empty(N), device.empty(N)]
        results = [device.empty(N) for _ in range(FRAMES)]
        computed: list[tegrarm.Fence | None] = [None, None]
        with device.queue("copy") as copies, device.queue() as compute, device.profile() as records:
            for number, frame in enumerate(frames):
                slot, done = slots[number % 2], computed[number % 2]
                if done is not None:
                    copies.after(done)  # the slot is free again
                copied = copies.copy(slot, frame)
                compute.after(copied)
                grind[N // 128, 128, 0, compute](slot, N, ROUNDS)
                computed[number % 2] = compute.copy(results[number], slot)
            device.wait()
        for number, result in enumerate(results):
            value = np.float32(number)
            for _ in range(ROUNDS):
                value = value * np.float32(0.5) + np.float32(1)
            np.testing.assert_allclose(result.numpy(), value, rtol=1e-6)
    kernels = [r for r in records if r.kind == "kernel"]
    inputs = [r for r in records if r.kind == "copy" and r.queue != kernels[0].queue]
    within = sum(any(k.start_ns < c.start_ns and c.end_ns < k.end_ns for k in kernels) for c in inputs)
    print(f"{len(kernels)} kernels, {len(inputs)} copies beside them, {within} of which began and ended while a kernel ran")
    assert within > 0


if __name__ == "__main__":
    main()
