#!/usr/bin/env python3
"""Makes the data of `tegrarm validate`: machine code, inputs, layouts. `make evidence-data` runs it.

usage: evidence.py [--to DIRECTORY] [FAMILY...]

* `instructions.zip`: each family of `python/suite/silicon` as machine code for sm_87 (assembled by nvJitLink), its inputs, and the columns
  of its results,
* `kernels.zip`: the whole kernels of `python/suite/silicon/whole.py` as one module, compiled by NVRTC, their input, and the hash of the
  text,
* `probe.cubin`: the kernels of `probe.cu`, compiled by NVRTC,
* `characteristics.json`: name, offset and size of every field of the GPU's characteristics, by the size of the structure, from the ABI
  tables that a C compiler has made.
"""

import argparse
import hashlib
import json
import pathlib
import random
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python" / "suite" / "silicon"), str(ROOT / "tests" / "data" / "cubin"), str(ROOT / "python")]
import forms  # noqa: E402
import inputs  # noqa: E402
import matrices  # noqa: E402
import ptx  # noqa: E402
import regenerate  # noqa: E402
import whole  # noqa: E402

from tegrarm.compile import compiled, headers  # noqa: E402

DATA = ROOT / "python" / "tegrarm" / "validate" / "data"
FAMILIES = forms.FAMILIES | matrices.FAMILIES
POOLS = inputs.POOLS | matrices.POOLS
WHEN = (1980, 1, 1, 0, 0, 0)  # the bytes of the archive are those of its contents alone
RELEASES = ("r35", "r36", "r39")


def family(name: str, jitlink) -> dict[str, bytes]:
    """The members of a family."""
    pool, count, rows = FAMILIES[name]
    items = list(POOLS[pool](count, random.Random(pool)))
    text = ptx.kernel(name, len(items[0]), count, rows)
    about = {"items": count, "words": len(items[0]), "columns": [[form, result, width] for form, result, width in ptx.columns(rows)]}
    return {f"{name}.cubin": regenerate.jit_link(jitlink, regenerate.INPUT_PTX, text.encode() + b"\0", f"{name}.ptx"),
            f"{name}.in": b"".join(word.to_bytes(4, "little") for item in items for word in item),
            f"{name}.json": json.dumps(about).encode()}


def instructions(names: list[str]) -> dict[str, bytes]:
    """The members of the archive."""
    jitlink = regenerate.library("nvidia.nvjitlink", "libnvJitLink.so.12")
    return {name: data for each in names for name, data in family(each, jitlink).items()}


def whole_kernels() -> dict[str, bytes]:
    """The members of the archive of whole kernels. It takes NVRTC some seconds."""
    text, options = whole.source().encode(), tuple(f"--include-path={place}" for place in headers())
    members = {"whole.cubin": compiled(text, "whole.cu", options=options), "whole.in": whole.words(), "whole.sha256": digest(text)}
    for name, (_, width) in whole.kernels().items():
        about = {"items": whole.ITEMS, "words": whole.WORDS, "columns": [["kernel", "result", width]], "module": "whole"}
        members[f"{name}.json"] = json.dumps(about).encode()
    return members


def digest(text: bytes) -> bytes:
    """The hash of a text, in digits."""
    return hashlib.sha256(text).hexdigest().encode()


def write_archive(path: pathlib.Path, members: dict[str, bytes]) -> None:
    """The archive, the same bytes for the same members."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in sorted(members.items()):
            entry = zipfile.ZipInfo(name, WHEN)
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data, compresslevel=9)


def characteristics() -> dict[str, list]:
    """The fields of the characteristics of each release."""
    found = {}
    for release in RELEASES:
        tables = json.loads((ROOT / f"crates/tegrarm-abi/tests/data/abi/nvgpu-{release}.json").read_text())
        layout = tables["structs"]["nvgpu_gpu_characteristics"]
        fields = [[f["name"], f["offset"], f["size"]] for f in layout["fields"] if not f["name"].startswith("_pad")]
        found[str(layout["size"])] = fields
    return found


def as_lines(layouts: dict[str, list]) -> str:
    """JSON with a line for each field, so that a difference can be read."""
    blocks = (f' "{size}": [\n' + ",\n".join("  " + json.dumps(field) for field in fields) + "\n ]" for size, fields in layouts.items())
    return "{\n" + ",\n".join(blocks) + "\n}\n"


def main() -> None:
    """Writes the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--to", type=pathlib.Path, default=DATA)
    parser.add_argument("families", nargs="*", help="of instructions; when they are left out: all, and the whole kernels")
    args = parser.parse_args()
    write_archive(args.to / "instructions.zip", instructions(args.families or list(FAMILIES)))
    if not args.families:
        write_archive(args.to / "kernels.zip", whole_kernels())
    (args.to / "probe.cubin").write_bytes(compiled((DATA / "probe.cu").read_bytes(), "probe.cu"))
    (args.to / "characteristics.json").write_text(as_lines(characteristics()))


if __name__ == "__main__":
    main()
