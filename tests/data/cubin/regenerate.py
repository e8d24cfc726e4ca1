#!/usr/bin/env python3
"""Compiles the CUDA sources beside it for sm_87, along each route that ships machine code.

    pip install nvidia-cuda-nvrtc-cu12 nvidia-nvjitlink-cu12 nvidia-cuda-nvrtc nvidia-nvjitlink
    python3 regenerate.py

`NAME.nvrtc.cubin` is NVRTC's own machine code, `NAME.jit.cubin` is NVRTC's PTX through nvJitLink (whose
assembler emits relocations that NVRTC resolves by itself), `NAME.rdc.cubin` is relocatable code linked by
nvJitLink; all of CUDA 12. `NAME.cuda13.cubin` is NVRTC of CUDA 13, whose section types and flags moved. `described.json` says
what an independent reader, written here with nothing but `struct`, finds in each. The Rust tests compare the loader with it.
"""
import ctypes
import importlib.util
import json
import pathlib
import struct

HERE = pathlib.Path(__file__).parent
ARCH = "sm_87"


def library(package, name):
    for place in importlib.util.find_spec(package).submodule_search_locations:
        if (pathlib.Path(place) / "lib" / name).exists():
            return ctypes.CDLL(str(pathlib.Path(place) / "lib" / name))
    raise FileNotFoundError(name)


def nvrtc_compile(nvrtc, path, want, *options):
    """Source to machine code (`want` = "CUBIN") or PTX."""
    program = ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), path.read_bytes(), path.name.encode(), 0, None, None) == 0
    opts = [o.encode() for o in options]
    code = nvrtc.nvrtcCompileProgram(program, len(opts), (ctypes.c_char_p * len(opts))(*opts))
    size = ctypes.c_size_t()
    if code != 0:
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        raise RuntimeError(log.value.decode())
    assert getattr(nvrtc, f"nvrtcGet{want}Size")(program, ctypes.byref(size)) == 0
    out = ctypes.create_string_buffer(size.value)
    assert getattr(nvrtc, f"nvrtcGet{want}")(program, out) == 0
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return out.raw


INPUT_CUBIN, INPUT_PTX = 1, 2


def jit_link(jitlink, kind, data, name):
    handle = ctypes.c_void_p()
    options = [f"-arch={ARCH}".encode()]
    create = jitlink.__nvJitLinkCreate_12_9
    add = jitlink.__nvJitLinkAddData_12_9
    assert create(ctypes.byref(handle), ctypes.c_uint32(1), (ctypes.c_char_p * 1)(*options)) == 0
    code = add(handle, ctypes.c_int(kind), data, ctypes.c_size_t(len(data)), name.encode())
    code = code or jitlink.__nvJitLinkComplete_12_9(handle)
    if code != 0:
        log = ctypes.create_string_buffer(65536)
        jitlink.__nvJitLinkGetErrorLog_12_9(handle, log)
        raise RuntimeError(f"nvJitLink {code}: {log.value.decode()}")
    size = ctypes.c_size_t()
    assert jitlink.__nvJitLinkGetLinkedCubinSize_12_9(handle, ctypes.byref(size)) == 0
    out = ctypes.create_string_buffer(size.value)
    assert jitlink.__nvJitLinkGetLinkedCubin_12_9(handle, out) == 0
    jitlink.__nvJitLinkDestroy_12_9(ctypes.byref(handle))
    return out.raw


def text(blob, offset):
    return blob[offset:blob.index(b"\0", offset)].decode()


def attributes(blob):
    at = 0
    while at < len(blob):
        form, kind, size = struct.unpack_from("<BBH", blob, at)
        at += 4
        if form == 4:
            yield kind, blob[at:at + size]
            at += size
        else:
            yield kind, size


def describe(blob):
    """The facts the loader must agree with."""
    shoff, = struct.unpack_from("<Q", blob, 0x28)
    shentsize, shnum, shstrndx = struct.unpack_from("<HHH", blob, 0x3A)
    raw = [struct.unpack_from("<IIQQQQIIQQ", blob, shoff + i * shentsize) for i in range(shnum)]
    names = [text(blob, raw[shstrndx][4] + s[0]) for s in raw]
    body = {n: blob[s[4]:s[4] + s[5]] for n, s in zip(names, raw) if s[1] != 8}
    symtab = names.index(".symtab")
    strtab = raw[raw[symtab][6]][4]
    symbols = [struct.unpack_from("<IBBHQQ", body[".symtab"], o) for o in range(0, raw[symtab][5], 24)]
    label = [text(blob, strtab + s[0]) for s in symbols]

    kernels = {}
    for i, (sname, section) in enumerate(zip(names, raw)):
        if not sname.startswith(".text."):
            continue
        k = sname[len(".text."):]
        if f".nv.info.{k}" not in body or not any(
                label[j] == k and s[1] & 15 == 2 and s[2] & 0x10 for j, s in enumerate(symbols)):
            continue
        entry = {"size": section[5], "parameters": [], "shared": 0}
        for kind, data in attributes(body[f".nv.info.{k}"]):
            if kind == 0x0A:
                entry["parameter_offset"], entry["parameter_size"] = struct.unpack_from("<HH", data, 4)
            elif kind == 0x17:
                _, ordinal, offset, flags = struct.unpack("<IHHI", data)
                entry["parameters"].append([ordinal, offset, flags >> 18])
        entry["parameters"].sort()
        for kind, data in attributes(body[".nv.info"]):
            if kind in (0x2F, 0x12, 0x11):
                sym, value = struct.unpack("<II", data)
                if label[sym] == k:
                    entry[{0x2F: "registers", 0x12: "min_stack", 0x11: "frame"}[kind]] = value
        if f".nv.shared.{k}" in names:
            entry["shared"] = raw[names.index(f".nv.shared.{k}")][5]
        entry["banks"] = sorted([int(n[len(".nv.constant"):].split(".")[0]), raw[j][5]] for j, n in enumerate(names)
                                if n.startswith(".nv.constant") and n.split(".", 3)[3:] in ([k], []))
        kernels[k] = entry

    relocations = []
    for n, s in zip(names, raw):
        if s[1] not in (4, 9) or s[7] == 0 or not raw[s[7]][2] & 2:
            continue
        for o in range(0, s[5], s[9]):
            offset, info = struct.unpack_from("<QQ", body[n], o)
            addend = struct.unpack_from("<q", body[n], o + 16)[0] if s[1] == 4 else 0
            relocations.append([names[s[7]], offset, info & 0xFFFFFFFF, label[info >> 32], addend])
    flags, = struct.unpack_from("<I", blob, 0x30)
    return {"flags": flags, "sections": [[n, s[1], s[5]] for n, s in zip(names, raw)],
            "kernels": kernels, "relocations": sorted(relocations)}


def main():
    nvrtc = library("nvidia.cuda_nvrtc", "libnvrtc.so.12")
    jitlink = library("nvidia.nvjitlink", "libnvJitLink.so.12")
    nvrtc13 = library("nvidia.cu13", "libnvrtc.so.13")
    real, virtual = f"--gpu-architecture={ARCH}", f"--gpu-architecture={ARCH.replace('sm', 'compute')}"
    described = {}
    for source in sorted(HERE.glob("*.cu")):
        ptx = nvrtc_compile(nvrtc, source, "PTX", virtual)
        relocatable = nvrtc_compile(nvrtc, source, "CUBIN", real, "-rdc=true")
        for route, blob in [
            ("nvrtc", nvrtc_compile(nvrtc, source, "CUBIN", real)),
            ("jit", jit_link(jitlink, INPUT_PTX, ptx, source.name)),
            ("rdc", jit_link(jitlink, INPUT_CUBIN, relocatable, source.name)),
            ("cuda13", nvrtc_compile(nvrtc13, source, "CUBIN", real)),
        ]:
            (HERE / f"{source.stem}.{route}.cubin").write_bytes(blob)
            described[f"{source.stem}.{route}"] = describe(blob)
    (HERE / "described.json").write_text(json.dumps(described, indent=1, sort_keys=True) + "\n")
    for source in sorted((HERE / "driver").glob("*.cu")):
        source.with_suffix(".cubin").write_bytes(nvrtc_compile(nvrtc, source, "CUBIN", real))


if __name__ == "__main__":
    main()
