"""Compares the Python packages that the project declares with their use and with CONTRIBUTING.md.

`pyproject.toml` and the files of requirements declare packages. Every package must be used in the way that `USES` says, or be imported
somewhere. CONTRIBUTING.md must list exactly these packages, each with a reason. python/checks/dependencies.py does the same for Rust.
"""

import pathlib
import re
import sys
import tomllib
from collections.abc import Iterator

from claims import ROOT, makefile, tracked

# How packages are used that no Python file imports by their own name: a pattern, and the files of which one must match it.
USES: dict[str, tuple[str, str]] = {
    "nvidia-cuda-nvrtc-cu12": (r'installed\("nvidia\.cuda_nvrtc"\)', "python/tegrarm/compile.py"),
    "nvidia-cuda-runtime-cu12": (r'\("nvidia\.cuda_runtime", ', "python/tegrarm/compile.py"),
    "nvidia-cuda-nvrtc": (r'"cu13/lib/libnvrtc', "python/tests/cuda.py"),
    "nvidia-cuda-runtime": (r'"cu13/include"', "python/tests/cuda.py"),
    "nvidia-cuda-cccl-cu12": (r'"cuda_cccl/include"', "python/tests/cuda.py"),
    "nvidia-cuda-cccl": (r'"cu13/include/cccl"', "python/tests/cuda.py"),
    "nvidia-nvjitlink-cu12": (r'"nvjitlink/lib/libnvJitLink', "python/suite/ptx/link.py"),
    "nvidia-cuda-nvdisasm": (r"nvidia/cu\*/bin/nvdisasm", "python/suite/disasm.py"),
    "nvidia-nvfatbin-cu12": (r'"nvfatbin/lib/libnvfatbin', "python/tests/cuda.py"),
    "nvidia-cuda-crt": (r'HEADERS = \("cu13/include"', "python/suite/samples.py"),
    "nvidia-nvfatbin": (r'"cu13/lib/libnvfatbin', "python/tests/cuda.py"),
    "nvidia-nvml-dev": (r'"nvidia/cu13/include/nvml\.h"', "packaging/nvml_rows.py"),
    "nvidia-nvml-dev-cu12": (r'"nvidia/nvml_dev/include/nvml\.h"', "packaging/nvml_rows.py"),
    "nvidia-ml-py": (r"^import json, pynvml$", "python/tests/*.py"),
    "nvitop": (r'"nvitop", "--once"', "python/tests/*.py"),
    "gpustat": (r'"gpustat", ', "python/tests/*.py"),
    "tinymesa": (r'"TEGRA\+NV:NAK", "tinymesa"', "examples/python/demo.py"),
    "pyyaml": (r"^import yaml$", "python/tests/*.py"),
    "check-jsonschema": (r'"-m", "check_jsonschema"', "python/tests/*.py"),
    "pytest-timeout": (r'"-m", "pytest", .*f"--timeout=', "python/suite/run.py"),
    "pytest-xdist": (r"-m pytest -n \d", "Makefile"),
    "ruff": (r"-m ruff check", "Makefile"),
    "mypy": (r"-m mypy ", "Makefile"),
    "setuptools": (r"--no-build-isolation", "Makefile"),
    "editables": (r"--no-build-isolation --editable", "Makefile"),
    "numba-cuda": (r"^ +from numba import cuda", "python/suite/corpora/*.py"),
    "filecheck": (r"_failed_filechecks = False", "python/suite/numbas.py"),
    "ml_dtypes": (r"test_bfloat16 imports ml_dtypes", "python/suite/numbas.py"),
    "torch": (r'find_spec\("torch"\)', "python/suite/run.py"),
    "cargo-zigbuild": (r"/bin/cargo-zigbuild zigbuild", "Makefile"),
    "ziglang": (r"-m ziglang", "python/tests/*.sh"),
    "properdocs-theme-mkdocs": (r"^ +name: mkdocs$", "packaging/book/properdocs.yml"),
    "properdocs": (r"-m properdocs build", "Makefile"),
    "mkdocs-literate-nav": (r"^ +- literate-nav:", "packaging/book/properdocs.yml"),
    "pymdown-extensions": (r"^ +- pymdownx\.", "packaging/book/properdocs.yml"),
}
TABLE = re.compile(r"^\| package \| reason \|\n\|[-| ]+\|\n((?:\|.*\n)+)", re.M)


def name_of(requirement: str) -> str:
    """The package of a requirement such as `tinygrad>=0.12,<0.15; platform_machine == 'x86_64'`."""
    return re.match(r"[\w.-]+", requirement)[0].lower()


def declared(files: dict[str, str]) -> dict[str, str]:
    """Every package that is declared, and the file that declares it."""
    found = {}
    for path, text in files.items():
        if path == "python/pyproject.toml":
            project = tomllib.loads(text)
            wanted = project["build-system"]["requires"] + project["project"]["dependencies"]
            wanted += [one for extra in project["project"]["optional-dependencies"].values() for one in extra]
        elif re.search(r"requirements[\w-]*\.txt$", path):
            lines = [line.split(" #")[0].strip() for line in text.splitlines()]
            wanted = [line for line in lines if line and not line.startswith(("#", "-"))]
        else:
            continue
        found |= {name_of(one): path for one in wanted}
    return found


def is_used(package: str, files: dict[str, str]) -> bool:
    """Whether a file uses a package as its row of `USES` says, or imports it by its own name."""
    name = package.replace("-", "_")
    pattern, where = USES.get(package, (rf"^\s*(import {name}\b|from {name}\b[\w.]* import)", "**/*.py"))
    return any(re.search(pattern, text, re.M) for path, text in files.items() if pathlib.PurePath("/", path).match(where))


def documented(text: str) -> dict[str, str]:
    """The packages in the tables of CONTRIBUTING.md, with their reasons."""
    rows = [row.strip("|").split("|") for table in TABLE.findall(text) for row in table.splitlines()]
    return {name.strip(): reason.strip() for names, reason in rows for name in names.split(",")}


def problems(files: dict[str, str]) -> Iterator[str]:
    there, table = declared(files), documented(files["CONTRIBUTING.md"])
    for package, path in sorted(there.items()):
        if not is_used(package, files):
            yield f"{path} declares {package}, and nothing uses it: remove it"
        if len(table.get(package, "")) < 8:
            yield f"CONTRIBUTING.md gives no reason for {package}, which {path} declares: add a row to a table of packages"
    for package in sorted(table.keys() - there.keys()):
        yield f"CONTRIBUTING.md lists {package}, which no file declares: remove its row"
    for package in sorted(USES.keys() - there.keys()):
        yield f"packages.py says how {package} is used, which no file declares: remove its row"


def proof() -> Iterator[str]:
    """The check must object to wrong samples. Otherwise an empty answer would not mean that the tree is right."""
    table = "| package | reason |\n|---|---|\n| left, gone | for this sample |\n"
    files = {"python/requirements.txt": "left==1  # why\nunused==2; sys_platform == 'linux'\n-r other.txt\n", "CONTRIBUTING.md": table,
             "a.py": "import left\nimport unused_too\n# import unused\n"}
    found = [text for text in problems(files) if "packages.py says" not in text]
    wanted = ["declares unused, and nothing uses it", "gives no reason for unused,", "lists gone, which no file declares"]
    if len(found) != len(wanted) or any(text not in one for text, one in zip(wanted, found, strict=False)):
        yield f"packages.py does not see what is wrong with its sample: {found}"


def main() -> int:
    names = [name for name in tracked() if re.search(r"\.(py|toml|txt|yml|sh)$|^Makefile$|^CONTRIBUTING\.md$", name)]
    files = {name: (ROOT / name).read_text() for name in names if name != "python/checks/packages.py"}
    files["Makefile"] = makefile()
    found = [*proof(), *problems(files)]
    print("\n".join(found) or f"packages: {len(declared(files))} Python packages, all used and documented")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
