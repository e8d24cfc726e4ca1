"""``tegrarm cdi``: a specification for the Container Device Interface, which Docker, Podman and Kubernetes read.

It names the device nodes of the GPU and of its memory, the files that say which release the board has, and the group that the nodes
belong to. The format is that of https://github.com/cncf-tags/container-device-interface, version 0.7.0, the first one with groups.
"""

from __future__ import annotations

import glob
import json
import pathlib
import stat

from . import say

VERSION = "0.7.0"
KIND = "libtegrarm/gpu"
NODES = ("/dev/nvmap", "/dev/nvgpu/igpu0/*", "/dev/dma_heap/system", "/dev/host1x-fence")
NEEDED = ("/dev/nvmap", "/dev/nvgpu/igpu0/ctrl")
# What `tegrarm doctor` and `tegrarm info` read and a container does not have.
FILES = ("/etc/nv_tegra_release",)


def found(root: pathlib.Path) -> list[pathlib.Path]:
    """The device nodes of a machine, where the machine has them."""
    # glob.glob asks for a name without a pattern. Path.glob of Python 3.12 and later looks for it in a list of /dev, in which
    # `tegrarm-sim run` may not show it.
    names = (name for pattern in NODES for name in sorted(glob.glob(pattern.lstrip("/"), root_dir=root)))
    return [pathlib.Path("/") / name for name in names if not (root / name).is_dir()]


def groups(root: pathlib.Path, nodes: list[pathlib.Path]) -> list[int]:
    """The groups that a program in the container has to be in, so that it may open the nodes."""
    held = ((root / str(node).lstrip("/")).stat() for node in nodes)
    return sorted({s.st_gid for s in held if s.st_gid and stat.S_IMODE(s.st_mode) & 0o060 == 0o060 and not s.st_mode & 0o006})


def specification(root: pathlib.Path) -> dict:
    """The specification of a machine: one device, under the names `0` and `all`."""
    nodes = found(root)
    if missing := [name for name in NEEDED if pathlib.Path(name) not in nodes]:
        raise say.Refused(f"cdi: {root / missing[0].lstrip('/')} does not exist, so there is no GPU to give away: run it on the board")
    edits: dict = {"deviceNodes": [{"path": str(node), "permissions": "rw"} for node in nodes]}
    mounts = [name for name in FILES if (root / name.lstrip("/")).is_file()]
    if mounts:
        edits["mounts"] = [{"hostPath": name, "containerPath": name, "options": ["ro", "bind"]} for name in mounts]
    if numbers := groups(root, nodes):
        edits["additionalGids"] = numbers
    return {"cdiVersion": VERSION, "kind": KIND, "devices": [{"name": name, "containerEdits": edits} for name in ("0", "all")]}


def cdi(args) -> int:
    """Prints the specification, or writes it."""
    root = pathlib.Path(args.root or "/")
    if not root.is_dir():
        raise say.Refused(f"cdi --root: there is no directory {root}")
    text = json.dumps(specification(root), indent=2) + "\n"
    if not args.output:
        print(text, end="")
        return say.OK
    write(text, args.output, "cdi --output")
    if args.json:
        say.as_json({"file": args.output, "kind": KIND, "devices": ["0", "all"]})
    else:
        print(how_to_use(args.output))
    return say.OK


def write(text: str, path: str, option: str) -> None:
    """Writes a specification to a file."""
    try:
        pathlib.Path(path).write_text(text)
    except OSError as error:
        raise say.Refused(f"{option}: {path}: {error.strerror}") from error


def how_to_use(path: str) -> str:
    """What to type now that the file is there."""
    return f"{path}: now `docker run --device {KIND}=0 …` and `podman run --device {KIND}=0 …` give a container the GPU"
