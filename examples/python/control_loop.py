"""A control loop that survives a fault: a step with a bad pointer stops the device, the program recovers it, and the loop continues.

Only the work of that step is lost. Buffers keep their addresses and contents, and loaded machine code and events stay, too.
"""

import tegrarm

SOURCE = """
// One step of a controller: u = gain * (target - position), then the plant moves.
extern "C" __global__ void control(const float *target, float *position, float *command, float gain, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float u = gain * (target[i] - position[i]);
  command[i] = u;
  position[i] += u;
}
"""
JOINTS, STEPS, GAIN, BROKEN = 6, 40, 0.5, 17


def main() -> None:
    recovered = 0
    with tegrarm.Device() as device:
        step = device.compile(SOURCE)["control"]
        target, position, command = device.full(JOINTS, 1.0), device.zeros(JOINTS), device.zeros(JOINTS)
        elsewhere = 0x12_3456_7000  # an address at which there is no memory
        for number in range(STEPS):
            pointer = target if number != BROKEN else elsewhere
            try:
                step[1, 32](pointer, position, command, GAIN, JOINTS).wait(timeout=60)
            except tegrarm.RmError as error:
                print(f"step {number}: {error.name}: {device.fault().text.decode()}")
                recovered += device.recover()
        error = max(abs(x - 1.0) for x in position.tolist())
    assert recovered == 1 and error < 1e-6, (recovered, error)
    print(f"{STEPS} steps, one of them lost, {error:.1e} from the target")


if __name__ == "__main__":
    main()
