"""The table of docs/troubleshooting.md: each row makes its message.

`test_troubleshooting.py` runs them all, and writes the page on request.

What is said about a problem that doctor finds is doctor's own text. For other messages a row says what it means and what to do.
"""

import dataclasses
import os
import re
import subprocess
import sys

from conftest import ROOT, TEGRARM_SIM
from machines import Broken, build

from tegrarm import doctor
from tegrarm.doctor.machine import Machine

NOBODY = 54321  # no file of a fixture is this user's

# What differs between runs.

def changing(root: str) -> tuple[tuple[str, str], ...]:
    """What differs between runs. The checkout comes first, because it may lie in a folder that another pattern names."""
    return ((re.escape(root), "…"), (r"0x[0-9a-f]{6,}", "0x…"), (r"/tmp/[^\s:,]+", "…"), (r"\b\d+ (MiB|ms|s)\b", r"… \1"),
            (r"\b[\d.]+m?s\b", "… ms"), (r"(SM|channel|descriptor) \d+", r"\1 …"), (r"\b\d+ calls", "… calls"),
            (r"\b\d+ are available", "… are available"),
            (r"offset 0x[0-9a-f]{2,}", "offset 0x…"))


@dataclasses.dataclass(frozen=True)
class Command:
    """A command that refuses something: its last line on standard error is the message."""

    name: str
    arguments: tuple[str, ...]
    means: str
    todo: str
    env: dict[str, str] = dataclasses.field(default_factory=dict)
    # Options of `tegrarm-sim run` around it.
    board: tuple[str, ...] | None = None
    files: dict[str, bytes] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Snippet:
    """Python code that prints the message."""

    name: str
    code: str
    means: str
    todo: str


AFTER_A_SYNC_FILE = b"""
import sys, tegrarm
try:
    tegrarm.Device().default_queue.after_sync_file(0)
except tegrarm.RmError as error:
    sys.exit(str(error))
"""
COMMANDS = (
    Command("no backend", ("info",), "This machine is no Jetson, or the container has no device nodes.",
            "Set `TEGRARM_BACKEND=sim` to use the virtual Orin. On a board, run `tegrarm doctor`.", {"TEGRARM_BACKEND": ""}),
    Command("an unknown backend", ("info",), "`TEGRARM_BACKEND` has a word that is no backend.", "Use one of the words in the message.",
            {"TEGRARM_BACKEND": "simulator"}),
    Command("no library", ("info",), "The file that `TEGRARM_LIB` names is not there.",
            "Unset `TEGRARM_LIB`, or run `make build`.", {"TEGRARM_LIB": "none/libtegrarm.so"}),
    Command("another file as library", ("info",), "`TEGRARM_LIB` names something that is no shared library.",
            "Unset `TEGRARM_LIB`.", {"TEGRARM_LIB": "README.md"}),
    Command("no recording", ("info",), "`TEGRARM_BACKEND=replay:PATH` names a file that is not there.", "Correct the path.",
            {"TEGRARM_BACKEND": "replay:none.jsonl"}),
    Command("a script that is not there", ("run", "none.py"), "There is no such file.", "Correct the path."),
    Command("a program as a script", ("run", "program"), "`tegrarm run` takes a Python script.", "Type what the message says.",
            files={"program": b"\x7fELF\2\1\1" + bytes(9)}),
    Command("a program that is not there", ("run", "--preload", "--", "no-such-program"), "There is no such program on the `PATH`.",
            "Correct the name."),
    Command("no NVRTC", ("compile", "kernels.cu"), "`NVRTC_PATH` names a file that cannot be loaded.",
            "Unset `NVRTC_PATH`, and `pip install tegrarm[nvrtc]`.", {"NVRTC_PATH": "none.so"}, files={"kernels.cu": b""}),
    Command("a cubin as a source", ("compile", "kernels.cubin"), "`tegrarm compile` takes CUDA C.",
            "`tegrarm sim decode` prints machine code.", files={"kernels.cubin": b"\x7fELF"}),
    Command("an empty recording", ("sim", "replay", "empty.jsonl"), "The program that was recorded made no call, or the disk was full.",
            "Record again with `TEGRARM_RECORD=FILE`.", files={"empty.jsonl": b""}),
    Command("something else as a recording", ("sim", "replay", "kernels.cubin"), "The file is machine code.", "Type what the message says.",
            files={"kernels.cubin": b"\x7fELF"}),
    Command("an unknown module", ("info",), "`TEGRARM_SIM_CHIP` has a name that is no module.", "Use one of the names in the message.",
            {"TEGRARM_SIM_CHIP": "orin"}),
    Command("no evidence", ("validate", "--check", "notes.txt"), "The file is not one of `tegrarm validate`.", "Correct the path.",
            files={"notes.txt": b"notes"}),
    Command("nothing to give away", ("cdi", "--root", "."), "This machine has no GPU, so no container can have one.",
            "Run it on the board."),
    Command("nodes that may not be opened", ("info",), "You are not in the group of the device nodes.",
            "`tegrarm doctor` names the group and the udev rule.", {"TEGRARM_BACKEND": "nvgpu"}, ("--deny", "/dev/nvgpu/igpu0/ctrl")),
    Command("a GPU that is not there", ("info",), "The driver is loaded, and the GPU did not come up.",
            "`sudo dmesg | grep nvgpu`; switch the board off and on.", {"TEGRARM_BACKEND": "nvgpu"}, ("--dead-gpu",)),
    Command("a kernel without sync files", ("run", "script.py"),
            "The kernel has no node for fences of host1x, or the container does not have it.",
            "Give the node to the container, or wait with `poll(2)` on the sync file.", {"TEGRARM_BACKEND": "nvgpu"},
            ("--without", "/dev/host1x-fence"), {"script.py": AFTER_A_SYNC_FILE}),
    Command("a script that is no text", ("run", "script.py"), "`tegrarm run` takes a Python script.", "Correct the path.",
            files={"script.py": bytes(9)}),
    Command("a source that would be overwritten", ("compile", "kernels.cubin"), "The target would have the source's name.",
            "Name a target, or name the source `.cu`.", files={"kernels.cubin": b"// CUDA C"}),
)

OPEN = """
import ctypes, sys
from tegrarm import RmError, _ffi, rm
from tegrarm.validate.gpu import Gpu, call
def said(work):
    try:
        work()
    except RmError as error:
        print(error)
"""
FAULT = OPEN + """
gpu = Gpu()
kernel = gpu.probe("{kernel}")
def work():
    gpu.run(kernel, 1, 32, {arguments})
said(work)
"""
CUDA = OPEN + """
from tegrarm import compile
def compiled(body, parameters="int *p"):
    source = f'extern "C" __global__ void k({parameters}) {{ {body} }}'
    return gpu.kernel(compile.compiled(source.encode(), "k.cu"), "k")
gpu = Gpu()
"""
AFTER = ("The queue is stopped; everything else is there. `tegrarm_device_recover` makes it usable again. "
         "See [debugging](debugging.md#a-gpu-that-stopped).")
TINYGRAD = """
import os
os.environ["DEV"] = "{}"
try:
    from tinygrad import Tensor
    Tensor([1]).tolist()
except Exception as error:
    print(error)
"""
IMPORT_IT = "Start the script with `python -m tegrarm run SCRIPT`, or `import tegrarm.tinygrad` before tinygrad."
SNIPPETS = (
    Snippet("DEV=TEGRA without the import", TINYGRAD.format("TEGRA"),
            "With `DEV=TEGRA`, tinygrad was asked for the device before it knew it.", IMPORT_IT),
    Snippet("DEV=TEGRA+NV without the import", TINYGRAD.format("TEGRA+NV"), "The same with `DEV=TEGRA+NV`.", IMPORT_IT),
    Snippet("memory that is not there", OPEN + "said(lambda: Gpu().buffer(1 << 45))",
            "nvmap could not allocate. On a Jetson this is the memory of the whole system.",
            "End other programs; `tegrarm top` shows who holds what."),
    Snippet("a kernel that is not in the module", OPEN + "said(lambda: Gpu().probe('none'))", "The module has no kernel of that name.",
            "C++ names are mangled: write `extern \"C\"`, or look at `tegrarm sim decode FILE`."),
    Snippet("something else as a module", OPEN + "said(lambda: Gpu().kernel(b'not machine code' * 8, 'k'))",
            "The bytes are no cubin. Text, PTX, CUDA C++ and empty files are named.", "Pass what `tegrarm compile` writes."),
    Snippet("PTX as a module", OPEN + "said(lambda: Gpu().kernel(b'.version 8.5\\n.target sm_87\\n.address_size 64\\n', 'k'))",
            "The bytes are PTX, which no GPU executes.", "Compile to machine code, as the message says."),
    Snippet("a source as a module", OPEN + "said(lambda: Gpu().kernel(b'__global__ void k() { }', 'k'))",
            "The bytes are CUDA C++.", "`tegrarm compile FILE`, or `Device.compile` in Python."),
    Snippet("an empty module", OPEN + "said(lambda: Gpu().kernel(b'', 'k'))", "The file of the module is empty.", "Compile it again."),
    Snippet("too many threads", OPEN + "gpu = Gpu()\nsaid(lambda: gpu.launch(gpu.probe('trap'), 1, 2048))",
            "A block has at most 1,024 threads, and fewer where they use many registers.", "Use smaller blocks and more of them."),
    Snippet("a wrong number of arguments", OPEN + "gpu = Gpu()\nsaid(lambda: gpu.launch(gpu.probe('add'), 1, 1))",
            "The kernel has more parameters than were given.", "Pass one pointer for each parameter."),
    Snippet("a client after a fork", OPEN + """
import os
client = rm.Client()
if os.fork() == 0:
    said(lambda: client.alloc(client.root, 0x80))
    sys.stdout.flush()
    os._exit(0)
os.wait()
""", "Clients of the Resource Manager do not survive `fork`.", "Open the device in the child."),
    Snippet("an unknown class", OPEN + "c = rm.Client()\nsaid(lambda: c.alloc(c.root, 0xC8C0))",
            "The class belongs to another GPU, or is refused here.", "Look it up in [classes](classes.md)."),
    Snippet("an address without memory", FAULT.format(kernel="load", arguments="ctypes.c_uint64(0x1234567000), gpu.buffer(4096)"),
            "A kernel used an address that is not mapped.", AFTER),
    Snippet("a write to read-only memory", FAULT.format(
        kernel="set", arguments="gpu.buffer(4096, _ffi.TEGRARM_BUFFER_GPU_READ_ONLY), ctypes.c_uint32(1)"),
            "A kernel wrote to a buffer with `TEGRARM_BUFFER_GPU_READ_ONLY`.", AFTER),
    Snippet("a misaligned address", FAULT.format(
        kernel="load", arguments="ctypes.c_uint64(gpu.buffer(4096).address + 1), gpu.buffer(4096)"),
            "An access of four bytes needs an address that is a multiple of four.", AFTER),
    Snippet("a trap", FAULT.format(kernel="trap", arguments="").replace(", )", ")"), "A kernel executed `trap`, as a failed `assert` does.",
            AFTER),
    Snippet("an assertion", CUDA + "kernel = compiled('assert(*p == 1);')\nsaid(lambda: gpu.run(kernel, 1, 1, gpu.buffer(4096)))",
            "A thread's `assert` failed. The sentence names the expression, the line and the thread.", AFTER),
    Snippet("memory that is freed twice", CUDA + """
kernel = compiled('p = (int *)malloc(40); *p = 1; free(p); free(p);')
said(lambda: gpu.run(kernel, 1, 1, gpu.buffer(4096)))
""", "A kernel freed memory that it had freed before.", AFTER),
    Snippet("a heap that is in use", CUDA + """
gpu.run(compiled('*(int *)malloc(100) = 1;'), 1, 1, gpu.buffer(4096))
said(lambda: call("tegrarm_device_set_limit", gpu.handle, _ffi.TEGRARM_LIMIT_HEAP_SIZE, 1 << 20))
""", "Kernels have not freed what `malloc` gave them, so that the heap cannot be replaced.",
            "Set the limit before the first kernel, or `TEGRARM_HEAP_SIZE`, or free the memory in a kernel."),
    Snippet("a heap that is no number", "import os\nos.environ['TEGRARM_HEAP_SIZE'] = '8M'" + OPEN + "said(Gpu)",
            "`TEGRARM_HEAP_SIZE` is something else than bytes.", "Set it to a number, for example 8388608."),
    Snippet("text that found no room", CUDA + """
texts = []
printer = _ffi.PrintfCallback(lambda text, size, _: texts.append(ctypes.string_at(text, size)))
call("tegrarm_printf", gpu.handle, printer, None)
call("tegrarm_device_set_limit", gpu.handle, _ffi.TEGRARM_LIMIT_PRINTF_SIZE, 4096)
gpu.run(compiled('for (int i = 0; i < 5000; i++) printf("%d", *p);'), 1, 1, gpu.buffer(4096))
print(texts[-1].decode())
""", "A kernel printed more than the buffer holds until the program waits.",
            "Print less, wait more often, or make the buffer larger as the message says."),
    Snippet("a texture", CUDA + "said(lambda: compiled('*p = tex1Dfetch<int>(t, 0);', 'cudaTextureObject_t t, int *p'))",
            "The module reads or writes a texture or a surface. It is refused when it is loaded, because the kernel would fault.",
            "Pass the array as a pointer, and compute the index in the kernel."),
    Snippet("something else as a sync file", OPEN + """
gpu = Gpu()
with gpu.queue(_ffi.TEGRARM_QUEUE_COMPUTE) as queue, open("/dev/null") as file:
    said(lambda: call("tegrarm_queue_after_sync_file", queue, file.fileno()))
""", "The descriptor is no sync file, or one of another driver than host1x.", "Wait for it with `poll(2)`, which takes any sync file."),
    Snippet("a syncpoint that is not there", OPEN + """
gpu = Gpu()
with gpu.queue(_ffi.TEGRARM_QUEUE_COMPUTE) as queue:
    said(lambda: call("tegrarm_queue_after_syncpoint", queue, 1 << 20, 1))
""", "The system has fewer syncpoints.", "Pass the number as the other driver gave it."),
    Snippet("a kernel that takes too long", OPEN + """
gpu = Gpu()
flag = gpu.buffer(4096)
fence = gpu.launch(gpu.probe('spin'), 1, 1, flag)
def named():
    while True:  # until the kernel has run for long enough to be named
        try: gpu.wait(fence, 100_000_000)
        except RmError as error:
            if "is running" in str(error): raise
said(named)
flag.words()[0] = 1
gpu.wait(fence)
""", "The time of a wait is over. The work goes on, and the virtual Orin says which.", "Wait again, or end the program."),
)


def masked(text: str) -> str:
    """A message without what differs between runs, on one line."""
    return without(" ".join(text.removeprefix("tegrarm: ").split()), changing(str(ROOT)))


def without(text: str, patterns: tuple[tuple[str, str], ...]) -> str:
    """A text with every pattern replaced, in their order."""
    for pattern, instead in patterns:
        text = re.sub(pattern, instead, text)
    return text


def environment(more: dict[str, str] | None = None) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("TEGRARM_SIM", "TEGRARM_REC", "TEGRARM_B", "NVRTC"))}
    path = os.pathsep.join(filter(None, [str(ROOT / "python"), env.get("PYTHONPATH")]))
    return {**env, "TEGRARM_BACKEND": "sim", "PYTHONPATH": path, **(more or {})}


def of_command(row: Command, place) -> str:
    """What a command says."""
    for name, data in row.files.items():
        (place / name).write_bytes(data)
    around = [str(TEGRARM_SIM), "run", *row.board, "--"] if row.board else []
    env = environment(row.env)
    if env.get("TEGRARM_LIB") == "README.md":
        env["TEGRARM_LIB"] = str(ROOT / "README.md")
    done = subprocess.run([*around, sys.executable, "-m", "tegrarm", *row.arguments], cwd=place, env=env, capture_output=True, text=True,
                          timeout=120)
    assert done.returncode not in (0, -6, -11) and "Traceback" not in done.stderr, done
    return masked(done.stderr)


def of_snippet(row: Snippet, place) -> str:
    """What the library says."""
    done = subprocess.run([sys.executable, "-c", row.code], cwd=place, env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return masked(done.stdout)


class Board(Machine):
    """A machine whose nodes have the group that a board's nodes have, independent of the user who made the files."""

    def group_of(self, name: str) -> tuple[str, int]:
        return "video", 44


def of_machine(row: Broken, place) -> tuple[str, str]:
    """What doctor says, and what it says to do."""
    machine = Board(root=build(place, row), environ=row.environ, uid=NOBODY, groups=frozenset([NOBODY]))
    found = [c for c in doctor.checks(machine) if c.name == row.line and c.state == row.state]
    said = next(c for c in found if row.says in c.says and row.todo in c.todo)
    return masked(said.says), " ".join(said.todo.split())
