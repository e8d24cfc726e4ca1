"""The machine that the checks look at: this one, or the files of another one below a directory."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import grp
import os
import pathlib
import stat


@dataclasses.dataclass
class Machine:
    """Files, the user and the environment. If ``root`` is not ``/``, it has an image of another machine, whose devices cannot be asked."""

    root: pathlib.Path = pathlib.Path("/")
    environ: dict[str, str] = dataclasses.field(default_factory=lambda: dict(os.environ))
    uid: int = dataclasses.field(default_factory=os.getuid)
    groups: frozenset[int] = dataclasses.field(default_factory=lambda: frozenset([os.getgid(), *os.getgroups()]))

    @property
    def here(self) -> bool:
        """Whether it is the machine on which this process runs."""
        return self.root == pathlib.Path("/")

    def path(self, name: str) -> pathlib.Path:
        """The path of a file of the machine."""
        return self.root / name.lstrip("/")

    def exists(self, name: str) -> bool:
        """Whether a file exists."""
        return os.path.lexists(self.path(name))

    def read(self, name: str) -> str | None:
        """The text of a file. It is None if the file does not exist or may not be read."""
        try:
            return self.path(name).read_text(errors="replace").replace("\0", "").strip()
        except OSError:
            return None

    def group_of(self, name: str) -> tuple[str, int]:
        """The name and the number of the group that owns a file."""
        gid = self.path(name).stat().st_gid
        with contextlib.suppress(KeyError):
            return grp.getgrgid(gid).gr_name, gid
        return str(gid), gid

    def may_open(self, name: str) -> OSError | None:
        """The reason why the user cannot open a file for reading and writing. It is None if the user can."""
        if self.here:
            try:
                os.close(os.open(name, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK))
            except OSError as error:
                # Some nodes can only be opened by an ioctl of another node, and report that. This is no lack of permission.
                return None if error.errno == errno.EINVAL else error
            return None
        held = self.path(name).stat()
        shift = 6 if held.st_uid == self.uid else 3 if held.st_gid in self.groups else 0
        if self.uid == 0 or (held.st_mode >> shift) & 0o6 == 0o6:
            return None
        return PermissionError(13, f"Permission denied (mode {stat.filemode(held.st_mode)})")
