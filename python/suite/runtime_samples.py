"""Builds the programs of NVIDIA's cuda-samples that use the runtime interface, runs each on the CUDA libraries, and prints a table.

The sources stay as they are, and so does the checkout: `make test-samples SAMPLES=CHECKOUT`. `tegrarm nvcc` compiles them, with the options
of each CMakeLists.txt. What needs graphics, textures or a library is left out and counted by its reason. A sample that fails without
a row in KNOWN fails the run, and so does a row that nothing needs. samples.py has the programs of the driver interface.

usage: runtime_samples.py --cache FOLDER CHECKOUT [NAME...]
"""

import argparse
import collections
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

WAIVED = 2  # the status of a sample that finds that it cannot run here
# What a sample needs that is not here: words of its CMakeLists.txt, and words of its sources.
NEEDS = (("graphics", r"OpenGL|GLUT|Vulkan|EGL|NVSCI|X11|FreeImage|D3D|DirectX", r"cuda_gl_interop|<GL/|d3d\d|cuda_egl_interop"),
         ("a library", r"CUDA::(cublas|cufft|curand|cusolver|cusparse|npp|nvjpeg|nvrtc)|NVVM|nvvm|cudla|find_package(?=.MPI)",
          r"<(cublas|cufft|curand|cusparse)\w*\.h>"),
         ("textures", r"(?!)", r"\btex[123]D\w*\s*[<(]|\bsurf[123]D\w+\s*[<(]|\bcuda(Texture|Surface)Object_t\b|\bcudaMallocArray\b"))
# A sample, a kind (`refused` for what docs/cudart.md refuses, `failed` for what is missing here), and the cause.
KNOWN = {
    "simpleAttributes": ("refused", "a part of the L2 cache for data that stays: the sample says so by itself"),
}
SAYS_IT_FAILED = re.compile(r"^.*\b(Test failed|Result = FAIL|FAILED)\b.*$", re.MULTILINE)
REFUSAL = re.compile(r"libcud\w+ of libtegrarm: (\w+ is refused.*)")


@dataclasses.dataclass
class Sample:
    """What a sample's CMakeLists.txt says about it."""

    name: str
    folder: pathlib.Path
    sources: list[pathlib.Path]
    options: list[str]
    needs: str  # why it is left out


def read(file: pathlib.Path) -> Sample | None:
    """The sample of a CMakeLists.txt, unless it is one of the driver interface."""
    text = re.sub(r"#[^\n]*", "", file.read_text())
    program = re.search(r"add_executable\(\s*(\S+)\s+([^)]*)\)", text)
    if not program:
        return None
    sources = [file.parent / name for name in program[2].split() if pathlib.Path(name).suffix in (".cu", ".cpp", ".c", ".cc")]
    if not any(source.suffix == ".cu" for source in sources) and ("CUDA::cudart" not in text or "cuda_driver" in text):
        return None
    options = []
    if re.search(r"CUDA_SEPARABLE_COMPILATION\s+ON", text):
        options.append("-rdc=true")
    if "--extended-lambda" in text:
        options.append("--extended-lambda")
    if "OpenMP" in text:
        options.append("-Xcompiler=-fopenmp")
    if "cuda_driver" in text:
        options.append("-lcuda")
    every = [*sources, *file.parent.rglob("*.cuh"), *file.parent.rglob("*.h")]
    words = "\n".join(source.read_text(errors="replace") for source in every if source.exists())
    needs = next((what for what, in_cmake, in_source in NEEDS if re.search(in_cmake, text) or re.search(in_source, words)), "")
    return Sample(program[1], file.parent, sources, options, needs)


def build(sample: Sample, checkout: pathlib.Path, folder: pathlib.Path) -> None:
    """Builds a sample in a folder of its own, with its data beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sample.folder, folder)
    command = [sys.executable, "-m", "tegrarm", "nvcc", "-w", "-O2", "-std=c++17", *sample.options, f"-I{checkout}/Common", *sample.sources,
               "-o", folder / sample.name]
    subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, cwd=folder)


def run(sample: Sample, checkout: pathlib.Path, cache: pathlib.Path, limit: int) -> tuple[str, str]:
    """How a sample ended, and the last thing that it said."""
    folder = cache / sample.name
    try:
        build(sample, checkout, folder)
    except subprocess.CalledProcessError as failed:
        error = re.search(r".*(error|lacks|undefined).*(\n.*)?", failed.stderr)
        return "not built", (error[0] if error else failed.stderr.strip()[-200:]).replace("\n", " ")
    try:
        done = subprocess.run([f"./{sample.name}"], cwd=folder, capture_output=True, text=True, errors="replace", timeout=limit,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return "failed", f"it did not end within {limit} seconds"
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    said = done.stdout + done.stderr
    if done.returncode == WAIVED:
        outcome = "waived"
    else:
        outcome = "failed" if done.returncode or SAYS_IT_FAILED.search(said) else "passed"
    if outcome == "failed" and (refusal := REFUSAL.search(said)):
        return "refused", refusal[1]
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    told = SAYS_IT_FAILED.search(said)
    return outcome, told[0].strip() if told and outcome == "failed" else lines[-1] if lines else f"status {done.returncode}"


def main() -> int:
    """Runs the samples and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    parser.add_argument("--limit", type=int, default=600, help="the seconds that a sample may take")
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("names", nargs="*", help="such as vectorAdd (default: all)")
    args = parser.parse_args()
    checkout = args.checkout.absolute()
    found = [sample for file in sorted(checkout.glob("Samples/**/CMakeLists.txt")) if (sample := read(file))]
    if not found:
        sys.exit(f"runtime_samples.py: {checkout} has no samples that use CUDA's runtime: give a checkout of cuda-samples")
    if "LD_LIBRARY_PATH" not in os.environ:
        sys.exit("runtime_samples.py: start this with `tegrarm run --cuda`")
    counts: dict[str, int] = collections.Counter()
    wrong = [f"no sample is called {name}" for name in args.names if name not in {sample.name for sample in found}]
    for sample in found:
        if args.names and sample.name not in args.names:
            continue
        if sample.needs and not args.names:
            counts[f"need {sample.needs}"] += 1
            continue
        began = time.monotonic()
        outcome, said = run(sample, checkout, args.cache.absolute(), args.limit)
        kind, cause = KNOWN.get(sample.name, ("", "")) if outcome not in ("not built", "refused") else ("", "")
        if outcome == "passed" and kind:
            wrong.append(f"{sample.name} passes, and has a row in KNOWN")
        elif outcome not in ("passed", "refused") and not kind:
            wrong.append(f"{sample.name} fails and has no row in KNOWN")
        counts[kind or outcome] += 1
        print(f"  {kind or outcome}: {sample.name} ({time.monotonic() - began:.0f} s): {cause + ': ' if cause else ''}{said}", flush=True)
    print("cuda-samples: " + ", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    print("\n".join(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
