"""Measurements. Their keys end in a unit. They are not compared with the simulator's, because those are times of the host."""

from __future__ import annotations

import ctypes
import time

from .. import _ffi, rm
from .._checked import number
from ..calls import launch_config
from .gpu import Buffer, Gpu, call
from .note import Note

ROUNDS = 500
SIZE = 32 << 20
# Warming up: the size of what is copied, how often the clock has to be the same, and the most rounds.
WARM_SIZE, STEADY, MOST_ROUNDS = 1 << 20, 8, 2000
PERCENTILES = (0, 50, 90, 99, 100)


def percentiles(note: Note, name: str, seconds: list[float]) -> None:
    """Percentiles in nanoseconds."""
    ordered = sorted(seconds)
    for p in PERCENTILES:
        note.put(f"{name}.p{p}_ns", round(1e9 * ordered[min(len(ordered) * p // 100, len(ordered) - 1)]))


def timed(work) -> float:
    """How many seconds a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def warm_up(note: Note, gpu: Gpu) -> None:
    """Gives the GPU work until its clock does not rise any more. A GPU that was idle has its lowest clock, which would be measured."""
    kernel, first, second = gpu.probe("copy"), gpu.buffer(WARM_SIZE), gpu.buffer(WARM_SIZE)
    words, steady, rounds, clock = number(ctypes.c_uint32, WARM_SIZE // 16, "words"), 0, 0, 0
    with note.part("warm_up"):
        while steady < STEADY and rounds < MOST_ROUNDS:
            gpu.run(kernel, 64, 256, first, second, words)
            rounds, now = rounds + 1, gpu.state().clock_hz
            clock, steady = (now, steady + 1) if now == clock else (now, 0)
        note.put("clock_hz", clock)
        note.put("max_clock_hz", gpu.state().max_clock_hz)
    for buffer in (first, second):
        buffer.free()


def rooflines(note: Note) -> None:
    """What the GPU reaches at most: operations per second of each type of numbers, bytes per second, and launches without a wait."""
    with Gpu() as gpu:
        warm_up(note, gpu)
    told = rm.measured_profile()
    for unit in ("scalar", "matrix"):
        with note.part(unit):
            for type_ in ("float32", "float16", "bfloat16", "int8", "int32"):
                if found := getattr(told, f"{unit}_rate_{type_}", 0):
                    note.put(f"{type_}_ops_per_s", found)
    with note.part("memory"):
        note.put("local_bytes_per_s", int(told.local_bandwidth))
        note.put("transfer_bytes_per_s", int(told.transfer_bandwidth))
    with note.part("launch"):
        note.put("each_of_many_ns", told.launch_latency_ns)


def latency(note: Note) -> None:
    """From the doorbell to the semaphore, of a fence, a launch and a replay; clocks and temperature before and after."""
    with Gpu() as gpu:
        states(note, gpu, "before")
        warm_up(note, gpu)
        with note.part("fence"):
            fence = ctypes.c_uint64()

            def round_trip() -> None:
                call("tegrarm_fence", gpu.default_queue, ctypes.byref(fence))
                gpu.wait(fence.value)
            percentiles(note, "round_trip", [timed(round_trip) for _ in range(ROUNDS)])
        kernel, buffer = gpu.probe("set"), gpu.buffer(4096)
        with note.part("launch"):
            one = ctypes.c_uint32(1)
            percentiles(note, "round_trip", [timed(lambda: gpu.run(kernel, 1, 32, buffer, one)) for _ in range(ROUNDS)])
            fences: list[int] = []
            percentiles(note, "call", [timed(lambda: fences.append(gpu.launch(kernel, 1, 32, buffer, one))) for _ in range(ROUNDS)])
            gpu.wait(fences[-1])
        with note.part("replay"):
            replay(note, gpu, kernel, buffer)
        states(note, gpu, "after")


def replay(note: Note, gpu: Gpu, kernel: ctypes.c_void_p, buffer: Buffer) -> None:
    """A recorded launch, run again and again."""
    handle, launch = ctypes.c_void_p(), ctypes.c_uint32()
    call("tegrarm_replay_create", gpu.handle, ctypes.byref(handle))
    try:
        values = [number(ctypes.c_uint64, buffer.address, "the address"), ctypes.c_uint32(2)]
        pointers = (ctypes.c_void_p * 2)(*[ctypes.addressof(v) for v in values])
        config = launch_config((1, 1, 1), (32, 1, 1))
        call("tegrarm_replay_launch", handle, kernel, ctypes.byref(config), pointers, 2, ctypes.byref(launch))
        run = [timed(lambda: call("tegrarm_replay_run", handle, None, 0, _ffi.TEGRARM_WAIT_FOREVER)) for _ in range(ROUNDS)]
        percentiles(note, "run", run)
        note.put("right", buffer.words()[0] == 2)
    finally:
        call("tegrarm_replay_destroy", handle)


def states(note: Note, gpu: Gpu, part: str) -> None:
    """Clock, load, temperature and power mode now."""
    with note.part(part):
        state = gpu.state()
        for name in ("clock_hz", "min_clock_hz", "max_clock_hz"):
            note.put(name, getattr(state, name))
        note.put("load_permille", known(state.load, _ffi.TEGRARM_LOAD_UNKNOWN))
        note.put("temperature_millicelsius", known(state.temperature, _ffi.TEGRARM_TEMPERATURE_UNKNOWN))
        note.put("power_mode_name", state.power_mode_name.decode(errors="replace"))


def known(value: int, unknown: int) -> int | None:
    """A figure, None where the system does not tell."""
    return None if value == unknown else value


def bandwidth(note: Note) -> None:
    """Bytes per second of the copy engine, of kernels, and of the CPU on each kind of memory."""
    with Gpu() as gpu:
        warm_up(note, gpu)
        first, second = gpu.buffer(SIZE), gpu.buffer(SIZE)
        with note.part("copy_engine"):
            gpu.copy(second, first, SIZE)
            rate(note, "copy", min(timed(lambda: gpu.copy(second, first, SIZE)) for _ in range(5)), 2 * SIZE)
        with note.part("kernel"):
            kernel, words = gpu.probe("copy"), number(ctypes.c_uint32, SIZE // 16, "words")
            gpu.run(kernel, 256, 256, first, second, words)
            rate(note, "copy", min(timed(lambda: gpu.run(kernel, 256, 256, first, second, words)) for _ in range(3)), 2 * SIZE)
        for buffer in (first, second):
            buffer.free()
        ours = ctypes.create_string_buffer(SIZE)
        kinds = {"cpu_cached": _ffi.TEGRARM_BUFFER_CACHED, "cpu_write_combined": _ffi.TEGRARM_BUFFER_WRITE_COMBINED}
        for name, flags in kinds.items():
            with note.part(name):
                by_the_cpu(note, gpu.buffer(SIZE, flags), ours)


def by_the_cpu(note: Note, buffer: Buffer, ours: ctypes.Array) -> None:
    """The CPU writes a buffer and reads it."""
    rate(note, "write", timed(lambda: ctypes.memmove(buffer.pointer, ours, SIZE)), SIZE)
    rate(note, "read", timed(lambda: ctypes.memmove(ours, buffer.pointer, SIZE)), SIZE)
    buffer.free()


def rate(note: Note, name: str, seconds: float, moved: int) -> None:
    """Bytes per second."""
    note.put(f"{name}_bytes_per_s", round(moved / max(seconds, 1e-9)))
