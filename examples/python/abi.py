"""Makes structures and numbers of the Resource Manager for ctypes from include/tegrarm_abi.h, as a frontend generates them from headers."""

import ctypes
import pathlib
import re

HEADER = pathlib.Path(__file__).resolve().parents[2] / "include" / "tegrarm_abi.h"
TYPES = {f"{sign}int{bits}_t": getattr(ctypes, f"c_{sign}int{bits}") for sign in ("", "u") for bits in (8, 16, 32, 64)}


def _structures(text: str) -> dict[str, type]:
    found: dict[str, type] = dict(TYPES)
    for body, name in re.findall(r"^typedef struct \w+ \{\n(.*?)^\} (\w+);", text, re.M | re.S):
        fields = []
        for kind, field, count in re.findall(r"^ {4}(\w+) (\w+)(?:\[(\d+)\])?;", body, re.M):
            fields.append((field, found[kind] * int(count) if count else found[kind]))
        found[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
    return found


def _numbers(text: str) -> dict:
    found: dict = {}
    for name, argument, value in re.findall(r"^#define (\w+)(\(i\))? \(?([^\\\n]+?)\)?$", text, re.M):
        plain = re.sub(r"\b(0x[0-9a-f]+|\d+)u\b", r"\1", value)
        if argument:  # (640 + (i) * 1) without its outer parentheses
            first, step = map(int, re.fullmatch(r"(\d+) \+ \(i\) \* (\d+)", plain).groups())
            found[name] = lambda i, first=first, step=step: first + i * step
        elif re.fullmatch(r"0x[0-9a-f]+|\d+", plain):
            found[name] = int(plain, 0)
    return found


class Abi:
    """Every structure and every number of the header, as attributes."""

    def __init__(self):
        text = HEADER.read_text()
        self.__dict__.update(_structures(text) | _numbers(text))


abi = Abi()
