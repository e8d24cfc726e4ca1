"""Fixed scripts: what every program does, with its answers. The library records their kernel calls."""

from __future__ import annotations

import ctypes
import mmap
import struct

from .. import _ffi, rm
from .._checked import number
from .gpu import Buffer, Gpu, call
from .note import Note

KINDS = {"cached": _ffi.TEGRARM_BUFFER_CACHED, "write_combined": _ffi.TEGRARM_BUFFER_WRITE_COMBINED,
         "read_only": _ffi.TEGRARM_BUFFER_GPU_READ_ONLY, "no_pointer": _ffi.TEGRARM_BUFFER_NO_POINTER}
SIZES = (4096, 12345, 65536, 1 << 20, (2 << 20) + 4096)
PROFILE = ("vendor", "sm_version", "compute_units", "simd_width", "max_threads_per_group", "shared_mem_size", "has_matrix_hw",
           "local_window", "shared_window")


def opened(note: Note) -> None:
    """Opens the device twice, and lets it answer each time."""
    with note.part("profile"):
        profile = rm.device_profile()
        for name in PROFILE:
            note.put(name, getattr(profile, name))
    for part in ("first", "second"):
        with note.part(part), Gpu() as gpu:
            fence = ctypes.c_uint64()
            call("tegrarm_fence", gpu.default_queue, ctypes.byref(fence))
            gpu.wait(fence.value)


def allocate(note: Note) -> None:
    """Buffers of each kind and size: their addresses, and whether they are clear."""
    with Gpu() as gpu:
        for kind, flags in KINDS.items():
            for size in SIZES:
                with note.part(f"{kind}.{size}"):
                    buffer = gpu.buffer(size, flags)
                    note.put("address", hex(buffer.address))
                    note.put("same_address", buffer.pointer == buffer.address if buffer.pointer else None)
                    note.put("clear", not any(buffer.bytes) if buffer.pointer else None)
                    buffer.free()
        with note.part("too_large"):
            gpu.buffer(1 << 45)


def pattern(size: int, seed: int = 1) -> bytes:
    """Bytes that repeat only after a long time."""
    state, words = seed, []
    for _ in range(size // 4):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        words.append(state)
    return struct.pack(f"<{len(words)}I", *words)


def from_va(note: Note) -> None:
    """The GPU reads and writes pages of the process."""
    size, text = 1 << 16, pattern(1 << 16)
    pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    place = ctypes.addressof(ctypes.c_char.from_buffer(pages))
    pages[:] = text
    with Gpu() as gpu:
        with note.part("import"):
            ours = gpu.imported(place, size)
            theirs = gpu.buffer(size)
        with note.part("gpu_reads"):
            gpu.copy(theirs, ours, size)
            note.put("right", theirs.bytes == text)
        with note.part("gpu_writes"):
            theirs.fill(pattern(size, 7))
            gpu.copy(ours, theirs, size)
            note.put("right", pages[:] == pattern(size, 7))
        with note.part("export"):
            fd = ctypes.c_int()
            call("tegrarm_buffer_export", ours.handle, ctypes.byref(fd), None)
        with note.part("free"):
            ours.free()


def channels(note: Note) -> None:
    """Queues of each kind and priority, each of which fills a buffer."""
    kinds = {"compute": _ffi.TEGRARM_QUEUE_COMPUTE, "copy": _ffi.TEGRARM_QUEUE_COPY}
    priorities = {"default": _ffi.TEGRARM_PRIORITY_DEFAULT, "low": _ffi.TEGRARM_PRIORITY_LOW,
                  "medium": _ffi.TEGRARM_PRIORITY_MEDIUM, "high": _ffi.TEGRARM_PRIORITY_HIGH}
    with Gpu() as gpu:
        buffer = gpu.buffer(4096)
        for kind, number in kinds.items():
            for priority, level in priorities.items():
                with note.part(f"{kind}.{priority}"), gpu.queue(number, level) as queue:
                    filled(note, gpu, queue, buffer, 0x1000 * number + level)
        with note.part("many"):
            queues = [gpu.queue(kinds["copy"]) for _ in range(8)]
            for index, queue in enumerate(queues):
                filled(note, gpu, queue.__enter__(), buffer, 0x2000 + index, f"{index}.")
            for queue in queues:
                queue.__exit__(None, None, None)


def filled(note: Note, gpu: Gpu, queue: ctypes.c_void_p, buffer: Buffer, value: int, name: str = "") -> None:
    """A queue fills a buffer, and its number is an answer."""
    number, fence = ctypes.c_uint32(), ctypes.c_uint64()
    call("tegrarm_queue_number", queue, ctypes.byref(number))
    call("tegrarm_fill", queue, buffer.handle, 0, 4096, value, 4, ctypes.byref(fence))
    gpu.wait(fence.value)
    note.put(f"{name}number", number.value)
    note.put(f"{name}right", set(buffer.words()) == {value})


def launch(note: Note) -> None:
    """An addition in several sizes, and copies and fills by the GPU."""
    with Gpu() as gpu:
        add = gpu.probe("add")
        for count in (1, 31, 32, 33, 1000, 65536):
            with note.part(f"add.{count}"):
                a, b, c = (gpu.buffer(max(4 * count, 4096)) for _ in range(3))
                first, second = [[i * step % 251 for i in range(count)] for step in (3, 7)]
                a.fill(struct.pack(f"<{count}i", *first))
                b.fill(struct.pack(f"<{count}i", *second))
                gpu.run(add, (count + 127) // 128, 128, a, b, c, number(ctypes.c_int, count, "count"))
                got = struct.unpack(f"<{count}i", c.bytes[:4 * count])
                note.put("wrong", sum(x + y != z for x, y, z in zip(first, second, got, strict=True)))
                for buffer in (a, b, c):
                    buffer.free()
        with note.part("copy"):
            source, target = gpu.buffer(1 << 20), gpu.buffer(1 << 20)
            source.fill(pattern(1 << 20))
            gpu.copy(target, source, 1 << 20)
            note.put("right", target.bytes == source.bytes)
