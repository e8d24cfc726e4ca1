"""One step in a process of its own: ``python -m tegrarm.validate.child STEP FOLDER``.

The parent chooses the backend and the recording through the environment, and ends this process when its time is over.
"""

from __future__ import annotations

import pathlib
import sys

from .note import Note
from .steps import BY_NAME


def main(argv: list[str]) -> int:
    """Runs the step. Its answers are in the folder, also if the process is ended."""
    name, folder = argv
    note = Note(pathlib.Path(folder))
    try:
        BY_NAME[name].load()(note)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is evidence, and the next step runs all the same
        note.put("exception", " ".join(f"{type(error).__name__}: {error}".split()))
        return 1
    finally:
        note.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
