"""The table of the PTX ISA for sm_87: every family of rows."""
import atomics
import control
import convert
import integers
import matrices
import memory
import real
import textures
import video
import warps
import wmma

MODULES = (integers, real, convert, video, memory, atomics, warps, matrices, wmma, control, textures)
FAMILIES = {name: rows for module in MODULES for name, rows in module.FAMILIES.items()}


def rows(family):
    """The rows of a family; a form that two rules make is there once."""
    return list({r.text: r for r in FAMILIES[family]()}.values())
