"""Memory of the CUDA library: copies of rows and layers against numpy, managed and registered memory, pools, default streams, fork."""

import ctypes
import os
import threading
from collections.abc import Iterator

import cuda_driver as driver
import numpy
import pytest
from conftest import ROOT
from cuda_driver import HOST_FUNCTION, array, call, code, out, read
from hypothesis import given, settings
from hypothesis import strategies as draw
from test_cuda_graphs import Memcpy3d

N = 1000
DATA = numpy.arange(N, dtype=numpy.float32)
HOST, DEVICE, ARRAY, UNIFIED = 1, 2, 3, 4


class Memcpy2d(ctypes.Structure):
    _fields_ = [(side + name, ctypes.c_uint64) for side in ("src_", "dst_")
                for name in ("x", "y", "type", "host", "device", "array", "pitch")] + [
                    ("width", ctypes.c_size_t), ("height", ctypes.c_size_t)]


class ArrayDescriptor(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in ("width", "height", "depth")] + [
        (name, ctypes.c_uint) for name in ("format", "channels", "flags")]

    def __repr__(self) -> str:
        return f"{self.width} x {self.height} x {self.depth}: {self.format:#x}, {self.channels}, {self.flags:#x}"


def cuda_array(data: numpy.ndarray) -> int:
    """A CUDA array of bytes with the bytes of an array of two or three dimensions."""
    depth, height, width = (*(0,) * (3 - data.ndim), *data.shape)
    made = out("cuArray3DCreate_v2", ctypes.byref(ArrayDescriptor(width, height, depth, 1, 1, 0)))
    whole = Memcpy3d(src_type=HOST, src_host=data.ctypes.data, src_pitch=width, src_height=height, dst_type=ARRAY, dst_array=made)
    whole.width, whole.height, whole.depth = width, height, max(depth, 1)
    call("cuMemcpy3D_v2", ctypes.byref(whole))
    return made


def read_array(made: int, like: numpy.ndarray) -> numpy.ndarray:
    depth, height, width = (*(0,) * (3 - like.ndim), *like.shape)
    result = numpy.empty_like(like)
    whole = Memcpy3d(src_type=ARRAY, src_array=made, dst_type=HOST, dst_host=result.ctypes.data, dst_pitch=width, dst_height=height)
    whole.width, whole.height, whole.depth = width, height, max(depth, 1)
    call("cuMemcpy3D_v2", ctypes.byref(whole))
    return result


@pytest.fixture(scope="module", autouse=True)
def context() -> Iterator[int]:
    with driver.context() as made:
        yield made


def end(made: ctypes.Structure, side: str, kind: int, data: numpy.ndarray, address: int, position: tuple[int, ...]) -> None:
    """Fills in one side of a copy: bytes in an array of two or three dimensions, which is at an address."""
    setattr(made, side + "type", kind)
    setattr(made, side + {HOST: "host", ARRAY: "array"}.get(kind, "device"), address)
    setattr(made, side + "pitch", data.shape[-1])
    for name, value in zip("zyx" if data.ndim == 3 else "yx", position, strict=True):
        setattr(made, side + name, value)
    if data.ndim == 3:
        setattr(made, side + "height", data.shape[1])


SIDES = [(HOST, DEVICE), (DEVICE, HOST), (DEVICE, DEVICE), (UNIFIED, UNIFIED), (HOST, ARRAY), (ARRAY, HOST), (DEVICE, ARRAY),
         (ARRAY, UNIFIED), (ARRAY, ARRAY)]
boxes = draw.lists(draw.tuples(draw.integers(1, 9), draw.integers(0, 3), draw.integers(0, 3), draw.integers(0, 5), draw.integers(0, 5)),
                   min_size=2, max_size=3)


@settings(max_examples=60, deadline=None)
@given(boxes, draw.sampled_from(SIDES), draw.booleans(), draw.randoms())
def test_copies_of_boxes_are_numpys(box, kinds, waits, chance) -> None:
    size = [length for length, *_ in box]
    arrays, addresses = [], []
    copy = Memcpy3d() if len(box) == 3 else Memcpy2d()
    for side, kind, at in zip(("src_", "dst_"), kinds, (1, 2), strict=True):
        position = tuple(one[at] for one in box)
        shape = [length + first + one[at + 2] for length, first, one in zip(size, position, box, strict=True)]
        data = numpy.frombuffer(chance.randbytes(int(numpy.prod(shape))), numpy.uint8).reshape(shape).copy()
        address = {HOST: lambda data: data.ctypes.data, ARRAY: cuda_array}.get(kind, array)(data)
        end(copy, side, kind, data, address, position)
        arrays.append(data)
        addresses.append(address)
    if len(size) == 3:
        copy.depth, copy.height, copy.width = size
    else:
        copy.height, copy.width = size
    there, here = (tuple(slice(one[at], one[at] + one[0]) for one in box) for at in (2, 1))
    expected = arrays[1].copy()
    expected[there] = arrays[0][here]
    name = f"cuMemcpy{len(box)}D"
    if waits:
        call(f"{name}_v2", ctypes.byref(copy))
    else:
        call(f"{name}Async_v2", ctypes.byref(copy), 0)
        call("cuStreamSynchronize", 0)
    result = arrays[1] if kinds[1] == HOST else (read_array if kinds[1] == ARRAY else read)(addresses[1], arrays[1])
    assert (result == expected).all()
    for kind, address in zip(kinds, addresses, strict=True):
        if kind != HOST:
            call("cuArrayDestroy" if kind == ARRAY else "cuMemFree_v2", address)


def test_copies_that_leave_their_memory_are_refused() -> None:
    a = array(numpy.zeros(64, numpy.uint8))
    copy = Memcpy2d(src_type=DEVICE, src_device=a, src_pitch=8, dst_type=DEVICE, dst_device=a, dst_pitch=8, width=8, height=9)
    assert code("cuMemcpy2D_v2", ctypes.byref(copy)) == 1
    copy.height, copy.src_pitch = 8, 7
    assert code("cuMemcpy2D_v2", ctypes.byref(copy)) == 1
    copy.src_pitch, copy.src_type = 8, 3
    assert code("cuMemcpy2D_v2", ctypes.byref(copy)) == 1, "the handle of an array is 0"
    assert code("cuMemcpyDtoD_v2", a, a + 1, 64) == 1


def test_pitched_memory_and_fills_of_rows() -> None:
    pitch = ctypes.c_size_t()
    a = out("cuMemAllocPitch_v2", ctypes.byref(pitch), 100, 7, ctypes.c_uint(4))
    assert pitch.value == 512
    whole = numpy.zeros((7, pitch.value), numpy.uint8)
    call("cuMemsetD8_v2", a, ctypes.c_ubyte(0), whole.nbytes)
    call("cuMemsetD2D8_v2", a, pitch.value, ctypes.c_ubyte(5), 100, 7)
    call("cuMemsetD2D16_v2", a + 2, pitch.value, ctypes.c_ushort(0x0102), 3, 4)
    call("cuMemsetD2D32_v2", a + 512, pitch.value, ctypes.c_uint(0x01020304), 2, 2)
    whole[:, :100] = 5
    whole[:4, 2:8].view(numpy.uint16)[:] = 0x0102
    whole[1:3, :8].view(numpy.uint32)[:] = 0x01020304
    assert (read(a, whole) == whole).all()
    assert code("cuMemsetD2D32_v2", a + 1, pitch.value, ctypes.c_uint(1), 2, 2) == 1


def test_managed_memory_has_one_address() -> None:
    a = out("cuMemAllocManaged", DATA.nbytes, ctypes.c_uint(1))
    seen = numpy.frombuffer((ctypes.c_float * N).from_address(a), numpy.float32)
    seen[:] = DATA
    add = driver.function(driver.module(), "add")
    driver.launch(add, 8, 128, 0, a, 2.0, ctypes.c_int(N))
    call("cuCtxSynchronize")
    assert (seen == DATA + 2).all()
    call("cuMemAdvise", a, DATA.nbytes, ctypes.c_uint(1), ctypes.c_int(0))
    call("cuMemPrefetchAsync", a, DATA.nbytes, ctypes.c_int(0), 0)
    managed = ctypes.c_uint()
    call("cuPointerGetAttribute", ctypes.byref(managed), ctypes.c_uint(8), a)
    assert managed.value == 1
    # The CPU sees a fill of managed and of pinned memory when the call returns.
    pinned = out("cuMemHostAlloc", 4 * N, ctypes.c_uint(0))
    for address in (a, pinned):
        driver.launch(add, 8, 128, 0, a, 2.0, ctypes.c_int(N))
        call("cuMemsetD32_v2", address, ctypes.c_uint(7), N)
        assert set((ctypes.c_uint * N).from_address(address)) == {7}
    call("cuMemFreeHost", pinned)
    call("cuMemFree_v2", a)


def test_registered_memory_of_the_program() -> None:
    room = numpy.zeros(3 * 4096, numpy.float32)
    part = room[500:500 + N]
    call("cuMemHostRegister_v2", part, part.nbytes, ctypes.c_uint(2))
    assert code("cuMemHostRegister_v2", part, part.nbytes, ctypes.c_uint(2)) == 712
    a = out("cuMemHostGetDevicePointer_v2", part, ctypes.c_uint(0))
    part[:] = DATA
    driver.launch(driver.function(driver.module(), "add"), 8, 128, 0, a, 2.0, ctypes.c_int(N))
    call("cuCtxSynchronize")
    assert (part == DATA + 2).all() and not room[:500].any() and not room[500 + N:].any()
    call("cuMemHostUnregister", part)
    assert code("cuMemHostUnregister", part) == 713 and (part == DATA + 2).all()


def test_pools_count_what_is_in_use() -> None:
    pool = out("cuDeviceGetDefaultMemPool", ctypes.c_int(0))
    on = out("cuStreamCreate", ctypes.c_uint(0))

    def used() -> int:
        number = ctypes.c_uint64()
        call("cuMemPoolGetAttribute", pool, ctypes.c_uint(7), ctypes.byref(number))
        return number.value

    before = used()
    first, second = out("cuMemAllocAsync", 1 << 16, on), out("cuMemAllocAsync", 1 << 12, on)
    assert used() - before == (1 << 16) + (1 << 12)
    call("cuMemsetD8Async", first, ctypes.c_ubyte(9), 1 << 16, on)
    call("cuMemFreeAsync", first, on)
    call("cuMemFree_v2", second)  # what an asynchronous call allocated may be freed by the other one
    assert used() == before
    assert code("cuMemFreeAsync", first, on) == 1 and code("cuMemPoolDestroy", pool) == 1
    call("cuStreamSynchronize", on)


def test_default_streams_wait_as_cuda_says() -> None:
    """A function of the CPU that waits holds one stream: which other streams go on meanwhile?"""
    a = array(DATA)
    free, blocking = out("cuStreamCreate", ctypes.c_uint(1)), out("cuStreamCreate", ctypes.c_uint(0))
    for name, held, goes_on in [("cuStreamQuery", 0, [free]), ("cuStreamQuery", blocking, [free]),
                                ("cuStreamQuery_ptsz", 0, [free, blocking])]:
        gate = threading.Event()
        function = HOST_FUNCTION(lambda user, gate=gate: gate.wait(60) and None)
        call("cuLaunchHostFunc_ptsz" if name.endswith("_ptsz") else "cuLaunchHostFunc", held, function, None)
        for other in goes_on:
            call("cuMemsetD32Async", a, ctypes.c_uint(1), N, other)
            call("cuStreamSynchronize", other)
        assert code(name, held) == 600
        # The legacy default stream waits for blocking streams and for the threads' own, and these for it.
        assert code("cuStreamQuery", 0) == 600
        gate.set()
        call("cuCtxSynchronize")
    call("cuMemcpyHtoD_v2_ptds", a, DATA, DATA.nbytes)
    assert (read(a, DATA) == DATA).all()


def test_a_child_of_fork_begins_anew() -> None:
    """With NVIDIA's driver, a child of fork(2) has no CUDA. Here it has nothing of its parent, and may call cuInit."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            assert code("cuMemAlloc_v2", ctypes.byref(ctypes.c_uint64()), 64) == 3 == code("cuCtxSynchronize")
            call("cuInit", ctypes.c_uint(0))
            assert code("cuCtxSynchronize") == 201
            call("cuCtxSetCurrent", out("cuDevicePrimaryCtxRetain", ctypes.c_int(0)))
            mine = array(DATA)
            driver.launch(driver.function(driver.module(), "add"), 8, 128, 0, mine, 2.0, ctypes.c_int(N))
            assert (read(mine, DATA) == DATA + 2).all()
            call("cuDevicePrimaryCtxRelease_v2", ctypes.c_int(0))
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    a = array(DATA)
    assert (read(a, DATA) == DATA).all()


class PoolProperties(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint), ("handles", ctypes.c_uint), ("location", ctypes.c_int * 2), ("rest", ctypes.c_uint64 * 9)]


def test_a_pool_keeps_what_its_threshold_allows(context: int) -> None:
    pool = out("cuMemPoolCreate", ctypes.byref(PoolProperties(kind=1, location=(1, 0))))
    one, other, size = out("cuStreamCreate", ctypes.c_uint(1)), out("cuStreamCreate", ctypes.c_uint(1)), 1 << 20

    def alloc(stream: int) -> int:
        return out("cuMemAllocFromPoolAsync", size, pool, stream)

    def numbers() -> list[int]:
        """What is reserved and what is used, in pieces of the size: now, and at most."""
        return [read_attribute(id) // size for id in (5, 6, 7, 8)]

    def read_attribute(id: int) -> int:
        value = ctypes.c_uint64()
        call("cuMemPoolGetAttribute", pool, ctypes.c_uint(id), ctypes.byref(value))
        return value.value

    call("cuMemFreeAsync", alloc(one), one)
    assert numbers() == [0, 1, 0, 1], "the threshold is 0 at first"
    call("cuMemPoolSetAttribute", pool, ctypes.c_uint(4), ctypes.byref(ctypes.c_uint64(2 * size)))
    first = alloc(one)
    call("cuMemFreeAsync", first, one)
    assert numbers() == [1, 1, 0, 1] and alloc(one) == first, "the same stream has it again at once"
    # Another stream has it when the first one has come to the free.
    gate = threading.Event()
    wait = HOST_FUNCTION(lambda _: gate.wait(20))
    call("cuLaunchHostFunc", one, wait, None)
    call("cuMemFreeAsync", first, one)
    second = alloc(other)
    assert second != first
    gate.set()
    call("cuStreamSynchronize", one)
    assert alloc(other) == first and numbers() == [2, 2, 2, 2]
    third = alloc(other)
    for address in (first, second, third):
        call("cuMemFreeAsync", address, other)
    assert numbers() == [2, 3, 0, 3], "more than the threshold is not kept"
    call("cuMemPoolTrimTo", pool, size)
    call("cuMemPoolSetAttribute", pool, ctypes.c_uint(6), ctypes.byref(ctypes.c_uint64()))
    assert numbers() == [1, 1, 0, 3]
    # What a context freed ends with it.
    with driver.context():
        call("cuMemFreeAsync", alloc(2), 2)
        assert numbers() == [2, 2, 0, 3]
    call("cuCtxSetCurrent", context)
    assert numbers() == [1, 2, 0, 3]
    call("cuMemPoolDestroy", pool)


def test_a_pool_has_at_most_what_it_was_made_for() -> None:
    size = 1 << 20
    properties = PoolProperties(kind=1, location=(1, 0))
    properties.rest[1] = 3 * size  # maxSize
    pool, stream = out("cuMemPoolCreate", ctypes.byref(properties)), out("cuStreamCreate", ctypes.c_uint(1))
    call("cuMemPoolSetAttribute", pool, ctypes.c_uint(4), ctypes.byref(ctypes.c_uint64(8 * size)))
    first, second = (out("cuMemAllocFromPoolAsync", size, pool, stream) for _ in range(2))
    assert code("cuMemAllocFromPoolAsync", ctypes.byref(place := ctypes.c_uint64()), 2 * size, pool, stream) == 2
    call("cuMemFreeAsync", first, stream)
    assert read_attributes(pool, 5) == [2 * size], "it keeps what was freed"
    third = out("cuMemAllocFromPoolAsync", 2 * size, pool, stream)
    assert read_attributes(pool, 5, 7) == [3 * size, 3 * size], "which ends when its room is needed"
    assert code("cuMemAllocFromPoolAsync", ctypes.byref(place), 1, pool, stream) == 2
    # Pinned memory of the device 0, in no domain, without handles for other processes.
    assert read_attributes(pool, 13) == [3 * size] and read_attributes(pool, 9, 10, 11, 12, 14, 15) == [1, 0, 0, 1, 0, (1 << 32) - 1]
    for address in (second, third):
        call("cuMemFreeAsync", address, stream)
    call("cuMemPoolDestroy", pool)


def read_attributes(pool: int, *attributes: int) -> list[int]:
    values = []
    for attribute in attributes:
        value = ctypes.c_uint64()
        call("cuMemPoolGetAttribute", pool, ctypes.c_uint(attribute), ctypes.byref(value))
        values.append(value.value)
    return values


def test_what_the_device_has_not_is_refused_as_its_attributes_say() -> None:
    def attribute(number: int) -> int:
        return out("cuDeviceGetAttribute", ctypes.c_int(number), ctypes.c_int(0), kind=ctypes.c_int)

    # The attribute that says it, what a program asks for, and the result.
    for number, wanted, expected in ((89, {"kind": 2}, 801), (144, {"location": (2, 0)}, 801), (144, {"location": (3, 0)}, 801),
                                     (119, {"handles": 1}, 801), (149, {"location": (6, 0)}, 801),
                                     (144, {"location": (2, 0), "handles": 1}, 1), (144, {"location": (4, 0)}, 1),
                                     (89, {"kind": 9}, 1), (144, {"location": (1, 1)}, 101)):
        assert attribute(number) == 0
        properties = PoolProperties(**{"kind": 1, "location": (1, 0), **wanted})
        assert code("cuMemPoolCreate", ctypes.byref(ctypes.c_uint64()), ctypes.byref(properties)) == expected, wanted
    assert attribute(125) == 0 and code("cuEventCreate", ctypes.byref(ctypes.c_uint64()), ctypes.c_uint(6)) == 801
    # The CPU's memory is the GPU's, so that it has a dma-buf as well.
    host, fd = out("cuMemHostAlloc", 1 << 16, ctypes.c_uint(0)), ctypes.c_int()
    assert attribute(146) == 1
    call("cuMemGetHandleForAddressRange", ctypes.byref(fd), host, 1 << 16, ctypes.c_uint(1), 0)
    assert os.fstat(fd.value).st_size in (0, 1 << 16)
    os.close(fd.value)
    call("cuMemFreeHost", host)


def test_every_attribute_of_the_headers_has_an_answer() -> None:
    rows = [line.split("\t") for line in (ROOT / "crates/tegrarm-cuda/numbers.tsv").read_text().splitlines()]
    numbers = {name: int(number) for kind, name, number in (row for row in rows if len(row) == 3) if kind == "CUdevice_attribute"}
    most = numbers.pop("CU_DEVICE_ATTRIBUTE_MAX")
    assert len(numbers) > 140 and max(numbers.values()) < most
    unknown = [name for name, number in numbers.items() if code("cuDeviceGetAttribute", ctypes.byref(ctypes.c_int()),
                                                               ctypes.c_int(number), ctypes.c_int(0))]
    assert not unknown
    assert code("cuDeviceGetAttribute", ctypes.byref(ctypes.c_int()), ctypes.c_int(most), ctypes.c_int(0)) == 1


def test_contexts_have_addresses_of_their_own(context: int) -> None:
    """An address says which context its memory belongs to, whichever context is current."""
    source = 'extern "C" { __device__ int value = 5; __global__ void get(int *to) { *to = value; } }'
    made, expected = [context], {}
    try:
        made += [out("cuCtxCreate_v2", ctypes.c_uint(0), ctypes.c_int(0)) for _ in range(2)]
        for number, one in enumerate(made):
            call("cuCtxSetCurrent", one)
            loaded, variable, size = driver.module(source), ctypes.c_uint64(), ctypes.c_size_t()
            call("cuModuleGetGlobal_v2", ctypes.byref(variable), ctypes.byref(size), loaded, b"value")
            places = [variable.value, out("cuMemAlloc_v2", 4 << 20), out("cuMemAllocManaged", 4096, ctypes.c_uint(1)),
                      out("cuMemHostAlloc", 4096, ctypes.c_uint(0))]
            for place in places:
                call("cuMemsetD32_v2", place, ctypes.c_uint(number), 1)
                expected[place] = (one, number)
        assert len(expected) == 12
        for current in made:
            call("cuCtxSetCurrent", current)
            for place, (owner, number) in expected.items():
                assert read(place, numpy.zeros(1, numpy.uint32)) == number
                assert out("cuPointerGetAttribute", ctypes.c_uint(1), place) == owner
    finally:
        for one in made[1:]:
            call("cuCtxDestroy_v2", one)
        call("cuCtxSetCurrent", context)
    again = out("cuCtxCreate_v2", ctypes.c_uint(0), ctypes.c_int(0))
    call("cuCtxDestroy_v2", again)


def test_a_context_without_addresses_of_its_own_is_refused(context: int) -> None:
    """The fifteenth context would have addresses that another one has."""
    made = [out("cuCtxCreate_v2", ctypes.c_uint(0), ctypes.c_int(0)) for _ in range(13)]
    one = ctypes.c_void_p()
    assert code("cuCtxCreate_v2", ctypes.byref(one), ctypes.c_uint(0), ctypes.c_int(0)) == 2
    for other in made:
        call("cuCtxDestroy_v2", other)
    call("cuCtxDestroy_v2", out("cuCtxCreate_v2", ctypes.c_uint(0), ctypes.c_int(0)))
    call("cuCtxSetCurrent", context)
