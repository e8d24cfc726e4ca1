"""The file: `orin-<hash>.tar.zst`. The hash is that of the manifest, and the manifest has the hashes of all other members."""

from __future__ import annotations

import hashlib
import io
import json
import pathlib
import re
import tarfile

from ..say import Refused

FORMAT = 1
MANIFEST = "manifest.json"
MOST = 512 << 20  # bytes of a file when it is unpacked
NAME = re.compile(r"orin-([0-9a-f]{12})\.tar\.zst")
NO_ZSTD = "tegrarm validate writes zstd: pip install zstandard"


def compressed(data: bytes) -> bytes:
    """Compresses bytes with zstd."""
    return _zstd().ZstdCompressor(level=10).compress(data)


def _zstd():
    try:
        import zstandard
    except ImportError:
        raise Refused(NO_ZSTD) from None
    return zstandard


def decompressed(data: bytes, what: str) -> bytes:
    """Decompresses zstd data, up to a size that none of our files has."""
    zstd = _zstd()
    try:
        with zstd.ZstdDecompressor().stream_reader(io.BytesIO(data)) as reader:
            text = reader.read(MOST + 1)
    except zstd.ZstdError as error:
        raise Refused(f"{what}: this is no zstd file: {error}") from None
    if len(text) > MOST:
        raise Refused(f"{what}: it unpacks to more than {MOST >> 20} MiB, which no file of tegrarm validate does")
    return text


def sha256(data: bytes) -> str:
    """The hash of a member as the manifest has it."""
    return hashlib.sha256(data).hexdigest()


def name_of(manifest: bytes) -> str:
    """The name of a file, which has the hash of its manifest."""
    return f"orin-{sha256(manifest)[:12]}.tar.zst"


def pack(members: dict[str, bytes], about: dict) -> tuple[str, bytes]:
    """Makes a file of members. The result is its name and its bytes."""
    hashes = {name: sha256(data) for name, data in sorted(members.items())}
    manifest = (json.dumps({"format": FORMAT, **about, "members": hashes}, indent=1) + "\n").encode()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in [(MANIFEST, manifest), *sorted(members.items())]:
            entry = tarfile.TarInfo(name)  # no owner, no time: the bytes are those of the contents alone
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return name_of(manifest), compressed(out.getvalue())


def unpack(path: pathlib.Path) -> tuple[dict, dict[str, bytes]]:
    """Reads a file and compares all hashes. The result is the manifest and the members. An error says in a sentence what is wrong."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST + 1)  # a device or a pipe may have no end
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from error
    if len(data) > MOST:
        raise Refused(f"{path}: it has more than {MOST >> 20} MiB, which no file of tegrarm validate has")
    members: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(decompressed(data, str(path))), mode="r:") as archive:
            left = MOST
            for entry in archive:
                left -= entry.size
                members[entry.name] = read(archive, entry, path, left)
    except (tarfile.TarError, ValueError, EOFError) as error:
        raise Refused(f"{path}: there is no tar archive in it: {error}") from None
    if MANIFEST not in members:
        raise Refused(f"{path}: it has no {MANIFEST}, so tegrarm validate did not write it")
    manifest = members.pop(MANIFEST)
    try:
        about = json.loads(manifest)
        version, hashes = about["format"], about["members"]
        hashes = {str(name): str(value) for name, value in hashes.items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Refused(f"{path}: its {MANIFEST} cannot be read") from None
    if version != FORMAT:
        raise Refused(f"{path}: its format is {version}, and this tegrarm reads {FORMAT}")
    if NAME.fullmatch(path.name) and path.name != name_of(manifest):
        raise Refused(f"{path}: its contents are those of {name_of(manifest)}: it was renamed, or changed")
    if wrong := sorted(n for n in hashes.keys() | members.keys() if n not in members or hashes.get(n) != sha256(members[n])):
        raise Refused(f"{path}: {wrong[0]} is not what {MANIFEST} says: the file was changed or cut off")
    return about, members


def read(archive: tarfile.TarFile, entry: tarfile.TarInfo, path: pathlib.Path, left: int) -> bytes:
    """Reads a member, which must be a plain file with a plain name. `left` is the room that remains after it."""
    plain = pathlib.PurePosixPath(entry.name)
    # A sparse member says in a few bytes that it is as large as it likes.
    if not entry.isreg() or entry.issparse() or plain.is_absolute() or ".." in plain.parts:
        raise Refused(f"{path}: {entry.name} is no plain file with a plain name")
    if left < 0:
        raise Refused(f"{path}: its members have more than {MOST >> 20} MiB, which no file of tegrarm validate has")
    file = archive.extractfile(entry)
    return file.read() if file else b""
