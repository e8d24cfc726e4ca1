"""Arguments that no real program sends give a status and never a crash, and the client still works afterwards."""

import ctypes

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tinygrad.runtime.autogen import nv_570 as nv

import tegrarm
from tegrarm import _ffi

CLASSES = [0x0, 0x1, 0x2, 0x5, 0x3E, 0x40, 0x41, 0x70, 0x71, 0x79, 0x80, 0x2080, 0x50A0, 0x83DE, 0x9067, 0x90F1, 0xA06C, 0xB2CC,
           0xC361, 0xC461, 0xC46F, 0xC56F, 0xC7B5, 0xC7C0, 0xCDC0]
COMMANDS = [0, 0x13E, 0x101, 0x201, 0x205, 0x800201, 0x800292, 0x2080200A, 0x2080014A, 0x20801201, 0x2080130E, 0x20801701, 0xA06C0101,
            0xC36F0108, 0xA06F0103, 0x83DE030C, 0x83DE0328, 0x2080012B]
u32 = st.one_of(st.sampled_from([0, 1, 0xFFFFFFFF, 0xC1D00000, 0xCAF00001]), st.integers(0, 0xFFFFFFFF))
u64 = st.one_of(st.sampled_from([0, 1, 4096, 1 << 40, 1 << 63, (1 << 64) - 1]), st.integers(0, (1 << 64) - 1))
quick = settings(max_examples=150, deadline=None, derandomize=True, database=None,
                 suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def tree():
    """A client with one of each simple object. The fuzzer mixes its handles with random ones."""
    with tegrarm.Client() as c:
        device = c.alloc(c.root, nv.NV01_DEVICE_0, nv.NV0080_ALLOC_PARAMETERS())
        subdevice = c.alloc(device, nv.NV20_SUBDEVICE_0)
        group = c.alloc(device, nv.KEPLER_CHANNEL_GROUP_A, nv.NV_CHANNEL_GROUP_ALLOCATION_PARAMETERS(engineType=1))
        memory = c.alloc(device, nv.NV1_MEMORY_USER, nv.NV_MEMORY_ALLOCATION_PARAMS(size=8192))
        vaspace = c.alloc(device, nv.FERMI_VASPACE_A, nv.NV_VASPACE_ALLOCATION_PARAMETERS())
        mapper = c.alloc(device, nv.NV01_MEMORY_VIRTUAL, nv.NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS(hVASpace=vaspace))
        yield c, [c.root, device, subdevice, group, memory, vaspace, mapper]
        assert c.control(c.root, 0x13E, nv.NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS()).driverVersionBuffer == b"570.86.16"


def known(status: int) -> None:
    assert _ffi.status_name(status).startswith("NV_"), f"status {status:#x} has no name"
    assert status == 0 or _ffi.last_error(), f"{_ffi.status_name(status)} came without a sentence"


@quick
@given(data=st.data())
def test_alloc(tree, data):
    client, handles = tree
    params = ctypes.create_string_buffer(data.draw(st.binary(min_size=0, max_size=400)).ljust(512, b"\0"), 512)
    parent = data.draw(st.one_of(st.sampled_from(handles), u32))
    handle = ctypes.c_uint32(data.draw(st.one_of(st.just(0), u32)))
    class_ = data.draw(st.one_of(st.sampled_from(CLASSES), u32))
    status = _ffi.lib().rm_alloc(client.root, parent, ctypes.byref(handle), class_, data.draw(st.sampled_from([params, None])), 0)
    known(status)
    if status == 0 and handle.value not in handles:
        assert _ffi.lib().rm_free(client.root if class_ not in (0, 1, 0x41) else handle.value, 0, handle.value) == 0


@quick
@given(data=st.data())
def test_control(tree, data):
    client, handles = tree
    # Controls that follow pointers inside their parameters are not called here, because a wrong pointer crashes the caller on a desktop
    # too.
    params = ctypes.create_string_buffer(8192)
    obj = data.draw(st.one_of(st.sampled_from(handles), u32))
    known(_ffi.lib().rm_control(client.root, obj, data.draw(st.one_of(st.sampled_from(COMMANDS), u32)),
                                data.draw(st.sampled_from([params, None])), data.draw(st.integers(0, 8192))))


@quick
@given(data=st.data())
def test_mappings(tree, data):
    client, handles = tree
    memory, mapper = handles[4], handles[6]
    pick = st.one_of(st.sampled_from(handles), u32)
    offset, length, va = data.draw(u64), data.draw(u64), ctypes.c_uint64(data.draw(u64))
    status = _ffi.lib().rm_map_memory_dma(client.root, handles[1], data.draw(st.one_of(st.just(mapper), pick)),
                                          data.draw(st.one_of(st.just(memory), pick)), offset, length,
                                          data.draw(st.sampled_from([0, 1 << 15, 0x8110])), ctypes.byref(va))
    known(status)
    if status == 0:
        known(_ffi.lib().rm_unmap_memory_dma(client.root, handles[1], mapper, memory, 0, va.value))
    address = ctypes.c_void_p()
    status = _ffi.lib().rm_map_memory(client.root, handles[1], data.draw(st.one_of(st.just(memory), pick)), offset, length,
                                      ctypes.byref(address), 0)
    known(status)
    if status == 0:
        known(_ffi.lib().rm_unmap_memory(client.root, handles[1], memory, address, 0))


def test_random_frees(tree):
    client, handles = tree
    for handle in [0, 1, 0xFFFFFFFF, 0xCAF0FFFF, *handles[:0:-1], *handles[1:]]:
        known(_ffi.lib().rm_free(client.root, 0, handle))
