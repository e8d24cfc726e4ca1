#!/usr/bin/env python3
"""Compiles CUDA C to the text that the engine's tests load: kernels.hex, where each kernel begins with the line `kernel NAME`.

usage: compile.py LIBNVRTC SOURCE [OPTION...]

LIBNVRTC is the shared library of the PyPI package nvidia-cuda-nvrtc-cu12. The kernels are written to standard output.
"""
import ctypes
import struct
import sys


def cubin(library, source, options):
    rtc = ctypes.CDLL(library)
    program = ctypes.c_void_p()
    rtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    options = [b"--gpu-architecture=sm_87", *options]
    failed = rtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    kind = "ProgramLog" if failed else "CUBIN"
    size = ctypes.c_size_t()
    getattr(rtc, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(rtc, f"nvrtcGet{kind}")(program, text)
    if failed:
        sys.exit(text.value.decode())
    return text.raw


def sections(elf):
    start, = struct.unpack_from("<Q", elf, 40)
    count, names = struct.unpack_from("<HH", elf, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, start + 64 * i) for i in range(count)]
    for name, kind, _, _, offset, size, _, info, _, _ in headers:
        label = elf[headers[names][4] + name:].split(b"\0")[0].decode()
        yield label, info, size, b"" if kind == 8 else elf[offset:offset + size]


def stacks(info):
    """MIN_STACK_SIZE attributes of .nv.info: symbol index to bytes."""
    at, sizes = 0, {}
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        if form == 4:
            if attribute == 0x12:
                symbol, stack = struct.unpack_from("<II", info, at + 4)
                sizes[symbol] = stack
            at += 4 + size
        else:
            at += 4
    return sizes


def kernels(elf):
    """The kernels of a cubin: name, and its lines."""
    table = list(sections(elf))
    data = {name: (size, bytes_) for name, _, size, bytes_ in table}
    stack = stacks(data[".nv.info"][1])
    for name, info, _, code in table:
        if not name.startswith(".text."):
            continue
        kernel = name.removeprefix(".text.")
        lines = [f"registers {info >> 24}"]
        lines.append(f"shared {data.get(f'.nv.shared.{kernel}', (0, b''))[0]}")
        lines.append(f"stack {stack.get(info & 0xffffff, 0)}")
        # Bank 4 holds addresses of tables in global memory, which only a loader can fill in.
        for bank in (2, 3):
            bytes_ = data.get(f".nv.constant{bank}.{kernel}", data.get(f".nv.constant{bank}", (0, b"")))[1]
            if bytes_:
                lines.append(f"bank {bank} {bytes_.hex()}")
        lines += ["%016x %016x" % pair for pair in struct.iter_unpack("<QQ", code)]
        yield kernel, lines


def main():
    library, source, *options = sys.argv[1:]
    elf = cubin(library, open(source, "rb").read(), [o.encode() for o in options])
    for kernel, lines in kernels(elf):
        print(f"\nkernel {kernel}\n# {source.rsplit('/', 1)[-1]}: {kernel}, compiled by NVRTC for sm_87\n", *lines, sep="\n")


if __name__ == "__main__":
    main()
