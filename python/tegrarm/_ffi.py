"""The ctypes binding of libtegrarm.so. It finds the library and declares every exported function.

This module does not interpret results. :mod:`tegrarm.rm` turns an NV_STATUS into an exception.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import pathlib
from ctypes import POINTER, c_bool, c_char, c_char_p, c_int, c_int32, c_int64, c_size_t, c_uint8, c_uint32, c_uint64, c_ulong, c_void_p

from . import plainly

NvHandle = NvU32 = NvStatus = c_uint32
NvU64 = c_uint64


# The constants of include/tegrarm.h, under its names; a test compares the values.
TEGRARM_VENDOR_NVIDIA = 0x10DE
TEGRARM_DEVICE_NAME_SIZE = 64
TEGRARM_WAIT_FOREVER = (1 << 64) - 1
TEGRARM_WAIT_POLL = 0
TEGRARM_BUFFER_CACHED, TEGRARM_BUFFER_WRITE_COMBINED, TEGRARM_BUFFER_GPU_READ_ONLY, TEGRARM_BUFFER_NO_POINTER = 0, 1, 2, 4
(TEGRARM_FAULT_NONE, TEGRARM_FAULT_MMU, TEGRARM_FAULT_SM, TEGRARM_FAULT_COMPUTE, TEGRARM_FAULT_TIMEOUT,
 TEGRARM_FAULT_PUSHBUFFER, TEGRARM_FAULT_OTHER, TEGRARM_FAULT_TRAP, TEGRARM_FAULT_ASSERT, TEGRARM_FAULT_FREE) = range(10)
TEGRARM_FAULT_NO_SM = (1 << 32) - 1
TEGRARM_FAULT_TEXT_SIZE = 256
TEGRARM_FAULT_SENTENCE_SIZE = 4096
(TEGRARM_REPLAY_SOURCE_CONSTANT, TEGRARM_REPLAY_SOURCE_TIMELINE, TEGRARM_REPLAY_SOURCE_KICK,
 TEGRARM_REPLAY_SOURCE_SLOT) = range(4)
TEGRARM_REPLAY_SPIN_NS = 20_000
TEGRARM_REPLAY_SLOTS = 1 << 16
TEGRARM_REPLAY_WORDS = (1 << 21) - 1
TEGRARM_REPLAY_COPY_SIZE = 1 << 40
TEGRARM_IMAGE_SIZE = 1 << 30
TEGRARM_OBJECT_SYMBOLS = 1 << 20
TEGRARM_STACK_UNKNOWN = (1 << 32) - 1
TEGRARM_LAUNCH_TOGETHER = 1
TEGRARM_LIMIT_STACK_SIZE, TEGRARM_LIMIT_HEAP_SIZE, TEGRARM_LIMIT_PRINTF_SIZE = range(3)
(TEGRARM_LOG_OFF, TEGRARM_LOG_ERROR, TEGRARM_LOG_WARN, TEGRARM_LOG_INFO, TEGRARM_LOG_DEBUG, TEGRARM_LOG_TRACE) = range(6)
TEGRARM_LOAD_UNKNOWN = TEGRARM_POWER_MODE_UNKNOWN = (1 << 32) - 1
TEGRARM_TEMPERATURE_UNKNOWN = (1 << 31) - 1
TEGRARM_POWER_MODE_SIZE = 64
TEGRARM_QUEUE_COMPUTE, TEGRARM_QUEUE_COPY = range(2)
TEGRARM_PRIORITY_DEFAULT, TEGRARM_PRIORITY_LOW, TEGRARM_PRIORITY_MEDIUM, TEGRARM_PRIORITY_HIGH = range(4)
TEGRARM_WAIT_FENCES = 1 << 16
TEGRARM_PROFILE_KERNEL, TEGRARM_PROFILE_COPY, TEGRARM_PROFILE_FILL = range(3)


class Config(ctypes.Structure):
    """``struct tegrarm_config``, which ``tegrarm_init`` takes in place of the environment."""

    _fields_ = [("size", c_size_t), ("backend", c_char_p)]


class DeviceProfile(ctypes.Structure):
    """``struct tegrarm_device_profile``: the properties of a device that a scheduler needs.

    The caller sets ``size`` to ``ctypes.sizeof(DeviceProfile)``. Later versions only add fields at the end.
    """

    _fields_ = [
        ("size", c_size_t),
        ("vendor", c_uint32),
        ("name", c_char * TEGRARM_DEVICE_NAME_SIZE),
        ("shared_memory", c_bool),
        ("memory_size", c_uint64),
        ("local_bandwidth", c_uint64),
        ("transfer_bandwidth", c_uint64),
        ("has_matrix_hw", c_bool),
        ("has_simd_reduction", c_bool),
        ("compute_units", c_uint32),
        ("simd_width", c_uint32),
        ("max_threads_per_group", c_uint32),
        ("shared_mem_size", c_uint32),
        ("sm_version", c_uint32),
        ("max_clock_hz", c_uint64),
        ("uuid", c_uint8 * 16),
        ("simulated", c_bool),
        ("local_window", c_uint64),
        ("shared_window", c_uint64),
        ("copy_in_bandwidth", c_uint64),
        ("copy_out_bandwidth", c_uint64),
        ("scalar_rate_float32", c_uint64),
        ("scalar_rate_float16", c_uint64),
        ("scalar_rate_int32", c_uint64),
        ("matrix_rate_float16", c_uint64),
        ("matrix_rate_bfloat16", c_uint64),
        ("matrix_rate_int8", c_uint64),
        ("launch_latency_ns", c_uint64),
        ("measured", c_bool),
    ]


class Fault(ctypes.Structure):
    """``struct tegrarm_fault``: what stopped a device. ``size`` is set by the caller; fields are only ever appended."""

    _fields_ = [
        ("size", c_size_t),
        ("cause", c_uint32),
        ("code", c_uint32),
        ("channel", c_uint32),
        ("sm", c_uint32),
        ("warp_error", c_uint32),
        ("pc", c_uint64),
        ("text", c_char * TEGRARM_FAULT_TEXT_SIZE),
        ("sentence", c_char * TEGRARM_FAULT_SENTENCE_SIZE),
    ]


class KernelAttributes(ctypes.Structure):
    """``struct tegrarm_kernel_attributes``: what the compiler says about a kernel, and what follows from it on this GPU."""

    _fields_ = [
        ("size", c_size_t),
        ("registers", c_uint32),
        ("shared_size", c_uint32),
        ("max_dynamic_shared", c_uint32),
        ("local_size", c_uint32),
        ("stack_size", c_uint32),
        ("constant_size", c_uint32),
        ("barriers", c_uint32),
        ("max_threads", c_uint32),
        ("required_block", c_uint32 * 3),
        ("parameters", c_uint32),
        ("parameter_size", c_uint32),
        ("code_size", c_uint64),
        ("code_address", c_uint64),
    ]


class DeviceState(ctypes.Structure):
    """``struct tegrarm_device_state``: the present state of a device. The caller sets ``size``."""

    _fields_ = [
        ("size", c_size_t),
        ("clock_hz", c_uint64),
        ("min_clock_hz", c_uint64),
        ("max_clock_hz", c_uint64),
        ("memory_available", c_uint64),
        ("memory_total", c_uint64),
        ("load", c_uint32),
        ("temperature", c_int32),
        ("power_mode", c_uint32),
        ("power_mode_name", c_char * TEGRARM_POWER_MODE_SIZE),
    ]


#: ``tegrarm_log_callback``. An object of this type has to live for as long as it is set.
LogCallback = ctypes.CFUNCTYPE(None, NvU32, NvStatus, c_char_p, c_void_p)


class QueueOptions(ctypes.Structure):
    """``struct tegrarm_queue_options``: the properties that a new queue will have. The caller sets ``size``."""

    _fields_ = [
        ("size", c_size_t),
        ("kind", c_uint32),
        ("priority", c_uint32),
        ("timeslice_us", c_uint32),
        ("reserved", c_uint32),
    ]


#: ``tegrarm_fence_callback``. An object of this type has to live until it was called.
FenceCallback = ctypes.CFUNCTYPE(None, NvU64, NvStatus, c_void_p)


class ProfileRecord(ctypes.Structure):
    """``struct tegrarm_profile_record``: the times of a piece of work that has finished."""

    _fields_ = [
        ("size", c_size_t),
        ("kind", c_uint32),
        ("queue", c_uint32),
        ("name", c_char_p),
        ("bytes", c_uint64),
        ("fence", c_uint64),
        ("start_ns", c_uint64),
        ("end_ns", c_uint64),
    ]


#: The type of ``tegrarm_printf_callback``. The object must live until the device gets another callback or is closed.
PrintfCallback = ctypes.CFUNCTYPE(None, POINTER(c_char), c_size_t, c_void_p)
#: ``tegrarm_profile_callback``. An object of this type has to live for as long as the profile runs.
ProfileCallback = ctypes.CFUNCTYPE(None, POINTER(ProfileRecord), c_void_p)


class ReplayChannel(ctypes.Structure):
    """``struct tegrarm_replay_channel``: a channel that another frontend made and that a replay submits to."""

    _fields_ = [
        ("size", c_size_t),
        ("ring", c_void_p),
        ("entries", c_uint32),
        ("token", c_uint32),
        ("gp_put", c_void_p),
        ("doorbell", c_void_p),
        ("put", c_void_p),
        ("notifier", c_void_p),
    ]


class ReplayValue(ctypes.Structure):
    """``struct tegrarm_replay_value``: the value that a patch point gets, ``(source + add) >> shift & mask``."""

    _fields_ = [
        ("source", c_uint32),
        ("slot", c_uint32),
        ("add", c_uint64),
        ("mask", c_uint64),
        ("shift", c_uint32),
        ("reserved", c_uint32),
    ]


# The rows are name: (result, arguments). There is one for each prototype of include/tegrarm.h, in the order of that file.
SIGNATURES: dict[str, tuple] = {
    "rm_alloc": (NvStatus, [NvHandle, NvHandle, POINTER(NvHandle), NvU32, c_void_p, NvU32]),
    "rm_control": (NvStatus, [NvHandle, NvHandle, NvU32, c_void_p, NvU32]),
    "rm_free": (NvStatus, [NvHandle, NvHandle, NvHandle]),
    "rm_dup_object": (NvStatus, [NvHandle, NvHandle, POINTER(NvHandle), NvHandle, NvHandle, NvU32]),
    "rm_alloc_memory": (NvStatus, [NvHandle, NvHandle, POINTER(NvHandle), NvU32, NvU32, POINTER(c_void_p), POINTER(NvU64)]),
    "rm_map_memory": (NvStatus, [NvHandle, NvHandle, NvHandle, NvU64, NvU64, POINTER(c_void_p), NvU32]),
    "rm_unmap_memory": (NvStatus, [NvHandle, NvHandle, NvHandle, c_void_p, NvU32]),
    "rm_map_memory_dma": (NvStatus, [NvHandle, NvHandle, NvHandle, NvHandle, NvU64, NvU64, NvU32, POINTER(NvU64)]),
    "rm_unmap_memory_dma": (NvStatus, [NvHandle, NvHandle, NvHandle, NvHandle, NvU32, NvU64]),
    "rm_open": (c_int, [c_char_p, c_int]),
    "rm_ioctl": (c_int, [c_int, c_ulong, c_void_p]),
    "rm_mmap": (c_void_p, [c_void_p, c_size_t, c_int, c_int, c_int, c_int64]),
    "rm_close": (c_int, [c_int]),
    "tegrarm_version": (c_char_p, []),
    "tegrarm_init": (NvStatus, [POINTER(Config)]),
    "tegrarm_shutdown": (NvStatus, []),
    "tegrarm_status_name": (c_char_p, [NvStatus]),
    "tegrarm_last_error": (c_size_t, [c_void_p, c_size_t]),
    "tegrarm_log": (NvStatus, [NvU32, LogCallback, c_void_p]),
    "tegrarm_device_count": (NvStatus, [POINTER(NvU32)]),
    "tegrarm_kernel_report": (NvStatus, [c_void_p, c_size_t, POINTER(c_size_t)]),
    "tegrarm_device_profile": (NvStatus, [NvU32, POINTER(DeviceProfile)]),
    "tegrarm_device_open": (NvStatus, [NvU32, c_void_p]),
    "tegrarm_device_close": (NvStatus, [c_void_p]),
    "tegrarm_fence": (NvStatus, [c_void_p, POINTER(NvU64)]),
    "tegrarm_wait": (NvStatus, [c_void_p, NvU64, NvU64]),
    "tegrarm_device_fault": (NvStatus, [c_void_p, POINTER(Fault)]),
    "tegrarm_device_recover": (NvStatus, [c_void_p, POINTER(NvU32)]),
    "tegrarm_device_limit": (NvStatus, [c_void_p, NvU32, POINTER(NvU64)]),
    "tegrarm_device_set_limit": (NvStatus, [c_void_p, NvU32, NvU64]),
    "tegrarm_buffer_alloc": (NvStatus, [c_void_p, NvU64, NvU32, c_void_p]),
    "tegrarm_buffer_import": (NvStatus, [c_void_p, c_int, NvU32, c_void_p]),
    "tegrarm_buffer_import_pages": (NvStatus, [c_void_p, c_void_p, NvU64, NvU32, c_void_p]),
    "tegrarm_buffer_export": (NvStatus, [c_void_p, POINTER(c_int), POINTER(NvU64)]),
    "tegrarm_buffer_part": (NvStatus, [c_void_p, NvU64, NvU64, c_void_p]),
    "tegrarm_buffer_free": (NvStatus, [c_void_p]),
    "tegrarm_device_memory": (NvStatus, [c_void_p, POINTER(NvU64), POINTER(NvU64)]),
    "tegrarm_fill": (NvStatus, [c_void_p, NvU64, NvU64, NvU32, NvU32, POINTER(NvU64)]),
    "tegrarm_buffer_address": (NvStatus, [c_void_p, POINTER(c_void_p), POINTER(NvU64)]),
    "tegrarm_copy_in": (NvStatus, [c_void_p, NvU64, c_void_p, NvU64]),
    "tegrarm_copy_out": (NvStatus, [c_void_p, NvU64, c_void_p, NvU64]),
    "tegrarm_copy": (NvStatus, [c_void_p, NvU64, c_void_p, NvU64, NvU64, POINTER(NvU64)]),
    "tegrarm_module_load": (NvStatus, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "tegrarm_module_unload": (NvStatus, [c_void_p]),
    "tegrarm_module_kernel": (NvStatus, [c_void_p, c_char_p, c_void_p]),
    "tegrarm_module_variable": (NvStatus, [c_void_p, c_char_p, POINTER(NvU64), POINTER(NvU64)]),
    "tegrarm_module_write": (NvStatus, [c_void_p, c_char_p, c_void_p, c_size_t]),
    "tegrarm_kernel_attributes": (NvStatus, [c_void_p, POINTER(KernelAttributes)]),
    "tegrarm_kernel_parameter": (NvStatus, [c_void_p, NvU32, POINTER(NvU32), POINTER(NvU32)]),
    "tegrarm_kernel_occupancy": (NvStatus, [c_void_p, POINTER(NvU32), NvU32, POINTER(NvU32)]),
    "tegrarm_object_load": (NvStatus, [c_void_p, c_size_t, POINTER(c_void_p), POINTER(c_void_p), c_size_t, c_void_p]),
    "tegrarm_object_symbol": (NvStatus, [c_void_p, c_char_p, POINTER(c_void_p)]),
    "tegrarm_object_unload": (NvStatus, [c_void_p]),
    "tegrarm_launch": (NvStatus, [c_void_p, POINTER(NvU32), POINTER(NvU32), NvU32, POINTER(c_void_p), NvU32, POINTER(NvU64)]),
    "tegrarm_launch_checked": (
        NvStatus,
        [c_void_p, POINTER(NvU32), POINTER(NvU32), NvU32, POINTER(c_void_p), POINTER(c_size_t), NvU32, NvU32, POINTER(NvU64)]),
    "tegrarm_replay_create": (NvStatus, [c_void_p, c_void_p]),
    "tegrarm_replay_destroy": (NvStatus, [c_void_p]),
    "tegrarm_replay_spin": (NvStatus, [c_void_p, NvU64]),
    "tegrarm_replay_submit": (NvStatus, [c_void_p, POINTER(NvU64), NvU32]),
    "tegrarm_replay_wait": (NvStatus, [c_void_p, NvU64]),
    "tegrarm_replay_run": (NvStatus, [c_void_p, POINTER(NvU64), NvU32, NvU64]),
    "tegrarm_replay_launch": (
        NvStatus, [c_void_p, c_void_p, POINTER(NvU32), POINTER(NvU32), NvU32, POINTER(c_void_p), NvU32, POINTER(NvU32)]),
    "tegrarm_replay_argument": (NvStatus, [c_void_p, NvU32, NvU32, NvU32]),
    "tegrarm_replay_copy": (NvStatus, [c_void_p, c_void_p, NvU64, c_void_p, NvU64, NvU64]),
    "tegrarm_replay_input": (NvStatus, [c_void_p, c_void_p, c_void_p, c_size_t]),
    "tegrarm_replay_output": (NvStatus, [c_void_p, c_void_p, c_void_p, c_size_t]),
    "tegrarm_replay_add_channel": (NvStatus, [c_void_p, POINTER(ReplayChannel), POINTER(NvU32)]),
    "tegrarm_replay_timeline": (NvStatus, [c_void_p, POINTER(NvU64), POINTER(NvU64), NvU64, POINTER(NvU64)]),
    "tegrarm_replay_patch": (NvStatus, [c_void_p, c_void_p, NvU32, NvU64, POINTER(ReplayValue)]),
    "tegrarm_replay_push": (NvStatus, [c_void_p, NvU32, NvU64, NvU32]),
    "tegrarm_device_queue": (NvStatus, [c_void_p, c_void_p]),
    "tegrarm_queue_create": (NvStatus, [c_void_p, POINTER(QueueOptions), c_void_p]),
    "tegrarm_queue_destroy": (NvStatus, [c_void_p]),
    "tegrarm_queue_number": (NvStatus, [c_void_p, POINTER(NvU32)]),
    "tegrarm_queue_fence": (NvStatus, [c_void_p, POINTER(NvU64)]),
    "tegrarm_queue_after": (NvStatus, [c_void_p, NvU64]),
    "tegrarm_queue_launch": (
        NvStatus, [c_void_p, c_void_p, POINTER(NvU32), POINTER(NvU32), NvU32, POINTER(c_void_p), NvU32, POINTER(NvU64)]),
    "tegrarm_queue_copy": (NvStatus, [c_void_p, c_void_p, NvU64, c_void_p, NvU64, NvU64, POINTER(NvU64)]),
    "tegrarm_queue_fill": (NvStatus, [c_void_p, c_void_p, NvU64, NvU64, NvU32, NvU32, POINTER(NvU64)]),
    "tegrarm_queue_copy_in": (NvStatus, [c_void_p, c_void_p, NvU64, c_void_p, NvU64, POINTER(NvU64)]),
    "tegrarm_queue_copy_out": (NvStatus, [c_void_p, c_void_p, NvU64, c_void_p, NvU64, POINTER(NvU64)]),
    "tegrarm_wait_all": (NvStatus, [c_void_p, POINTER(NvU64), NvU32, NvU64]),
    "tegrarm_wait_any": (NvStatus, [c_void_p, POINTER(NvU64), NvU32, NvU64, POINTER(NvU32)]),
    "tegrarm_fence_query": (NvStatus, [c_void_p, NvU64, POINTER(c_bool)]),
    "tegrarm_fence_notify": (NvStatus, [c_void_p, NvU64, FenceCallback, c_void_p]),
    "tegrarm_fence_fd": (NvStatus, [c_void_p, NvU64, POINTER(c_int)]),
    "tegrarm_fence_syncpoint": (NvStatus, [c_void_p, NvU64, POINTER(NvU32), POINTER(NvU32)]),
    "tegrarm_fence_sync_file": (NvStatus, [c_void_p, NvU64, POINTER(c_int)]),
    "tegrarm_queue_after_syncpoint": (NvStatus, [c_void_p, NvU32, NvU32]),
    "tegrarm_queue_after_sync_file": (NvStatus, [c_void_p, c_int]),
    "tegrarm_event_create": (NvStatus, [c_void_p, c_void_p]),
    "tegrarm_event_destroy": (NvStatus, [c_void_p]),
    "tegrarm_event_record": (NvStatus, [c_void_p, c_void_p, POINTER(NvU64)]),
    "tegrarm_event_time": (NvStatus, [c_void_p, POINTER(NvU64)]),
    "tegrarm_event_elapsed": (NvStatus, [c_void_p, c_void_p, POINTER(c_int64)]),
    "tegrarm_device_time": (NvStatus, [c_void_p, POINTER(NvU64), POINTER(NvU64), POINTER(NvU64)]),
    "tegrarm_printf": (NvStatus, [c_void_p, PrintfCallback, c_void_p]),
    "tegrarm_profile_start": (NvStatus, [c_void_p, ProfileCallback, c_void_p]),
    "tegrarm_profile_stop": (NvStatus, [c_void_p]),
    "tegrarm_device_state": (NvStatus, [c_void_p, POINTER(DeviceState)]),
    "tegrarm_device_measure": (NvStatus, [c_void_p, POINTER(DeviceProfile)]),
}

LIBRARY = "libtegrarm.so"


class LibraryNotFound(ImportError):
    """libtegrarm.so was not found, or the file that was found is another library or has another version."""

    def __init__(self, sentence: str):
        super().__init__(sentence)
        plainly.promise()


def candidates() -> list[pathlib.Path]:
    """The places where the library is looked for. The first match is used, and the search path of the system's loader comes last."""
    if path := os.environ.get("TEGRARM_LIB"):
        return [pathlib.Path(path)]
    here = pathlib.Path(__file__).resolve().parent
    target = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", here.parents[1] / "target"))
    return [here / LIBRARY, target / "release" / LIBRARY]


def find() -> str:
    """The path of the library, or its bare name for the system's loader. Raises LibraryNotFound."""
    tried = candidates()
    for path in tried:
        if path.is_file():
            return str(path)
    if "TEGRARM_LIB" not in os.environ and (system := ctypes.util.find_library("tegrarm")):
        return system
    places = "\n  ".join(str(p) for p in tried)
    raise LibraryNotFound(f"{LIBRARY} not found; looked at\n  {places}\nBuild it with `make build`, or point TEGRARM_LIB at it.")


@functools.cache
def lib() -> ctypes.CDLL:
    """The loaded library with all of its prototypes. Loading it opens no device."""
    path = find()
    try:
        handle = ctypes.CDLL(path)
    except OSError as error:
        raise LibraryNotFound(f"{path} cannot be loaded: {error}. It is another file, or of another architecture: `make build`.") from None
    for name, (result, arguments) in SIGNATURES.items():
        if (function := getattr(handle, name, None)) is None:
            raise LibraryNotFound(f"{path} has no function {name}: it is no libtegrarm, or one of another version than this package. "
                                  "Build it with `make build`, or point TEGRARM_LIB at the right one.")
        function.restype, function.argtypes = result, arguments
    return handle


def version() -> str:
    """The version of the loaded library, for example ``0.1.0``."""
    return lib().tegrarm_version().decode()


def status_name(status: int) -> str:
    """The name of an NV_STATUS, for example ``NV_ERR_INVALID_CLASS``."""
    return lib().tegrarm_status_name(status).decode()


def last_error() -> str:
    """A sentence that says what went wrong in the last failing call of this thread. It is empty if no call has failed."""
    needed = lib().tegrarm_last_error(None, 0)
    if needed <= 1:
        return ""
    text = ctypes.create_string_buffer(needed)
    lib().tegrarm_last_error(text, needed)
    return text.value.decode(errors="replace")
