"""Runs a tinygrad that nobody has seen yet: `make test-tinygrad-next TINYGRAD=FOLDER`, a checkout, or a wheel.

It says which names are new or gone among those that the adapters use, and runs test_tiny.py in every way that there is: plain through
LD_PRELOAD on each virtual kernel, on the interface TEGRA+NV, and on the device TEGRA. The tests are those of the checkout. With a wheel,
which has none, they are those of the last release. A table at the end has a line for each.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys

from run_tinygrad_releases import NEW, PACKAGE, PIP, RELEASES, WHEELS, helpers, nvrtc, report, tests

from tegrarm import preload

# What the adapters use or look for, and whether tinygrad 0.14 has it.
NAMES = {
    "tinygrad.device:LRUAllocator": True, "tinygrad.device:TinyELF": True, "tinygrad.device:BufferStorage": False,
    "tinygrad.device:MMIOInterface": False, "tinygrad.engine.jit:GraphRunner": True, "tinygrad.engine.jit:CapturedJit": True,
    "tinygrad.engine.jit:CapturedJit._fast_plan": False, "tinygrad.engine.jit:run_linear": True,
    "tinygrad.engine.realize:get_call_arg_uops": True,
    "tinygrad.engine.realize:estimate_uop": True, "tinygrad.engine.realize:get_runtime": True,
    "tinygrad.engine.realize:graph_cache": True, "tinygrad.uop.ops:buffers": True, "tinygrad.helpers:JIT_BATCH_SIZE": True,
    "tinygrad.runtime.ops_nv:NVKIface": True, "tinygrad.runtime.ops_nv:FileIOInterface": True,
    "tinygrad.runtime.ops_nv:MMIOInterface": True, "tinygrad.runtime.ops_nv:HCQBuffer": True,
    "tinygrad.runtime.ops_nv:NVDevice.ifaces": True, "tinygrad.runtime.ops_nv:NVDevice.pm_encode": False,
    "tinygrad.runtime.ops_nv:NVComputeQueue.signal": True, "tinygrad.runtime.ops_nv:NVComputeQueue.release": False,
}
LOOK = """
import importlib, json, sys
def there(place):
    module, _, name = place.partition(":")
    try:
        found = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception:
        return False
    return True
print(json.dumps({place: there(place) for place in json.loads(sys.argv[1])}))
"""


def environment(cache: pathlib.Path, tinygrad: pathlib.Path) -> pathlib.Path:
    """The interpreter of a virtual environment with that tinygrad and a compiler. tinygrad is installed anew each time."""
    venv = cache / "venv-next"
    python = venv / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    subprocess.run([*PIP, "--python", python, "install", *WHEELS], check=True)
    subprocess.run([*PIP, "--python", python, "install", "--no-deps", "--force-reinstall", "--no-build-isolation", tinygrad], check=True)
    return python


def differences(python: pathlib.Path, cwd: pathlib.Path) -> list[str]:
    """The names that are there and were not in 0.14, and those that are gone."""
    found = subprocess.run([python, "-c", LOOK, json.dumps(list(NAMES))], cwd=cwd, capture_output=True, text=True, check=True)
    now = json.loads(found.stdout.splitlines()[-1])
    return [f"{'new ' if now[place] else 'gone'}  {place}" for place, before in NAMES.items() if now[place] != before]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    parser.add_argument("tinygrad", type=pathlib.Path, help="a checkout, or a wheel")
    args = parser.parse_args()
    if not args.tinygrad.exists():
        parser.error(f"{args.tinygrad} is not there: TINYGRAD names the folder of a checkout, or a wheel")
    cache, given = args.cache.resolve(), args.tinygrad.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    python = environment(cache, given)
    script = given / "test" / "test_tiny.py" if given.is_dir() else tests(cache, next(iter(RELEASES)), python)
    for line in (lines := differences(python, cache)) or ["the names that the adapters use are those of 0.14"]:
        print(line, flush=True)
    common = {**os.environ, **nvrtc(str(python)), "CACHELEVEL": "0"}
    plain = {**common, **NEW, "PYTHONPATH": str(helpers(script)), **preload.environment({}, preload.library())}
    ours = {**common, "PYTHONPATH": f"{PACKAGE}:{helpers(script)}"}
    ways = [(f"plain, through LD_PRELOAD, on {kernel}", [python, script], {**plain, "TEGRARM_SIM_L4T": kernel})
            for kernel in ("r35", "r36", "r39")]
    ways += [(f"DEV={dev}", [python, "-m", "tegrarm", "run", script], {**ours, "DEV": dev})
             for dev in ("TEGRA+NV", "TEGRA:NVRTC", "TEGRA:PTX")]
    results = [(what, report(what, command, env, cache)) for what, command, env in ways]
    print("\n".join([f"{len(lines)} names differ", *(f"{'FAILED' if failed else 'passed'}  {what}" for what, failed in results)]))
    return int(any(failed for _, failed in results))


if __name__ == "__main__":
    sys.exit(main())
