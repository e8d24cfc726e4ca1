"""The types that items of an array can have, with the names that numpy gives them."""

from __future__ import annotations

import dataclasses
from typing import Any

# Codes of DLPack (DLDataTypeCode).
SIGNED, UNSIGNED, FLOAT, BFLOAT, COMPLEX, BOOL = 0, 1, 2, 4, 5, 6


@dataclasses.dataclass(frozen=True)
class DType:
    """A type of items. ``str`` gives its name. It equals numpy's type of the same name."""

    name: str
    itemsize: int
    #: The format in module ``struct`` and in the buffer protocol. Empty if they do not have the type.
    format: str
    #: The type in ``__array_interface__``. Empty if numpy does not have the type.
    typestr: str
    #: The type code of DLPack.
    code: int

    def __str__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return self.name == other.name
        try:
            return self.name == dtype(other).name
        except TypeError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)


_ROWS = (
    DType("bool", 1, "?", "|b1", BOOL),
    DType("int8", 1, "b", "|i1", SIGNED),
    DType("int16", 2, "h", "<i2", SIGNED),
    DType("int32", 4, "i", "<i4", SIGNED),
    DType("int64", 8, "q", "<i8", SIGNED),
    DType("uint8", 1, "B", "|u1", UNSIGNED),
    DType("uint16", 2, "H", "<u2", UNSIGNED),
    DType("uint32", 4, "I", "<u4", UNSIGNED),
    DType("uint64", 8, "Q", "<u8", UNSIGNED),
    DType("float16", 2, "e", "<f2", FLOAT),
    DType("float32", 4, "f", "<f4", FLOAT),
    DType("float64", 8, "d", "<f8", FLOAT),
    DType("bfloat16", 2, "", "", BFLOAT),  # numpy and the buffer protocol do not have this type
    DType("complex64", 8, "Zf", "<c8", COMPLEX),
    DType("complex128", 16, "Zd", "<c16", COMPLEX),
)
TYPES = {row.name: row for row in _ROWS}
_OTHER_NAMES = {row.format: row for row in _ROWS if row.format} | {row.typestr: row for row in _ROWS if row.typestr}
# The buffer protocol names types of C. On this machine, `long` and `long long` have the same size.
_OTHER_NAMES |= {"l": TYPES["int64"], "L": TYPES["uint64"], "float": TYPES["float64"], "int": TYPES["int64"], "c": TYPES["uint8"]}


def dtype(what: Any) -> DType:
    """Finds a type by its name, by a type of Python or numpy, or by a format of the buffer protocol."""
    if isinstance(what, DType):
        return what
    name = what if isinstance(what, str) else getattr(what, "name", None) or getattr(what, "__name__", None) or str(what)
    name = name.rpartition(".")[2]  # torch's name is torch.float32
    found = TYPES.get(name) or _OTHER_NAMES.get(name) or _OTHER_NAMES.get(name.lstrip("@=<"))
    if found is None:
        raise TypeError(f"an array cannot have items of type {what!r}: the types are {', '.join(TYPES)}")
    return found


def of_dlpack(code: int, bits: int, lanes: int) -> DType:
    """The type that DLPack describes."""
    for row in _ROWS:
        if (row.code, row.itemsize * 8, 1) == (code, bits, lanes):
            return row
    raise BufferError(f"an array cannot have items of DLPack's type {code} with {bits} bits and {lanes} lanes")
