"""Runs tinygrad 0.12.0's own test files on the TEGRA interface (`make test-tinygrad`). Long; not part of `make test`.

0.12.0 is the last release whose source distribution carries the whole test folder. It is fetched from PyPI into the
cache, used as it is, and never committed. Files that need a package which is not installed (test_ops.py needs torch) say so.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tarfile

RELEASE = "0.12.0"
FILES = ["test_tiny", "test_arange", "test_assign", "test_const_folding", "test_edgecases", "test_jit", "test_memory_planner", "test_nn",
         "test_optim", "test_outerworld", "test_randomness", "test_setitem", "test_softmax_fusion", "test_subbuffer", "test_symbolic_jit",
         "test_symbolic_ops", "test_tensor", "test_tensor_variable", "test_to_numpy", "test_transcendental", "test_zero_copy", "test_dtype",
         "test_dtype_alu", "test_ops"]
LAUNCH = "import sys, tegrarm.tinygrad, pytest; sys.exit(pytest.main(sys.argv[1:]))"


def fetch(cache: pathlib.Path) -> pathlib.Path:
    tree = cache / f"tinygrad-{RELEASE}"
    if not tree.exists():
        pip = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--no-build-isolation"]
        subprocess.run([*pip, "--no-binary", "tinygrad", "-d", cache / "sdist", f"tinygrad=={RELEASE}"], check=True)
        with tarfile.open(cache / "sdist" / f"tinygrad-{RELEASE}.tar.gz") as archive:
            archive.extractall(cache, filter="data")
    return tree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    parser.add_argument("files", nargs="*", help="test files without .py (default: all that make sense on one GPU)")
    args = parser.parse_args()
    tree = fetch(args.cache)
    env = {**os.environ, "PYTHONPATH": str(tree), "NV": "1", "NV_IFACE": "TEGRA"}
    env.pop("DEV", None)
    results = {}
    for name in args.files or FILES:
        command = [sys.executable, "-c", LAUNCH, "-q", "-p", "no:cacheprovider", f"test/{name}.py"]
        done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True)
        lines = [line for line in done.stdout.splitlines() if line.strip()] or done.stderr.splitlines()
        results[name] = done.returncode
        print(f"{name:22} {lines[-1] if lines else '(no output)'}", flush=True)
        for line in lines:
            if line.startswith(("FAILED", "ERROR")):
                print(f"  {line[:160]}")
    return int(any(code not in (0, 5) for code in results.values()))  # 5: pytest collected nothing


if __name__ == "__main__":
    sys.exit(main())
