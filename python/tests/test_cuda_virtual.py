"""Virtual memory of the CUDA library, by the rules of NVIDIA's documentation: reserved addresses, memory without addresses, mappings."""

import ctypes
import os
from collections.abc import Iterator

import cuda_driver as driver
import numpy
import pytest
from cuda_driver import Failed, call, code, out, read

UNIT = 2 << 20
NONE, READ, WRITE = 0, 1, 3
INVALID, ILLEGAL_ADDRESS, NOT_SUPPORTED, INVALID_DEVICE = 1, 700, 801, 101


class Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint), ("id", ctypes.c_int)]


class Properties(ctypes.Structure):
    _fields_ = [("type", ctypes.c_uint), ("handle_types", ctypes.c_uint), ("location", Location), ("windows", ctypes.c_void_p),
                ("compression", ctypes.c_ubyte), ("rdma", ctypes.c_ubyte), ("usage", ctypes.c_ushort), ("reserved", ctypes.c_ubyte * 4)]


class Access(ctypes.Structure):
    _fields_ = [("location", Location), ("flags", ctypes.c_uint)]


DEVICE = Location(1, 0)


@pytest.fixture(autouse=True)
def context() -> Iterator[int]:
    with driver.context() as made:
        yield made


def properties(handle_types: int = 0, **others: object) -> Properties:
    return Properties(**{"type": 1, "handle_types": handle_types, "location": DEVICE, **others})


def created(size: int = UNIT, handle_types: int = 0) -> int:
    return out("cuMemCreate", size, ctypes.byref(properties(handle_types)), 0)


def reserved(size: int = 4 * UNIT) -> int:
    return out("cuMemAddressReserve", size, 0, 0, 0)


def allow(address: int, size: int, flags: int) -> int:
    return code("cuMemSetAccess", address, size, ctypes.byref(Access(DEVICE, flags)), 1)


def access(address: int) -> int:
    return out("cuMemGetAccess", ctypes.byref(DEVICE), address)


def mapped(size: int = UNIT, flags: int = WRITE) -> tuple[int, int]:
    """Reserved addresses of four units with memory at the first ones, and the handle of the memory."""
    address, handle = reserved(), created(size)
    call("cuMemMap", address, size, 0, handle, 0)
    assert allow(address, size, flags) == 0
    return address, handle


def test_an_array_grows_at_its_address_and_work_sees_all_of_it() -> None:
    address = reserved()
    assert address % UNIT == 0
    loaded = driver.module()
    kernel, expected = driver.function(loaded, "add"), numpy.zeros(0, numpy.float32)
    for part in range(3):
        handle = created()
        call("cuMemMap", address + part * UNIT, UNIT, 0, handle, 0)
        assert allow(address + part * UNIT, UNIT, WRITE) == 0
        call("cuMemRelease", handle)
        expected = numpy.concatenate([expected, numpy.zeros(UNIT // 4, numpy.float32)])
        driver.launch(kernel, expected.size // 256, 256, 0, address, 1.5, ctypes.c_int(expected.size))
        expected += 1.5
        assert (read(address, expected) == expected).all()
    # Copies and fills of several mappings at once, by the CPU and by the GPU.
    data = numpy.arange(expected.size, dtype=numpy.float32)
    call("cuMemcpyHtoD_v2", address, data, data.nbytes)
    call("cuMemsetD32_v2", address + UNIT - 8, ctypes.c_uint(7), 4)
    data.view(numpy.uint32)[UNIT // 4 - 2:UNIT // 4 + 2] = 7
    whole = out("cuMemAlloc_v2", data.nbytes)
    call("cuMemcpyDtoD_v2", whole, address, data.nbytes)
    assert (read(whole, data) == data).all()
    assert code("cuMemcpyDtoD_v2", address, whole, data.nbytes + 4) == INVALID
    assert code("cuMemsetD8_v2", address + 3 * UNIT, ctypes.c_ubyte(1), 1) == INVALID
    call("cuMemUnmap", address, 3 * UNIT)
    call("cuMemAddressFree", address, 4 * UNIT)


def test_memory_lives_until_its_last_handle_and_mapping() -> None:
    address, handle = mapped(8 * UNIT // 4)
    call("cuMemRelease", handle)
    assert code("cuMemRelease", handle) == INVALID
    assert code("cuMemMap", address + 2 * UNIT, UNIT, 0, handle, 0) == INVALID
    call("cuMemsetD8_v2", address, ctypes.c_ubyte(9), 16)
    again = out("cuMemRetainAllocationHandle", address + 100)
    twice = out("cuMemRetainAllocationHandle", address)
    assert again == twice
    call("cuMemRelease", twice)
    call("cuMemUnmap", address, 2 * UNIT)
    # The handle keeps the memory with its bytes, for other addresses.
    call("cuMemMap", address + UNIT, 2 * UNIT, 0, again, 0)
    assert allow(address + UNIT, 2 * UNIT, READ) == 0
    assert (read(address + UNIT, numpy.zeros(16, numpy.uint8)) == 9).all()
    call("cuMemRelease", again)
    call("cuMemUnmap", address + UNIT, 2 * UNIT)
    call("cuMemAddressFree", address, 4 * UNIT)
    assert code("cuMemUnmap", address, UNIT) == INVALID


def test_one_memory_at_two_addresses() -> None:
    address, handle = mapped()
    call("cuMemMap", address + UNIT, UNIT, 0, handle, 0)
    assert access(address + UNIT) == NONE
    assert allow(address + UNIT, UNIT, READ) == 0
    call("cuMemsetD32_v2", address + 4, ctypes.c_uint(5), 1)
    assert read(address + UNIT + 4, numpy.zeros(1, numpy.uint32)) == 5
    assert code("cuMemsetD32_v2", address + UNIT, ctypes.c_uint(5), 1) == INVALID


@pytest.mark.parametrize("flags", [None, NONE, READ])
def test_a_store_without_the_access_is_a_fault(flags: int | None) -> None:
    address, handle = reserved(), created()
    call("cuMemMap", address, UNIT, 0, handle, 0)
    if flags is not None:
        assert allow(address, UNIT, WRITE) == 0
        assert allow(address, UNIT, flags) == 0
        assert access(address) == flags
    loaded = driver.module()
    driver.launch(driver.function(loaded, "add"), 1, 32, 0, address, 1.0, ctypes.c_int(32))
    assert code("cuCtxSynchronize") == ILLEGAL_ADDRESS
    # The fault stays, and everything can be given back nevertheless.
    assert code("cuMemUnmap", address, UNIT) == ILLEGAL_ADDRESS
    call("cuMemAddressFree", address, 4 * UNIT)
    call("cuMemRelease", handle)


def test_addresses_are_addresses_again_after_unmapping() -> None:
    address, _ = mapped()
    call("cuMemUnmap", address, UNIT)
    assert code("cuMemcpyDtoH_v2", numpy.zeros(4, numpy.uint8), address, 4) == INVALID
    assert code("cuMemGetAddressRange_v2", None, None, address) == 500
    loaded = driver.module()
    driver.launch(driver.function(loaded, "add"), 1, 32, 0, address, 1.0, ctypes.c_int(32))
    assert code("cuCtxSynchronize") == ILLEGAL_ADDRESS


def test_mappings_do_not_meet_and_end_as_a_whole() -> None:
    address, handle = mapped(2 * UNIT)
    for at in (0, 1):
        assert code("cuMemMap", address + at * UNIT, 2 * UNIT, 0, handle, 0) == INVALID, "something is mapped there"
    assert code("cuMemMap", address + 3 * UNIT, 2 * UNIT, 0, handle, 0) == INVALID, "outside"
    for size, offset, flags in ((UNIT, UNIT, 0), (UNIT, 0, 1), (3 * UNIT, 0, 0), (UNIT // 2, 0, 0), (0, 0, 0)):
        assert code("cuMemMap", address + 2 * UNIT, size, offset, handle, flags) == INVALID, (size, offset, flags)
    assert code("cuMemMap", address + 2 * UNIT + 4096, UNIT, 0, handle, 0) == INVALID
    for at, size in ((0, UNIT), (UNIT, UNIT), (2 * UNIT, UNIT), (0, 3 * UNIT)):
        assert code("cuMemUnmap", address + at, size) == INVALID, (at, size)
        assert allow(address + at, size, READ) == INVALID, (at, size)
    assert access(address) == WRITE
    assert code("cuMemAddressFree", address, 4 * UNIT) == INVALID, "mapped"
    assert code("cuMemFree_v2", address) == INVALID, "not of cuMemAlloc"
    call("cuMemUnmap", address, 2 * UNIT)
    assert code("cuMemAddressFree", address, UNIT) == INVALID
    assert code("cuMemAddressFree", address + UNIT, 3 * UNIT) == INVALID
    call("cuMemAddressFree", address, 4 * UNIT)
    assert code("cuMemAddressFree", address, 4 * UNIT) == INVALID


def test_what_cannot_be_is_refused() -> None:
    assert out("cuMemGetAllocationGranularity", ctypes.byref(properties()), ctypes.c_uint(0)) == UNIT
    assert out("cuMemGetAllocationGranularity", ctypes.byref(properties()), ctypes.c_uint(1)) == UNIT
    handle = ctypes.c_uint64()
    cases = [(INVALID, {"type": 0}), (INVALID, {"type": 7}), (NOT_SUPPORTED, {"handle_types": 8}), (NOT_SUPPORTED, {"rdma": 1}),
             (INVALID_DEVICE, {"location": Location(1, 1)}), (NOT_SUPPORTED, {"location": Location(3, 0)}),
             (INVALID, {"location": Location(4, 0)}),
             (INVALID, {"location": Location(0, 0)}), (NOT_SUPPORTED, {"usage": 1})]
    for expected, wanted in cases:
        assert code("cuMemCreate", ctypes.byref(handle), UNIT, ctypes.byref(properties(**wanted)), 0) == expected, wanted
    for size, flags in ((0, 0), (UNIT + 4096, 0), (UNIT, 1)):
        assert code("cuMemCreate", ctypes.byref(handle), size, ctypes.byref(properties()), flags) == INVALID
    assert code("cuMemCreate", ctypes.byref(handle), 1 << 50, ctypes.byref(properties()), 0) == 2
    for size, alignment, flags in ((0, 0, 0), (100, 0, 0), (UNIT, 3, 0), (UNIT, 0, 1)):
        assert code("cuMemAddressReserve", ctypes.byref(handle), size, alignment, 0, flags) == INVALID
    assert code("cuMemAddressReserve", ctypes.byref(handle), 1 << 50, 0, 0, 0) == 2
    assert out("cuMemAddressReserve", UNIT, 64 * UNIT, 0, 0) % (64 * UNIT) == 0
    address, memory = mapped()
    for wanted, count in ((Access(DEVICE, 2), 1), (Access(Location(1, 3), 3), 1), (Access(Location(2, 0), 3), 1), (Access(DEVICE, 3), 0)):
        assert code("cuMemSetAccess", address, UNIT, ctypes.byref(wanted), count) in (INVALID, INVALID_DEVICE, NOT_SUPPORTED)
    assert code("cuMemExportToShareableHandle", ctypes.byref(handle), memory, ctypes.c_uint(1), 0) == INVALID, "it was not asked for"
    assert code("cuMemImportFromShareableHandle", ctypes.byref(handle), 0, ctypes.c_uint(8)) == NOT_SUPPORTED
    assert code("cuMemImportFromShareableHandle", ctypes.byref(handle), 999, ctypes.c_uint(1)) == INVALID


def test_memory_goes_through_a_descriptor() -> None:
    handle, fd = created(2 * UNIT, 1), ctypes.c_int()
    address = reserved()
    call("cuMemMap", address, 2 * UNIT, 0, handle, 0)
    assert allow(address, 2 * UNIT, WRITE) == 0
    call("cuMemsetD32_v2", address + UNIT, ctypes.c_uint(11), 4)
    call("cuMemExportToShareableHandle", ctypes.byref(fd), handle, ctypes.c_uint(1), 0)
    call("cuMemUnmap", address, 2 * UNIT)
    call("cuMemRelease", handle)
    other = out("cuMemImportFromShareableHandle", fd.value, ctypes.c_uint(1))
    os.close(fd.value)
    seen = Properties()
    call("cuMemGetAllocationPropertiesFromHandle", ctypes.byref(seen), other)
    assert (seen.type, seen.handle_types, seen.location.type, seen.location.id) == (1, 1, 1, 0)
    call("cuMemMap", address + UNIT, 2 * UNIT, 0, other, 0)
    assert allow(address + UNIT, 2 * UNIT, READ) == 0
    assert (read(address + 2 * UNIT, numpy.zeros(4, numpy.uint32)) == 11).all()


def test_what_pointers_say() -> None:
    address, _ = mapped(UNIT, READ)
    second = created()
    call("cuMemMap", address + UNIT, UNIT, 0, second, 0)
    base, size = ctypes.c_uint64(), ctypes.c_size_t()
    call("cuMemGetAddressRange_v2", ctypes.byref(base), ctypes.byref(size), address + UNIT + 5)
    assert (base.value, size.value) == (address + UNIT, UNIT)
    for attribute, expected in ((2, 2), (16, READ), (8, 0), (13, 1)):
        assert out("cuPointerGetAttribute", ctypes.c_uint(attribute), address + 7, kind=ctypes.c_uint) == expected, attribute
    with pytest.raises(Failed):
        out("cuPointerGetAttribute", ctypes.c_uint(2), address + 2 * UNIT)


def test_a_graph_of_memory_that_is_unmapped_fails_and_harms_nobody() -> None:
    address, _ = mapped()
    stream = out("cuStreamCreate", ctypes.c_uint(1))
    call("cuStreamBeginCapture_v2", stream, ctypes.c_uint(2))
    host = numpy.ones(64, numpy.uint8)
    call("cuMemcpyHtoDAsync_v2", address, host, 64, stream)
    graph = ctypes.c_uint64()
    call("cuStreamEndCapture", stream, ctypes.byref(graph))
    run = out("cuGraphInstantiateWithFlags", graph.value, 0)
    call("cuGraphLaunch", run, stream)
    call("cuStreamSynchronize", stream)
    assert (read(address, host) == 1).all()
    call("cuMemUnmap", address, UNIT)
    assert code("cuGraphLaunch", run, stream) == INVALID


def test_memory_needs_no_context_and_goes_to_another_one(context: int) -> None:
    call("cuCtxSetCurrent", 0)
    handle = created()
    call("cuCtxSetCurrent", context)
    address = reserved()
    call("cuMemMap", address, UNIT, 0, handle, 0)
    assert allow(address, UNIT, WRITE) == 0
    call("cuMemsetD32_v2", address, ctypes.c_uint(3), 4)
    call("cuMemRelease", handle)
    # The memory belongs to the primary context, and the mapping keeps it.
    call("cuDevicePrimaryCtxReset_v2", ctypes.c_int(0))
    assert (read(address, numpy.zeros(4, numpy.uint32)) == 3).all()


def test_memory_stays_when_its_context_ends(context: int) -> None:
    other = out("cuCtxCreate_v2", ctypes.c_uint(0), ctypes.c_int(0))
    address, handle = mapped()
    call("cuMemsetD32_v2", address, ctypes.c_uint(5), 4)
    unnamed = created()
    call("cuMemMap", address + UNIT, UNIT, 0, unnamed, 0)
    # The other context has a mapping of this memory and no handle.
    call("cuCtxSetCurrent", context)
    here = reserved()
    call("cuMemMap", here + UNIT, UNIT, 0, unnamed, 0)
    call("cuMemRelease", unnamed)
    assert allow(here + UNIT, UNIT, WRITE) == 0
    call("cuMemsetD32_v2", here + UNIT, ctypes.c_uint(6), 4)
    call("cuCtxDestroy_v2", other)
    call("cuCtxSetCurrent", context)
    call("cuMemMap", here, UNIT, 0, handle, 0)
    call("cuMemRelease", handle)
    assert allow(here, UNIT, WRITE) == 0
    assert (read(here, numpy.zeros(4, numpy.uint32)) == 5).all()
    # Both can be named again, and mapped once more.
    for at, number in ((here, 5), (here + UNIT, 6)):
        again = out("cuMemRetainAllocationHandle", at)
        call("cuMemMap", here + 2 * UNIT, UNIT, 0, again, 0)
        assert allow(here + 2 * UNIT, UNIT, READ) == 0
        assert (read(here + 2 * UNIT, numpy.zeros(4, numpy.uint32)) == number).all()
        call("cuMemUnmap", here + 2 * UNIT, UNIT)
        call("cuMemRelease", again)
    call("cuMemUnmap", here, 2 * UNIT)
    assert code("cuMemRetainAllocationHandle", ctypes.byref(ctypes.c_uint64()), here) == INVALID


def test_addresses_can_be_freed_after_their_context() -> None:
    other = out("cuCtxCreate_v2", ctypes.c_uint(0), ctypes.c_int(0))
    address, _ = mapped()
    call("cuCtxDestroy_v2", other)
    assert code("cuMemsetD8_v2", address, ctypes.c_ubyte(1), 1) == INVALID
    call("cuMemUnmap", address, UNIT)
    assert code("cuMemAddressFree", address, UNIT) == INVALID
    call("cuMemAddressFree", address, 4 * UNIT)
    assert code("cuMemAddressFree", address, 4 * UNIT) == INVALID
