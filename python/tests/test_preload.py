"""tinygrad as it was published, on its own NVKIface: through LD_PRELOAD and through the file door."""

import errno
import os
import pathlib
import re
import subprocess
import sys

import pytest
from run_tinygrad_releases import nvrtc

from tegrarm import preload

HERE = pathlib.Path(__file__).resolve().parent
PRELOADED = preload.environment({}, preload.library())
DOOR = f"import sys; sys.path.insert(0, {str(HERE)!r}); import door_file_io\n"
ADD = "from tinygrad import Tensor, Device; print((Tensor([1,2,3]) + Tensor([4,5,6])).tolist(), type(Device['NV'].iface).__name__)"
SIM_ONLY = pytest.mark.skipif(os.path.exists("/dev/nvgpu"), reason="this machine has a board")


def plain(**more) -> dict[str, str]:
    return {**PRELOADED, "DEV": "NVK+NV", **nvrtc(), **more}


def test_tiny() -> str:
    path = os.environ.get("TEGRARM_TEST_TINY")
    if not path:
        pytest.fail("TEGRARM_TEST_TINY is not set: run `make pytest`, which fetches tinygrad's source distribution")
    return path


test_tiny.__test__ = False


@pytest.mark.parametrize("kernel", [pytest.param("r36", marks=SIM_ONLY), pytest.param("r35", marks=SIM_ONLY)])
def test_test_tiny_passes_in_a_plain_process(python, kernel):
    out = python([test_tiny(), "-v"], env=plain(TEGRARM_SIM_L4T=kernel), timeout=1800)
    assert not re.search(r"FAILED|ERROR", out)


def test_the_interface_is_tinygrads_own(python):
    assert python(ADD, env=plain()) == "[5, 7, 9] NVKIface\n"


def test_run_preload_needs_no_environment(python):
    command = ["-m", "tegrarm", "run", "--preload", "--", sys.executable, "-c", ADD]
    assert python(command, env={"DEV": "NVK+NV", **nvrtc()}) == "[5, 7, 9] NVKIface\n"


def test_run_preload_runs_any_program(python):
    assert python(["-m", "tegrarm", "run", "--preload", "--", "test", "-c", "/dev/nvidiactl"]) == ""
    assert "No such file" in python(["-m", "tegrarm", "run", "--preload", "--", "no-such-program"], status=127)


def test_file_door_by_exchanging_one_class(python):
    assert python(DOOR + ADD, env={"DEV": "NVK+NV", **nvrtc()}) == "[5, 7, 9] NVKIface\n"


def test_test_tiny_passes_through_the_file_door(python):
    launch = DOOR + f"import runpy; sys.argv = [{test_tiny()!r}, '-v']; runpy.run_path(sys.argv[0], run_name='__main__')"
    out = python(launch, env={"DEV": "NVK+NV", **nvrtc()}, timeout=1800)
    assert not re.search(r"FAILED|ERROR", out)


def test_c15_beam_search_forks(python):
    """Workers are forked while the nodes are open. Their work and the way in which they end do not affect the parent."""
    out = python("""
from tinygrad import Tensor, Context
import ctypes, os
if __name__ == "__main__":
    a, b = Tensor.rand(64, 64).realize(), Tensor.rand(64, 64).realize()
    with Context(BEAM=1, PARALLEL=2): c = (a @ b).realize()
    child = os.fork()
    # C's exit handlers, the library's among them. Python's would read the parent's signals, which as on a board no child inherits.
    if child == 0: ctypes.CDLL(None).exit(0)
    assert os.waitpid(child, 0)[1] == 0
    import numpy as np
    np.testing.assert_allclose(c.numpy(), a.numpy() @ b.numpy(), rtol=1e-4)
    print("ok")
""", env=plain(CACHELEVEL="0"), timeout=900)
    assert out.endswith("ok\n")


@SIM_ONLY
def test_without_a_backend_the_node_is_not_there_and_says_why(python):
    out = python("""
import errno, os
for _ in range(2):
    try: os.open("/dev/nvidiactl", os.O_RDWR)
    except OSError as e: print(errno.errorcode[e.errno])
""", env={**PRELOADED, "TEGRARM_BACKEND": "nvgpu"})
    assert out == "ENODEV\nENODEV\n"
    out = python("import os; os.open('/dev/nvidiactl', 2)", env={**PRELOADED, "TEGRARM_BACKEND": "nvgpu"}, status=1)
    assert out.count("libtegrarm: /dev/nvidiactl:") == 1 and "TEGRARM_BACKEND=sim" in out
    out = python("import os; os.open('/dev/nvidiactl', 2)", env={**PRELOADED, "TEGRARM_LIB": "/no/such.so"}, status=1)
    assert "libtegrarm cannot be loaded" in out and "/no/such.so" in out


def test_unrelated_programs_load_nothing(python):
    code = "print(any('libtegrarm.so' in line for line in open('/proc/self/maps')), open('/dev/null').read() == '')"
    out = python(code, env=PRELOADED)
    assert out == "False True\n"


OPENS = """
import os, signal
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
try:
    os.open("/dev/nvidiactl", os.O_RDWR)
except OSError as e:
    print("refused", e.errno)
"""


@pytest.mark.parametrize("kind", ["full", "broken", "closed"])
def test_a_standard_error_that_cannot_be_written_ends_no_program(kind):
    """The preload library prints why a node cannot be opened. If nothing can read the text, the program continues."""
    reader, writer = os.pipe()
    os.close(reader)
    stderr = {"full": os.open("/dev/full", os.O_WRONLY), "broken": writer, "closed": os.open("/dev/null", os.O_RDONLY)}[kind]
    env = {**os.environ, **PRELOADED, "TEGRARM_LIB": "/no/such/library.so"}
    out = subprocess.run([sys.executable, "-c", OPENS], env=env, stdout=subprocess.PIPE, stderr=stderr, text=True)
    assert (out.returncode, out.stdout) == (0, f"refused {errno.ENODEV}\n")
