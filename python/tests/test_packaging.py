"""An installation works alone: headers, library, pkg-config, CMake and the wheel. All of them have the same version."""

import ast
import email
import json
import os
import pathlib
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
from conftest import ROOT, TEGRARM_SIM

from tegrarm import _ffi

TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PREFIX = "/opt/tegrarm"


def sh(*command, **more) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, **more)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def need(*programs):
    if missing := [p for p in programs if not shutil.which(p)]:
        pytest.skip(f"not installed: {', '.join(missing)}")


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> pathlib.Path:
    """The prefix of an installation, which was moved to another directory."""
    stage = tmp_path_factory.mktemp("stage")
    sh("make", "--no-print-directory", "install", f"DESTDIR={stage}", f"PREFIX={PREFIX}", cwd=ROOT)
    return stage / PREFIX.lstrip("/")


@pytest.fixture(scope="module")
def cubin(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("cubin") / "kernels.cubin"
    sh(sys.executable, ROOT / "examples/c/compile.py", ROOT / "examples/c/kernels.cu", path)
    return path


def test_installed_files(installed):
    found = {str(p.relative_to(installed)) for p in installed.rglob("*") if not p.is_dir()}
    version = _ffi.version()
    assert found == {
        "include/tegrarm.h", "include/tegrarm_abi.h", "include/tegrarm_status.h",
        "lib/libtegrarm.so", "lib/libtegrarm.so.0", f"lib/libtegrarm.so.{version}",
        "lib/libtegrarm_preload.so", "lib/tegrarm/nvml/libnvidia-ml.so.1", "lib/tegrarm/cuda/libcuda.so.1",
        "lib/tegrarm/cuda/libcudart.so.12", "lib/tegrarm/cuda/libcudart.so.13", "lib/pkgconfig/tegrarm.pc",
        "lib/cmake/tegrarm/tegrarm-config.cmake",
        "lib/cmake/tegrarm/tegrarm-config-version.cmake",
        "bin/tegrarm-sim", *(f"share/man/man1/tegrarm-sim{page}.1" for page in ("", "-run", "-replay", "-decode")),
        "share/bash-completion/completions/tegrarm-sim", "share/zsh/site-functions/_tegrarm-sim",
        "share/fish/vendor_completions.d/tegrarm-sim.fish"}
    assert os.readlink(installed / "lib/libtegrarm.so.0") == f"libtegrarm.so.{version}"
    assert os.readlink(installed / "lib/libtegrarm.so") == "libtegrarm.so.0"
    text = "".join((installed / f).read_text() for f in found if f.endswith((".pc", ".cmake")))
    assert str(installed) not in text and PREFIX not in text and "@" not in text, "it can be moved"


def test_pkg_config(installed, cubin, tmp_path):
    need("cc", "pkg-config")
    env = {**os.environ, "PKG_CONFIG_PATH": str(installed / "lib/pkgconfig")}
    assert sh("pkg-config", "--modversion", "tegrarm", env=env).strip() == _ffi.version()
    flags = sh("pkg-config", "--cflags", "--libs", "tegrarm", env=env).split()
    sh("cc", "-std=c11", "-D_GNU_SOURCE", ROOT / "examples/c/vecadd.c", "-o", tmp_path / "vecadd", *flags)
    out = sh(tmp_path / "vecadd", cubin, env={**os.environ, "LD_LIBRARY_PATH": str(installed / "lib")})
    assert "all right" in out
    needed = sh("readelf", "-d", tmp_path / "vecadd")
    assert "libtegrarm.so.0" in needed, "programs ask for the interface's version, not the file's"


def test_cmake(installed, cubin, tmp_path):
    need("cmake", "cc")
    (tmp_path / "CMakeLists.txt").write_text(f"""
cmake_minimum_required(VERSION 3.13)
project(example C)
find_package(tegrarm 0.1 REQUIRED CONFIG)
add_executable(vecadd "{ROOT}/examples/c/vecadd.c")
target_link_libraries(vecadd tegrarm::tegrarm)
""")
    configure = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={installed}"]
    sh(*configure)
    sh("cmake", "--build", tmp_path / "build")
    assert "all right" in sh(tmp_path / "build" / "vecadd", cubin)
    other = (tmp_path / "CMakeLists.txt").read_text().replace("tegrarm 0.1", "tegrarm 0.2")
    (tmp_path / "CMakeLists.txt").write_text(other)
    refused = subprocess.run([str(c) for c in configure], capture_output=True, text=True)
    assert refused.returncode != 0 and "0.2" in refused.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> pathlib.Path:
    dist = tmp_path_factory.mktemp("dist")
    sh("make", "--no-print-directory", "wheel", f"DIST={dist}", "TEGRARM_QUICKLY=1", cwd=ROOT)
    found, = dist.glob("*.whl")
    return found


def test_wheel_says_for_which_machines_it_is(wheel):
    machine = os.uname().machine
    assert re.fullmatch(rf"tegrarm-{re.escape(_ffi.version())}-py3-none-manylinux_2_\d+_{machine}\.whl", wheel.name)
    portable = TARGET / "quickly" / f"{machine}-unknown-linux-gnu" / "release"
    names = [line for line in (ROOT / "Makefile").read_text().splitlines() if line.startswith("HANDED_OUT :=")]
    needed = sh("objdump", "-T", *(portable / name for name in names[0].split()[2:]))
    newest = max(int(n) for n in re.findall(r"GLIBC_2\.(\d+)", needed))
    assert f"manylinux_2_{newest}_" in wheel.name and newest <= 31, "JetPack 5 has glibc 2.31"
    names = zipfile.ZipFile(wheel).namelist()
    data = f"tegrarm-{_ffi.version()}.data"
    assert {"tegrarm/libtegrarm.so", "tegrarm/libtegrarm_preload.so", "tegrarm/replay.py", "tegrarm/page.html", "tegrarm/profile.html",
            "tegrarm/nvml/libnvidia-ml.so.1", "tegrarm/cuda/libcuda.so.1", "tegrarm/cuda/libcudart.so.12", "tegrarm/cuda/libcudart.so.13",
            "tegrarm/include/tegrarm.h", "tegrarm/include/tegrarm_abi.h", "tegrarm/lib/pkgconfig/tegrarm.pc",
            "tegrarm/lib/cmake/tegrarm/tegrarm-config.cmake", "tegrarm/demo.py",
            "tegrarm/validate/data/instructions.zip", "tegrarm/validate/data/probe.cubin", "tegrarm/validate/data/characteristics.json",
            f"{data}/scripts/tegrarm-sim", f"{data}/data/share/man/man1/tegrarm.1", f"{data}/data/share/man/man1/tegrarm-sim-run.1",
            f"{data}/data/share/bash-completion/completions/tegrarm", f"{data}/data/share/zsh/site-functions/_tegrarm-sim",
            f"{data}/data/share/fish/vendor_completions.d/tegrarm.fish"} <= set(names)


def test_the_wheels_metadata_is_complete(wheel):
    with zipfile.ZipFile(wheel) as archive:
        info = f"tegrarm-{_ffi.version()}.dist-info"
        metadata = email.message_from_bytes(archive.read(f"{info}/METADATA"))
        entry_points = archive.read(f"{info}/entry_points.txt").decode()
    assert metadata["Author"] == "libtegrarm contributors" and metadata["License-Expression"] == "MIT OR Apache-2.0"
    assert {url.split(",")[0] for url in metadata.get_all("Project-URL")} == {"Homepage", "Documentation", "Issues", "Changelog"}
    assert "jetson" in metadata["Keywords"] and len(metadata.get_all("Classifier")) > 8
    assert metadata["Description-Content-Type"] == "text/markdown" and "tegrarm[tinygrad,nvrtc]" in metadata.get_payload()
    assert set(metadata.get_all("Provides-Extra")) == {"tinygrad", "nvrtc", "pool", "triton"}
    assert "tegrarm = tegrarm.__main__:main" in entry_points


def test_the_python_that_is_asked_for_can_read_every_file():
    """requires-python is true: the grammar of each file is that version's."""
    low = tuple(int(n) for n in re.search(r'requires-python = ">=(\d+)\.(\d+)"', (ROOT / "python/pyproject.toml").read_text()).groups())
    files = [*(ROOT / "python/tegrarm").rglob("*.py")]
    assert len(files) > 30
    for file in files:
        ast.parse(file.read_text(), str(file), feature_version=low)
    if older := shutil.which(f"python{low[0]}.{low[1]}"):
        done = subprocess.run([older, "-m", "tegrarm", "--help"], cwd=ROOT / "python", capture_output=True, text=True)
        if "not found" not in done.stderr:  # a stand-in of pyenv for a version that is not chosen
            assert done.returncode == 0, done.stderr


def test_wheel_runs_the_demo_in_a_clean_environment(wheel, tmp_path):
    # This environment's pip installs the wheel: one of its own takes as long to install as all the rest.
    sh(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    pip = [sys.executable, "-m", "pip", "--python", python, "--quiet", "--disable-pip-version-check"]
    sh(*pip, "install", "--no-deps", "--no-index", wheel)
    # The demo's other packages come from this environment. The package itself must not.
    libraries = next(pathlib.Path(p) for p in sys.path if (pathlib.Path(p) / "numpy").is_dir())
    place = pathlib.Path(sh(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    for entry in libraries.iterdir():
        ours = entry.name.startswith(("tegrarm", "_tegrarm", "_editable", "__editable__")) or entry.suffix == ".pth"
        if not ours and not (place / entry.name).exists():
            (place / entry.name).symlink_to(entry)
    env = {k: v for k, v in os.environ.items() if not k.startswith("TEGRARM_") and k not in ("CARGO_TARGET_DIR", "PYTHONPATH")}
    env["TEGRARM_BACKEND"] = "sim"
    shutil.copy(ROOT / "examples/python/demo.py", tmp_path)
    where = sh(python, "-c", "from tegrarm import _ffi; print(_ffi.find())", env=env, cwd=tmp_path).strip()
    assert where.startswith(str(tmp_path / "venv")), where
    out = sh(python, tmp_path / "demo.py", env=env, cwd=tmp_path)
    assert "[5 7 9]" in out and "Mesa NAK" in out
    # The commands of the wheel, with nothing of the tree on the way to them.
    env["PATH"] = f"{tmp_path}/venv/bin:/usr/bin:/bin"
    assert sh("tegrarm-sim", "--version", env=env, cwd=tmp_path) == f"tegrarm-sim {_ffi.version()}\n"
    assert "virtual Orin, of tegrarm-sim run" in sh("tegrarm", "sim", "run", "--", "env", "TEGRARM_BACKEND=nvgpu", "tegrarm", "info",
                                                    env=env, cwd=tmp_path)
    assert (tmp_path / "venv/share/man/man1/tegrarm.1").exists()
    # C programs find headers and library by the command, and by pkg-config.
    (tmp_path / "version.c").write_text('#include <stdio.h>\n#include "tegrarm.h"\nint main(void) { puts(tegrarm_version()); }\n')
    options = {"tegrarm cflags": shlex.split(sh("tegrarm", "cflags", env=env, cwd=tmp_path))}
    prefix = pathlib.Path(sh("tegrarm", "cflags", "--prefix", env=env, cwd=tmp_path).strip())
    if shutil.which("pkg-config"):
        found = sh("pkg-config", "--cflags", "--libs", "tegrarm", env={**env, "PKG_CONFIG_PATH": str(prefix / "lib/pkgconfig")})
        options["pkg-config"] = [*shlex.split(found), f"-Wl,-rpath,{prefix}/lib"]
    for words in options.values():
        sh("cc", "version.c", *words, "-o", "version", env=env, cwd=tmp_path)
        assert sh("./version", env=env, cwd=tmp_path) == f"{_ffi.version()}\n"


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> pathlib.Path:
    dist = tmp_path_factory.mktemp("sdist")
    sh("make", "--no-print-directory", "sdist", f"DIST={dist}", cwd=ROOT)
    found, = dist.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python 3.11.2, Debian 12's, has no argument for it
        archive.extractall(dist)
    return dist / found.name.removesuffix(".tar.gz")


def test_the_source_distribution_has_every_file_that_cargo_wants(sdist):
    """All of the build but the work: what a wheel of it would be made of. `make test-sdist` makes the wheel."""
    inside = json.loads(sh("cargo", "metadata", "--locked", "--no-deps", "--format-version", "1", cwd=sdist / "tree"))
    for package in inside["packages"]:
        for target in package["targets"]:
            here = pathlib.Path(target["src_path"])
            assert here.is_file(), f"{package['name']} wants {here}"
            theirs = ROOT / here.relative_to(sdist / "tree")
            assert here.read_bytes() == theirs.read_bytes()
    for crate in ("src", *(p.relative_to(ROOT) / "src" for p in (ROOT / "crates").iterdir())):
        wanted = {p.relative_to(ROOT) for p in (ROOT / crate).rglob("*.rs")}
        assert wanted == {p.relative_to(sdist / "tree") for p in (sdist / "tree" / crate).rglob("*.rs")}
    assert (sdist / "PKG-INFO").exists() and (sdist / "tree/packaging/man/tegrarm.1").exists()


def test_the_source_distribution_says_when_there_is_no_cargo(sdist, tmp_path):
    env = {**os.environ, "CARGO": "no-such-cargo"}
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", tmp_path, sdist]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    assert done.returncode != 0 and "written in Rust: install cargo" in done.stdout + done.stderr


def test_installing_says_what_the_loader_needs(tmp_path):
    need("ldconfig")
    said = sh(ROOT / "packaging/loader_knows.sh", tmp_path, "libtegrarm.so.0")
    assert f"echo {tmp_path} | sudo tee" in said and "ldconfig" in said and "LD_LIBRARY_PATH" in said
    known = re.search(r"=> (/\S+)/(libc\.so\.6)$", sh("ldconfig", "-p"), re.M)
    assert sh(ROOT / "packaging/loader_knows.sh", *known.groups()) == ""


def test_the_debian_packages_have_what_is_installed(installed):
    """dpkg-buildpackage ends with an error if a file belongs to no package, which is seen here where there is no debhelper."""
    lists = (ROOT / "packaging/debian").glob("*.install")
    patterns = {p: re.compile(re.escape(p).replace(r"\*", "[^/]*") + "(/.*)?") for file in lists for p in file.read_text().split()}
    for file in installed.rglob("*"):
        if not file.is_dir():
            # The prefix is usr there, and libraries lie in a folder of the architecture.
            place = re.sub("^usr/lib/", "usr/lib/any/", f"usr/{file.relative_to(installed)}")
            assert [p for p, pattern in patterns.items() if pattern.fullmatch(place)], f"{place} is in no package"


def test_the_debian_packages(tmp_path):
    need("dpkg-buildpackage", "dh", "dpkg-deb")
    # What the packages have is looked at, and not how fast it is: the compiler need not take minutes.
    quick = {"CARGO_PROFILE_RELEASE_OPT_LEVEL": "0", "CARGO_PROFILE_RELEASE_DEBUG": "0"}
    sh("make", "--no-print-directory", "deb", f"DIST={tmp_path}", cwd=ROOT, env={**os.environ, **quick})
    contents = {}
    for package in ("libtegrarm0", "libtegrarm-dev", "tegrarm-sim"):
        file, = tmp_path.glob(f"{package}_*.deb")
        contents[package] = {line.split()[5].lstrip(".") for line in sh("dpkg-deb", "--contents", file).splitlines()}
    libraries = f"/usr/lib/{sh('dpkg-architecture', '-qDEB_HOST_MULTIARCH').strip()}"
    assert {f"{libraries}/libtegrarm.so.0", f"{libraries}/libtegrarm_preload.so"} <= contents["libtegrarm0"]
    assert {"/usr/include/tegrarm.h", f"{libraries}/pkgconfig/tegrarm.pc", f"{libraries}/libtegrarm.so"} <= contents["libtegrarm-dev"]
    assert {"/usr/bin/tegrarm-sim", "/usr/share/man/man1/tegrarm-sim.1.gz"} <= contents["tegrarm-sim"]
    assert list(tmp_path.glob("*.dsc")) and list(tmp_path.glob("*.tar.xz"))
    root = tmp_path / "root"
    for file in tmp_path.glob("*.deb"):
        sh("dpkg-deb", "--extract", file, root)
    env = {**os.environ, "PKG_CONFIG_PATH": f"{root}{libraries}/pkgconfig"}
    if shutil.which("pkg-config"):
        flags = sh("pkg-config", "--cflags", "--libs", "tegrarm", env=env).split()
        sh("cc", "-std=c11", "-D_GNU_SOURCE", ROOT / "examples/c/devices.c", "-o", tmp_path / "devices", *flags)
        out = sh(tmp_path / "devices", env={**os.environ, "LD_LIBRARY_PATH": f"{root}{libraries}"})
        assert "Orin" in out


def test_versions_agree(installed):
    header = (ROOT / "include/tegrarm.h").read_text()
    numbers = [re.search(rf"#define TEGRARM_VERSION_{part} (\d+)", header)[1] for part in ("MAJOR", "MINOR", "PATCH")]
    cargo = (ROOT / "Cargo.toml").read_text()
    found = {
        "Cargo.toml": re.search(r'\[workspace\.package\]\nversion = "(.*?)"', cargo)[1],
        "tegrarm.h, numbers": ".".join(numbers),
        "tegrarm.h, text": re.search(r'#define TEGRARM_VERSION "(.*?)"', header)[1],
        "the library": _ffi.version(),
        "pyproject.toml": re.search(r'^version = "(.*)"', (ROOT / "python/pyproject.toml").read_text(), re.M)[1],
        "CHANGELOG.md": re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M)[1],
        "tegrarm.pc": re.search(r"^Version: (.*)", (installed / "lib/pkgconfig/tegrarm.pc").read_text(), re.M)[1],
        "CMake": re.search(r'PACKAGE_VERSION "(.*?)"', (installed / "lib/cmake/tegrarm/tegrarm-config-version.cmake").read_text())[1],
        **{f"Cargo.toml, {name}": version for name, version in re.findall(r'^(tegra\S*) = \{ path = .*version = "(.*?)"', cargo, re.M)},
    }
    assert len(set(found.values())) == 1, found


@pytest.mark.skipif(not TEGRARM_SIM.exists() or platform.machine() != "x86_64", reason="no tegrarm-sim for x86-64: make sim")
def test_no_vector_instruction_of_the_engine_is_a_function_of_its_own():
    """A function without the host's features calls a function for each such instruction, with its vectors in memory. Closures are often
    functions of that kind. The engine computes the same with them, but takes twice as long."""
    symbols = sh("nm", "--demangle", TEGRARM_SIM)
    assert "_wide" in symbols
    assert not re.findall(r"core_arch::x86::(?:sse|avx)\w*::\w+", symbols)
