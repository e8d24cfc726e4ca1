"""The table of PTX forms for sm_87: all families of rows."""
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
    """The rows of a family. A form that two rules produce is there only once."""
    return list({r.text: r for r in FAMILIES[family]()}.values())
