"""Asks the machine questions that no published source answers."""

from __future__ import annotations

import ctypes
import mmap

from .. import _ffi, rm
from .._checked import array, number
from .gpu import Buffer, Gpu
from .note import Note

ROUNDS = 64
WORDS = 4096
REPEATS = 200


def windows(note: Note) -> None:
    """Where kernels see shared and local memory: the generic address of a variable, and its address in its own space."""
    with Gpu() as gpu:
        profile = rm.device_profile()
        with note.part("generic"):
            out = gpu.buffer(4096)
            gpu.run(gpu.probe("windows"), 1, 1, out)
            shared, local, in_shared, in_local = (ctypes.c_uint64 * 4).from_address(out.pointer)
            note.put("shared_base", hex(shared - in_shared))
            note.put("local_base", hex(local - in_local))
            note.put("shared_is_the_profiles", shared - in_shared == profile.shared_window)
            note.put("local_is_the_profiles", local - in_local == profile.local_window)
            note.put("first_shared_address", in_shared)


def coherence(note: Note) -> None:
    """The CPU and the GPU write the same words in turns: how many each of them sees late, for each kind of memory."""
    with Gpu() as gpu:
        add = gpu.probe("increment")
        kinds = {"cached": _ffi.TEGRARM_BUFFER_CACHED, "write_combined": _ffi.TEGRARM_BUFFER_WRITE_COMBINED}
        for name, flags in kinds.items():
            with note.part(name):
                in_turns(note, gpu, add, gpu.buffer(4 * WORDS, flags))
        pages = mmap.mmap(-1, 4 * WORDS, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        place = ctypes.addressof(ctypes.c_char.from_buffer(pages))
        with note.part("from_va"):
            ours = gpu.imported(place, 4 * WORDS)
            in_turns(note, gpu, add, ours)
            ours.free()


def in_turns(note: Note, gpu: Gpu, add: ctypes.c_void_p, buffer: Buffer) -> None:
    """The CPU writes n, the GPU adds one, the CPU reads. Words that are not n + 1 are late on one of the two ways."""
    late_cpu = late_gpu = 0
    for turn in range(1, ROUNDS + 1):
        words = array(ctypes.c_uint32, [turn << 16] * WORDS, "the words")
        ctypes.memmove(buffer.pointer, words, 4 * WORDS)
        gpu.run(add, WORDS // 128, 128, buffer)
        for word in buffer.words():
            # The GPU read an old value where the upper half is another turn's; the CPU read its own where nothing was added.
            late_gpu += word >> 16 != turn
            late_cpu += word == turn << 16
    note.put("seen_late_by_the_gpu", late_gpu)
    note.put("seen_late_by_the_cpu", late_cpu)


def release(note: Note) -> None:
    """The fence of a launch is released: are all stores of all its blocks visible to the CPU, and to the next kernel?"""
    with Gpu() as gpu:
        fill, check = gpu.probe("set"), gpu.probe("count_other")
        for name, flags in {"cached": _ffi.TEGRARM_BUFFER_CACHED, "write_combined": _ffi.TEGRARM_BUFFER_WRITE_COMBINED}.items():
            with note.part(name):
                buffer, count = gpu.buffer(1 << 18, flags), gpu.buffer(4096)
                missing = 0
                for turn in range(1, REPEATS + 1):
                    gpu.run(fill, (1 << 16) // 256, 256, buffer, number(ctypes.c_uint32, turn, "turn"))
                    # A few words at both ends and in the middle, at once: reading all takes so long that a race is over.
                    words = buffer.words()
                    missing += sum(words[i] != turn for i in (0, 1, 32767, 32768, 65534, 65535))
                note.put("not_there_for_the_cpu", missing)
                others = 0
                for turn in range(1, 21):
                    gpu.launch(fill, (1 << 16) // 256, 256, buffer, number(ctypes.c_uint32, turn, "turn"))
                    count.words()[0] = 0
                    gpu.run(check, (1 << 16) // 256, 256, buffer, number(ctypes.c_uint32, turn, "turn"), count)
                    others += count.words()[0]
                note.put("not_there_for_the_next_kernel", others)
