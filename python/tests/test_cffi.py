"""The headers for cffi: after the preprocessor it parses them, and with them alone a program uses the library in ABI mode."""

import pathlib
import re
import subprocess

import cffi
import pytest
from conftest import ROOT
from cuda import compiled

from tegrarm import _ffi

INCLUDE = ROOT / "include"


@pytest.fixture(scope="module")
def ffi():
    return declared()


def declared() -> cffi.FFI:
    """The declarations of our headers: what the preprocessor makes of the system's is cffi's own."""
    done = subprocess.run(["cc", "-E", f"-I{INCLUDE}", INCLUDE / "tegrarm_abi.h", "-include", INCLUDE / "tegrarm.h"],
                          capture_output=True, text=True, check=True)
    ours, lines = False, []
    for line in done.stdout.splitlines():
        if marker := re.match(r'# \d+ "([^"]*)"', line):
            ours = pathlib.Path(marker[1]).parent == INCLUDE
        elif ours:
            lines.append(line)
    ffi = cffi.FFI()
    ffi.cdef("\n".join(lines))
    return ffi


def constants(*names):
    """Macros are no declarations: the numbers that this program needs, as C sees them."""
    source = '#include "tegrarm.h"\n#include "tegrarm_abi.h"\n' + "".join(f"VALUE {name} {name}\n" for name in names)
    done = subprocess.run(["cc", "-E", "-P", f"-I{INCLUDE}", "-xc", "-"], input=source, capture_output=True, text=True, check=True)
    # The preprocessor replaces both words, so that they are found by their order.
    values = re.findall(r"^VALUE (\S+) \1$", done.stdout, re.M)
    assert len(values) == len(names)
    return [int(value.rstrip("uUlL"), 0) for value in values]


def test_every_function_is_declared(ffi):
    lib = ffi.dlopen(_ffi.find())
    missing = [name for name in _ffi.SIGNATURES if not hasattr(lib, name)]
    assert missing == []
    assert ffi.sizeof("struct tegrarm_device_profile") == __import__("ctypes").sizeof(_ffi.DeviceProfile)


def test_a_client_by_rm_alloc_and_a_kernel(ffi):
    lib = ffi.dlopen(_ffi.find())

    def ok(status):
        assert status == 0, ffi.string(lib.tegrarm_status_name(status))

    root, device_class, subdevice_class, space_class = constants("NV01_ROOT_CLIENT", "NV01_DEVICE_0", "NV20_SUBDEVICE_0", "FERMI_VASPACE_A")
    client, device, subdevice, space = (ffi.new("NvHandle *") for _ in range(4))
    ok(lib.rm_alloc(0, 0, client, root, ffi.NULL, 0))
    parameters = ffi.new("NV0080_ALLOC_PARAMETERS *", {"hClientShare": client[0]})
    ok(lib.rm_alloc(client[0], client[0], device, device_class, parameters, ffi.sizeof(parameters[0])))
    parameters = ffi.new("NV2080_ALLOC_PARAMETERS *")
    ok(lib.rm_alloc(client[0], device[0], subdevice, subdevice_class, parameters, ffi.sizeof(parameters[0])))
    parameters = ffi.new("NV_VASPACE_ALLOCATION_PARAMETERS *")
    ok(lib.rm_alloc(client[0], device[0], space, space_class, parameters, ffi.sizeof(parameters[0])))
    assert len({client[0], device[0], subdevice[0], space[0]}) == 4
    ok(lib.rm_free(client[0], 0, client[0]))
    assert lib.rm_free(client[0], 0, client[0]) != 0

    image = compiled('extern "C" __global__ void triple(int *x) { x[threadIdx.x] *= 3; }')
    opened, module, kernel, buffer = (ffi.new(f"struct tegrarm_{what} **") for what in ("device", "module", "kernel", "buffer"))
    pointer, address, fence = ffi.new("void **"), ffi.new("NvU64 *"), ffi.new("NvU64 *")
    ok(lib.tegrarm_device_open(0, opened))
    ok(lib.tegrarm_module_load(opened[0], image, len(image), module))
    ok(lib.tegrarm_module_kernel(module[0], b"triple", kernel))
    ok(lib.tegrarm_buffer_alloc(opened[0], 16, lib.TEGRARM_BUFFER_CACHED, buffer))
    ok(lib.tegrarm_buffer_address(buffer[0], pointer, address))
    items = ffi.cast("int *", pointer[0])
    for i in range(4):
        items[i] = i + 1
    arguments = ffi.new("void *[1]", [address])
    config = ffi.new("struct tegrarm_launch_config *", {"grid_dim": [1, 1, 1], "block_dim": [4, 1, 1]})
    config.size = ffi.sizeof(config[0])
    ok(lib.tegrarm_launch(ffi.NULL, kernel[0], config, arguments, 1, fence))
    ok(lib.tegrarm_wait(opened[0], fence[0], 2**64 - 1))
    assert list(ffi.unpack(items, 4)) == [3, 6, 9, 12]
    ok(lib.tegrarm_device_close(opened[0]))
