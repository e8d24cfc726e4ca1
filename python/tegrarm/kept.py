"""What NVRTC made of a source, kept in files, so that a later process does not compile the same source again.

``TEGRARM_COMPILED`` names the folder. A result is found by a hash of all that it is made of: the source and its name, the options, the
functions that were asked for, the compiler's file, and the folders of CUDA's headers. A source that includes any other file is compiled
every time.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import re
import tempfile
from collections.abc import Sequence

MOST = 1000  # files; the oldest tenth goes when there are more
_OTHER_FILES = re.compile(rb"^[ \t]*#[ \t]*(include(?![ \t]*<)|include_next|import|embed)|__has_include|__has_embed"
                          rb"|\\\r?\n[ \t]*#|%:|\?\?=", re.M)
_HEADER = re.compile(rb"^[ \t]*#[ \t]*include[ \t]*<([^>\n]*)>", re.M)
# Options that read or write files.
_FILES = ("-I", "--include-path", "-include", "--pre-include", "--pch", "--create-pch", "--use-pch", "--time", "--options-file", "-optf")

Result = tuple[bytes, str, dict[str, str]]  # machine code, PTX, the new names of functions


def folder() -> pathlib.Path | None:
    """Where results are kept. ``None`` if ``TEGRARM_COMPILED`` is 0, or if there is no home."""
    told = os.environ.get("TEGRARM_COMPILED", "")
    if told == "0":
        return None
    if told:
        return pathlib.Path(told)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return pathlib.Path(base) / "tegrarm" / "compiled" if os.path.isabs(base) else None


def key(source: bytes, name: str, options: Sequence[str], expressions: Sequence[str], compiler: str, headers: Sequence[str]) -> str:
    """The name under which a result is kept. It is empty if the result depends on files that are not known."""
    own = [option for option in options if option.startswith(_FILES) and option not in [f"--include-path={place}" for place in headers]]
    included = [header.decode(errors="replace") for header in _HEADER.findall(source)]
    known = all(any(os.path.isfile(os.path.join(place, header)) for place in headers) for header in included)
    if own or not known or _OTHER_FILES.search(source):
        return ""
    try:
        files = [(path, (found := os.stat(path)).st_size, found.st_mtime_ns) for path in (os.path.realpath(compiler), *headers)]
    except OSError:
        return ""
    parts = json.dumps([files, name, list(options), list(expressions)]).encode()
    return hashlib.sha256(len(parts).to_bytes(8, "little") + parts + source).hexdigest()


def load(name: str) -> Result | None:
    """What was kept under a name. A file that is damaged counts as none."""
    place = folder()
    if not name or place is None:
        return None
    try:
        said, cubin = (place / name).read_bytes().split(b"\n", 1)
        head = json.loads(said)
        if hashlib.sha256(cubin).hexdigest() != head["sha256"]:
            return None
        os.utime(place / name)
        return cubin, str(head["ptx"]), dict(head["names"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def save(name: str, result: Result) -> None:
    """Keeps a result. Where nothing can be written, nothing is kept."""
    place, (cubin, ptx, names) = folder(), result
    if not name or place is None:
        return
    head = json.dumps({"sha256": hashlib.sha256(cubin).hexdigest(), "ptx": ptx, "names": names}).encode()
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=place, prefix=".", delete=False) as file:
            file.write(head + b"\n" + cubin)
        os.replace(file.name, place / name)
        _forget(place)


def _forget(place: pathlib.Path) -> None:
    files = list(place.iterdir())
    if len(files) > MOST:
        for file in sorted(files, key=lambda file: file.stat().st_mtime_ns)[:MOST // 10]:
            file.unlink(missing_ok=True)
