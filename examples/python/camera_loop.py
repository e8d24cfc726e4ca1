"""A camera loop without a copy: another process makes frames in dmabufs, and sync files say when a frame is complete and when it is free.

    tegrarm-sim run -- python examples/python/camera_loop.py

The camera is a second process, which draws with its own GPU. It sends the descriptors of its frames once. For each frame it then sends a
sync file that passes when the frame is drawn, and it gets back one that passes when it may draw there again. Neither process waits with
its CPU for the GPU of the other, and no byte of a frame is copied. On a board the camera would be V4L2, which has the same buffers and
fences.
"""

import os
import socket
import struct
import subprocess
import sys

import tegrarm

WIDTH, HEIGHT, SLOTS, FRAMES = 64, 48, 3, 12
DRAW = """
extern "C" __global__ void draw(unsigned char *frame, int number, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) frame[i] = (unsigned char)(i * 7 + number);
}
"""
MEASURE = """
extern "C" __global__ void brightness(const unsigned char *frame, unsigned *sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(sum, (unsigned)frame[i]);
}
"""
N = WIDTH * HEIGHT
GRID = (N // 128, 128)


def send(peer: socket.socket, number: int, *descriptors: int) -> None:
    socket.send_fds(peer, [struct.pack("<i", number)], list(descriptors))
    for descriptor in descriptors:
        os.close(descriptor)


def receive(peer: socket.socket, count: int) -> tuple[int, list[int]]:
    data, descriptors, _, _ = socket.recv_fds(peer, 4, count)
    if len(descriptors) != count:
        raise ConnectionError("the other process has ended")
    return struct.unpack("<i", data)[0], descriptors


def camera(peer: socket.socket) -> None:
    """The other process: draws frame after frame into its own buffers."""
    with tegrarm.Device() as device:
        draw = device.compile(DRAW)["draw"]
        frames = [device.empty(N, "uint8") for _ in range(SLOTS)]
        send(peer, SLOTS, *[frame.export()[0] for frame in frames])
        for number in range(FRAMES):
            if number >= SLOTS:
                _, (free,) = receive(peer, 1)
                device.default_queue.after_sync_file(free)
                os.close(free)
            drawn = draw[GRID](frames[number % SLOTS], number, N)
            send(peer, number, drawn.sync_file())
        receive(peer, 0)  # the other side has seen the last frame
        device.wait(60)


def main() -> None:
    ours, theirs = socket.socketpair()
    child = subprocess.Popen([sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()])
    theirs.close()
    with tegrarm.Device() as device:
        brightness = device.compile(MEASURE)["brightness"]
        count, descriptors = receive(ours, SLOTS)
        slots = [device.import_dmabuf(descriptor, N) for descriptor in descriptors]
        for descriptor in descriptors:
            os.close(descriptor)
        sums = device.zeros(FRAMES, "uint32")
        with device.profile() as records:
            for _ in range(FRAMES):
                number, (drawn,) = receive(ours, 1)
                device.default_queue.after_sync_file(drawn)
                os.close(drawn)
                seen = brightness[GRID](slots[number % count], sums[number:number + 1], N)
                if number + SLOTS < FRAMES:
                    send(ours, number, seen.sync_file())
            device.wait(60)
        ours.send(struct.pack("<i", 0))
        wanted = [sum((i * 7 + number) & 0xff for i in range(N)) for number in range(FRAMES)]
        assert sums.tolist() == wanted
        copies = sum(record.kind == "copy" for record in records)
    assert child.wait() == 0 and copies == 0
    print(f"{FRAMES} frames of another process in {count} buffers, {copies} copies, brightness of the last {wanted[-1] / N:.1f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        camera(socket.socket(fileno=int(sys.argv[1])))
    else:
        main()
