"""What is installed works from there alone: headers, library, pkg-config, CMake, wheel. And every version is the same."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest
from conftest import ROOT

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
    """The prefix of an installation, moved to where nobody said it would be."""
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
        "lib/libtegrarm_preload.so", "lib/pkgconfig/tegrarm.pc", "lib/cmake/tegrarm/tegrarm-config.cmake",
        "lib/cmake/tegrarm/tegrarm-config-version.cmake"}
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
add_executable(vecadd {ROOT}/examples/c/vecadd.c)
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
    sh("make", "--no-print-directory", "wheel", f"DIST={dist}", cwd=ROOT)
    found, = dist.glob("*.whl")
    return found


def test_wheel_says_for_which_machines_it_is(wheel):
    machine = os.uname().machine
    assert re.fullmatch(rf"tegrarm-{re.escape(_ffi.version())}-py3-none-manylinux_2_\d+_{machine}\.whl", wheel.name)
    portable = TARGET / "portable" / f"{machine}-unknown-linux-gnu" / "release"
    needed = sh("objdump", "-T", portable / "libtegrarm.so", portable / "libtegrarm_preload.so")
    newest = max(int(n) for n in re.findall(r"GLIBC_2\.(\d+)", needed))
    assert f"manylinux_2_{newest}_" in wheel.name and newest <= 31, "JetPack 5 has glibc 2.31"
    names = zipfile.ZipFile(wheel).namelist()
    assert {"tegrarm/libtegrarm.so", "tegrarm/libtegrarm_preload.so", "tegrarm/replay.py"} <= set(names)


def test_wheel_runs_the_demo_in_a_clean_environment(wheel, tmp_path):
    sh(sys.executable, "-m", "venv", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    sh(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", wheel)
    # What the demo needs beside the wheel is lent from here; the package itself must not be.
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
