"""A trained model as one file: a numpy archive of its weights, with a JSON text about the rest.

Nothing in it can run: a file from a stranger is data to read or to refuse, never code.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from elastream.errors import InvalidInputError
from elastream.predictors.recurrent.architecture import Architecture
from elastream.predictors.recurrent.model import Errors, Origin, TrainedModel, Training
from elastream.predictors.recurrent.scaling import Range

FORMAT = "elastream recurrent model 1"
ABOUT = "about"


def save(model: TrainedModel, path: Path) -> None:
    """Write the model; a reader finds the old file or the new one, never half of it."""
    about = {
        "format": FORMAT,
        "architecture": asdict(model.architecture),
        "range": asdict(model.range),
        "training": asdict(model.training),
    }
    arrays: dict[str, Any] = {ABOUT: np.array(json.dumps(about)), **model.weights}
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise InvalidInputError(f"{path}: cannot be written: {error.strerror}") from None


def load(path: Path) -> TrainedModel:
    """Read a model, or say why the file is not one."""
    try:
        # numpy leaves a file open that it cannot read, unless it was opened for it.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except FileNotFoundError:
        raise _refused(path, "there is no such file") from None
    except (OSError, ValueError, EOFError, BadZipFile, AttributeError, TypeError) as error:
        raise _refused(path, f"it is damaged, or something else ({error})") from None
    try:
        about = json.loads(str(arrays.pop(ABOUT)))
        if about["format"] != FORMAT:
            raise _refused(path, f"its format is {about['format']!r}, and this reads {FORMAT!r}")
        return TrainedModel(
            Architecture(**about["architecture"]),
            Range(**about["range"]),
            arrays,
            _training(about["training"]),
        )
    except InvalidInputError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise _refused(path, f"it does not say what elastream writes ({error!r})") from None


def _training(about: dict[str, Any]) -> Training:
    test = about["test"]
    return Training(
        **{
            **about,
            "origin": Origin(**about["origin"]),
            "validation": Errors(**about["validation"]),
            "test": test and Errors(**test),
        }
    )


def _refused(path: Path, why: str) -> InvalidInputError:
    return InvalidInputError(f"{path}: not a trained model: {why}; 'elastream train' makes one")
