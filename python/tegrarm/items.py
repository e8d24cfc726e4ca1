"""Items of arrays: numbers of Python and nested lists of them as bytes, and the memory of other libraries' arrays."""

from __future__ import annotations

import ctypes
import itertools
import math
import numbers
import struct
from collections.abc import Iterator, Sequence
from typing import Any

from ._checked import shown
from .dtypes import BOOL, COMPLEX, SIGNED, UNSIGNED, DType, dtype

AXES = 64  # as the buffer protocol has


def is_number(value: Any) -> bool:
    """Whether it is a number of Python or numpy."""
    return isinstance(value, numbers.Real) or type(value).__name__ in ("bool_", "bool") and hasattr(value, "__bool__")


def is_list(value: Any) -> bool:
    """Whether it is a list of items. Texts and bytes are sequences, too, but not of items."""
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))


def limits(type_: DType) -> tuple[int, int]:
    """The smallest and the largest whole number of a type."""
    bits = 8 * type_.itemsize
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if type_.code == SIGNED else (0, (1 << bits) - 1)


def one(value: Any, type_: DType) -> bytes:
    """A number as an item. A number that the type cannot hold is refused with a sentence."""
    if len(type_.format) != 1:
        raise TypeError(f"numbers of Python cannot be converted to {type_}")
    if not is_number(value):
        raise TypeError(f"{_short(value)} is a {type(value).__name__}, and no number that an item of {type_} can be")
    if type_.code in (SIGNED, UNSIGNED):
        low, high = limits(type_)
        if not isinstance(value, numbers.Integral) and (not math.isfinite(value) or value != int(value)):
            raise ValueError(f"{value!r} is no item of {type_}, whose items are whole numbers")
        if not low <= value <= high:
            raise OverflowError(f"{shown(int(value))} is no item of {type_}, whose items are from {low} to {high}")
        value = int(value)
    try:
        return struct.pack(f"<{type_.format}", value)
    except (OverflowError, struct.error):
        raise OverflowError(f"{_short(value)} is too large for an item of {type_}") from None


def _short(value: Any) -> str:
    text = shown(value) if isinstance(value, int) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def packed(items: Any, type_: DType | None, most: int | None = None) -> tuple[tuple[int, ...], bytes, DType]:
    """Shape, bytes and type of nested lists of numbers. Without ``type_``, whole numbers become int64 and others float64.

    ``most`` is how many bytes there are at most.
    """
    shape = _shape(items)
    count = math.prod(shape)
    if most is not None and count > most:
        raise MemoryError(f"{count} items are more than the device has memory for, which are {most} bytes")
    flat = list(_flat(items, shape))
    if type_ is None:
        kinds = set(map(type, flat))
        logical = [kind.__name__ in ("bool", "bool_") for kind in kinds]
        whole = [issubclass(kind, numbers.Integral) for kind in kinds]
        type_ = dtype("float64" if not flat else "bool" if all(logical) else "int64" if all(map(any, zip(logical, whole, strict=True))) else
                      "float64")
    if len(type_.format) != 1:
        raise TypeError(f"numbers of Python cannot be converted to {type_}")
    try:
        if type_.code not in (BOOL, COMPLEX):
            return shape, struct.pack(f"<{len(flat)}{type_.format}", *flat), type_
    except (struct.error, OverflowError, TypeError):
        pass  # one of the items says why
    return shape, b"".join(one(item, type_) for item in flat), type_


def _shape(items: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while is_list(items):
        if len(shape) == AXES:
            raise TypeError(f"the lists are nested in more than {AXES} levels, and an array has at most {AXES} axes")
        shape.append(len(items))
        items = items[0] if shape[-1] else None
    return tuple(shape)


def _flat(items: Any, shape: tuple[int, ...]) -> Iterator[Any]:
    if not shape:
        if is_list(items):
            raise TypeError("the lists are not all of the same depth: a list is where there is a number in its neighbour")
        yield items
        return
    if not is_list(items):
        raise TypeError(f"the lists are not all of the same depth: {_short(items)} is where there is a list in its neighbour")
    if len(items) != shape[0]:
        raise TypeError(f"the lists are not all of the same length: one has {len(items)} items, and its neighbour {shape[0]}")
    given = list(itertools.islice(items, shape[0] + 1))
    if len(given) != shape[0]:
        gives = "more" if len(given) > shape[0] else len(given)
        raise TypeError(f"a {type(items).__name__} says that it has {shape[0]} items, and gives {gives}")
    if len(shape) == 1 and not any(map(is_list, given)):
        yield from given
        return
    for item in given:
        yield from _flat(item, shape[1:])


def converted(items: Any, type_: DType) -> Any:
    """An array of numpy's kind with items of another type. Numbers that the type cannot hold are refused."""
    if type_.code in (SIGNED, UNSIGNED) and items.size:
        low, high = limits(type_)
        least, most = items.min(), items.max()
        if not (low <= least and most <= high):  # also with nan
            raise OverflowError(f"the items are from {least} to {most}, and those of {type_} from {low} to {high}")
    return items.astype(str(type_))


class Bytes:
    """The address of the first item of another library's array."""

    def __init__(self, view: memoryview):
        self.view, self.readonly = view, view.readonly
        # ctypes only gives the address of memory that can be written.
        flat = view.cast("B") if view.nbytes else memoryview(bytearray(1))
        kind = ctypes.c_uint8 * len(flat)
        self.kept = kind.from_buffer_copy(flat) if self.readonly else kind.from_buffer(flat)
        self.pointer = ctypes.addressof(self.kept)


def bytes_of(other: Any, nbytes: int, type_: DType) -> Bytes:
    """The items of another array as bytes, after a check that they are ``nbytes`` bytes of a type."""
    if is_list(other):
        other = packed(other, type_)[1]
    try:
        view = memoryview(other)
    except TypeError:
        raise TypeError(f"a {type(other).__name__} has no buffer protocol: copy from an array of numpy, for example") from None
    raw = isinstance(other, (bytes, bytearray))
    if not view.c_contiguous:
        raise ValueError("the items of the other array do not follow each other in memory")
    if view.nbytes != nbytes or (not raw and dtype(view.format) != type_):
        kind = "bytes" if raw else f"bytes of {dtype(view.format)}"
        raise ValueError(f"the other array has {view.nbytes} {kind}, and this one {nbytes} of {type_}")
    return Bytes(view)
