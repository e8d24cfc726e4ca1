"""Packs the seeds of a fuzz target into one archive, and unpacks them.

    python packaging/fuzz_seeds.py pack FOLDER fuzz/seeds/TARGET.tar.bz2
    python packaging/fuzz_seeds.py unpack fuzz/seeds/TARGET.tar.bz2 FOLDER

Thousands of files of a hundred bytes are slow to check out and hide the others in every list. The same inputs give the same archive: an
input is named by its SHA-1, as libFuzzer names it, the names are in order, and no time and no owner is written. bzip2 has compressed the
same bytes to the same bytes for decades.
"""

import bz2
import hashlib
import io
import pathlib
import sys
import tarfile


def archive(inputs: list[bytes]) -> bytes:
    """The archive of some inputs, each once."""
    named = {hashlib.sha1(content, usedforsecurity=False).hexdigest(): content for content in inputs}
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(named):
            entry = tarfile.TarInfo(name)
            entry.size = len(named[name])
            tar.addfile(entry, io.BytesIO(named[name]))
    return bz2.compress(raw.getvalue(), 9)


def inputs(packed: bytes) -> list[bytes]:
    """The inputs of an archive. An input whose name is not its checksum ends the program."""
    found = []
    with tarfile.open(fileobj=io.BytesIO(packed), mode="r:bz2") as tar:
        for entry in tar:
            content = tar.extractfile(entry)
            data = content.read() if content else b""
            if entry.name != hashlib.sha1(data, usedforsecurity=False).hexdigest():
                sys.exit(f"fuzz_seeds.py: {entry.name!r} is not the SHA-1 of its {len(data)} bytes; pack the seeds again")
            found.append(data)
    return found


def pack(folder: pathlib.Path, target: pathlib.Path) -> None:
    """Writes the archive of the files in a folder. A folder without files is refused, because it would delete all seeds."""
    seeds = [path.read_bytes() for path in sorted(folder.iterdir())]
    if not seeds:
        sys.exit(f"fuzz_seeds.py: {folder} has no files, and an archive without seeds is not written")
    packed = archive(seeds)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(packed)
    print(f"{target}: {len(seeds)} inputs in {len(packed)} bytes")


def unpack(source: pathlib.Path, folder: pathlib.Path) -> None:
    """Writes the inputs of an archive into a folder. A target that is new has no archive, and its folder stays empty."""
    folder.mkdir(parents=True, exist_ok=True)
    for content in inputs(source.read_bytes()) if source.exists() else []:
        (folder / hashlib.sha1(content, usedforsecurity=False).hexdigest()).write_bytes(content)


def main(arguments: list[str]) -> int:
    """Does what the command line asks for."""
    match arguments:
        case ["pack", folder, target]:
            pack(pathlib.Path(folder), pathlib.Path(target))
        case ["unpack", source, folder]:
            unpack(pathlib.Path(source), pathlib.Path(folder))
        case _:
            sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
