"""Numbers on their way to C. ctypes cuts off what does not fit, without a word; everything here refuses it with a sentence.

``_ffi`` makes every function of the library a :class:`Function` and every structure a :class:`Structure`. Other modules make arrays and
single numbers of C with :func:`array` and :func:`number`; a test looks for a number that goes another way.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import operator
from collections.abc import Iterable
from typing import Any

INTEGERS = (ctypes.c_int8, ctypes.c_int16, ctypes.c_int32, ctypes.c_int64, ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32,
            ctypes.c_uint64, ctypes.c_int, ctypes.c_uint, ctypes.c_long, ctypes.c_ulong, ctypes.c_size_t, ctypes.c_ssize_t)
POINTER_LIMIT = (1 << 8 * ctypes.sizeof(ctypes.c_void_p)) - 1


@functools.cache
def limits(type_: Any) -> tuple[int, int]:
    """The smallest and the largest number that an integer type of ctypes can hold."""
    bits = 8 * ctypes.sizeof(type_)
    return (-(1 << bits - 1), (1 << bits - 1) - 1) if type_(-1).value < 0 else (0, (1 << bits) - 1)


def shown(value: int) -> str:
    """A number for a sentence. Python refuses to print very long ones."""
    return str(value) if value.bit_length() <= 256 else f"a number of {value.bit_length()} bits"


def whole(value: Any, what: str) -> int:
    """A whole number of Python, of numpy, or of ctypes, as an int. A fraction is not cut off."""
    if isinstance(value, ctypes._SimpleCData):
        value = value.value
    try:
        return operator.index(value)
    except TypeError:
        text = repr(value)
        text = text if len(text) <= 80 else f"{text[:77]}..."
        raise TypeError(f"{what} is {text}, a {type(value).__name__}: it has to be a whole number") from None


def within(value: Any, low: int, high: int, what: str) -> int:
    """A whole number from ``low`` to ``high``."""
    if not low <= (number_ := whole(value, what)) <= high:
        raise OverflowError(f"{what} is {shown(number_)}: it has to be from {low} to {high}")
    return number_


def number(type_: Any, value: Any, what: str) -> Any:
    """An integer of ctypes with this value."""
    return type_(within(value, *limits(type_), what))


@functools.cache
def numbers(type_: Any, length: int) -> Any:
    """The type of an array of integers of ctypes whose items refuse a number that does not fit."""
    low, high = limits(type_)
    plain = type_ * length

    def set_item(self: Any, at: Any, value: Any) -> None:
        """Sets one item, or the items of a slice."""
        if isinstance(at, slice):
            places = range(*at.indices(length))
            value = [within(one, low, high, f"item {place}") for place, one in zip(places, value, strict=True)]
        else:
            value = within(value, low, high, f"item {at}")
        plain.__setitem__(self, at, value)

    return type(plain.__name__, (plain,), {"__setitem__": set_item})


def array(type_: Any, values: Iterable[Any], what: str, least: int = 0) -> Any:
    """An array of integers of ctypes with these values, and zeros after them if they are fewer than ``least``."""
    low, high = limits(type_)
    fit = [within(value, low, high, f"{what}[{index}]") for index, value in enumerate(values)]
    return numbers(type_, max(len(fit), least))(*fit)


def sizes(value: Any, most: int, what: str) -> tuple[int, ...]:
    """Sizes that are given as a number or as a sequence of at most ``most`` numbers, of Python or numpy."""
    if isinstance(value, (str, bytes, dict, set, frozenset)):
        raise TypeError(f"{what} is a {type(value).__name__}: it is a number, or a list of numbers")
    try:
        return (operator.index(value),)
    except TypeError:
        pass
    try:
        several = tuple(itertools.islice(value, most + 1))  # it may have no end
    except TypeError:
        return (whole(value, what),)
    if len(several) > most:
        raise ValueError(f"{what} has more than {most} sizes")
    return tuple(whole(size, f"{what}[{index}]") for index, size in enumerate(several))


def _pointer(value: Any, what: str) -> Any:
    if value.__class__ is int:
        return within(value, 0, POINTER_LIMIT, what)
    if isinstance(value, str):
        raise TypeError(f"{what} is a str, and C needs memory: use bytes")
    return value


def _text(value: Any, what: str) -> Any:
    if isinstance(value, bytes) and b"\0" in value:
        raise ValueError(f"{what} is {value[:80]!r}: a text for C has no NUL in it")
    if value is not None and not isinstance(value, (bytes, ctypes._SimpleCData, ctypes.Array)):
        raise TypeError(f"{what} is a {type(value).__name__}: a text for C is bytes")
    return value


class Structure(ctypes.Structure):
    """A structure of C whose fields refuse a number that does not fit."""

    def __setattr__(self, name: str, value: Any) -> None:
        type_ = next((row[1] for row in self._fields_ if row[0] == name), None)
        if type_ is None:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}")
        where = f"{type(self).__name__}.{name}"
        if type_ in INTEGERS:
            value = within(value, *limits(type_), where)
        elif type_ is ctypes.c_void_p:
            value = _pointer(value, where)
        elif type_ is ctypes.c_char_p:
            value = _text(value, where)
        elif isinstance(type_, type) and issubclass(type_, ctypes.Array) and type_._type_ in INTEGERS and not isinstance(value, type_):
            if len(items := [*value]) > type_._length_:
                raise ValueError(f"{where} has {type_._length_} items, and {len(items)} were given")
            value = array(type_._type_, items, where, type_._length_)
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={_field(getattr(self, name))}" for name, *_ in self._fields_)
        return f"<tegrarm.{type(self).__name__} {values}>"


def _field(value: Any) -> str:
    return repr(list(value) if isinstance(value, ctypes.Array) else value)


class Function:
    """A function of the library. A number that does not fit is refused with the names of the function and of the argument.

    ``unchecked`` is the function of ctypes, for calls that repeat arguments that were checked before.
    """

    __slots__ = ("_integers", "_names", "_others", "name", "unchecked")

    def __init__(self, name: str, function: Any, result: Any, arguments: dict[str, Any]):
        self.name, self.unchecked = name, function
        function.restype, function.argtypes = result, list(arguments.values())
        self._names = tuple(arguments)
        rows = list(enumerate(arguments.values()))
        self._integers = tuple((index, *limits(type_)) for index, type_ in rows if type_ in INTEGERS)
        self._others = tuple((index, _pointer if type_ is ctypes.c_void_p else _text)
                             for index, type_ in rows if type_ in (ctypes.c_void_p, ctypes.c_char_p))

    def __call__(self, *values: Any) -> Any:
        if len(values) != len(self._names):
            raise TypeError(f"{self.name} takes {len(self._names)} arguments ({', '.join(self._names)}), and {len(values)} were given")
        for index, low, high in self._integers:
            value = values[index]
            if value.__class__ is not int or not low <= value <= high:
                values = self._checked(values)
                break
        else:
            for index, check in self._others:
                if values[index].__class__ is not ctypes.c_void_p:
                    check(values[index], f"{self.name}: {self._names[index]}")
        return self.unchecked(*values)

    def _checked(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments with numbers that Python's int can hold, such as those of numpy, as an int."""
        fit = list(values)
        for index, low, high in self._integers:
            fit[index] = within(values[index], low, high, f"{self.name}: {self._names[index]}")
        for index, check in self._others:
            check(values[index], f"{self.name}: {self._names[index]}")
        return tuple(fit)

    def __repr__(self) -> str:
        return f"<tegrarm function {self.name}({', '.join(self._names)})>"
