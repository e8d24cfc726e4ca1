"""Compiles device.cu to device.cubin. With `--check`, compares device.cubin with the result instead of writing it.

NVRTC makes relocatable code of the source, and nvJitLink links it. Both are those of CUDA 12.9 (python/requirements.txt), so that the bytes
are always the same. Every function keeps CUDA's calling convention. Other versions make machine code that works but has other bytes.
"""

import ctypes
import importlib.util
import pathlib
import struct
import sys

from tegrarm.compile import compiled

HERE = pathlib.Path(__file__).resolve().parents[1] / "src/runtime/library"
SOURCE, BINARY = HERE / "device.cu", HERE / "device.cubin"
ARCHITECTURE = "sm_87"
# ptxas knows these functions by name. Its kernels expect that a call does not change R32 and the registers above. For example, a kernel
# with `delete` of an aligned object keeps a value in R32 during the call. The functions therefore use fewer registers.
REGISTERS = 32
CUBIN = 1  # nvJitLink's number for this kind of input


def library(package, name):
    """A library in one of the packages of CUDA."""
    for place in importlib.util.find_spec(package).submodule_search_locations:
        if (pathlib.Path(place) / "lib" / name).exists():
            return ctypes.CDLL(str(pathlib.Path(place) / "lib" / name))
    raise FileNotFoundError(name)


def relocatable(source):
    """The code that NVRTC makes, in which every function can be called from other modules."""
    options = ("--std=c++17", "--relocatable-device-code=true", f"--maxrregcount={REGISTERS}")
    return compiled(source, "device.cu", ARCHITECTURE, options)


def linked(code):
    """The code that nvJitLink makes. It still has relocations, which the loader applies."""
    link, handle, size = library("nvidia.nvjitlink", "libnvJitLink.so.12"), ctypes.c_void_p(), ctypes.c_size_t()
    options = [f"-arch={ARCHITECTURE}".encode()]
    array = (ctypes.c_char_p * len(options))(*options)
    assert link.__nvJitLinkCreate_12_9(ctypes.byref(handle), ctypes.c_uint32(len(options)), array) == 0
    failed = link.__nvJitLinkAddData_12_9(handle, CUBIN, code, ctypes.c_size_t(len(code)), b"device") \
        or link.__nvJitLinkComplete_12_9(handle)
    if failed:
        log = ctypes.create_string_buffer(65536)
        link.__nvJitLinkGetErrorLog_12_9(handle, log)
        sys.exit(log.value.decode())
    assert link.__nvJitLinkGetLinkedCubinSize_12_9(handle, ctypes.byref(size)) == 0
    out = ctypes.create_string_buffer(size.value)
    assert link.__nvJitLinkGetLinkedCubin_12_9(handle, out) == 0
    link.__nvJitLinkDestroy_12_9(ctypes.byref(handle))
    return out.raw


def banks(code):
    """The sections that the code must not have. Its constant banks other than bank 0 would be those of the kernel that calls it."""
    start, = struct.unpack_from("<Q", code, 0x28)
    entry, count, names = struct.unpack_from("<HHH", code, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", code, start + n * entry) for n in range(count)]
    at = headers[names][4]
    found = [code[at + h[0]:code.index(b"\0", at + h[0])].decode() for h in headers if h[5]]
    return [name for name in found if name.startswith((".nv.constant", ".nv.global", ".nv.shared")) and ".nv.constant0" not in name]


def main():
    """Makes the machine code, and writes it or compares it."""
    code = linked(relocatable(SOURCE.read_bytes()))
    if wrong := banks(code):
        sys.exit(f"device.cu: the code has {', '.join(wrong)}; it may read bank 0 only")
    if "--check" in sys.argv:
        if code != BINARY.read_bytes():
            sys.exit("device.cubin is not what device.cu becomes: run `make device-library` and commit the result")
        print(f"device.cubin is what device.cu becomes: {len(code)} bytes")
    else:
        BINARY.write_bytes(code)
        print(f"wrote {BINARY.name}: {len(code)} bytes")


if __name__ == "__main__":
    main()
