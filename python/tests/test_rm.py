"""The object door from Python: handles, statuses, memory at one address, and nothing left behind."""

import ctypes
import os

import pytest
from tinygrad.runtime.autogen import nv_570 as nv

import tegrarm
from tegrarm import rm


@pytest.fixture
def client():
    with tegrarm.Client() as c:
        yield c


@pytest.fixture
def device(client):
    return client.alloc(client.root, nv.NV01_DEVICE_0, nv.NV0080_ALLOC_PARAMETERS(hClientShare=client.root))


def address_space(client, device):
    vaspace = client.alloc(device, nv.FERMI_VASPACE_A, nv.NV_VASPACE_ALLOCATION_PARAMETERS())
    return client.alloc(device, nv.NV01_MEMORY_VIRTUAL, nv.NV_MEMORY_VIRTUAL_ALLOCATION_PARAMS(hVASpace=vaspace))


def test_handles_are_where_tinygrad_expects_them(client, device):
    assert client.root >= 0xC1D00000
    assert device >= 0xCAF00001


def test_version_string_selects_the_570_layouts(client):
    asked = nv.NV0000_CTRL_SYSTEM_GET_BUILD_VERSION_V2_PARAMS()
    answer = client.control(client.root, nv.NV0000_CTRL_CMD_SYSTEM_GET_BUILD_VERSION_V2, asked)
    assert answer.driverVersionBuffer == b"570.86.16"


def test_unknown_class_is_an_exception_with_a_name(client, device):
    with pytest.raises(tegrarm.RmError) as refused:
        client.alloc(device, 0xCDC0)
    assert refused.value.name == "NV_ERR_INVALID_CLASS" and refused.value.status == 0x22
    assert "cdc0" in refused.value.detail.lower()


def test_out_of_memory_is_a_memory_error(client, device):
    with pytest.raises(MemoryError):
        client.alloc(device, nv.NV1_MEMORY_USER, nv.NV_MEMORY_ALLOCATION_PARAMS(size=1 << 50))


def test_memory_has_one_address_for_cpu_and_gpu(client, device):
    mapper = address_space(client, device)
    memory = client.alloc(device, nv.NV1_MEMORY_USER, nv.NV_MEMORY_ALLOCATION_PARAMS(size=1 << 16))
    va = client.map_dma(device, mapper, memory, 1 << 16)
    pointer = client.map(device, memory, 1 << 16)
    assert pointer == va
    assert ctypes.string_at(pointer, 1 << 16) == bytes(1 << 16), "nvmap hands out cleared pages"
    ctypes.memset(pointer, 0xA5, 1 << 16)
    assert ctypes.string_at(pointer + 0xFFFF, 1) == b"\xa5"


def test_windows_stay_free(client, device):
    """No buffer can lie where the GPU decodes local and shared memory, neither by accident nor on request."""
    mapper, profile = address_space(client, device), tegrarm.device_profile()
    assert profile.local_window + (1 << 30) <= profile.shared_window < 1 << 40
    for window in (profile.local_window, profile.shared_window):
        memory = client.alloc(device, nv.NV1_MEMORY_USER, nv.NV_MEMORY_ALLOCATION_PARAMS(size=1 << 20))
        with pytest.raises(tegrarm.RmError, match="NV_ERR_PAGE_TABLE_NOT_AVAIL"):
            client.map_dma(device, mapper, memory, 1 << 20, 1 << 15, window + (512 << 20))
        va = client.map_dma(device, mapper, memory, 1 << 20)
        assert not window <= va < window + (1 << 30)


def test_closing_the_client_leaves_nothing(client):
    def fds():
        return sorted(os.listdir("/proc/self/fd"))

    rm.device_count()
    before = None
    for _ in range(3):
        with tegrarm.Client() as c:
            device = c.alloc(c.root, nv.NV01_DEVICE_0, nv.NV0080_ALLOC_PARAMETERS())
            mapper = address_space(c, device)
            for _ in range(20):
                memory = c.alloc(device, nv.NV1_MEMORY_USER, nv.NV_MEMORY_ALLOCATION_PARAMS(size=8192))
                c.map_dma(device, mapper, memory, 8192)
                c.map(device, memory, 8192)
        # With its first memory the process opens the file that shows others how much memory it has.
        assert before in (None, fds())
        before = fds()


def test_a_forked_child_cannot_use_the_parents_client(client, device):
    read, write = os.pipe()
    if not (pid := os.fork()):
        try:
            client.alloc(device, nv.NV20_SUBDEVICE_0)
            os.write(write, b"accepted")
        except tegrarm.RmError as refused:
            os.write(write, refused.name.encode())
        finally:
            client.close()
            os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(read, 100) == b"NV_ERR_INVALID_CLIENT"
    assert client.alloc(device, nv.NV20_SUBDEVICE_0), "the parent's client is untouched"


def test_profile_describes_an_orin():
    profile = tegrarm.device_profile()
    assert profile.shared_memory and profile.sm_version == 0x807 and profile.simd_width == 32
    assert profile.max_threads_per_group == 1024 and any(profile.uuid)
