"""Memory of the GPU as the processor sees it. A forked child sees none of its parent's."""

from __future__ import annotations

import gc
import os
from typing import Any

from tinygrad.runtime import ops_nv

View: Any = ops_nv.MMIOInterface


def refuse(parent: int) -> None:
    """Says that a forked child cannot use what its parent opened."""
    what = f"process {os.getpid()} was forked from process {parent}, whose GPU memory it does not have"
    raise RuntimeError(f"{what}: open the device in the child, or start it with multiprocessing's method spawn")


class _ParentsMemory:
    """What a forked child has in place of the GPU's memory: each use of it is an exception."""

    def __init__(self, parent: int):
        self._parent = parent

    def _refuse(self, *_args):
        refuse(self._parent)

    __getitem__ = __setitem__ = __getattr__ = _refuse


class GPUView(View):
    """A view that is an exception in a forked child."""

    def view(self, offset: int = 0, size: int | None = None, fmt: str | None = None) -> GPUView:
        """As tinygrad's, of this class."""
        self.mv.nbytes  # noqa: B018 - in a child, an exception
        return GPUView(self.addr + offset, self.nbytes - offset if size is None else size, fmt=fmt or self.fmt)


def forget() -> None:
    """In a forked child: the mappings were the parent's, and an access would end the process."""
    gone = _ParentsMemory(os.getppid())
    for view in gc.get_objects():
        if type(view) is GPUView:
            view.mv = gone
