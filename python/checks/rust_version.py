"""Checks that the tree needs no newer Rust than it states. Any newer toolchain can run this check.

clippy knows since when each item of the standard library is stable (`incompatible_msrv`), and cargo knows the version that each
dependency asks for. Neither knows about newer syntax. `make msrv` finds that with the old toolchain itself.
"""

import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator

from dependencies import MANIFESTS, ROOT, members, metadata

# The first function is stable since 1.89 and the second since long ago. Clippy must object to the first only.
TOO_NEW = "pub fn f(a: &mut std::fs::File) -> bool { a.try_lock().is_ok() }\n"
OLD_ENOUGH = "pub fn f(a: &[u8]) -> Option<&u8> { a.first() }\n"
# A tool that nothing of the library is built with. It may ask for the newest Rust.
NEWEST = {"loom/Cargo.toml"}


def number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))[:2]


def objects(source: str, stated: str) -> bool:
    """Whether clippy, called as `make lint` calls it, finds anything that is newer than the stated version."""
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "probe.rs")
        with open(file, "w") as out:
            out.write(source)
        command = ["clippy-driver", "--crate-type", "lib", "--edition", "2024", "--emit", "metadata", "-D", "clippy::incompatible_msrv",
                   "--out-dir", directory, file]
        env = {**os.environ, "CLIPPY_ARGS": "", "CARGO_PKG_RUST_VERSION": stated}
        said = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True)
        if said.returncode and "incompatible_msrv" not in said.stderr:
            sys.exit(f"clippy-driver does not work:\n{said.stderr}")
        return said.returncode != 0


def lint_is_on() -> Iterator[str]:
    lints = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["lints"]["clippy"]
    if lints.get("incompatible_msrv") != "deny":
        yield 'Cargo.toml: [workspace.lints.clippy] has to say incompatible_msrv = "deny"'
    if not tomllib.loads((ROOT / "clippy.toml").read_text()).get("check-incompatible-msrv-in-tests"):
        yield "clippy.toml has to say check-incompatible-msrv-in-tests = true"


def stated_once(stated: str) -> Iterator[str]:
    """Checks that all texts that name the version name the same one."""
    texts = {"README.md": r"Rust (1\.\d+) or newer", "CONTRIBUTING.md": r"Rust (1\.\d+)"}
    for name, pattern in texts.items():
        said = re.findall(pattern, (ROOT / name).read_text())
        if not said:
            yield f"{name} does not say which Rust is needed: Rust {stated}"
        for other in set(said) - {stated}:
            yield f"{name} says Rust {other}, Cargo.toml says {stated}"


def too_new(graph: dict, stated: str) -> Iterator[str]:
    for package in graph["packages"]:
        if package["rust_version"] and number(package["rust_version"]) > number(stated):
            yield f"{package['name']} {package['version']} asks for Rust {package['rust_version']}, Cargo.toml promises {stated}"
    for package in members(graph):
        if package["name"] not in {"tegrarm-fuzz", "tegrarm-judge"} and package["rust_version"] != stated:
            yield f"{package['name']} does not inherit rust-version from the workspace"


def proof(stated: str) -> Iterator[str]:
    newer = {"packages": [{"name": "a", "version": "1", "rust_version": "9.99.0", "id": "a"}], "workspace_members": []}
    if not list(too_new(newer, stated)):
        yield "rust_version.py does not see a dependency that is too new"
    if not objects(TOO_NEW, stated):
        yield "clippy does not see an item of the standard library that is too new"
    if objects(OLD_ENOUGH, stated):
        yield "clippy objects to an item of the standard library that is old enough"


def main() -> int:
    stated = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    found = [*proof(stated), *lint_is_on(), *stated_once(stated)]
    found += [problem for manifest in MANIFESTS if manifest not in NEWEST for problem in too_new(metadata(manifest), stated)]
    print("\n".join(found) or f"rust version: nothing asks for more than {stated}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
