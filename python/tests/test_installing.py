"""What comes before an installation: needs are named, one file for boards is whole, images have no mistakes that a reader can find."""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT, TEGRARM_SIM

BUILT = TEGRARM_SIM.parent
NEEDS = ROOT / "packaging" / "needs.py"
DOCKER = sorted((ROOT / "examples" / "docker").glob("*.Dockerfile"))


# --- needs ------------------------------------------------------------------------------------------------------------------------

def needs(path: pathlib.Path, *targets: str) -> subprocess.CompletedProcess:
    """What needs.py says on a machine that has only the programs in a folder."""
    return subprocess.run([sys.executable, NEEDS, *targets], env={"PATH": str(path)}, capture_output=True, text=True)


def programs(folder: pathlib.Path, scripts: dict[str, str]) -> pathlib.Path:
    folder.mkdir()
    for name, script in scripts.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    return folder


def test_a_machine_without_anything_is_told_everything_at_once(tmp_path):
    done = needs(programs(tmp_path / "bin", {}), "wheel", "wheel-aarch64", "deb", "deb-board")
    assert done.returncode == 1 and done.stdout == ""
    for word in ("cargo", "rustup target add aarch64-unknown-linux-gnu", "apt install debhelper", "aarch64-linux-gnu"):
        assert word in done.stderr, done.stderr


def test_one_architecture_is_built_if_the_other_cannot_be_had(tmp_path):
    libraries = tmp_path / "x86_64-unknown-linux-gnu"
    libraries.mkdir()
    (libraries / "libstd-1.rlib").touch()
    strips = {"strip": "", "x86_64-linux-gnu-strip": "", "aarch64-linux-gnu-strip": ""}
    here = programs(tmp_path / "bin", {"cargo": "", "rustc": f'echo {tmp_path}/"$4"', **strips})
    done = needs(here, "wheel", "wheel-aarch64")
    assert done.returncode == 0 and done.stdout.split() == ["wheel"]
    assert "the Rust target aarch64-unknown-linux-gnu" in done.stderr and "rustup target add" in done.stderr


def test_rustup_is_asked_for_a_target_that_is_missing(tmp_path):
    adds = f"/bin/mkdir {tmp_path}/$3; /bin/touch {tmp_path}/$3/libstd-2.rlib"
    tools = {"cargo": "", "rustc": f'echo {tmp_path}/"$4"', "strip": "", "aarch64-linux-gnu-strip": "", "rustup": adds}
    here = programs(tmp_path / "bin", tools)
    done = needs(here, "wheel-aarch64")
    assert done.returncode == 0 and done.stdout.split() == ["wheel-aarch64"] and "adding the Rust target" in done.stderr


# --- the package for boards -------------------------------------------------------------------------------------------------------

@pytest.mark.skipif(not shutil.which("dpkg-deb") or not TEGRARM_SIM.exists(), reason="needs dpkg-deb and `make build sim`")
def test_one_package_has_everything_that_a_board_needs(tmp_path):
    stage, multiarch = tmp_path / "stage", f"{os.uname().machine}-linux-gnu"
    settings = [f"BUILT={BUILT}", "STRIP=strip", f"DESTDIR={stage}", "PREFIX=/usr", f"LIBDIR=lib/{multiarch}"]
    subprocess.run(["make", "--no-print-directory", "stage", *settings], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    # dpkg-deb would compress for ten seconds what is only listed here.
    subprocess.run([ROOT / "packaging/board_deb.sh", stage, "0.1.0", "arm64", tmp_path], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "DPKG_DEB_COMPRESSOR_TYPE": "none"})
    package, = tmp_path.glob("*.deb")
    listed = subprocess.run(["dpkg-deb", "--contents", package], capture_output=True, text=True, check=True).stdout
    names = {line.split()[5].lstrip(".") for line in listed.splitlines()}
    lib = f"/usr/lib/{multiarch}"
    assert {f"{lib}/libtegrarm.so.0", f"{lib}/libtegrarm_preload.so", f"{lib}/tegrarm/nvml/libnvidia-ml.so.1",
            f"{lib}/tegrarm/cuda/libcuda.so.1", f"{lib}/tegrarm/cuda/libcudart.so.12", f"{lib}/tegrarm/cuda/libcudart.so.13",
            f"{lib}/pkgconfig/tegrarm.pc",
            "/usr/bin/tegrarm-sim", "/usr/include/tegrarm.h", "/lib/udev/rules.d/60-tegrarm.rules"} <= names
    control = subprocess.run(["dpkg-deb", "--field", package], capture_output=True, text=True, check=True).stdout
    assert "Depends: libc6 (>= 2.31)" in control and "Architecture: arm64" in control


def test_the_udev_rule_is_the_one_that_doctor_names():
    from tegrarm.doctor.board import UDEV
    assert UDEV in (ROOT / "packaging/60-tegrarm.rules").read_text() and UDEV in (ROOT / "docs/boards.md").read_text()


# --- images -----------------------------------------------------------------------------------------------------------------------

INSTRUCTIONS = {"FROM", "RUN", "COPY", "ENV", "USER", "WORKDIR", "CMD", "ENTRYPOINT", "LABEL", "ARG"}


def instructions(text: str) -> list[tuple[str, str]]:
    lines = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.M)).splitlines()
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines if line.strip())]


def mistakes(text: str) -> list[str]:
    """What is wrong with a Dockerfile."""
    found, all_of_it = [], instructions(text)
    words = [word for word, _ in all_of_it]
    for word, rest in all_of_it:
        if word not in INSTRUCTIONS:
            found.append(f"{word} is no instruction that is used here")
        if word == "FROM" and (":" not in rest or rest.endswith(":latest")):
            found.append(f"{rest} has no fixed tag")
        beside = ("apt-get update", "-y", "rm -rf /var/lib/apt/lists")
        if word == "RUN" and "apt-get install" in rest and not all(part in rest for part in beside):
            found.append("apt-get install without update, -y or a clean-up")
        if word == "RUN":
            try:
                shlex.split(rest)
            except ValueError as error:
                found.append(f"{rest}: {error}")
        if word == "RUN" and subprocess.run(["sh", "-n", "-c", rest], capture_output=True).returncode:
            found.append(f"{rest}: no shell reads this")
        if word == "COPY" and not rest.split()[0].startswith("dist/") and not (ROOT / rest.split()[0]).exists():
            found.append(f"{rest}: there is no such file")
    if words[:1] != ["FROM"]:
        found.append("it does not begin with FROM")
    if "USER" not in words or dict(all_of_it)["USER"] in ("root", "0"):
        found.append("it runs as root")
    if words.count("CMD") != 1:
        found.append("it has no command, or several")
    return found


@pytest.mark.parametrize("file", DOCKER, ids=lambda f: f.name)
def test_images_have_no_mistakes(file):
    text = file.read_text()
    assert mistakes(text) == []
    options = re.findall(r"^#\s+docker (build|run) (.*)$", text, flags=re.M)
    assert [kind for kind, _ in options] == ["build", "run"] and "--privileged" not in text
    assert str(file.relative_to(ROOT)) in options[0][1]


@pytest.mark.parametrize("wrong, why", [
    ("FROM python\nUSER me\nCMD x", "no fixed tag"), ("FROM a:1\nCMD x", "runs as root"), ("FROM a:1\nUSER me\nADD x y\nCMD x", "ADD"),
    ("FROM a:1\nRUN apt-get install gcc\nUSER me\nCMD x", "clean-up"), ("FROM a:1\nCOPY none /x\nUSER me\nCMD x", "no such file"),
    ("FROM a:1\nRUN if true\nUSER me\nCMD x", "no shell"), ("RUN true\nUSER me\nCMD x", "begin with FROM")])
def test_the_reader_finds_mistakes(wrong, why):
    assert any(why in mistake for mistake in mistakes(wrong)), mistakes(wrong)


def test_the_images_are_described():
    text = (ROOT / "docs/containers.md").read_text()
    assert len(DOCKER) == 2 and all(f"examples/docker/{file.name}" in text for file in DOCKER)
