"""Runs test_tiny.py of five published tinygrads, each plain, through LD_PRELOAD (`make test-tinygrad-releases`). Those that the
device TEGRA works with then run it on that device, too.

Each release gets its own virtual environment in the cache, which contains nothing of libtegrarm. Its tests come from its source
distribution. No fetched file is modified or committed. The run takes long and is not part of `make test`.
"""

import argparse
import os
import pathlib
import subprocess
import sys

from tegrarm import preload

WHEELS = ["nvidia-cuda-nvrtc-cu12==12.9.86", "nvidia-cuda-runtime-cu12==12.9.79", "nvidia-nvjitlink-cu12==12.9.86", "numpy==2.4.6",
          "setuptools==84.2.1"]
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
NEW, OLD = {"DEV": "NVK+NV"}, {"NV": "1", "NV_IFACE": "NVK"}
# Each release has its own switch for its RM interface, and the virtual kernels on which it runs.
RELEASES = {"0.14.0": (NEW, ["r36", "r35"]), "0.13.0": (NEW, ["r36"]), "0.12.0": (OLD, ["r36"]), "0.11.0": (OLD, ["r36"]),
            "0.10.3": (OLD, ["r36"])}
DEVICE_TEGRA = ("0.14.0", "0.13.0")
PACKAGE = pathlib.Path(__file__).resolve().parents[1]
FIND = """
import importlib.util
for module in ("nvidia.cuda_nvrtc", "nvidia.cuda_runtime"): print(*importlib.util.find_spec(module).submodule_search_locations)
"""


def nvrtc(python: pathlib.Path | str = sys.executable) -> dict[str, str]:
    """The environment with which a plain tinygrad finds the NVRTC and CUDA header wheels of a Python installation. Alone it does not."""
    done = subprocess.run([python, "-c", FIND], capture_output=True, text=True, check=True)
    compiler, headers = map(pathlib.Path, done.stdout.splitlines())
    library = next(iter(sorted(compiler.glob("lib/libnvrtc.so.*"))))
    return {"NVRTC_PATH": str(library), "CUDA_PATH": str(headers)}


def environment(cache: pathlib.Path, release: str) -> pathlib.Path:
    """The interpreter of a virtual environment that has only the release and a compiler."""
    venv = cache / f"venv-{release}"
    python = venv / "bin" / "python"
    if not (venv / ".installed").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", "--without-pip", venv], check=True)
        subprocess.run([*PIP, "--python", python, "install", f"tinygrad=={release}", *WHEELS], check=True)
        (venv / ".installed").touch()
    return python


def tests(cache: pathlib.Path, release: str, python: pathlib.Path) -> pathlib.Path:
    """The release's source distribution, unpacked. Only its tests are used."""
    tree = cache / f"tinygrad-{release}"
    if not tree.exists():
        download = [*PIP, "--python", python, "download", "--no-deps", "--no-build-isolation", "--no-binary", "tinygrad"]
        subprocess.run([*download, "--dest", cache / "sdist", f"tinygrad=={release}"], check=True)
        subprocess.run(["tar", "-C", cache, "-xzf", cache / "sdist" / f"tinygrad-{release}.tar.gz"], check=True)
    return tree / "test" / "test_tiny.py"


def libraries(python: pathlib.Path) -> pathlib.Path:
    """A folder in which older releases find the compilers, because these releases search only where the loader does."""
    folder = python.parents[1] / "compilers"
    folder.mkdir(exist_ok=True)
    for library in python.parents[1].glob("lib/python*/site-packages/nvidia/*/lib/*.so*"):
        for name in (library.name, library.name.split(".so")[0] + ".so"):
            if not (folder / name).exists():
                (folder / name).symlink_to(library)
    return folder


def helpers(script: pathlib.Path) -> pathlib.Path:
    """A folder from which `import test.helpers` works. Some source distributions have test_tiny.py alone, which imports one name from
    there.
    """
    folder = script.parents[1] / "importable"
    package = folder / "test"
    if not package.exists():
        folder.mkdir(exist_ok=True)
        if (script.parent / "helpers.py").exists():
            package.symlink_to(script.parent)
            (script.parent / "__init__.py").touch()
        else:
            package.mkdir()
            (package / "__init__.py").touch()
            (package / "helpers.py").write_text("CI = False\n")
    return folder


def report(what: str, command: list, env: dict[str, str], cwd: pathlib.Path) -> bool:
    """Runs test_tiny.py and prints how it ended; whether it failed."""
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True)
    lines = done.stderr.strip().splitlines()
    print(f"tinygrad {what}: {' '.join(lines[-3:]) if lines else '(no output)'}", flush=True)
    if done.returncode != 0:
        print(done.stdout[-2000:], done.stderr[-4000:], sep="\n", flush=True)
    return done.returncode != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    parser.add_argument("releases", nargs="*", help=f"of {', '.join(RELEASES)} (default: all)")
    args = parser.parse_args()
    failed = False
    for release in args.releases or RELEASES:
        switch, kernels = RELEASES[release]
        python = environment(args.cache.resolve(), release)
        script = tests(args.cache.resolve(), release, python)
        for kernel in kernels:
            folders = {"LD_LIBRARY_PATH": str(libraries(python)), "PYTHONPATH": str(helpers(script))}
            folders |= preload.environment(folders, preload.library())
            env = {**os.environ, **switch, **nvrtc(str(python)), **folders, "TEGRARM_SIM_L4T": kernel, "CACHELEVEL": "0"}
            failed |= report(f"{release} on {kernel}", [python, script], env, args.cache)
        for compiler in ("NVRTC", "PTX") if release in DEVICE_TEGRA else ():
            env = {**os.environ, "DEV": f"TEGRA:{compiler}", "PYTHONPATH": f"{PACKAGE}:{helpers(script)}", "CACHELEVEL": "0"}
            failed |= report(f"{release}, DEV=TEGRA:{compiler}", [python, "-m", "tegrarm", "run", script], env, args.cache)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
