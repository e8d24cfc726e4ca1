"""Runs rows on the device: modules of many kernels are assembled, loaded and launched, and the results are compared."""
import ctypes
import dataclasses

import kernel
import link
import numpy
import row
from memory import COMMON

from tegrarm.calls import launch_config
from tegrarm.rm import RmError

SECONDS = 60
CHUNK = 48  # rows of a module
SLOTS = 28  # the largest number of operands or results of a thread


@dataclasses.dataclass
class Verdict:
    """The result of a row in one shape at one level."""

    row: str
    shape: str
    level: str
    result: str  # "right", "wrong", "failed", "ran" (without a reference), "not for sm_87", "refused" (by the loader)
    says: str = ""


class Machine:
    """An open device and its buffers. After a fault of a kernel it is closed."""

    def __init__(self):
        self.gpu = None

    def open(self):
        """Opens the device if it is not open."""
        if self.gpu:
            return
        self.gpu = link.cuda.Gpu(stack=4096)
        self.buffers, self.views, self.addresses = [], {}, {}
        for name, size in {"in": 8 * SLOTS * row.ITEMS, "out": 8 * SLOTS * row.ITEMS, "cells": row.CELL * row.ITEMS, "common": len(COMMON)}.items():
            buffer, address, pointer = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_void_p()
            link.cuda.call("tegrarm_buffer_alloc", self.gpu.handle, size, 0, ctypes.byref(buffer))
            link.cuda.call("tegrarm_buffer_address", buffer, ctypes.byref(pointer), ctypes.byref(address))
            self.buffers.append(buffer)
            self.addresses[name] = address.value
            self.views[name] = numpy.ctypeslib.as_array(ctypes.cast(pointer, ctypes.POINTER(ctypes.c_uint8)), (size,))
        self.views["common"][:] = numpy.frombuffer(COMMON, numpy.uint8)

    def close(self):
        """Closes the device."""
        if self.gpu:
            gpu, self.gpu, self.views = self.gpu, None, {}
            gpu.close()

    def load(self, cubin):
        """Loads a module."""
        self.open()
        module = ctypes.c_void_p()
        link.cuda.call("tegrarm_module_load", self.gpu.handle, cubin, len(cubin), ctypes.byref(module))
        return module

    def run(self, module, name, r, items):
        """Launches a kernel. The results are a list for each thread."""
        function, fence = ctypes.c_void_p(), ctypes.c_uint64()
        link.cuda.call("tegrarm_module_kernel", module, name.encode(), ctypes.byref(function))
        given = numpy.array(items, numpy.uint64).reshape(len(items), len(r.takes)).T
        self.views["in"][:given.size * 8] = numpy.ascontiguousarray(given).view(numpy.uint8).ravel()
        self.views["out"][:] = 0x5a
        self.views["cells"][:] = 0
        values = [self.addresses[n] for n in ("in", "out", "cells", "common")]
        values += [int(items[0][k]) if k < len(r.takes) else 0 for k in range(len(kernel.PARAMETERS))]
        taken = (ctypes.c_uint64 * len(values))(*values)
        pointers = (ctypes.c_void_p * len(values))(*[ctypes.addressof(taken) + 8 * k for k in range(len(values))])
        sizes = (ctypes.c_size_t * len(values))(*[8] * len(values))
        triple = link.cuda.triple
        config = launch_config(triple(1), triple(row.ITEMS), sizes=sizes)
        link.cuda.call("tegrarm_launch", None, function, ctypes.byref(config), pointers, len(values), ctypes.byref(fence))
        link.cuda.call("tegrarm_wait", self.gpu.handle, fence, SECONDS * 10 ** 9)
        count = len(r.gives)
        found = self.views["out"][:8 * count * row.ITEMS].view(numpy.uint64).reshape(count, row.ITEMS).T
        return [[int(x) for x in one] for one in found]


def differences(r, items, found):
    """A description of the first thread whose results are wrong. It is empty if all results are right."""
    for i, (want, got) in enumerate(zip(row.wanted(r, items), found, strict=True)):
        for kind, g, w in zip(r.gives, got, want, strict=True):
            if not row.agrees(kind, g, w, r):
                shown = hex(w) if isinstance(w, int) and not isinstance(w, bool) and w >= 0 else w
                return f"thread {i}: operands {[hex(x) for x in items[i]]}, got {g:#x}, want {shown}"
    return ""


def accepted(rows, level):
    """The rows that the assembler accepts, their cubin in every shape, and the assembler's messages for the other rows."""
    refused = {}
    while True:
        cases = [(r, shape, kernel.shaped(shape, row.operands(r))) for r in rows if r.text not in refused for shape in kernel.shapes(r)]
        if not cases:
            return [], b"", refused
        text, at = kernel.module(cases)
        try:
            return cases, link.assembled(text, level), refused
        except link.Refused as why:
            found = {at[line]: says for line, says in why.lines if line in at}
            if not found:
                if len({r.text for r, _, _ in cases}) == 1:
                    return [], b"", refused | {cases[0][0].text: str(why).strip()[-300:]}
                raise
            refused |= {cases[number][0].text: says for number, says in found.items()}


def modules(rows, level="O3"):
    """The cases of the rows that the assembler accepts, and their machine code."""
    try:
        cases, cubin, _ = accepted(rows, level)
    except link.Refused:
        # The assembler refused the whole module. Each half is tried alone, and a row that it always refuses is left out.
        half = len(rows) // 2
        return [*modules(rows[:half], level), *modules(rows[half:], level)] if half else []
    return [(cases, cubin)] if cubin else []


def judged(machine, rows, levels):
    """The verdicts of rows. The rows become one module for each level."""
    try:
        return judged_together(machine, rows, levels)
    except (link.Refused, RmError):
        # The assembler or the loader refused the whole module. Each half is tried alone, until the row is found.
        if len(rows) == 1:
            raise
        half = len(rows) // 2
        return judged(machine, rows[:half], levels) + judged(machine, rows[half:], levels)


def judged_together(machine, rows, levels):
    """The verdicts of rows in one module. If there is only one row, an error of the loader is its verdict."""
    verdicts = []
    for level in levels:
        cases, cubin, refused = accepted(rows, level)
        verdicts += [Verdict(text, "", level, "not for sm_87", says) for text, says in refused.items()]
        if not cases:
            continue
        try:
            module = machine.load(cubin)
        except RmError as why:
            if len(rows) > 1:
                raise
            verdicts.append(Verdict(cases[0][0].text, "", level, "refused", str(why)))
            continue
        verdicts += [verdict(machine, cubin, case, level, module, number) for number, case in enumerate(cases)]
    return verdicts


def verdict(machine, cubin, case, level, module, number):
    """The verdict of one kernel. After a fault, the device is opened again and the module is loaded again."""
    r, shape, items = case
    if not machine.gpu:
        module.value = machine.load(cubin).value
    try:
        found = machine.run(module, f"k{number}", r, items)
    except RmError as why:
        machine.close()
        return Verdict(r.text, shape, level, "failed", str(why))
    if r.reference is None:
        return Verdict(r.text, shape, level, "ran", r.note)
    wrong = differences(r, items, found)
    return Verdict(r.text, shape, level, "wrong" if wrong else "right", wrong)


