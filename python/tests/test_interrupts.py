"""Ctrl-C, and errors on the way to a view: the exception that happened is the one that arrives, and nothing waits for ever."""

import os
import subprocess
import sys

import pytest
from conftest import ROOT

BEGIN = """
import os, signal, sys, threading, warnings
# Python leaves SIGINT ignored where its parent ignored it: a shell does so for what it starts in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
import numpy as np
import tegrarm, tegrarm.device
tegrarm.device.PATIENCE = 0.3
SPIN = '''extern "C" __global__ void spin(volatile int *flag) { while (*flag == 0) { } flag[1] = 5; }
extern "C" __global__ void bad(int *where) { *where = 1; }
extern "C" __global__ void add(int *x) { x[threadIdx.x] += 1; }'''

def interrupt(seconds=0.3):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()

def caught(what, *kinds):
    try:
        what()
    except kinds as error:
        return error
    except BaseException as error:
        raise SystemExit(f"{error!r} came in place of {kinds}")
    raise SystemExit(f"nothing came in place of {kinds}")
"""


def ran(code, *, status=0, timeout=120):
    done = subprocess.run([sys.executable, "-c", BEGIN + code], capture_output=True, text=True, timeout=timeout, cwd=ROOT, env=os.environ)
    assert done.returncode == status, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


VIEWS = {"numpy": "x.numpy()", "memoryview": "memoryview(x)", "method": "x.memoryview()", "asarray": "np.asarray(x)",
         "tolist": "x.tolist()", "item": "x[0].item()", "array_interface": "x.__array_interface__",
         "dlpack": "x.__dlpack__()", "copy_from": "x.copy_from([1, 2])",
         "copy_to": "x.copy_to(np.zeros(2, np.int32))", "bytes": "bytes(x)", "array": "device.array(x)", "copy": "x.copy()"}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_ctrl_c_in_a_view_is_a_keyboard_interrupt(view):
    ran(f"""
device = tegrarm.Device()
module = device.compile(SPIN)
x = device.zeros(2, "int32")
for round in range(3):
    fence = module["spin"][1, 1](x)
    interrupt()
    caught(lambda: {view}, KeyboardInterrupt)
    # The end of the work, by the CPU, and the memory is as it was.
    assert device.stop() == 1 and caught(fence.wait, tegrarm.RmError).name == "NV_ERR_RESOURCE_LOST"
    assert x.numpy().tolist() == [0, 0]
module["add"][1, 2](x)
assert x.tolist() == [1, 1]
""")


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_what_is_wrong_arrives_at_a_view(view):
    """After a fault, in a forked child, and after close."""
    done = ran(f"""
device = tegrarm.Device()
module = device.compile(SPIN)
x = device.zeros(2, "int32")
child = os.fork()
if not child:
    error = caught(lambda: {view}, tegrarm.RmError)
    os._exit(0 if error.name == "NV_ERR_INVALID_CLIENT" else 1)
assert os.waitpid(child, 0)[1] == 0
module["bad"][1, 1](1 << 40)
assert caught(lambda: {view}, tegrarm.RmError).name == "NV_ERR_RESET_REQUIRED"
device.recover()
x.close()
assert "the array is closed" in str(caught(lambda: {view}, ValueError))
x = device.zeros(2, "int32")
device.close()
assert "closed" in str(caught(lambda: {view}, ValueError))
""")
    assert "ignored" not in done.stderr and "Traceback" not in done.stderr


def test_items_cannot_be_deleted():
    ran("""
device = tegrarm.Device()
x = device.zeros(4, "int32")
for statement in ("del x[0]", "del x[1:3]", "del x[:]", "del x[3:1]", "del x[1, 2]", "del x[1000:]", "x.__delitem__(slice(2, None, 2))"):
    assert "cannot be deleted" in str(caught(lambda: exec(statement), TypeError))
assert x.tolist() == [0] * 4
""")


BLOCKS = {
    "wait": "module['spin'][1, 1](x).wait()",
    "numpy": "module['spin'][1, 1](x); x.numpy()",
    "end": "module['spin'][1, 1](x)",  # Ctrl-C in close()
    "another queue": "device.queue(); q = device.queue(); module['spin'][1, 1, 0, q](x).wait()",
    "queue": "with device.queue() as q: module['spin'][1, 1, 0, q](x).wait()",
    "end of a queue": "with device.queue() as q: module['spin'][1, 1, 0, q](x)",
    "close of a queue": "q = device.queue(); module['spin'][1, 1, 0, q](x); q.close()",
    "array": "with device.zeros(2, 'int32') as y: module['spin'][1, 1](y).wait()",
    "profile": "with device.profile(): module['spin'][1, 1](x).wait()",
    "end of a profile": "with device.profile(): module['spin'][1, 1](x)",
    "module": "with device.compile(SPIN) as m: m['spin'][1, 1](x).wait()",
    "end of a module": "with device.compile(SPIN) as m: m['spin'][1, 1](x)",
    "wrapped": "pages = bytearray(8192)\n        with device.wrap(pages) as w: module['spin'][1, 1](w.view('int32')).wait()",
    "event": "module['spin'][1, 1](x); e = device.event(); e.record(); e.time()",
    "timer": "with device.timer() as t: module['spin'][1, 1](x)\n        t.ns",
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_ctrl_c_ends_a_program_whose_kernel_does_not(block):
    """The whole ``with Device()`` ends, the exception is Ctrl-C's, and a view that is left still has its memory."""
    ran(f"""
warnings.simplefilter("ignore")
def program():
    global kept
    with tegrarm.Device() as device:
        module = device.compile(SPIN)
        x = device.array([0, 7], "int32")
        kept = x.numpy()
        interrupt(0.6)
        {block}

caught(program, KeyboardInterrupt)
assert kept.tolist() == [0, 7]
with tegrarm.Device() as device:
    x = device.zeros(2, "int32")
    device.compile(SPIN)["add"][1, 2](x)
    assert x.tolist() == [1, 1]
""")


def test_an_exception_does_not_hang_in_close_and_says_what_was_stopped():
    done = ran("""
with tegrarm.Device() as device:
    x = device.zeros(2, "int32")
    device.compile(SPIN)["spin"][1, 1](x).wait(0.2)
""", status=1)
    assert "RmTimeout" in done.stderr and "1 queue still had work after 0.3 seconds; it was stopped" in done.stderr


def test_a_queue_that_was_only_opened_or_recovered_has_no_work_to_stop():
    """The library prepares each channel with a submission of its own. On a busy machine the GPU has not finished it when `stop` looks."""
    ran("""
for _ in range(20):
    with tegrarm.Device() as device:
        assert device.stop() == 0
        queue = device.queue()
        assert device.stop() == 0
with tegrarm.Device() as device:
    module, x = device.compile(SPIN), device.zeros(2, "int32")
    for _ in range(20):
        lost = module["spin"][1, 1](x)
        assert device.stop() == 1 and device.stop() == 0
        assert caught(lost.wait, tegrarm.RmError).name == "NV_ERR_RESOURCE_LOST"
""")


@pytest.mark.parametrize("inside", ["", "with device.queue() as q:", "with device.compile(SPIN):", "with device.profile():",
                                    "with device.wrap(bytearray(4096)):", "with device.zeros(2):"])
def test_any_exception_ends_a_block_whose_kernel_does_not(inside):
    """The exception that happened arrives, whatever it is, and the device can be opened again."""
    ran(f"""
warnings.simplefilter("ignore")
def program():
    with tegrarm.Device() as device:
        module, x = device.compile(SPIN), device.zeros(2, "int32")
        {inside or "if True:"}
            module["spin"][1, 1](x)
            raise LookupError("of the program")

assert caught(program, LookupError).args == ("of the program",)
with tegrarm.Device() as device:
    assert device.zeros(2).tolist() == [0, 0]
""")


def test_a_queue_that_ctrl_c_left_open_works():
    ran("""
with tegrarm.Device() as device:
    module, x, queue = device.compile(SPIN), device.zeros(2, "int32"), device.queue()
    module["spin"][1, 1, 0, queue](x)
    interrupt()
    caught(queue.close, KeyboardInterrupt)
    assert queue.open and device.stop() == 1
    module["add"][1, 2, 0, queue](x)
    queue.close()
    assert x.tolist() == [1, 1] and not queue.open
    queue.close()
""")


def test_stop_leaves_finished_work_and_queues_alone():
    ran("""
with tegrarm.Device() as device:
    module, other = device.compile(SPIN), device.queue()
    x, y = device.zeros(2, "int32"), device.zeros(2, "int32")
    done = module["add"][1, 2, 0, other](y)
    device.synchronize()
    assert device.stop() == 0 and done.done
    lost = module["spin"][1, 1](x)
    assert device.stop() == 1 and device.stop() == 0 and device.fault() is None
    assert caught(lost.wait, tegrarm.RmError).name == "NV_ERR_RESOURCE_LOST"
    done.wait()
    module["add"][1, 2, 0, other](y)
    module["add"][1, 2](x)
    device.synchronize()
    assert x.tolist() == [1, 1] and y.tolist() == [2, 2]
    running = [module["spin"][1, 1](device.zeros(2, "int32")), module["spin"][1, 1, 0, other](device.zeros(2, "int32"))]
    assert device.stop() == 2 and x.copy().tolist() == [1, 1]
""")
