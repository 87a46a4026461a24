"""A folder on this machine that is its user's alone, with everything in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Container
from contextlib import suppress
from pathlib import Path


def make_private(folder: Path, files: Container[str] = ()) -> None:
    """Make the folder if there is none; in any case nobody but its owner, who is us, may enter it.

    What others may have put into it before is refused, too: a link would have us write, or delete,
    elsewhere.

    Args:
        folder: The folder.
        files: The names in it that must be regular files, if they are there.

    Raises:
        OSError: It, or anything in it, belongs to somebody else, or is not what it should be.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = folder.stat()
    if found.st_uid != os.geteuid():
        raise PermissionError(f"it belongs to the user {found.st_uid}, not to you")
    if stat.S_IMODE(found.st_mode) != 0o700:
        folder.chmod(0o700)
    for path in folder.iterdir():
        with suppress(FileNotFoundError):
            there, ours = path.lstat(), path.name in files
            if there.st_uid != os.geteuid() or (ours and not stat.S_ISREG(there.st_mode)):
                raise PermissionError(f"{path.name} in it is not a file of yours")
