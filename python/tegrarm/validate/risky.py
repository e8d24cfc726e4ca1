"""Steps that may freeze a board (docs/hardware/nvgpu-address-space.md#keep-below-2-40). They run only with ``--risky``, and last."""

from __future__ import annotations

import ctypes

from ..rm import Client
from .note import Note

NV01_DEVICE_0, NV20_SUBDEVICE_0, FERMI_VASPACE_A, NV01_MEMORY_VIRTUAL = 0x80, 0x2080, 0x90F1, 0x70
KEPLER_CHANNEL_GROUP_A, FERMI_CONTEXT_SHARE_A = 0xA06C, 0x9067
NV01_MEMORY_LOCAL_USER, AMPERE_CHANNEL_GPFIFO_A, AMPERE_COMPUTE_B = 0x40, 0xC56F, 0xC7C0
NV2080_ENGINE_TYPE_GRAPHICS, SUBCONTEXT_ASYNC = 1, 1
# NVOS46_FLAGS_DMA_OFFSET_FIXED_TRUE
FIXED = 1 << 15
ENTRIES = 65536
MIB = 1 << 20
HIGH = (0x8000000000 - 2 * MIB, 0xFC00000000, 0xFF00000000 - 4 * MIB, 0xFF00000000 - 2 * MIB, 0xFF00000000, (1 << 40) - 2 * MIB, 1 << 40)


class Parameters:
    """The parameters of an allocation: bytes, of which some are set. Offsets are those of include/tegrarm_abi.h."""

    def __init__(self, whole: int, /, **fields: tuple[int, int, int]):
        self.bytes = (ctypes.c_uint8 * whole)()
        for at, width, value in fields.values():
            self.bytes[at:at + width] = list(value.to_bytes(width, "little"))


def memory(client: Client, device: int, size: int) -> int:
    """A buffer."""
    asked = Parameters(128, owner=(0, 4, client.root), size=(64, 8, size), alignment=(72, 8, 4096))
    return client.alloc(device, NV01_MEMORY_LOCAL_USER, asked.bytes)


def space(client: Client) -> tuple[int, int, int]:
    """A device, an address space, and a mapper into it."""
    device = client.alloc(client.root, NV01_DEVICE_0, Parameters(56, share=(4, 4, client.root)).bytes)
    vaspace = client.alloc(device, FERMI_VASPACE_A, Parameters(48).bytes)
    mapper = client.alloc(device, NV01_MEMORY_VIRTUAL, Parameters(24, space=(16, 4, vaspace)).bytes)
    return device, vaspace, mapper


def high_address(note: Note) -> None:
    """A buffer at addresses up to the end of the space, and above it."""
    with Client() as client:
        device, _, mapper = space(client)
        for at in HIGH:
            with note.part(f"{at:#x}"):
                buffer = memory(client, device, 1 << 16)
                try:
                    note.put("address", hex(client.map_dma(device, mapper, buffer, 1 << 16, FIXED, at)))
                finally:
                    client.free(buffer)


def large_ring(note: Note) -> None:
    """A channel whose ring has 65,536 entries (512 KiB), as desktop programs make them."""
    with Client() as client:
        with note.part("space"):
            device, vaspace, mapper = space(client)
            group = client.alloc(device, KEPLER_CHANNEL_GROUP_A, Parameters(20, engine=(12, 4, NV2080_ENGINE_TYPE_GRAPHICS)).bytes)
            share = client.alloc(group, FERMI_CONTEXT_SHARE_A,
                                 Parameters(12, space=(0, 4, vaspace), flags=(4, 4, SUBCONTEXT_ASYNC)).bytes)
        with note.part("ring"):
            size = ENTRIES * 8 + 4096
            ring = memory(client, device, size)
            address = client.map_dma(device, mapper, ring, size)
        with note.part("channel"):
            asked = Parameters(368, buffer=(4, 4, ring), at=(8, 8, address), entries=(16, 4, ENTRIES), share=(24, 4, share),
                               userd=(32, 4, ring), userd_at=(64, 8, ENTRIES * 8))
            channel = client.alloc(group, AMPERE_CHANNEL_GPFIFO_A, asked.bytes)
        with note.part("engine"):
            client.alloc(channel, AMPERE_COMPUTE_B)
