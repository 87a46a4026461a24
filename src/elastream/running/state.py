"""Where a run keeps its state, checked before anything is started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from elastream.errors import InvalidInputError

if TYPE_CHECKING:
    from elastream.engines.spark.backends.base import Backend


def folder_of(backend: Backend) -> Path:
    """The folder on this machine that a run with this state writes to; created if missing."""
    return made_private(backend.local_folder)


def made_private(folder: Path) -> Path:
    """A state folder in which a run can write; created if missing, in any case for its user alone.

    Raises:
        InvalidInputError: It, or anything in it, belongs to somebody else, or cannot be used.
    """
    # Whoever has not got as far as Spark may lack what its package needs.
    from elastream.engines.spark.backends.private_folder import make_private

    try:
        make_private(folder)
        reason = "" if os.access(folder, os.W_OK | os.X_OK) else "you may not write there"
    except FileExistsError:
        reason = "it is a file"
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        raise InvalidInputError(
            f"the state folder {folder} cannot be used: {reason}; name a folder of your own"
        )
    return folder
