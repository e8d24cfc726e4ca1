"""Builds the programs of NVIDIA's cuda-samples that use the driver interface, runs each on the CUDA library, and prints a table.

The sources stay as they are, and so does the checkout: `make test-cuda SAMPLES=CHECKOUT`. What to compile and to link is read from each
sample's CMakeLists.txt. The headers and compilers are those of the wheels: NVRTC compiles the kernels for which the build would call
nvcc, and nvFatbin packs them. A sample that fails without a row in KNOWN fails the run, and so does a row that nothing needs.

usage: samples.py --cache FOLDER CHECKOUT [NAME...]
"""

import argparse
import collections
import dataclasses
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).parents[1] / "tests"))
import cuda  # noqa: E402
import runtime_samples  # noqa: E402

from tegrarm import compile as compiler  # noqa: E402

LIMIT_S = 900
# NVRTC knows printf and assert by itself, and does not have the C library of this computer, whose headers kernels and cuda.h include.
HOST_HEADERS = {"stdio.h": "", "stdlib.h": "", "assert.h": "",
                "stdint.h": "typedef unsigned int uint32_t; typedef unsigned long uint64_t;\n"}
FATBIN_FOR = ("80", "86", "87", "89")
HEADERS = ("cu13/include", "nvjitlink/include")
# A folder of the wheels, the library in it, and what CMake calls it.
LIBRARIES = {"nvrtc": "cu13/lib/libnvrtc.so.13", "cudart": "cu13/lib/libcudart.so.13", "nvJitLink": "nvjitlink/lib/libnvJitLink.so.12"}
NVRTC_12 = "cuda_nvrtc/lib/libnvrtc.so.12"
# A sample, a kind (`refused` for what docs/cuda.md refuses, `failed` for what is missing here), and the cause.
KNOWN = {
    "simpleTextureDrv": ("refused", "textures"),
    "memMapIPCDrv": ("refused", "memory of other processes, which have a virtual Orin each; below `tegrarm-sim run` they share one"),
    "matrixMulDynlinkJIT": ("refused", "PTX of the ISA 1.4 of 2009, which needs ptxas"),
}


@dataclasses.dataclass
class Sample:
    """What a sample's CMakeLists.txt says about it."""

    name: str
    folder: pathlib.Path
    sources: list[pathlib.Path]
    libraries: list[str]
    kernels: list[tuple[str, str]]  # a source and what it becomes: a fat binary or PTX
    headers_beside: bool  # whether the build puts the headers of cooperative groups beside the program


def read(file: pathlib.Path) -> Sample | None:
    """The sample of a CMakeLists.txt, if it uses the driver interface."""
    text = re.sub(r"#[^\n]*", "", file.read_text())
    program = re.search(r"add_executable\(\s*(\S+)\s+([^)]*)\)", text)
    libraries = list(dict.fromkeys(re.findall(r"CUDA::(\w+)", text) + re.findall(r"\$\{NVJITLINK(_LIB)\}", text)))
    if not program or "cuda_driver" not in libraries:
        return None
    made = re.findall(r'set\(CUDA_(?:FATBIN|PTX)_FILE\s+"[^"]*/([^"/]+)"\)', text)
    sources = re.findall(r'set\(CUDA_KERNEL_SOURCE\s+"[^"]*/([^"/]+)"\)', text)
    if re.search(r"\.cu\b", program[2]) or re.search("egl|nvsci|vulkan", text, re.IGNORECASE):
        return None  # its host code is CUDA C++, which nvcc alone compiles, or it shares memory with graphics
    return Sample(program[1], file.parent, [file.parent / name for name in program[2].split()],
                  ["nvJitLink" if name == "_LIB" else name for name in libraries], list(zip(sources, made, strict=True)),
                  "cooperative_groups.h" in text)


def samples(checkout: pathlib.Path) -> list[Sample]:
    """The samples of a checkout that use the driver interface."""
    found = [read(file) for file in sorted(checkout.glob("Samples/**/CMakeLists.txt"))]
    return [sample for sample in found if sample]


def fatbin(source: bytes, name: str, options: tuple[str, ...]) -> bytes:
    """A fat binary of a source, with machine code for several GPUs, as nvcc makes it."""
    return cuda.fatbin([("Cubin", arch, compiler.compiled(source, name, f"sm_{arch}", options)) for arch in FATBIN_FOR])


@functools.cache
def driver() -> pathlib.Path:
    """The library that a program would get."""
    folders = [pathlib.Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    found = next((folder / "libcuda.so.1" for folder in folders if (folder / "libcuda.so.1").exists()), None)
    return found or sys.exit("samples.py: there is no libcuda.so.1 in LD_LIBRARY_PATH: start this with `tegrarm run --cuda`")


def build(sample: Sample, checkout: pathlib.Path, folder: pathlib.Path) -> None:
    """Builds a sample in a folder of its own, with its data beside it."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(sample.folder, folder)
    (folder / "host").mkdir()
    for header, text in HOST_HEADERS.items():
        (folder / "host" / header).write_text(text)
    options = ("-default-device", *(f"--include-path={path}" for path in (folder / "host", *compiler.headers())))
    for source, made in sample.kernels:
        text = (sample.folder / source).read_bytes()
        ptx = made.endswith("ptx")
        (folder / made).write_bytes(compiler.compiled(text, source, options=options, ptx=True) if ptx else fatbin(text, source, options))
    headers = [cuda.installed(path) for path in HEADERS]
    if sample.headers_beside:
        for place in ("cooperative_groups.h", "cooperative_groups", "cccl/cuda", "cccl/nv"):
            (folder / pathlib.Path(place).name).symlink_to(headers[0] / place)
    includes = [f"-I{path}" for path in (checkout / "Common", *headers)]
    objects = []
    for source in sample.sources:
        language = ["cc"] if source.suffix == ".c" else ["c++", "-std=c++17"]
        objects.append(folder / f"{source.stem}.o")
        command(*language, "-w", "-fPIC", "-c", *includes, source, "-o", objects[-1])
    # nvJitLink takes the intermediate code of a compiler of its own release.
    places = LIBRARIES | ({"nvrtc": NVRTC_12} if "nvJitLink" in sample.libraries else {})
    libraries = [cuda.installed(places[name]) for name in sample.libraries if name in places]
    found_by_themselves = [f"-Wl,-rpath,{library.parent}" for library in libraries]
    command("c++", *objects, "-o", folder / sample.name, *libraries, *found_by_themselves, driver(), "-lpthread", "-ldl", "-lrt")


def command(*words: object) -> None:
    """Runs a compiler."""
    subprocess.run([str(word) for word in words], check=True, capture_output=True, text=True)


def run(sample: Sample, checkout: pathlib.Path, cache: pathlib.Path) -> tuple[str, str]:
    """How a sample ended, and the last thing that it said."""
    folder = cache / sample.name
    try:
        build(sample, checkout, folder)
    except subprocess.CalledProcessError as failed:
        error = re.search(r".*error:.*", failed.stderr)
        return "not built", error[0] if error else failed.stderr.strip()[-200:]
    except (compiler.CompileError, FileNotFoundError) as failed:
        return "not built", str(failed)[:200]
    # Where the CUDA library finds the compiler of PTX. Its log tells a launch that was lost, for which many samples do not look.
    paths = f"{os.environ['LD_LIBRARY_PATH']}:{cuda.installed(LIBRARIES['nvJitLink']).parent}"
    try:
        done = subprocess.run([f"./{sample.name}"], cwd=folder, capture_output=True, text=True, errors="replace", timeout=LIMIT_S,
                              env=os.environ | {"LD_LIBRARY_PATH": paths, "TEGRARM_LOG": "warn"})
    except subprocess.TimeoutExpired:
        return "failed", f"it did not end within {LIMIT_S} seconds"
    return runtime_samples.verdict(done.returncode, done.stdout + done.stderr)


def main() -> int:
    """Runs the samples and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=pathlib.Path, required=True)
    parser.add_argument("checkout", type=pathlib.Path)
    parser.add_argument("names", nargs="*", help="such as vectorAddDrv (default: all)")
    args = parser.parse_args()
    checkout, found = args.checkout.absolute(), samples(args.checkout.absolute())
    if shutil.which("ptxas"):
        KNOWN.pop("matrixMulDynlinkJIT")
    if not found:
        sys.exit(f"samples.py: {checkout} has no samples that use CUDA's driver interface: give a checkout of cuda-samples")
    counts: dict[str, int] = collections.Counter()
    wrong = [f"no sample is called {name}" for name in args.names if name not in {sample.name for sample in found}]
    for sample in found:
        if args.names and sample.name not in args.names:
            continue
        outcome, said = run(sample, checkout, args.cache)
        # What could not be built has not shown the cause of its row.
        kind, cause = KNOWN.get(sample.name, ("", "")) if outcome != "not built" else ("", "")
        if outcome == "passed" and kind:
            wrong.append(f"{sample.name} passes, and has a row in KNOWN")
        elif outcome != "passed" and not kind:
            wrong.append(f"{sample.name} fails and has no row in KNOWN")
        counts[kind or outcome] += 1
        print(f"  {kind or outcome}: {sample.name}: {cause + ': ' if cause else ''}{said}", flush=True)
    print(f"cuda-samples: {counts.pop('passed', 0)} passed, {counts.pop('refused', 0)} need what is refused, "
          f"{', '.join(f'{count} {outcome}' for outcome, count in counts.items()) or 'none is left'}")
    print("\n".join(wrong))
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
