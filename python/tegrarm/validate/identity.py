"""Says which machine this is. It reads files and the kernel's own description, and changes nothing."""

from __future__ import annotations

import functools
import grp
import hashlib
import json
import os
import pathlib
import platform
import pwd
import re
import stat

from .. import _ffi, rm
from ..info import package_version
from .gpu import data
from .note import Note
from .scrub import hashed

MODULES = ("nvgpu", "nvmap", "nvhost", "host1x")
NODES = ("/dev/nvmap", "/dev/nvgpu", "/dev/dma_heap", "/dev/nvhost-gpu", "/dev/nvhost-ctrl-gpu")
SERIAL = "/proc/device-tree/serial-number"


def text(name: str) -> str | None:
    """The text of a file, None if it cannot be read."""
    try:
        return pathlib.Path(name).read_text(errors="replace").replace("\0", " ").strip()
    except OSError:
        return None


def machine(note: Note) -> None:
    """Release, kernel, module, device nodes and the drivers' files."""
    note.begin("machine")
    known = platform.uname()
    note.put("release", (text("/etc/nv_tegra_release") or "").splitlines()[:1])
    note.put("kernel", f"{known.release} {known.version} {known.machine}")
    note.put("model", text("/proc/device-tree/model"))
    note.put("compatible", (text("/proc/device-tree/compatible") or "").split())
    note.put("serial", hashed(serial) if (serial := text(SERIAL)) else None)
    note.put("memory", re.search(r"^MemTotal: +(\d+) kB", text("/proc/meminfo") or "", re.M)[1] + " kB")
    note.put("processors", os.cpu_count())
    note.put("page_size", os.sysconf("SC_PAGESIZE"))
    note.put("python", platform.python_version())
    note.put("tegrarm", {"package": package_version(), "library": _ffi.version()})
    note.begin("nodes")
    for path in nodes():
        note.put(str(path), mode(path))
    note.begin("modules")
    for name, file in modules(known.release):
        note.put(name, {"sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "bytes": file.stat().st_size})
    for name in MODULES:
        note.put(f"{name}.srcversion", text(f"/sys/module/{name}/srcversion"))
    note.begin("devfreq")
    places = pathlib.Path("/sys/class/devfreq")
    note.put("names", sorted(p.name for p in places.iterdir()) if places.is_dir() else None)


def nodes() -> list[pathlib.Path]:
    """The device nodes of the GPU and of its memory."""
    found = []
    for name in map(pathlib.Path, NODES):
        if name.is_dir():
            found += sorted(p for p in name.rglob("*") if not p.is_dir())
        elif name.exists():
            found.append(name)
    return found


def mode(path: pathlib.Path) -> str:
    """Permissions, owner and group as `ls -l` prints them."""
    held = path.stat()
    try:
        user, group = pwd.getpwuid(held.st_uid).pw_name, grp.getgrgid(held.st_gid).gr_name
    except KeyError:
        user, group = str(held.st_uid), str(held.st_gid)
    return f"{stat.filemode(held.st_mode)} {user} {group}"


def modules(release: str) -> list[tuple[str, pathlib.Path]]:
    """The files of the drivers' modules."""
    place = pathlib.Path("/lib/modules") / release
    files = (p for name in MODULES for p in sorted(place.rglob(f"{name}.ko*")))
    return [(str(p.relative_to(place)), p) for p in files]


@functools.cache
def layouts() -> dict[int, list]:
    """The fields of the characteristics, by the size of the structure: name, offset, size."""
    return {int(size): fields for size, fields in json.loads(data("characteristics.json")).items()}


def characteristics(report: str) -> bytes:
    """The bytes of the characteristics in the library's report about a kernel."""
    return bytes.fromhex("".join(re.findall(r"^ *\d+: ([0-9a-f]+)$", report, re.M)))


def interface(note: Note) -> None:
    """The kernel's description of itself: sizes, every field of the characteristics, and which commands nvmap knows."""
    report = rm.driver_report()
    raw = characteristics(report)
    note.begin("characteristics")
    note.put("size", len(raw))
    note.put("bytes", raw.hex())
    for name, at, size in layouts().get(len(raw), []):
        note.put(name, hex(int.from_bytes(raw[at:at + size], "little")))
    note.begin("kernel")
    found = re.search(r"nvgpu is that of (\w+)", report)
    note.put("release", found[1] if found else None)
    for line in report.splitlines():
        if answer := re.match(r"((?:NVGPU|NVMAP)_\w+(?: of \w+)?) \(0x[0-9a-f]+\)[^:]*: (.*)", line):
            note.put(answer[1], answer[2])
