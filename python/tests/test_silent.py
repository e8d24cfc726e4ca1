"""The mistakes of docs/debugging.md that nothing reports, and what finds them."""

import os
import subprocess
import sys

from conftest import ROOT

BEGIN = '''
import tegrarm
device = tegrarm.Device()
module = device.compile("""
extern "C" __global__ void set(int *x) { x[threadIdx.x] = 7; }
extern "C" __global__ void shared(int *x) {
  extern __shared__ int s[];
  s[threadIdx.x] = 3;
  __syncthreads();
  x[threadIdx.x] = s[threadIdx.x];
}
""")
'''


def ran(code, **env):
    command, env = [sys.executable, "-c", BEGIN + code], {**os.environ, **env}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, env=env)
    assert done.returncode == 0, done.stderr
    return done


def test_a_freed_buffer_whose_address_was_given_again():
    code = """
x = device.zeros(32, "int32")
freed = x.address
x.close()
device.wait()
y = device.zeros(32, "int32")
assert y.address == freed
module["set"][1, 32](freed)
assert y.tolist() == [7] * 32
"""
    assert ran(code).stderr == ""


def test_a_freed_buffer_whose_address_nobody_has_is_named():
    code = """
x = device.zeros(32, "int32")
freed = x.address
device.wait()  # memory that earlier work may use stays until that work is done
x.close()
module["set"][1, 32](freed)
try:
    device.wait()
    raise SystemExit("nothing was said")
except tegrarm.RmError as error:
    assert "which was freed by" in str(error), error
"""
    ran(code)


def test_too_little_dynamic_shared_memory():
    code = """
x = device.zeros(32, "int32")
module["shared"][1, 32, {size}](x)
assert x.tolist() == [3] * 32
"""
    assert ran(code.format(size=0)).stderr == ""
    assert "shared store of 4 bytes" in ran(code.format(size=0), TEGRARM_SIM_CHECK="memory").stderr
    assert "0 reports" in ran(code.format(size=128), TEGRARM_SIM_CHECK="memory").stderr


def test_an_array_of_another_type():
    code = """
x = device.zeros(32, "float32")
module["set"][1, 32](x)
assert x.view("int32").tolist() == [7] * 32 and x.tolist() != [7.0] * 32
module["set"].argtypes = ["int *"]
try:
    module["set"][1, 32](x)
    raise SystemExit("nothing was said")
except TypeError as error:
    assert "array of float32" in str(error)
"""
    assert ran(code).stderr == ""
