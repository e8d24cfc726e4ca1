"""The CUDA library: a program that uses CUDA's driver interface, every exported function with nothing and with nonsense, and the tables."""

import ctypes
import importlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import cuda_driver as driver
import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "packaging"))
import c_header
import cuda_rows

CRATE = ROOT / "crates/tegrarm-cuda"
LIBRARY = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release/cuda/libcuda.so.1"
SITE = pathlib.Path(pytest.__file__).parents[1]
CUBIN = str(ROOT / "tests/data/cubin/vecadd.nvrtc.cubin")

PROGRAM = r'''
import ctypes as C, sys
cu = C.CDLL(sys.argv[1])
def ok(status):
    assert status == 0, status
ok(cu.cuInit(0))
device, context, module, kernel = C.c_int(), C.c_void_p(), C.c_void_p(), C.c_void_p()
ok(cu.cuDeviceGet(C.byref(device), 0))
ok(cu.cuCtxCreate_v2(C.byref(context), 0, device))
ok(cu.cuModuleLoadData(C.byref(module), open(sys.argv[2], "rb").read()))
assert cu.cuModuleGetFunction(C.byref(kernel), module, b"nothing") == 500
ok(cu.cuModuleGetFunction(C.byref(kernel), module, b"vecadd"))
n = 1000
a, b, c = [C.c_uint64() for _ in range(3)]
for p in (a, b, c):
    ok(cu.cuMemAlloc_v2(C.byref(p), C.c_size_t(4 * n)))
ins = (C.c_float * n)(*range(n))
ok(cu.cuMemcpyHtoD_v2(a, ins, C.c_size_t(4 * n)))
ok(cu.cuMemsetD32_v2(b, 0x3F800000, C.c_size_t(n)))
count = C.c_uint32(n)
values = (C.c_void_p * 4)(*[C.cast(C.pointer(x), C.c_void_p) for x in (a, b, c, count)])
stream, events = C.c_void_p(), [C.c_void_p(), C.c_void_p()]
ok(cu.cuStreamCreate(C.byref(stream), 0))
for event in events:
    ok(cu.cuEventCreate(C.byref(event), 0))
calls = []
called = C.CFUNCTYPE(None, C.c_void_p)(lambda user: calls.append(user))
ok(cu.cuEventRecord(events[0], stream))
ok(cu.cuLaunchKernel(kernel, 8, 1, 1, 128, 1, 1, 0, stream, values, None))
ok(cu.cuLaunchHostFunc(stream, called, C.c_void_p(7)))
ok(cu.cuEventRecord(events[1], stream))
outs = (C.c_float * n)()
ok(cu.cuMemcpyDtoH_v2(outs, c, C.c_size_t(4 * n)))
assert list(outs) == [x + 1 for x in range(n)], list(outs)[:4]
ok(cu.cuEventSynchronize(events[1]))
assert calls == [7], calls
time = C.c_float()
ok(cu.cuEventElapsedTime(C.byref(time), *events))
assert time.value > 0
assert cu.cuLaunchKernel(kernel, 0, 1, 1, 128, 1, 1, 0, stream, values, None) == 1
assert cu.cuTexObjectCreate(C.byref(C.c_void_p()), None, None, None) == 801
bad = C.c_uint64(0x10000)
values[0] = C.cast(C.pointer(bad), C.c_void_p)
ok(cu.cuLaunchKernel(kernel, 8, 1, 1, 128, 1, 1, 0, stream, values, None))
assert cu.cuCtxSynchronize() == 700 and cu.cuStreamQuery(stream) == 700
ok(cu.cuCtxDestroy_v2(context))
'''

# Each function is called with zeroes and with nonsense in its numbers and handles; NULL where a pointer is meant.
FUZZ = r'''
import ctypes as C, sys
cu, started = C.CDLL(sys.argv[1]), len(sys.argv) > 3
if started:
    assert cu.cuInit(0) == 0
    context = C.c_void_p()
    assert cu.cuCtxCreate_v2(C.byref(context), 0, 0) == 0
KINDS = {"i32": C.c_int32, "u32": C.c_uint32, "u64": C.c_uint64, "usize": C.c_size_t, "i64": C.c_int64, "u8": C.c_uint8, "u16": C.c_uint16,
         "f32": C.c_float, "f64": C.c_double, "c_char": C.c_char}
class Bytes64(C.Structure):
    _fields_ = [("bytes", C.c_uint8 * 64)]
class Location(C.Structure):
    _fields_ = [("kind", C.c_uint32), ("id", C.c_int32)]
def value(kind, number):
    if kind == "Handle":
        return C.c_void_p(number)
    if kind.startswith("*mut") or kind == "Callback":
        return C.c_void_p(0)
    if kind in ("Bytes64", "Location"):
        return {"Bytes64": Bytes64, "Location": Location}[kind]()
    return KINDS[kind](int(number) & 0xFF if kind == "u8" else number)
calls = 0
for line in open(sys.argv[2]):
    if line.startswith("#"):
        continue
    symbol, _, _, _, arguments = line.rstrip("\n").split("\t")
    kinds = [argument.split(": ")[1] for argument in arguments.split(", ") if argument]
    for number in (0, 1, 0x7FFF, 0x5A5A5A5A):
        status = getattr(cu, symbol)(*[value(kind, number) for kind in kinds])
        assert 0 <= status < 1000, (symbol, number, status)
        calls += 1
        if symbol.startswith("cuCtxDestroy") or "PrimaryCtx" in symbol or "Current" in symbol:
            cu.cuCtxSetCurrent(context if started else None)
print(calls, "calls")
'''


def run(*arguments: object) -> str:
    """Runs a program, which has to end without an error. Returns what it wrote."""
    done = subprocess.run([sys.executable, "-c", *map(str, arguments)], capture_output=True, text=True, timeout=280,
                          env={**os.environ, "TEGRARM_LOG": "off"})
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.skipif(not (shutil.which("valgrind") and shutil.which("cc")), reason="needs valgrind and cc")
def test_a_launch_takes_few_instructions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benches"))
    counts = importlib.import_module("figures").cuda_instructions()
    assert counts["runtime"] <= 282
    assert counts["cuda"] <= 1.15 * counts["runtime"]
    assert counts["graph"] <= 8 * counts["cuda"], "a graph of 20 kernels is one run"


def test_a_program_of_cudas_driver_interface() -> None:
    run(PROGRAM, LIBRARY, ROOT / "tests/data/cubin/vecadd.nvrtc.cubin")


@pytest.mark.parametrize("started", [[], ["started"]], ids=["before cuInit", "with a context"])
def test_every_function_answers_nonsense_with_a_result(started: list[str]) -> None:
    rows = [line for line in (CRATE / "functions.tsv").read_text().splitlines() if not line.startswith("#")]
    assert run(FUZZ, LIBRARY, CRATE / "functions.tsv", *started) == f"{4 * len(rows)} calls\n"


def test_the_tables_are_what_the_headers_say() -> None:
    subprocess.run([sys.executable, ROOT / "packaging/cuda_rows.py", SITE, "--check"], check=True, timeout=100)


TYPES = {"u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
         "u64": ctypes.c_uint64, "usize": ctypes.c_size_t}

STRUCTURE = re.compile(r"((?:/// [^\n]*\n)+)#\[repr\(C\)\]\n(?:#[^\n]*\n)*pub struct (\w+) \{\n(.*?)\n\}", re.S)


def structures() -> dict[str, type[ctypes.Structure]]:
    """The structures of the crate by the names that they have in cuda.h."""
    known, found = dict(TYPES), {}
    for file in ("pointers.rs", "structures.rs"):
        text = (CRATE / "src" / file).read_text()
        for doc, name, body in STRUCTURE.findall(text):
            fields = []
            for field, kind, count in re.findall(r"pub (\w+): \[?(?:\w+::)*(\w+)(?:; (\d+)\])?,", body):
                fields.append((field, known[kind] * int(count) if count else known[kind]))
            assert len(fields) == body.count("pub "), name
            known[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
            named = re.findall(r"`(CU\w+)`", doc)
            # These bytes are passed on as they are.
            assert named or name == "Bytes64", f"{name} does not say which structure of cuda.h it is"
            found.update({written: known[name] for written in named})
    return found


@pytest.mark.parametrize("major", [12, 13])
def test_a_compiler_of_c_gives_the_structures_the_same_layout(major: int) -> None:
    header, ours = c_header.Header(cuda_rows.find(SITE, major) / "cuda.h"), structures()
    assert len(ours) >= 23, list(ours)
    for name, made in ours.items():
        # Unions without a name: that of CUmemLocation came with CUDA 13. They are where their first members are.
        fields = [field.name or {"CUgraphNodeParams": "reserved1"}.get(name, "id") for field in header.structure(name, True)]
        size, *offsets = header.numbers([f"sizeof({name})", *(f"offsetof({name}, {field})" for field in fields)]).values()
        assert ctypes.sizeof(made) == size, name
        # Where ours has an array, cuda.h may have a field for each item.
        starts, items = set(), set()
        for field, kind in made._fields_:
            at, item = getattr(made, field).offset, ctypes.sizeof(getattr(kind, "_type_", kind)) if hasattr(kind, "_length_") else 0
            starts.add(at)
            items.update(at + item * index for index in range(getattr(kind, "_length_", 1)))
        assert starts <= set(offsets) <= items, (name, offsets)


def test_functions_are_looked_up_by_version_and_default_stream() -> None:
    library = ctypes.CDLL(str(LIBRARY))

    def find(name: bytes, version: int, flags: int = 0) -> tuple[int | None, int]:
        address, status = ctypes.c_void_p(), ctypes.c_uint()
        assert library.cuGetProcAddress_v2(name, ctypes.byref(address), version, ctypes.c_uint64(flags), ctypes.byref(status)) == 0
        return address.value, status.value

    def address(name: str) -> int | None:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value

    assert find(b"cuMemAlloc", 12000) == (address("cuMemAlloc_v2"), 0)
    assert find(b"cuMemAlloc", 2000) == (address("cuMemAlloc"), 0)
    assert find(b"cuLaunchKernel", 12000, 2) == (address("cuLaunchKernel_ptsz"), 0)
    assert find(b"cuGraphAddNode", 11000) == (None, 2)
    assert find(b"cuNothing", 12000) == (None, 1)
    # Whoever does not ask for the status gets a null pointer, and looks for the function in another way. The older function has an error.
    for version, code in (("_v2", 0), ("", 500)):
        address_of = ctypes.c_void_p(8)
        arguments = [b"cuFuncSetAttribute", ctypes.byref(address_of), 2000, ctypes.c_uint64(0), None][:5 if version else 4]
        assert getattr(library, f"cuGetProcAddress{version}")(*arguments) == code and address_of.value is None


def test_parameters_of_a_context_that_ask_for_nothing_are_taken() -> None:
    # A program of CUDA 13 gives the address of a structure with zeroes: affinities, how many, and graphics.
    for words, wanted in (((0, 0, 0), 0), ((0, 1, 0), 1), ((8, 1, 8), 1), ((8, 1, 0), 801), ((0, 0, 8), 801)):
        context = ctypes.c_uint64()
        found = driver.code("cuCtxCreate_v4", ctypes.byref(context), (ctypes.c_uint64 * 3)(*words), ctypes.c_uint(0), ctypes.c_int(0))
        assert found == wanted, words
        if not wanted:
            driver.call("cuCtxDestroy_v2", context)


NAME = """
import ctypes
import importlib
import json
cuda, name, device = ctypes.CDLL("libcuda.so.1"), ctypes.create_string_buffer(64), ctypes.c_int(9)
assert cuda.cuInit(0) == 0
for written in (b"00000000:00:00.0", b"0000:00:00.0", b"00:00.0"):
    assert cuda.cuDeviceGetByPCIBusId(ctypes.byref(device), written) == 0 == device.value
assert cuda.cuDeviceGetByPCIBusId(ctypes.byref(device), b"0000:01:00.0") == 101
cuda.cuDeviceGetName(name, 64, device)
print(name.value.decode())
"""


def test_tegrarm_run_puts_it_in_front_and_doctor_says_so(python) -> None:
    assert python(["-m", "tegrarm", "run", "--cuda", "--", sys.executable, "-c", NAME]) == "Orin\n"
    report = json.loads(python(["-m", "tegrarm", "run", "--cuda", "--", sys.executable, "-m", "tegrarm", "doctor", "--json"]))
    says = next(check["says"] for check in report["checks"] if check["name"] == "CUDA")
    assert re.search(r"lib(tegrarm_)?cuda.so(.1)? \(ours\), CUDA 1\d\.\d+, finds Orin$", says), says


JIT = """
import numpy
from tinygrad import Tensor, TinyJit
from tinygrad.device import Device
assert Device.DEFAULT == "CUDA"
@TinyJit
def step(a, b): return (a @ b).relu().realize(), ((a + b).sum(0) * 2).realize()
for turn in range(4):
    a, b = (numpy.random.default_rng(turn + n).standard_normal((16, 16), dtype=numpy.float32) for n in (0, 9))
    product, total = step(Tensor(a).realize(), Tensor(b).realize())
    assert numpy.allclose(product.numpy(), numpy.maximum(a @ b, 0), atol=1e-5)
    assert numpy.allclose(total.numpy(), 2 * (a + b).sum(0), atol=1e-5)
print("as numpy")
"""


def test_tinygrads_jit_makes_graphs(python) -> None:
    assert python(["-m", "tegrarm", "run", "--cuda", "--", sys.executable, "-c", JIT], env={"DEV": "CUDA"}) == "as numpy\n"


@pytest.mark.parametrize("major", [12, 13])
def test_a_c_program_for_nvidias_header(python, tmp_path: pathlib.Path, major: int) -> None:
    program = tmp_path / "program"
    if not (cc := shutil.which("cc")):
        pytest.skip("no C compiler")
    source, headers = ROOT / "examples/c/cuda_vecadd.c", cuda_rows.find(SITE, major)
    command = [cc, "-std=c17", "-Wall", "-Werror", f"-I{headers}", source, "-o", program, f"-L{LIBRARY.parent}", "-lcuda"]
    subprocess.run(command, check=True, timeout=100)
    assert python(["-m", "tegrarm", "run", "--cuda", "--", str(program), CUBIN]) == "Orin: 1000 sums are right\n"


def test_a_rust_program(python, tmp_path: pathlib.Path) -> None:
    if not (rustc := shutil.which("rustc")):
        pytest.skip("no Rust compiler")
    program, source = tmp_path / "program", ROOT / "examples/rust/cuda_vecadd.rs"
    subprocess.run([rustc, "--edition", "2021", "-D", "warnings", f"-L{LIBRARY.parent}", source, "-o", program], check=True, timeout=200)
    assert python(["-m", "tegrarm", "run", "--cuda", "--", str(program), CUBIN]) == "Orin: 1000 of 1000 sums are right\n"
    assert "CUDA_ERROR_FILE_NOT_FOUND (301)" in python(["-m", "tegrarm", "run", "--cuda", "--", str(program), "/none"], status=1)


# A checkout like NVIDIA's, with one program: what is built, with which libraries, and of which source a fat binary is made.
CMAKE = """
add_executable(adds adds.cpp)
target_link_libraries(adds PUBLIC CUDA::cuda_driver)  # add_executable(not this)
set(CUDA_FATBIN_FILE "${CMAKE_CURRENT_BINARY_DIR}/adds64.fatbin")
set(CUDA_KERNEL_SOURCE "${CMAKE_CURRENT_SOURCE_DIR}/adds.cu")
"""
KERNEL = '#include <stdio.h>\nextern "C" __global__ void add(int *sum) { atomicAdd(sum, threadIdx.x); if (!threadIdx.x) printf("a\\n"); }'
PROGRAM_OF_A_SAMPLE = """
#include <cuda.h>
#include <status.h>
int main() {
    CUdevice device; CUcontext context; CUmodule module; CUfunction add; CUdeviceptr sum; CUctxCreateParams none = {}; int result = 0;
    void *values[] = {&sum};
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuCtxCreate(&context, &none, 0, device) || cuModuleLoad(&module, "adds64.fatbin")
        || cuModuleGetFunction(&add, module, "add") || cuMemAlloc(&sum, 4) || cuMemsetD32(sum, 0, 1)
        || cuLaunchKernel(add, 1, 1, 1, 64, 1, 1, 0, 0, values, nullptr) || cuMemcpyDtoH(&result, sum, 4)) return 1;
    return result == 2016 ? STATUS : 1;
}
"""


LOST_LAUNCH = "(cuLaunchKernel(add, 1, 1, 1, 2000, 1, 1, 0, 0, values, nullptr), 0)"


@pytest.mark.parametrize("status,right", [("0", True), ("3", False), (LOST_LAUNCH, False), ('(puts("Test failed"), 0)', False)])
def test_the_runner_of_nvidias_samples(python, tmp_path: pathlib.Path, status: str, right: bool) -> None:
    if not shutil.which("c++"):
        pytest.skip("no C++ compiler")
    folder = tmp_path / "Samples/0_Introduction/adds"
    folder.mkdir(parents=True)
    (tmp_path / "Common").mkdir()
    (tmp_path / "Common/status.h").write_text(f"#include <cstdio>\n#define STATUS {status}\n")
    for name, text in (("CMakeLists.txt", CMAKE), ("adds.cu", KERNEL), ("adds.cpp", PROGRAM_OF_A_SAMPLE)):
        (folder / name).write_text(text)
    command = [sys.executable, "python/suite/samples.py", "--cache", str(tmp_path / "cache"), str(tmp_path)]
    said = python(["-m", "tegrarm", "run", "--cuda", "--", *command], env={"TEGRARM_LOG": "off"}, status=int(not right))
    assert ("1 passed" if right else "adds fails and has no row in KNOWN") in said


RUNTIME = ROOT / "crates/tegrarm-cudart"
RUNTIME_PROGRAM = r'''
import ctypes as C, sys
rt, major, numbers, image = C.CDLL(sys.argv[1]), int(sys.argv[2]), open(sys.argv[3]), open(sys.argv[4], "rb").read()
rt.cudaGetErrorName.restype = rt.cudaGetErrorString.restype = C.c_char_p
rt.__getattr__("__cudaRegisterFatBinary").restype = C.c_void_p
def ok(status):
    assert status == 0, (status, rt.cudaGetErrorName(status), rt.cudaGetErrorString(status))
class Dim3(C.Structure):
    _fields_ = [("x", C.c_uint), ("y", C.c_uint), ("z", C.c_uint)]
# What nvcc emits: a fat binary with the machine code for sm_87, its wrapper, and the name of a kernel for an address of the CPU.
entry = b"".join(number.to_bytes(size, "little") for number, size in (
    (2, 2), (0x101, 2), (64, 4), (len(image), 8), (0, 4), (0, 4), (7, 2), (1, 2), (87, 4), (0, 4), (0, 4), (0x11, 8), (0, 8), (0, 8)))
body = entry + image
fat = C.create_string_buffer(b"".join(n.to_bytes(s, "little") for n, s in ((0xBA55ED50, 4), (1, 2), (16, 2), (len(body), 8))) + body)
wrapper = (C.c_uint64 * 3)(0x466243B1 | 1 << 32, C.addressof(fat), 0)
host, name = C.c_uint64(), b"vecadd"
handle = C.c_void_p(rt.__getattr__("__cudaRegisterFatBinary")(C.byref(wrapper)))
rt.__getattr__("__cudaRegisterFunction")(handle, C.byref(host), C.c_char_p(name), C.c_char_p(name), -1, None, None, None, None, None)
rt.__getattr__("__cudaRegisterFatBinaryEnd")(handle)
def launch(values, block=128):
    assert rt.__getattr__("__cudaPushCallConfiguration")(Dim3(8, 1, 1), Dim3(block, 1, 1), C.c_size_t(0), None) == 0
    grid, threads, shared, stream = Dim3(), Dim3(), C.c_size_t(9), C.c_void_p(9)
    ok(rt.__getattr__("__cudaPopCallConfiguration")(C.byref(grid), C.byref(threads), C.byref(shared), C.byref(stream)))
    return rt.cudaLaunchKernel(C.byref(host), grid, threads, values, shared, stream)
n = 1000
pointers = [C.c_void_p() for _ in range(3)]
for p in pointers:
    ok(rt.cudaMalloc(C.byref(p), C.c_size_t(4 * n)))
ins, outs, count = (C.c_float * n)(*range(n)), (C.c_float * n)(), C.c_uint(n)
for p in pointers[:2]:
    ok(rt.cudaMemcpy(p, ins, C.c_size_t(4 * n), 1))
values = (C.c_void_p * 4)(*[C.addressof(x) for x in (*pointers, count)])
ok(launch(values))
ok(rt.cudaMemcpy(outs, pointers[2], C.c_size_t(4 * n), 2))
assert list(outs) == [2 * x for x in range(n)]
# The properties are where a C compiler has them, and nothing is written behind the structure.
rows = [line.rstrip("\n").split("\t") for line in numbers]
size = next(int(row[major - 11]) for row in rows if row[0] == "size")
properties = C.create_string_buffer(b"\xA5" * (size + 64))
ok(getattr(rt, "cudaGetDeviceProperties_v2" if major == 12 else "cudaGetDeviceProperties")(properties, 0))
assert properties.raw[size:-1] == b"\xA5" * 64
places = {row[1]: int(row[major - 10]) for row in rows if row[0] == "property" and row[major - 10] != "-"}
def word(name):
    return int.from_bytes(properties.raw[places[name]:places[name] + 4], "little")
assert [word(name) for name in ("major", "minor", "warpSize", "maxThreadsPerBlock", "integrated")] == [8, 7, 32, 1024, 1]
assert properties.raw.startswith(b"Orin\0")
# Errors: each thread's last one, until it is asked for; a fault until the device is reset.
assert launch(values, 2000) == 9 == rt.cudaPeekAtLastError() == rt.cudaGetLastError() and rt.cudaGetLastError() == 0
first, second, ids = C.c_void_p(), C.c_void_p(), C.c_uint64(9)
ok(rt.cudaStreamCreate(C.byref(first)))
ok(rt.cudaStreamGetCaptureInfo(first, C.byref(second), C.byref(ids), None, None, None, None))
assert second.value is None
ok(rt.cudaGetDriverEntryPointByVersion_ptsz(b"cuLaunchKernel", C.byref(second), 12000, C.c_uint64(0), None))
ok(rt.cudaGetDriverEntryPointByVersion(b"cuLaunchKernel", C.byref(first), 12000, C.c_uint64(0), None))
assert first.value and second.value and first.value != second.value
assert rt.cudaSetDevice(1) == 101 and rt.cudaGetErrorName(rt.cudaGetLastError()) == b"cudaErrorInvalidDevice"
assert rt.cudaCreateTextureObject(None, None, None, None) == 801 == rt.cudaGetLastError()
assert rt.cudaLaunchKernel(C.byref(count), Dim3(1, 1, 1), Dim3(1, 1, 1), None, C.c_size_t(0), None) == 98
bad = C.c_uint64(0x10000)
values[0] = C.addressof(bad)
ok(launch(values))
assert rt.cudaDeviceSynchronize() == 700 == rt.cudaGetLastError() == rt.cudaGetLastError() == rt.cudaFree(None)
ok(rt.cudaDeviceReset())
ok(rt.cudaGetLastError())
for p in pointers:
    ok(rt.cudaMalloc(C.byref(p), C.c_size_t(4 * n)))
    ok(rt.cudaMemset(p, 0, C.c_size_t(4 * n)))
values[0] = C.addressof(pointers[0])
ok(launch(values))
ok(rt.cudaDeviceSynchronize())
rt.__getattr__("__cudaUnregisterFatBinary")(handle)
'''

RUNTIME_FUZZ = r'''
import ctypes as C, re, sys
rt, major, calls = C.CDLL(sys.argv[1]), sys.argv[2], 0
KINDS = {"i32": C.c_int32, "u32": C.c_uint32, "u64": C.c_uint64, "usize": C.c_size_t, "Handle": C.c_void_p}
def structure(name, kind, count):
    return type(name, (C.Structure,), {"_fields_": [(f"f{at}", kind) for at in range(count)]})
BY_VALUE = {"Location": structure("Location", C.c_int32, 2), "Dim3": structure("Dim3", C.c_uint32, 3),
            "Extent": structure("Extent", C.c_size_t, 3), "PitchedPtr": structure("PitchedPtr", C.c_size_t, 4),
            "Bytes64": structure("Bytes64", C.c_uint64, 8)}
for line in open(sys.argv[3]):
    symbol, libraries, *arguments = line.rstrip("\n").split("\t")
    if symbol.startswith(("#", "__", "cudaGetError", "cudaCreateChannelDesc")) or major not in libraries.split():
        continue
    listed = arguments[major == "12" and len(arguments) > 1] if arguments else ""
    kinds = [one.split(": ")[1] for one in listed.split(", ") if one]
    for number in (0, 1, 0x7FFF, 0x5A5A5A5A):
        values = [BY_VALUE[kind]() if kind in BY_VALUE else KINDS.get(kind, C.c_void_p)(number if kind in KINDS else 0) for kind in kinds]
        status = getattr(rt, symbol)(*values)
        assert 0 <= status < 1000, (symbol, number, status)
        calls += 1
print(calls > 1500)
'''


@pytest.mark.parametrize("major", [12, 13])
def test_the_runtime_runs_what_a_program_registers(major: int) -> None:
    library, image = LIBRARY.parent / f"libcudart.so.{major}", ROOT / "tests/data/cubin/vecadd.nvrtc.cubin"
    run(RUNTIME_PROGRAM, library, major, RUNTIME / "numbers.tsv", image)


@pytest.mark.parametrize("major", [12, 13])
def test_every_function_of_the_runtime_answers_nonsense_with_a_result(major: int) -> None:
    assert run(RUNTIME_FUZZ, LIBRARY.parent / f"libcudart.so.{major}", major, RUNTIME / "functions.tsv") == "True\n"


def test_a_program_of_nvcc_on_the_runtime(python, tmp_path: pathlib.Path) -> None:
    """It is linked with NVIDIA's library and started on ours: the symbols and their versions are the same."""
    if not (toolkit := next(ROOT.glob(".cache/nvcc/lib/python3*/site-packages/nvidia/cu13"), None)):
        pytest.skip("`make test-cudart` downloads nvcc")
    (tmp_path / "libcudart.so").symlink_to(toolkit / "lib/libcudart.so.13")
    command = [toolkit / "bin/nvcc", "-arch=sm_87", "-cudart", "shared", f"-I{toolkit}/include", f"-L{tmp_path}"]
    subprocess.run([*command, "-o", tmp_path / "program", ROOT / "python/suite/runtime.cu"], check=True, timeout=280,
                   env={**os.environ, "TMPDIR": str(tmp_path)})
    assert python(["-m", "tegrarm", "run", "--cuda", "--", str(tmp_path / "program")], env={"TEGRARM_LOG": "off"}) == "right\n"
