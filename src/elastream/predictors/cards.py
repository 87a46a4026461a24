"""What to know about a model before you choose it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from inspect import Parameter, signature

from elastream.errors import MissingExtraError
from elastream.predictors import PREDICTORS


@dataclass(frozen=True, slots=True)
class Card:
    """Where a model comes from, and what it needs."""

    paper: str
    extra: str | None = None
    library: str | None = None
    """The module that the extra installs."""
    trained: bool = False
    """Whether it is made from a file that `elastream train` wrote."""

    @property
    def installed(self) -> bool:
        """Whether what it needs is here."""
        return self.library is None or find_spec(self.library) is not None


def _recurrent() -> Card:
    return Card("BGElasor", "train", "equinox", trained=True)


CARDS = {
    "auto": Card("elastream"),
    "basic": Card("PA-SPS"),
    "lr": Card("PA-SPS"),
    "fft": Card("PA-SPS"),
    "ann": Card("PA-SPS", "forecast", "sklearn"),
    "rf": Card("PA-SPS", "forecast", "sklearn"),
    "regression": Card("DABS-Storm"),
    "arima": Card("BGElasor", "forecast", "statsmodels"),
    "svr": Card("BGElasor", "forecast", "sklearn"),
    "lstm": _recurrent(),
    "gru": _recurrent(),
    "bilstm": _recurrent(),
    "bigru": _recurrent(),
}


def require(name: str) -> None:
    """Refuse a model whose libraries are missing, before anything waits for it."""
    card = CARDS[name]
    if card.extra and not card.installed:
        raise MissingExtraError(f"the model {name!r}", card.extra)


def parameters(name: str) -> dict[str, object]:
    """The parameters of a model with their defaults; None for those without one.

    A model whose libraries cannot be imported has none to show.

    >>> parameters("fft")
    {'frequencies': 10, 'degree': 3}
    """
    try:
        accepted = signature(PREDICTORS[name]).parameters.values()
    except ImportError:
        return {}
    return {
        parameter.name: None if parameter.default is Parameter.empty else parameter.default
        for parameter in accepted
    }
