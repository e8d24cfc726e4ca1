"""Compares the library with tinygrad's own Python code for the same work, in one process and in turns. The figures are medians of this
thread's CPU time.

Prints two lines. The first has the microseconds of a jit call and of a replay of its graph, each to the end of the work. The second has
those of loading a kernel's machine code with tinygrad's loader and with tegrarm_module_load.
"""

import ctypes
import statistics
import time

from tinygrad import Device, Tensor, TinyJit

import tegrarm.tinygrad  # noqa: F401 - adds the interface
from tegrarm import _ffi, replay
from tegrarm.rm import check

ROUNDS = 200


def cpu_us(call) -> float:
    started = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - started) / 1e3


def medians(rounds) -> list[float]:
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def graphs() -> list[float]:
    @TinyJit
    def step(x, w):
        for _ in range(4):
            x = (x @ w).relu().contiguous()
        return x.realize()

    x, w = Tensor.rand(16, 16).realize(), Tensor.rand(16, 16).realize()
    for _ in range(3):
        step(x, w)
    loop, device = replay.export(step, x, w), Device["NV"]
    run, handle, values = _ffi.lib().tegrarm_replay_run, loop.replay.handle, loop._values

    def jitted():
        step(x, w)
        device.synchronize()

    def replayed():  # This is how a control loop calls it.
        check("tegrarm_replay_run", run(handle, values, 0, replay.FOREVER))

    rounds = []
    for _ in range(ROUNDS):
        together = cpu_us(jitted)
        loop.run()  # This gives tinygrad's timeline to the replay.
        rounds.append((together, cpu_us(replayed)))
        device.timeline_value = loop._timeline.value + 1  # This gives the replay's timeline to tinygrad.
        for fifo, put in zip(loop._channels, loop._put, strict=True):
            fifo.put_value = put.value
    return medians(rounds)


def loaders() -> list[float]:
    """The program of a kernel that tinygrad compiled, loaded in both ways."""
    device, found = Device["NV"], []
    original = device.runtime
    device.runtime = lambda elf: found.append(elf) or original(elf)
    (Tensor.rand(64, 64).realize() @ Tensor.rand(64, 64).realize()).realize()
    device.runtime, elf = original, found[-1]
    library, mine, module = _ffi.lib(), ctypes.c_void_p(), ctypes.c_void_p()
    check("tegrarm_device_open", library.tegrarm_device_open(0, ctypes.byref(mine)))

    def ours():
        check("load", library.tegrarm_module_load(mine, elf.lib, len(elf.lib), ctypes.byref(module)))

    rounds = []
    for _ in range(ROUNDS):
        rounds.append((cpu_us(lambda: original(elf)), cpu_us(ours)))
        check("unload", library.tegrarm_module_unload(module))
    return medians(rounds)


if __name__ == "__main__":
    for figures in (graphs(), loaders()):
        print(*(f"{figure:.1f}" for figure in figures), flush=True)
