"""A program that ends because there is no GPU or no library shows one sentence, and not the long traceback of a frontend."""

from __future__ import annotations

import sys

_before = None  # the hook that was installed before


def _all(error: BaseException | None, seen: set[int]):
    """An exception and the exceptions that caused it, including those in groups."""
    if error is None or id(error) in seen:
        return
    seen.add(id(error))
    yield error
    for other in (error.__cause__, error.__context__, *getattr(error, "exceptions", ())):
        yield from _all(other, seen)


def sentence_of(error: BaseException) -> str:
    """The sentence about a GPU or a library that is missing. It is empty if the exception has another reason."""
    from ._ffi import LibraryNotFound
    from .rm import NV_ERR_CARD_NOT_PRESENT
    found = (e for e in _all(error, set()) if isinstance(e, LibraryNotFound) or getattr(e, "status", None) == NV_ERR_CARD_NOT_PRESENT)
    return next((str(e) for e in found), "")


def _hook(kind, error, traceback) -> None:
    if said := sentence_of(error):
        print(f"tegrarm: {said}", file=sys.stderr)
    else:
        (_before or sys.__excepthook__)(kind, error, traceback)


def promise() -> None:
    """Called when such an error is made. A program that catches the error is not affected."""
    global _before
    if _before is None:
        _before, sys.excepthook = sys.excepthook, _hook
