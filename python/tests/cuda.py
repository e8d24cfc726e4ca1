"""CUDA C++ on the device: NVRTC compiles a source, the library loads and launches it, arrays go in and come back."""

import contextlib
import ctypes
import functools
import importlib.util
import os
import pathlib
import typing

import numpy

from tegrarm import _ffi
from tegrarm.calls import launch_config
from tegrarm.rm import check

ARCHITECTURE = "--gpu-architecture=sm_87"
# The compilers: what the tests' parameters call them, where their wheels put the library, and the headers.
PLACES = {"12": ("cuda_nvrtc/lib/libnvrtc.so.12", "cuda_runtime/include", "cuda_cccl/include"),
          "13": ("cu13/lib/libnvrtc.so.13", "cu13/include", "cu13/include/cccl")}
NVFATBIN = {"12": "nvfatbin/lib/libnvfatbin.so.12", "13": "cu13/lib/libnvfatbin.so.13"}
# A way to compile: the compiler, and its options.
WAYS = {"12": ("12",), "12-debug": ("12", "--device-debug"), "13": ("13",), "13-debug": ("13", "--device-debug")}
# Those that the tests use: each compiler, and each set of options. `make test-ways` asks for all.
EVERY = os.environ.get("TEGRARM_TEST_WAYS") == "all"
TRIED = tuple(WAYS) if EVERY else ("12", "13-debug")


def sampled(values, few, ways=TRIED):
    """Pairs of a way and a value: all values with the first way, and only a few with the others, unless all ways are asked for."""
    return [(way, value) for way in ways for value in values if EVERY or way == ways[0] or value in few]


def installed(path):
    """A file or folder of the packages `nvidia-*`."""
    spec = importlib.util.find_spec("nvidia")
    found = [pathlib.Path(place) / path for place in spec.submodule_search_locations or [] if (pathlib.Path(place) / path).exists()]
    if not found:
        raise FileNotFoundError(f"{path}: the packages of python/requirements.txt are not installed")
    return found[0]


@functools.cache
def nvrtc(version):
    return ctypes.CDLL(str(installed(PLACES[version][0])))


@functools.cache
def compiled(source, way="12", *more):
    """Machine code of a CUDA source; headers of CUDA and of CCCL are found. Raises ValueError with the compiler's log."""
    version, *options = WAYS[way]
    library, program, size = nvrtc(version), ctypes.c_void_p(), ctypes.c_size_t()
    assert library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"test.cu", 0, None, None) == 0
    includes = [f"--include-path={installed(place)}" for place in PLACES[version][1:]]
    every = [o.encode() for o in [ARCHITECTURE, "--std=c++17", "-default-device", *includes, *options, *more]]
    failed = library.nvrtcCompileProgram(program, len(every), (ctypes.c_char_p * len(every))(*every))
    what = "ProgramLog" if failed else "CUBIN"
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, text)
    library.nvrtcDestroyProgram(ctypes.byref(program))
    if failed:
        raise ValueError(text.value.decode())
    return text.raw


def fatbin(parts, major="13", options=()):
    """A fat binary by NVIDIA's nvFatbin. A part is a kind (Cubin or PTX), the number of an architecture, and the code."""
    library, handle, size = ctypes.CDLL(str(installed(NVFATBIN[major]))), ctypes.c_void_p(), ctypes.c_size_t()
    every = [b"-64", b"-cuda", *options]
    assert library.nvFatbinCreate(ctypes.byref(handle), (ctypes.c_char_p * len(every))(*every), ctypes.c_size_t(len(every))) == 0
    for kind, arch, image in parts:
        more = [None] if kind == "PTX" else []
        assert getattr(library, f"nvFatbinAdd{kind}")(handle, image, ctypes.c_size_t(len(image)), arch.encode(), b"t", *more) == 0
    assert library.nvFatbinSize(handle, ctypes.byref(size)) == 0
    made = ctypes.create_string_buffer(size.value)
    assert library.nvFatbinGet(handle, made) == 0
    library.nvFatbinDestroy(ctypes.byref(handle))
    return made.raw


def call(name, *arguments):
    """Calls a function of the library; an error becomes an exception with the library's sentence."""
    check(name, getattr(_ffi.lib(), name)(*arguments))


class Unwritten(typing.NamedTuple):
    """A buffer of so many bytes that nobody has written, as an argument of a kernel."""

    size: int


class Gpu:
    """An open device."""

    def __init__(self, stack=None):
        self.handle = ctypes.c_void_p()
        call("tegrarm_device_open", 0, ctypes.byref(self.handle))
        if stack:
            self.set_stack(stack)

    def set_stack(self, size):
        call("tegrarm_device_set_limit", self.handle, _ffi.TEGRARM_LIMIT_STACK_SIZE, size)

    def stack(self):
        size = ctypes.c_uint64()
        call("tegrarm_device_limit", self.handle, _ffi.TEGRARM_LIMIT_STACK_SIZE, ctypes.byref(size))
        return size.value

    def close(self):
        call("tegrarm_device_close", self.handle)

    def limit(self, which, value=None):
        """A device limit. If the test gives a second value, the limit is set to it first."""
        now = ctypes.c_uint64()
        if value is not None:
            call("tegrarm_device_set_limit", self.handle, which, value)
        call("tegrarm_device_limit", self.handle, which, ctypes.byref(now))
        return now.value

    def module(self, cubin):
        module = ctypes.c_void_p()
        call("tegrarm_module_load", self.handle, cubin, len(cubin), ctypes.byref(module))
        return module

    def printed(self):
        """A list of the texts that kernels print from now on, one for each call of printf."""
        texts = []
        self._printer = _ffi.PrintfCallback(lambda text, size, _: texts.append(ctypes.string_at(text, size)))
        call("tegrarm_printf", self.handle, self._printer, None)
        return texts

    def fault(self):
        """The fault that stopped the device."""
        fault = _ffi.Fault(size=ctypes.sizeof(_ffi.Fault))
        call("tegrarm_device_fault", self.handle, ctypes.byref(fault))
        return fault

    def recover(self):
        count = ctypes.c_uint32()
        call("tegrarm_device_recover", self.handle, ctypes.byref(count))
        return count.value

    def kernel(self, cubin, name):
        module, kernel = self.module(cubin), ctypes.c_void_p()
        call("tegrarm_module_kernel", module, name.encode(), ctypes.byref(kernel))
        return kernel

    def launch(self, kernel, grid, block, *arguments, shared=0, cooperative=False):
        """Runs a kernel to its end. An array is a buffer that holds its items before and after, [`Unwritten`] one that nobody has
        written, and anything else is a number of numpy's."""
        with contextlib.ExitStack() as buffers:
            lent = {numpy.ndarray: self.lent, Unwritten: lambda a: self.unwritten(a.size)}
            taken = [buffers.enter_context(lent[type(a)](a)) if type(a) in lent else numpy.array(a) for a in arguments]
            pointers = (ctypes.c_void_p * len(taken))(*[a.ctypes.data for a in taken])
            sizes = (ctypes.c_size_t * len(taken))(*[a.nbytes for a in taken])
            fence = ctypes.c_uint64()
            config = launch_config(triple(grid), triple(block), shared, sizes=sizes, cooperative=cooperative)
            call("tegrarm_launch", None, kernel, ctypes.byref(config), pointers, len(taken), ctypes.byref(fence))
            call("tegrarm_wait", self.handle, fence, _ffi.TEGRARM_WAIT_FOREVER)

    @contextlib.contextmanager
    def unwritten(self, size):
        """A buffer that nobody has written. Yields its address."""
        buffer, address = ctypes.c_void_p(), ctypes.c_uint64()
        call("tegrarm_buffer_alloc", self.handle, size, 0, ctypes.byref(buffer))
        call("tegrarm_buffer_address", buffer, None, ctypes.byref(address))
        try:
            yield numpy.array(address.value, dtype=numpy.uint64)
        finally:
            call("tegrarm_buffer_free", buffer)

    @contextlib.contextmanager
    def lent(self, array):
        """A buffer with the items of `array`, which gets them back. Yields its address."""
        buffer, address, pointer = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
        call("tegrarm_buffer_alloc", self.handle, max(array.nbytes, 4), 0, ctypes.byref(buffer))
        call("tegrarm_buffer_address", buffer, ctypes.byref(pointer), ctypes.byref(address))
        ctypes.memmove(pointer.value, array.ctypes.data, array.nbytes)
        try:
            yield numpy.array(address.value, dtype=numpy.uint64)
            ctypes.memmove(array.ctypes.data, pointer.value, array.nbytes)
        finally:
            call("tegrarm_buffer_free", buffer)


def triple(size):
    sizes = (size,) if isinstance(size, int) else tuple(size)
    return (ctypes.c_uint32 * 3)(*sizes, *[1] * (3 - len(sizes)))
