"""tinygrad measures kernels by the GPU's timestamps. With TEGRARM_SIM_CLOCK=model these do not depend on this computer, and stay within
what NVIDIA has published for the module.
"""

import json

import pytest

MODEL = {"TEGRARM_BACKEND": "sim", "TEGRARM_SIM_CLOCK": "model", "CACHELEVEL": "0", "PARALLEL": "0", "JIT": "2"}
NV, TEGRA = "TEGRA+NV:CUDA", "TEGRA:NVRTC"
PEAK = 2048 * 2 * 1.3e9  # operations on floats in a second: 2048 lanes of the AGX Orin at 1.3 GHz
# Bytes in a second, and the share that a large sum reaches at least. In its mode of 15 W the AGX Orin has memory of 2133 MHz, and six SMs
# at 408 MHz have too few loads under way for all of it: each waits a microsecond.
BANDWIDTH = {"agx-orin": (204.8e9, 0.8), "orin-nano": (68e9, 0.8), "agx-orin MODE_15W": (2133e6 * 2 * 32, 0.55)}
OPEN = """
import json
import numpy as np
import tegrarm.tinygrad
from tinygrad import Device, Tensor, TinyJit
taken = []
def note(kind):
    inner = kind.__call__
    def noted(self, *buffers, **more):
        seconds = inner(self, *buffers, **{**more, "wait": True})
        taken.append(seconds)
        return seconds
    kind.__call__ = noted
if Device.DEFAULT == "NV":
    from tinygrad.runtime.support.hcq import HCQProgram
    note(HCQProgram)
else:
    from tegrarm.tinygrad.program import TegraProgram
    note(TegraProgram)
def times(function, *inputs, calls=3):
    "What the kernels of each call of a TinyJit take on the GPU, in seconds."
    step, found = TinyJit(function), []
    for _ in range(2): step(*inputs)
    for _ in range(calls):
        taken.clear()
        step(*inputs)
        found.append(list(taken))
    return found
def square(n, seed): return Tensor(np.random.default_rng(seed).standard_normal((n, n), dtype=np.float32)).realize()
def product(n, calls=1): return times(lambda a, b: (a @ b).realize(), square(n, 0), square(n, 1), calls=calls)
"""


def told(python, program, device=NV, **env):
    return json.loads(python(OPEN + program, env={**MODEL, "DEV": device, **env}, timeout=1200).splitlines()[-1])


@pytest.mark.parametrize("device", [NV, TEGRA])
def test_a_kernel_takes_the_same_time_in_every_run(python, device):
    program = "print(json.dumps([product(64, 3), times(lambda x: x.softmax().realize(), square(96, 2))]))"
    first, again = (told(python, program, device) for _ in range(2))
    assert first == again
    for calls in first:
        assert calls[0] == calls[1] == calls[2] and all(seconds > 1e-6 for seconds in calls[0]), calls


def test_the_time_of_the_host_differs_from_run_to_run(python):
    """This is what the setting changes: without it, two equal numbers would be a coincidence."""
    calls = told(python, "print(json.dumps(product(64, 8)))", TEGRARM_SIM_CLOCK="host")
    assert len({tuple(call) for call in calls}) > 1, calls


def test_a_product_that_is_not_optimised_is_slower(python):
    (plain,), (good,) = (told(python, "print(json.dumps(product(128)))", NOOPT=noopt) for noopt in "10")
    assert sum(plain) > 2 * sum(good), (plain, good)


def test_a_large_product_reaches_a_part_of_the_peak_and_never_passes_it(python):
    (seconds,), = told(python, "print(json.dumps(product(1024)))")
    assert 0.2 * PEAK < 2 * 1024**3 / seconds <= PEAK, f"{2 * 1024**3 / seconds / PEAK} of the peak"


@pytest.mark.parametrize("chip", BANDWIDTH)
def test_large_sums_approach_the_bandwidth_of_the_module_and_never_pass_it(python, chip):
    program = """
a, b = (Tensor(np.zeros(1 << 23, dtype=np.float32)).realize() for _ in range(2))
print(json.dumps(times(lambda a, b: (a + b).realize(), a, b, calls=1)))
"""
    module, _, mode = chip.partition(" ")
    (seconds,), = told(python, program, TEGRARM_SIM_CHIP=module, TEGRARM_SIM_POWER=mode)
    rate, (most, share) = 3 * 4 * (1 << 23) / seconds, BANDWIDTH[chip]
    assert share * most < rate <= most, f"{rate / 1e9} GB/s"


def test_beam_takes_the_fastest_kernel_by_the_model(python):
    """It is the fastest of those that were tried, and not slower than what tinygrad does without a search."""
    search = """
from tinygrad.codegen.opt import search
tried, measure = [], search._time_program
def note_measure(*args, **kwargs):
    tried.append(min(measure(*args, **kwargs)))
    return [tried[-1]]
search._time_program = note_measure
(seconds,), = product(SIZE)
print(json.dumps([seconds, tried]))
""".replace("SIZE", "32")
    seconds, tried = told(python, search, BEAM="1", IGNORE_BEAM_CACHE="1")
    (default,), = told(python, "print(json.dumps(product(32)))")
    assert len(tried) > 20
    # The search stops when a round brings less than 10 ns, so it may leave a kernel that is faster by less.
    assert seconds <= min(tried) + 10e-9 and seconds <= default, (seconds, min(tried), default)
