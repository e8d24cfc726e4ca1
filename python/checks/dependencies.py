"""Compares the Rust dependencies with deny.toml and CONTRIBUTING.md. It needs no tool but cargo.

Every dependency that a manifest declares must be used by code that may use it. CONTRIBUTING.md must list exactly these dependencies, each
with a reason. Every licence must be among those of deny.toml, and no crate may exist in two versions unless deny.toml names it. `make
deny` runs the other checks of cargo-deny, above all the one for advisories.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator

from claims import makefile

ROOT = pathlib.Path(__file__).resolve().parents[2]
MANIFESTS = ["Cargo.toml", "fuzz/Cargo.toml", "loom/Cargo.toml", "judge/Cargo.toml"]
TARGETS = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"]
# The files that may use a dependency of each kind.
PLACES = {None: ["src", "fuzz_targets"], "dev": ["src", "tests", "benches", "examples"], "build": ["build.rs"]}


def metadata(manifest: str) -> dict:
    """Cargo's information about a workspace and everything from which it is built."""
    cargo = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--format-version", "1", "--manifest-path", manifest]
    for target in TARGETS:
        cargo += ["--filter-platform", target]
    said = subprocess.run(cargo, cwd=ROOT, capture_output=True, text=True)
    if said.returncode:
        sys.exit(f"cargo cannot read {manifest}:\n{said.stderr}")
    return json.loads(said.stdout)


def members(graph: dict) -> list[dict]:
    own = set(graph["workspace_members"])
    return [package for package in graph["packages"] if package["id"] in own]


def code(package: dict, kind: str | None) -> str:
    """The text, without comments, of the files that may use the dependencies of one kind of a package."""
    home = pathlib.Path(package["manifest_path"]).parent
    files = [f for place in PLACES[kind] for f in ([home / place] if place.endswith(".rs") else sorted((home / place).rglob("*.rs")))]
    seen: dict[pathlib.Path, str] = {}
    while files:
        file = files.pop().resolve()
        if file not in seen and file.is_file():
            seen[file] = re.sub(r"^\s*//.*$", "", file.read_text(), flags=re.M)
            # Modules that lie elsewhere, for example the harness of another crate's tests.
            files += [file.parent / path for path in re.findall(r'#\[path = "([^"]+)"\]', seen[file])]
    return "\n".join(seen.values())


def uses(name: str, text: str) -> bool:
    """Whether code names a crate in a path, an import or an attribute."""
    return re.search(rf"(?<![\w:.]){re.escape(name.replace('-', '_'))}\s*(::|;|!|\sas\s)", text) is not None


def unused(graph: dict) -> Iterator[str]:
    for package in members(graph):
        for dependency in package["dependencies"]:
            name, kind = dependency["rename"] or dependency["name"], dependency["kind"]
            if not uses(name, code(package, kind)):
                yield f"{package['name']} declares {kind or 'normal'} dependency {name} and does not use it: remove it from its Cargo.toml"


def unused_in_workspace() -> Iterator[str]:
    """The entries of `[workspace.dependencies]` that no member uses."""
    manifests = [tomllib.loads(path.read_text()) for path in [ROOT / "Cargo.toml", *ROOT.glob("crates/*/Cargo.toml")]]
    tables = [m.get(table, {}) for m in manifests for table in ("dependencies", "dev-dependencies", "build-dependencies")]
    for name in manifests[0]["workspace"]["dependencies"]:
        if not any(name in table for table in tables):
            yield f"Cargo.toml: no crate of the workspace takes {name} from [workspace.dependencies]: remove it"


def satisfied(expression: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression can be satisfied with allowed licences. Old manifests write `A/B` for `A OR B`."""
    tokens = re.findall(r"\(|\)|[\w.+-]+", expression.replace("/", " OR "))

    def either() -> bool:
        value = both()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            value = both() or value
        return value

    def both() -> bool:
        value = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            value = one() and value
        return value

    def one() -> bool:
        token = tokens.pop(0)
        if token == "(":
            value = either()
            tokens.pop(0)
            return value
        if tokens and tokens[0] == "WITH":
            token = " ".join([token, tokens.pop(0), tokens.pop(0)])
        return token in allowed

    return either()


def licences(graph: dict, allowed: set[str], exceptions: dict[str, set[str]]) -> Iterator[str]:
    for package in graph["packages"]:
        name, expression = package["name"], package["license"] or "no licence"
        if not satisfied(expression, allowed | exceptions.get(name, set())):
            yield f"{name} {package['version']}: {expression}; deny.toml allows {', '.join(sorted(allowed))}"


def is_version(version: str, wanted: str) -> bool:
    """Whether `wanted` is the version `version` or the beginning of it."""
    return f"{version}.".startswith(f"{wanted}.")


def duplicates(graph: dict, skip: list[str]) -> Iterator[str]:
    versions = defaultdict(set)
    for package in graph["packages"]:
        versions[package["name"]].add(package["version"])
    for name, found in versions.items():
        skipped = [entry.partition("@")[2] for entry in skip if entry.partition("@")[0] == name]
        if len([v for v in found if not any(is_version(v, wanted) for wanted in skipped)]) > 1:
            yield f"{name} is there in versions {', '.join(sorted(found))}: agree on one, or name the older in deny.toml with a reason"
    for entry in skip:
        name, _, wanted = entry.partition("@")
        if len(versions[name]) < 2 or not any(is_version(v, wanted) for v in versions[name]):
            yield f"deny.toml skips {entry}, which is not there twice: remove it"


def documented(text: str) -> dict[str, str]:
    """The crates and tools in CONTRIBUTING.md's table of dependencies, with their reasons."""
    table = re.search(r"^\| crate \| reason \|\n\|[-| ]+\|\n((?:\|.*\n)+)", text, re.M)
    rows = [row.strip("|").split("|") for row in table[1].splitlines()] if table else []
    return {name.strip(): reason.strip() for names, reason in rows for name in re.sub(r"\([^)]*\)", "", names).split(",")}


def undocumented(graphs: list[dict]) -> Iterator[str]:
    own = {package["name"] for graph in graphs for package in members(graph)}
    direct = {d["name"] for graph in graphs for package in members(graph) for d in package["dependencies"]} - own
    tools = set(re.findall(r"\b([a-z][\w-]+)@\$\(\w+_VERSION\)", makefile()))
    table = documented((ROOT / "CONTRIBUTING.md").read_text())
    for name in sorted((direct | tools) - table.keys()):
        yield f"CONTRIBUTING.md gives no reason for {name}: add a row to its table of dependencies"
    for name in sorted(table.keys() - direct - tools):
        yield f"CONTRIBUTING.md lists {name}, which nothing depends on: remove its row"
    for name, reason in table.items():
        if len(reason) < 8:
            yield f"CONTRIBUTING.md gives no reason for {name}"


def proof() -> Iterator[str]:
    """Every check must object to wrong samples. Otherwise an empty answer below would not mean that the tree is right."""
    package = {"name": "a", "version": "1.0.0", "license": "GPL-2.0"}
    graph = {"packages": [package, {**package, "version": "2.0.0"}], "workspace_members": []}
    samples = {
        "a licence that is not allowed": list(licences(graph, {"MIT"}, {"b": {"GPL-2.0"}})),
        "half of an AND": not satisfied("(MIT OR GPL-2.0) AND Unicode-3.0", {"MIT"}),
        "an exception of a licence": not satisfied("Apache-2.0 WITH LLVM-exception", {"Apache-2.0"}),
        "two versions": list(duplicates(graph, [])),
        "a skip that is not needed": list(duplicates({"packages": [package]}, ["a@1"])),
        "a crate that only a longer name has": not uses("log", "tracing_log::init(); my.log::x"),
        "a crate that is used": uses("parking_lot", "use parking_lot::Mutex;"),
        "an allowed choice": satisfied("(MIT OR GPL-2.0) AND Unicode-3.0", {"MIT", "Unicode-3.0"}),
        "a skip that is needed": not list(duplicates(graph, ["a@1"])),
        "a table": documented("| crate | reason |\n|---|---|\n| a, b (development) | because |\n").keys() == {"a", "b"},
    }
    for what, seen in samples.items():
        if not seen:
            yield f"dependencies.py does not see {what}"


def main() -> int:
    deny = tomllib.loads((ROOT / "deny.toml").read_text())
    allowed, skip = set(deny["licenses"]["allow"]), [entry["crate"] for entry in deny["bans"]["skip"]]
    exceptions = {entry["crate"]: set(entry["allow"]) for entry in deny["licenses"]["exceptions"]}
    graphs = [metadata(manifest) for manifest in MANIFESTS]
    found = [*proof(), *unused_in_workspace(), *undocumented(graphs), *duplicates(graphs[0], skip)]
    for graph in graphs:
        found += [*unused(graph), *licences(graph, allowed, exceptions)]
    packages = {package["id"] for graph in graphs for package in graph["packages"]}
    print("\n".join(found) or f"dependencies: {len(packages)} packages, all used, documented and allowed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
