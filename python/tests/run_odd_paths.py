"""Runs the suites of `make test` on a copy of this checkout in folders with odd names: `make test-odd-paths`.

One folder has everything at once: it lies below a folder `tmp`, its name has spaces, an umlaut and 200 characters, and the suites
run through a symbolic link to it. ARGS="--kind space" takes one property alone, to find out which of them a suite cannot stand.

What cargo has built for this checkout is taken along, the libraries as they are, but the tests' programs without the crates of the project:
these know where their sources are, and are built again. The environment of Python is made anew, because it cannot be moved. At the end
comes the table of `make test`.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
LONG = 200
KINDS = {
    "all": "tmp/für alle " + "x" * (LONG - len("für alle ")),
    "tmp": "tmp/libtegrarm", "space": "with a space", "umlaut": "für", "long": "x" * LONG, "link": "libtegrarm",
}
# Those that are entered through a symbolic link.
LINKED = {"all", "link"}
SUITES = "cargo-test ctest pytest test-glibc"


def sources(to: pathlib.Path) -> None:
    """Copies the repository with what is changed here and not committed. Files keep their times, by which cargo knows what is built."""
    subprocess.run(["git", "clone", "--quiet", "--shared", "--no-checkout", ROOT, to], check=True)
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, listed):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name, follow_symlinks=False)
    subprocess.run(["git", "reset", "--quiet"], cwd=to, check=True)


def packages() -> set[str]:
    """The packages that come from a registry, whose builds do not depend on where this checkout is."""
    said = subprocess.run([os.environ.get("CARGO", "cargo"), "metadata", "--format-version", "1", "--locked"], cwd=ROOT, check=True,
                          capture_output=True)
    return {package["name"] for package in json.loads(said.stdout)["packages"] if package["source"]}


def seed(to: pathlib.Path) -> None:
    """Copies what cargo has built."""
    built = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    known = {name.replace("-", "_") for name in packages()}
    for profile in ("debug", "release"):
        for kind in ("deps", "build", ".fingerprint"):
            for entry in (built / profile / kind).glob("*"):
                name = entry.name.split(".")[0].rpartition("-")[0].replace("-", "_")
                if profile == "release" or {name, name.removeprefix("lib")} & known:
                    place = to / profile / kind / entry.name
                    place.parent.mkdir(parents=True, exist_ok=True)
                    (shutil.copytree if entry.is_dir() else shutil.copy2)(entry, place)
    for entry in (built / "release").glob("*"):
        if entry.is_file():
            shutil.copy2(entry, to / "release" / entry.name, follow_symlinks=False)


def prepared(cache: pathlib.Path, kind: str) -> pathlib.Path:
    """A copy of the checkout in a folder of this kind, with the way that leads to it."""
    place = cache / kind / KINDS[kind]
    if not place.exists():
        place.parent.mkdir(parents=True)
        sources(place)
        seed(place / "target")
        # What is downloaded, or takes long to build, and can be moved.
        for entry in (ROOT / ".cache").glob("[ctg]*"):
            if entry.name.startswith(("cbindgen-", "tinygrad-", "glibc")) and entry.name != "cbindgen-build":
                shutil.copytree(entry, place / ".cache" / entry.name, symlinks=True)
    if kind not in LINKED:
        return place
    link = cache / kind / "link"
    link.unlink(missing_ok=True)
    link.symlink_to(place)
    return link


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="where the copies are made")
    parser.add_argument("--kind", choices=KINDS, default="all", help="which folder")
    parser.add_argument("--suites", default=SUITES, help="targets of the Makefile, divided by spaces")
    parser.add_argument("--keep", action="store_true", help="do not delete the copy; the next run goes on with it")
    args = parser.parse_args()
    cache = args.cache.absolute() / "odd"
    if not args.keep:
        shutil.rmtree(cache / args.kind, ignore_errors=True)
    way = prepared(cache, args.kind)
    dropped = ("TEGRARM_", "MAKE", "MFLAGS", "CARGO_TARGET", "VIRTUAL_ENV", "PYTHONPATH")
    env = {k: v for k, v in os.environ.items() if not k.startswith(dropped)} | {"PWD": str(way)}
    print(f"{args.kind}: {args.suites} in {way}", flush=True)
    demo = ["make", "--no-print-directory", "demo"]
    status = subprocess.run(demo, cwd=way, env=env).returncode
    status = status or subprocess.run(["make", "--no-print-directory", "test", f"SUITES={args.suites}"], cwd=way, env=env).returncode
    print(f"{args.kind}: {'passed' if status == 0 else 'FAILED'} in {way}")
    if not args.keep and status == 0:
        shutil.rmtree(cache / args.kind)
    return status


if __name__ == "__main__":
    sys.exit(main())
