"""What the parameters of a kernel are, as a program says it: ``kernel.argtypes = ["float *", "int"]``.

Machine code contains the sizes of parameters and not what pointers point at, so that an array of floats passes for an ``int *``. With
``argtypes``, an array of other items is refused.
"""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any

from .dtypes import SIGNED, UNSIGNED, DType, dtype

# Types of CUDA C++, on an Orin.
NAMES = {
    "char": "int8", "signed char": "int8", "unsigned char": "uint8", "short": "int16", "unsigned short": "uint16", "int": "int32",
    "unsigned": "uint32", "unsigned int": "uint32", "long": "int64", "unsigned long": "uint64", "long long": "int64",
    "unsigned long long": "uint64", "size_t": "uint64", "float": "float32", "double": "float64", "bool": "bool", "half": "float16",
    "__half": "float16", "__nv_bfloat16": "bfloat16",
    **{f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}


@dataclasses.dataclass(frozen=True)
class ArgType:
    """The type of a parameter: a number, or a pointer to items. A pointer without a type points at anything."""

    text: str
    pointer: bool
    type: DType | None

    @property
    def size(self) -> int:
        """The size of the parameter in bytes."""
        return 8 if self.pointer or self.type is None else self.type.itemsize

    def accepts(self, other: DType) -> bool:
        """Whether an array with such items may be passed. Whole numbers of the same size may differ in their sign."""
        if not self.pointer:
            return False
        if self.type is None or self.type == other:
            return True
        whole = (SIGNED, UNSIGNED)
        return self.type.itemsize == other.itemsize and self.type.code in whole and other.code in whole


def argtype(what: Any) -> ArgType:
    """The type of a parameter: a declaration of C such as ``const float *``, a type of numpy or ctypes, or a name such as ``int32*``."""
    if isinstance(what, type) and issubclass(what, ctypes._Pointer):
        return ArgType(f"{what._type_.__name__} *", True, _of_ctypes(what._type_))
    if isinstance(what, type) and issubclass(what, ctypes.c_void_p):
        return ArgType("void *", True, None)
    if isinstance(what, type) and issubclass(what, ctypes._SimpleCData):
        return ArgType(what.__name__, False, _of_ctypes(what))
    if not isinstance(what, str):
        return ArgType(str(dtype(what)), False, dtype(what))
    words = [word for word in what.replace("*", " * ").split() if word not in ("const", "volatile", "__restrict__", "restrict", "struct")]
    stars, name = words.count("*"), " ".join(word for word in words if word != "*")
    if stars and (stars > 1 or name == "void"):
        return ArgType(what, True, None)
    try:
        return ArgType(what, bool(stars), dtype(NAMES.get(name, name)))
    except TypeError:
        raise TypeError(f"{what!r} is no type of a parameter: give a type of C such as 'const float *' or 'int', 'void *' for a pointer to "
                        "anything, or a type of numpy or ctypes") from None


def other_kind(argument: Any, kind: str) -> str:
    """Why an object of ctypes does not fit a parameter of this kind, which would take its bytes for something else. Empty if it does."""
    type_ = type(argument).__name__
    if isinstance(argument, ctypes.Array) and kind in ("pointer", "integer", "float"):
        made = ": the GPU cannot use it; Device.array makes an array of it" if kind != "float" else ""
        return f"memory of the CPU ({type_}), and the parameter is one {kind}{made}"
    if isinstance(argument, ctypes._SimpleCData) and kind:
        floating = isinstance(argument, (ctypes.c_float, ctypes.c_double))
        if floating != (kind == "float"):
            return f"a {type_}, and the parameter is {'an' if kind == 'integer' else 'a'} {kind}"
    return ""


def _of_ctypes(what: Any) -> DType:
    kind = "float" if what in (ctypes.c_float, ctypes.c_double) else "uint" if what(-1).value > 0 else "int"
    return dtype("bool" if what is ctypes.c_bool else f"{kind}{8 * ctypes.sizeof(what)}")
