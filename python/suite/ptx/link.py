"""PTX to machine code for sm_87, by nvJitLink, which is NVIDIA's assembler as a library."""
import ctypes
import functools
import importlib.util
import re
from pathlib import Path

# It is loaded from its file, because Numba has a module with the name `cuda`, too.
SPEC = importlib.util.spec_from_file_location("kernels_cuda", Path(__file__).parents[2] / "tests" / "cuda.py")
cuda = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(cuda)

PTX = 2
LEVELS = {"O0": ("-O0",), "O1": ("-Xptxas=-O1",), "O3": ("-O3",)}


class Refused(Exception):
    """The assembler refused a text. `lines` are (number of the line, message)."""

    def __init__(self, log):
        super().__init__(log)
        self.lines = [(int(line), text.strip()) for line, text in re.findall(r"line (\d+); (?:error|fatal)\s*: (.*)", log)]


@functools.cache
def library():
    """The library nvJitLink."""
    return ctypes.CDLL(str(cuda.installed("nvjitlink/lib/libnvJitLink.so.12")))


def call(name, *arguments):
    """Calls a function of the library. The result is the status."""
    return getattr(library(), f"__nvJitLink{name}_12_9")(*arguments)


def assembled(text, level="O3"):
    """Assembles a PTX module. The result is a cubin."""
    options = [b"-arch=sm_87", *(o.encode() for o in LEVELS[level])]
    handle, size, data = ctypes.c_void_p(), ctypes.c_size_t(), text.encode() + b"\0"
    if call("Create", ctypes.byref(handle), ctypes.c_uint32(len(options)), (ctypes.c_char_p * len(options))(*options)):
        raise ValueError(f"nvJitLink does not take {options}")
    try:
        status = call("AddData", handle, ctypes.c_int(PTX), data, ctypes.c_size_t(len(data)), b"rows.ptx") or call("Complete", handle)
        if status:
            call("GetErrorLogSize", handle, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value + 1)
            call("GetErrorLog", handle, log)
            raise Refused(log.value.decode(errors="replace"))
        call("GetLinkedCubinSize", handle, ctypes.byref(size))
        cubin = ctypes.create_string_buffer(size.value)
        call("GetLinkedCubin", handle, cubin)
        return cubin.raw
    finally:
        call("Destroy", ctypes.byref(handle))
