"""Work that goes wrong: what the kernel writes into the notifier, and what the SMs report. Each is a step, because it ends its channel."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from .. import _ffi, rm
from .._checked import number
from ..rm import RmError
from .gpu import SECOND, Gpu, call
from .note import Note

NOWHERE = 0x1234567000


def stopped(note: Note, kernel: str, arguments: Callable[[Gpu], list], block: int = 32) -> None:
    """Runs a kernel that faults, and notes how the wait ended and what is known of the fault. Then another device has to work."""
    with Gpu() as gpu:
        probe = gpu.probe(kernel)
        given = arguments(gpu)
        with note.part("work"):
            gpu.run(probe, 1, block, *given)
        note.begin("fault")
        fault = gpu.fault()
        for name in ("cause", "code", "warp_error"):
            note.put(name, getattr(fault, name))
        note.put("sm_reported", fault.sm != _ffi.TEGRARM_FAULT_NO_SM)
        # The address differs between runs; the instruction does not.
        note.put("pc_in_kernel", fault.pc - gpu.code_address(probe) if fault.pc else None)
        with note.part("more_work"):
            gpu.run(probe, 1, block, *given)
    with note.part("new_device"), Gpu() as gpu:
        gpu.run(gpu.probe("set"), 1, 32, gpu.buffer(4096), ctypes.c_uint32(1))


def address(value: int) -> ctypes.c_uint64:
    """A GPU address as an argument."""
    return number(ctypes.c_uint64, value, "the address")


def read(note: Note) -> None:
    """A read where nothing is mapped."""
    stopped(note, "load", lambda gpu: [address(NOWHERE), gpu.buffer(4096)])


def write(note: Note) -> None:
    """A write to a buffer that the GPU may only read."""
    stopped(note, "set", lambda gpu: [gpu.buffer(4096, _ffi.TEGRARM_BUFFER_GPU_READ_ONLY), ctypes.c_uint32(1)])


def misaligned(note: Note) -> None:
    """A read of four bytes at an odd address."""
    stopped(note, "load", lambda gpu: [address(gpu.buffer(4096).address + 1), gpu.buffer(4096)])


def window(note: Note) -> None:
    """A read of global memory where the GPU decodes shared memory."""
    in_window(note, 1 << 20)


def window_far(note: Note) -> None:
    """The same 512 MiB above the window's base. Nobody knows how large the window is: the error says whether it reaches that far."""
    in_window(note, 512 << 20)


def in_window(note: Note, above: int) -> None:
    """A read of global memory above the base of the shared window."""
    inside = rm.device_profile().shared_window + above
    stopped(note, "load_global", lambda gpu: [address(inside), gpu.buffer(4096)])


def trap(note: Note) -> None:
    """A trap instruction."""
    stopped(note, "trap", lambda gpu: [])


def hang_released(note: Note) -> None:
    """A kernel waits for the CPU, and the CPU gives up waiting for it once before it lets it go."""
    with Gpu() as gpu:
        flag = gpu.buffer(4096)
        fence = gpu.launch(gpu.probe("spin"), 1, 1, flag)
        with note.part("wait"):
            gpu.wait(fence, SECOND // 4)
        flag.words()[0] = 1
        with note.part("released"):
            gpu.wait(fence)


def hang_endless(note: Note) -> None:
    """A kernel without an end keeps the work of another channel waiting, until the kernel's timeout ends one of them."""
    with Gpu() as gpu:
        flag, other = gpu.buffer(4096), gpu.buffer(4096)
        endless = gpu.launch(gpu.probe("spin"), 1, 1, flag)
        with gpu.queue(_ffi.TEGRARM_QUEUE_COMPUTE) as queue:
            with note.part("other_channel"):
                waiting = gpu.launch(gpu.probe("set"), 1, 32, other, ctypes.c_uint32(1), queue=queue)
                gpu.wait(waiting, 20 * SECOND)
            with note.part("endless"):
                gpu.wait(endless, 20 * SECOND)
            note.begin("fault")
            fault = gpu.fault()
            note.put("cause", fault.cause)
            note.put("code", fault.code)
            flag.words()[0] = 1  # where nothing has ended it, it ends here
            with note.part("afterwards"):
                settle(gpu, waiting)


def settle(gpu: Gpu, fence: int) -> None:
    """Waits until the GPU is idle, whatever became of the work."""
    try:
        gpu.wait(fence, 5 * SECOND)
    except RmError as error:
        if error.status == rm.NV_ERR_TIMEOUT:
            raise
        recovered = ctypes.c_uint32()
        call("tegrarm_device_recover", gpu.handle, ctypes.byref(recovered))


