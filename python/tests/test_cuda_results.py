"""Every function of the CUDA library with random and hostile arguments: it returns a result that NVIDIA's description of it names.

The arguments are made from the table of functions, by their types and names: handles that are alive, have ended or never were, addresses in
memory and outside, sizes up to the largest number, NULL, and structures of random words. What C asks of every caller holds: a pointer is
NULL or leads to readable memory, and an array has the elements that its count names.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import pathlib
import random
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import cuda_driver as driver
from conftest import ROOT
from cuda_driver import call, out

CRATE = ROOT / "crates/tegrarm-cuda"
#: What any function may return: CUDA's general results, its word for NULL and for a number without a meaning, which some lists leave out,
#: and this library's word for what it refuses.
GENERAL = {"SUCCESS", "DEINITIALIZED", "NOT_INITIALIZED", "INVALID_CONTEXT", "CONTEXT_IS_DESTROYED", "INVALID_VALUE", "NOT_SUPPORTED"}
#: What functions return beyond their lists, as the description of the result itself in the headers has it.
BEYOND = [(r"cu(Module|Library)Load\w*", "INVALID_IMAGE"), (r"cuLibraryLoadFromFile", "FILE_NOT_FOUND"),
          (r"cuStream(Begin|End)Capture\w*|cuStreamUpdateCapture\w*", "ILLEGAL_STATE"), (r"cuGetProcAddress\w*", "NOT_FOUND"),
          # The primary context is made for it, if there is no context.
          (r"cuMemImportFromShareableHandle", "OUT_OF_MEMORY"),
          # PTX is compiled when a link is complete, and not when it is added.
          (r"cuLinkComplete", "INVALID_PTX"), (r"cuLinkComplete", "JIT_COMPILER_NOT_FOUND")]
#: The functions that need no cuInit.
AT_ANY_TIME = {"cuInit", "cuDriverGetVersion", "cuGetErrorName", "cuGetErrorString", "cuGetExportTable", "cuGetProcAddress",
               "cuGetProcAddress_v2"}
#: In a capture, and after a fault.
CAPTURE = {"STREAM_CAPTURE_" + end for end in ("UNSUPPORTED", "INVALIDATED", "MERGE", "UNMATCHED", "UNJOINED", "ISOLATION", "IMPLICIT")}
STICKY = {"ILLEGAL_ADDRESS"}
#: Without a list in the headers, a function returns these.
UNLISTED = {"INVALID_DEVICE", "NOT_FOUND"}
ROOM = 64 << 10
#: How often each function is called: as it comes, in a capture, without a context, after a fault. It is called once before cuInit.
ROUNDS = {"plain": 9, "capture": 3, "alone": 2, "fault": 1}
#: Counts of elements of arrays, which C asks to be true. A buffer has room for a thousand elements of any type.
COUNTS = re.compile(r"num\w+|count|library\w*count|size|capacity", re.I)
SIZES = [0, 1, 4, 8, 64, 4096, ROOM, ROOM + 1, 2 << 20, 1 << 40, 1 << 63, (1 << 64) - 1]
WORDS = [0, 1, 2, 3, 4, 7, 16, 64, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1]
#: Names of handles, and which kind they are.
KINDS = [(r"h?stream", "stream"), (r"h?event|h(Start|End)", "event"), (r"\w*graphexec|exec", "exec"), (r"\w*graph\w*", "graph"),
         (r"h?node|original|from|to", "node"), (r"p?ctx|\w*context", "context"), (r"h?mod\w*", "module"), (r"f|h?func\w*", "function"),
         (r"lib\w*", "library"), (r"kernel", "kernel"), (r"\w*pool", "pool"), (r"object", "object"), (r"state", "link"),
         (r"\w*array", "array")]
ADDRESSES = re.compile(r"\w*dptr|\w*device|ptr|addr|devptr|src|dst", re.I)
#: Structures without pointers, which may hold any words.
NUMBERS_ONLY = re.compile(r"pCopy|copyParams|memsetParams|location|prop|poolProps|map|desc|value\w*|image|code|fatCubin|userData|pp?|uuid")


def rows(name: str) -> list[list[str]]:
    return [line.split("\t") for line in (CRATE / name).read_text().splitlines() if line[0] != "#"]


def answered() -> list[tuple[str, list[tuple[str, str]]]]:
    """The functions that are not refused, with the names and types of their arguments."""
    states = {row[0]: row[1] for row in rows("states.tsv")}
    families = sorted((name for name in states if name.endswith("*")), key=len, reverse=True)
    found = []
    for symbol, _, _, _, arguments in rows("functions.tsv"):
        bare = re.sub(r"_pts?[zd]s?$", "", symbol)
        state = states.get(bare) or next(states[family] for family in families if bare.startswith(family[:-1]))
        if state != "refused":
            pairs = [argument.split(": ") for argument in arguments.split(", ") if argument]
            found.append((symbol, [(name, kind) for name, kind in pairs]))
    return found


def allowed() -> Callable[[str, bool], set[str]]:
    """What a symbol may return. `handles` says that an argument has a handle, which may have ended: a driver says so with
    CUDA_ERROR_INVALID_HANDLE, whether the list has it or not.
    """
    listed = {symbol: set(codes.split()) for symbol, codes in rows("results.tsv")}

    def of(symbol: str, handles: bool) -> set[str]:
        found = listed.get(re.sub(r"_pts?[zd]s?$", "", symbol), UNLISTED)
        beyond = {code for pattern, code in BEYOND if re.fullmatch(pattern, symbol)}
        return found | GENERAL | beyond | ({"INVALID_HANDLE"} if handles else set())
    return of


class Buffers:
    """Readable memory whose end is the end of what is mapped. The numbers of the addresses are small where 32 bits of them are read."""

    def __init__(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_uint64
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x100000  # MAP_FIXED_NOREPLACE
        self.zeroes, self.pointers, self.words = 0x7 << 32, 0x8 << 32, 0x9 << 32
        for address in (self.zeroes, self.pointers, self.words):
            assert libc.mmap(ctypes.c_uint64(address), ctypes.c_size_t(ROOM), 3, flags, -1, ctypes.c_long(0)) == address
        self.function = ctypes.cast(libc.getppid, ctypes.c_void_p).value or 0

    def fill(self, chosen: list[int]) -> None:
        """Zeroes, pointers to zeroes, and random words of the chosen ones with a NUL at the end."""
        ctypes.memset(self.zeroes, 0, ROOM)
        pattern = self.zeroes.to_bytes(8, "little") * (ROOM // 8)
        ctypes.memmove(self.pointers, pattern, ROOM)
        words = b"".join(random.choice(chosen).to_bytes(8, "little") for _ in range(64)) * (ROOM // 512 - 1) + bytes(512)
        ctypes.memmove(self.words, words, ROOM)


class World:
    """One of each object."""

    def __init__(self, function: int) -> None:
        number = ctypes.c_uint
        self.live = {"context": out("cuCtxCreate_v2", number(0), ctypes.c_int(0))}
        cubin = (ROOT / "tests/data/cubin/vecadd.nvrtc.cubin").read_bytes()
        self.live["stream"] = out("cuStreamCreate", number(1))
        self.live["event"], ended = out("cuEventCreate", number(0)), out("cuEventCreate", number(0))
        call("cuEventDestroy_v2", ended)
        self.live["module"] = out("cuModuleLoadData", cubin)
        self.live["function"] = out("cuModuleGetFunction", self.live["module"], b"vecadd")
        self.live["library"] = out("cuLibraryLoadData", cubin, None, None, number(0), None, None, number(0))
        self.live["kernel"] = out("cuLibraryGetKernel", self.live["library"], b"vecadd")
        self.live["graph"] = out("cuGraphCreate", number(0))
        self.live["node"] = out("cuGraphAddEmptyNode", self.live["graph"], None, 0)
        self.live["exec"] = out("cuGraphInstantiateWithFlags", self.live["graph"], 0)
        self.live["pool"] = out("cuDeviceGetDefaultMemPool", ctypes.c_int(0))
        self.live["link"] = out("cuLinkCreate_v2", number(0), None, None, last=True)
        self.live["array"] = out("cuArrayCreate_v2", (ctypes.c_uint64 * 3)(64, 8, 3 | 1 << 32))
        self.live["object"] = out("cuUserObjectCreate", None, function, number(3), number(1))
        memory, freed = out("cuMemAlloc_v2", ROOM), out("cuMemAlloc_v2", ROOM)
        call("cuMemFree_v2", freed)
        host, managed = out("cuMemHostAlloc", ROOM, number(0)), out("cuMemAllocManaged", ROOM, number(1))
        reserved = out("cuMemAddressReserve", 2 << 20, 0, 0, 0)
        self.addresses = [memory, memory, memory + 8, memory + ROOM - 4, host, managed, reserved, freed, 0, 1, 1 << 63, (1 << 64) - 1]
        self.words = [*self.live.values(), *self.addresses, *SIZES, *WORDS]
        self.dead = [0, 1, 2, 3, ended, 0xDEAD0000BEEF0000, (1 << 64) - 1]

    def end(self) -> None:
        """Ends what is still alive."""
        for name, kind in (("cuGraphExecDestroy", "exec"), ("cuGraphDestroy", "graph"), ("cuLinkDestroy", "link"),
                           ("cuLibraryUnload", "library"), ("cuCtxDestroy_v2", "context")):
            driver.code(name, self.live[kind])
        # A call may have made more contexts, which are on the stack then.
        while not driver.code("cuCtxGetCurrent", ctypes.byref(more := ctypes.c_uint64())) and more.value:
            if driver.code("cuCtxDestroy_v2", more.value):
                call("cuCtxPopCurrent_v2", None)


def handle(world: World, name: str) -> int:
    kind = next((kind for pattern, kind in KINDS if re.fullmatch(pattern, name, re.I)), None)
    wanted = world.live[kind] if kind else random.choice([*world.live.values()])
    return wanted if random.random() < 0.7 else random.choice([*world.dead, *world.live.values()])


def pointer(world: World, buffers: Buffers, name: str, target: str) -> int:
    if random.random() < 0.15:
        return 0
    if target == "c_char":
        texts = (b"vecadd", b"", b"nothing of this name", b"\xff\xfe", b"0000:00:00.0")
        text = random.choice(texts) + b"\0"
        ctypes.memmove(buffers.words, text, len(text))
        return buffers.words if random.random() < 0.8 else buffers.zeroes
    if target == "Handle":
        return random.choice([buffers.zeroes, buffers.words])
    if target.startswith("*mut"):
        return buffers.zeroes if name == "extra" and random.random() < 0.5 else buffers.pointers
    if target == "c_void" and NUMBERS_ONLY.fullmatch(name):
        return buffers.words
    return random.choice([buffers.zeroes, buffers.pointers]) if target == "c_void" else buffers.zeroes


def argument(world: World, buffers: Buffers, name: str, kind: str) -> Any:
    """A value for an argument."""
    if kind == "Handle":
        return handle(world, name)
    if kind == "Callback":
        return random.choice([0, buffers.function, buffers.function])
    if kind.startswith("*mut "):
        return pointer(world, buffers, name, kind[5:])
    if COUNTS.fullmatch(name) and kind in ("usize", "u32"):
        return random.choice([0, 1, 2, 3, 1000])
    if kind == "i32" and name.startswith("dev"):
        return ctypes.c_int(random.choice([0, 0, 0, 0, 0, 0, 1, -1]))
    if kind in ("u64", "usize") and ADDRESSES.fullmatch(name):
        return random.choice(world.addresses)
    if kind in ("u64", "usize", "i64"):
        return random.choice(SIZES)
    if kind == "Location":
        return random.choice(WORDS) | random.choice([0, 0, 1, (1 << 32) - 1]) << 32
    small = random.random() < 0.6
    return ctypes.c_uint(random.randrange(12) if small else random.choice(WORDS))


class Attack:
    """Calls of functions, and what they returned beyond what they may."""

    def __init__(self, last: int) -> None:
        self.names = {int(row[2]): re.sub(r"CUDA_(ERROR_)?", "", row[1]) for row in rows("numbers.tsv") if row[0] == "CUresult"}
        self.may, self.buffers, self.last = allowed(), Buffers(), last
        self.library = ctypes.CDLL(str(driver.LIBRARY))
        self.wrong: dict[str, Any] = {}
        self.codes: dict[str, int] = {}

    def one(self, world: World | None, symbol: str, arguments: list[tuple[str, str]], beyond: set[str]) -> str:
        """Calls a function once: with NULL and zeroes if there is no world. Returns the name of the result."""
        if world:
            self.buffers.fill(world.words)
            given = [argument(world, self.buffers, name, kind) for name, kind in arguments]
        else:
            given = [0 for _ in arguments]
        told = [hex(value) if isinstance(value, int) else value.value for value in given]
        os.pwrite(self.last, f"{symbol} {told}".ljust(400).encode(), 0)
        result = getattr(self.library, symbol)(*[ctypes.c_uint64(value) if isinstance(value, int) else value for value in given])
        name = self.names.get(result, str(result))
        self.codes[name] = self.codes.get(name, 0) + 1
        has_handles = any(kind in ("Handle", "*mut Handle", "*mut c_void") for _, kind in arguments)
        if name not in self.may(symbol, has_handles) | beyond:
            self.wrong.setdefault(f"{symbol}: {name}", told)
        return name

    def before(self, functions: list[tuple[str, list[tuple[str, str]]]]) -> None:
        """Calls the functions that need cuInit without it."""
        for symbol, arguments in functions:
            if symbol not in AT_ANY_TIME and (name := self.one(None, symbol, arguments, set())) != "NOT_INITIALIZED":
                self.wrong[f"{symbol} without cuInit: {name}"] = []

    def all(self, symbol: str, arguments: list[tuple[str, str]]) -> None:
        """Calls a function in a world of its own."""
        world = World(self.buffers.function)
        for _ in range(ROUNDS["plain"]):
            self.one(world, symbol, arguments, CAPTURE if "Capture" in symbol else set())
        driver.code("cuStreamBeginCapture_v2", world.live["stream"], ctypes.c_uint(random.randrange(3)))
        for _ in range(ROUNDS["capture"]):
            self.one(world, symbol, arguments, CAPTURE)
        driver.code("cuStreamEndCapture", world.live["stream"], self.buffers.zeroes)
        driver.code("cuCtxSetCurrent", 0)
        for _ in range(ROUNDS["alone"]):
            self.one(world, symbol, arguments, set())
        world.end()


def attack(seed: int, folder: str) -> None:
    """Calls all functions, and prints as JSON what they returned. The last call is in the file `last`."""
    random.seed(seed)
    os.chdir(folder)
    attack, functions = Attack(os.open("last", os.O_RDWR | os.O_CREAT)), answered()
    attack.before(functions)
    driver.library()
    for symbol, arguments in functions:
        attack.all(symbol, arguments)
    broken: World | None = None
    for symbol, arguments in functions:
        if broken is None or driver.code("cuCtxSetCurrent", broken.live["context"]):
            broken = World(attack.buffers.function)
            driver.launch(broken.live["function"], 1, 32, 0, 16, 32, 64, ctypes.c_uint(32))
            assert driver.code("cuCtxSynchronize") == 700
        for _ in range(ROUNDS["fault"]):
            attack.one(broken, symbol, arguments, STICKY | CAPTURE)
    if (child := os.fork()) == 0:
        attack.wrong.clear()
        attack.before(functions)
        os._exit(min(len(attack.wrong), 100))
    if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        attack.wrong["functions that a child after fork may call"] = status
    print(json.dumps({"codes": attack.codes, "wrong": attack.wrong}))


def test_random_and_hostile_arguments_get_results_that_the_headers_name(tmp_path: pathlib.Path) -> None:
    seed = int(os.environ.get("TEGRARM_TEST_FUZZ_SEED", "0"))
    environment = {**os.environ, "TEGRARM_LOG": "off"}
    program = [sys.executable, __file__, str(seed), str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=300, env=environment)
    last = tmp_path / "last"
    assert done.returncode == 0, (done.returncode, last.read_text().strip() if last.exists() else "", done.stderr[-3000:])
    told = json.loads(done.stdout)
    assert sum(told["codes"].values()) > 5000
    assert len(told["codes"]) > 20, "the calls reach far enough to fail in many ways"
    assert not told["wrong"], json.dumps(told["wrong"], indent=1)


if __name__ == "__main__":
    attack(int(sys.argv[1]), sys.argv[2])
