"""The libraries that fit models, and how they do it here: without warnings, and on one core.

Both are settings of the whole process. Two threads that each save and restore one can leave it
changed for good, so that here the first fit to begin saves them and the last one to end restores
them.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from threading import Lock
from typing import Any

from elastream.errors import MissingExtraError

_lock = Lock()
_restore = ExitStack()
_running = 0


def library_model(path: str, predictor: str, extra: str) -> Any:
    """The class `"package.module:Class"` that a predictor needs, imported when it is made.

    At its first forecast it would be too late: imports take a second, and decisions have less.
    """
    module, _, name = path.partition(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError:
        raise MissingExtraError(f"the predictor {predictor!r}", extra) from None


@contextmanager
def fitting() -> Iterator[None]:
    """Around the fit of a model; needs threadpoolctl, which comes with the extras that fit.

    The matrices are small: shared among cores they take no less time on an idle machine, and ten
    times as long on a busy one, where the threads of a matrix library wait for one another.
    """
    global _running
    with _lock:
        if _running == 0:
            _save_and_set()
        _running += 1
    try:
        yield
    except UserWarning:
        raise KeyboardInterrupt from None
    finally:
        with _lock:
            _running -= 1
            if _running == 0:
                _restore.close()


def _save_and_set() -> None:
    from threadpoolctl import threadpool_limits

    _restore.enter_context(warnings.catch_warnings())
    warnings.simplefilter("ignore")
    # On Ctrl-C, scikit-learn ends a fit and only warns: the one warning that matters.
    warnings.filterwarnings("error", "Training interrupted by user", UserWarning)
    _restore.enter_context(threadpool_limits(limits=1, user_api="blas"))
