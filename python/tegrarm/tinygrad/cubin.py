"""Writes a cubin, which is the ELF file that the library loads. It serves a compiler whose output is machine code alone."""

from __future__ import annotations

import dataclasses
import itertools
import struct

PARAMETERS_AT = 0x160  # in constant bank 0, after the properties of a launch

EM_CUDA, ET_EXEC, ABI = 190, 2, 7
PROGBITS, SYMTAB, STRTAB, NOBITS, INFO = 1, 2, 3, 8, 0x7000_0000
WRITE, ALLOC, EXECUTE = 1, 2, 4
GLOBAL_FUNCTION, ENTRY = 0x12, 0x10
# The attributes of .nv.info (NVIDIA's EIATTR_), each followed by its bytes.
PARAM_CBANK, FRAME_SIZE, MIN_STACK_SIZE, KPARAM_INFO, REGCOUNT = 0x0a, 0x11, 0x12, 0x17, 0x2f
WITH_BYTES = 4
KERNEL_SYMBOL = 1


@dataclasses.dataclass
class Kernel:
    """What the compiler knows about a kernel."""

    name: str
    code: bytes
    parameters: list[tuple[int, int]]  # the offset and the size of each
    registers: int
    barriers: int = 0
    shared: int = 0
    scratch: int = 0  # the bytes of local memory of each thread that are addressed from 0


@dataclasses.dataclass
class Section:
    """A section: the values for its header, and its bytes."""

    name: str
    kind: int = 0
    flags: int = 0
    data: bytes = b""
    size: int = 0  # the size of a section that has no bytes in the file
    link: int = 0
    info: int = 0
    align: int = 1
    entry: int = 0


def attribute(number: int, *words: int) -> bytes:
    """One attribute of `.nv.info`."""
    return struct.pack(f"<BBH{len(words)}I", WITH_BYTES, number, 4 * len(words), *words)


def attributes(kernel: Kernel) -> bytes:
    """The attributes in `.nv.info.NAME`, which give the places of the parameters."""
    end = max((offset + size for offset, size in kernel.parameters), default=0)
    data = attribute(PARAM_CBANK, KERNEL_SYMBOL, end << 16 | PARAMETERS_AT)
    for ordinal, (offset, size) in enumerate(kernel.parameters):
        data += attribute(KPARAM_INFO, 0, offset << 16 | ordinal, size << 18)
    return data


def sections(kernel: Kernel) -> list[Section]:
    """All sections except the table of names."""
    name, names = kernel.name, b"\0" + kernel.name.encode() + b"\0"
    text = 3
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, GLOBAL_FUNCTION, ENTRY, text, 0, len(kernel.code))
    code_flags = ALLOC | EXECUTE | kernel.barriers << 20
    module = attribute(REGCOUNT, KERNEL_SYMBOL, kernel.registers) + attribute(FRAME_SIZE, KERNEL_SYMBOL, 0)
    made = [
        Section("", align=0),
        Section(".strtab", STRTAB, data=names),
        Section(".symtab", SYMTAB, data=symbols, link=1, info=1, align=8, entry=24),
        Section(f".text.{name}", PROGBITS, code_flags, kernel.code, link=2, info=kernel.registers << 24 | KERNEL_SYMBOL, align=128),
        Section(".nv.info", INFO, data=module + attribute(MIN_STACK_SIZE, KERNEL_SYMBOL, 0), link=2, align=4),
        Section(f".nv.info.{name}", INFO, data=attributes(kernel), link=2, info=text, align=4),
    ]
    if kernel.shared:
        made.append(Section(f".nv.shared.{name}", NOBITS, WRITE | ALLOC, size=kernel.shared, info=text, align=16))
    if kernel.scratch:
        made.append(Section(f".nv.local.{name}", NOBITS, WRITE | ALLOC, size=kernel.scratch, info=text, align=16))
    return made


def cubin(kernel: Kernel, capability: int) -> bytes:
    """The bytes of the file: its header, its sections and the table of sections."""
    table = sections(kernel)
    table.append(Section(".shstrtab", STRTAB))
    lengths = [len(s.name.encode()) + 1 for s in table]
    name_at = list(itertools.accumulate(lengths, initial=0))
    table[-1].data = b"".join(s.name.encode() + b"\0" for s in table)
    body, headers = bytearray(64), b""
    for section, at in zip(table, name_at, strict=False):
        body += bytes(-len(body) % max(section.align, 1))
        headers += struct.pack("<IIQQQQIIQQ", at, section.kind, section.flags, 0, len(body) if section.kind else 0,
                               section.size or len(section.data), section.link, section.info, section.align, section.entry)
        body += section.data
    body += bytes(-len(body) % 8)
    body[:64] = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01\x33" + bytes([ABI]), ET_EXEC, EM_CUDA, 1, 0, 0, len(body),
                            capability << 16 | 5 << 8 | capability, 64, 0, 0, 64, len(table), len(table) - 1)
    return bytes(body) + headers
