"""Weights in one file (in the safetensors format). They are mapped on shared memory and copied once on other devices."""

from __future__ import annotations

import json
import mmap
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

# The alignment of each tensor in the file, which is what the widest loads of kernels need.
ALIGNMENT = 256
_TYPES = {"F32": np.float32, "F16": np.float16, "I32": np.int32, "I8": np.int8, "U8": np.uint8}
_NAMES = {np.dtype(v): k for k, v in _TYPES.items()}


def save(path: pathlib.Path, tensors: Mapping[str, np.ndarray]) -> None:
    """Writes a file whose tensors start at multiples of ``ALIGNMENT``."""
    header: dict[str, Any] = {}
    offset = 0
    for name, array in tensors.items():
        if array.nbytes % ALIGNMENT:
            raise ValueError(f"tensor {name!r} has {array.nbytes} bytes; the format has no gaps, so it takes multiples of {ALIGNMENT}")
        header[name] = {"dtype": _NAMES[array.dtype], "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-(len(text) + 8) % ALIGNMENT)
    with path.open("wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        for array in tensors.values():
            out.write(np.ascontiguousarray(array).tobytes())


class Weights:
    """A mapped file. ``self[name]`` is a view of the mapping, and nothing is read before it is used."""

    def __init__(self, path: str | pathlib.Path):
        # A GPU's driver maps pages of a process only if the mapping is shared and writable. Nothing here writes.
        with open(path, "r+b") as file:
            self.mapping = mmap.mmap(file.fileno(), 0, flags=mmap.MAP_SHARED)
        self.bytes = np.frombuffer(self.mapping, np.uint8)
        length = int.from_bytes(self.mapping[:8], "little")
        self.header = json.loads(self.mapping[8:8 + length])
        self.header.pop("__metadata__", None)
        self.data = 8 + length

    @property
    def address(self) -> int:
        """The address of the file in this process."""
        return int(self.bytes.ctypes.data)

    def place(self, name: str) -> tuple[int, tuple[int, ...], np.dtype[Any]]:
        """The offset in the file, the shape and the type of a tensor."""
        if name not in self.header:
            raise ValueError(f"the weights have no tensor {name!r}")
        row = self.header[name]
        return self.data + row["data_offsets"][0], tuple(row["shape"]), np.dtype(_TYPES[row["dtype"]])

    def __getitem__(self, name: str) -> np.ndarray:
        offset, shape, dtype = self.place(name)
        count = int(np.prod(shape))
        return self.bytes[offset:offset + count * dtype.itemsize].view(dtype).reshape(shape)

    def __len__(self) -> int:
        return len(self.header)
