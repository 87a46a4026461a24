"""How long one event occupies one replica: the same for all, at random, or by the event's value."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from elastream.errors import InvalidInputError

Floats = NDArray[np.float64]


class ServiceTime(ABC):
    """A distribution of execution times, in seconds per event."""

    mean: float
    """et_i."""

    @property
    @abstractmethod
    def variation(self) -> float:
        """Standard deviation over mean."""

    @abstractmethod
    def draw(self, random: np.random.Generator, count: int) -> Floats:
        """Execution times of this many events."""


@dataclass(frozen=True, slots=True)
class Fixed(ServiceTime):
    """Every event takes equally long."""

    mean: float

    def __post_init__(self) -> None:
        _check(self.mean)

    @property
    def variation(self) -> float:
        """None."""
        return 0.0

    def draw(self, random: np.random.Generator, count: int) -> Floats:
        """The mean, over and over."""
        return np.full(count, self.mean)


@dataclass(frozen=True, slots=True)
class Exponential(ServiceTime):
    """Without memory: the M of M/M/1."""

    mean: float

    def __post_init__(self) -> None:
        _check(self.mean)

    @property
    def variation(self) -> float:
        """That of every exponential distribution."""
        return 1.0

    def draw(self, random: np.random.Generator, count: int) -> Floats:
        """Independent draws."""
        return random.exponential(self.mean, count)


@dataclass(frozen=True, slots=True)
class Gamma(ServiceTime):
    """Short tails: below a variation of 1 more regular than exponential, above it less."""

    mean: float
    variation: float = 0.5

    def __post_init__(self) -> None:
        _check(self.mean, self.variation)

    def draw(self, random: np.random.Generator, count: int) -> Floats:
        """Independent draws."""
        square = self.variation**2
        return random.gamma(1 / square, self.mean * square, count)


@dataclass(frozen=True, slots=True)
class LogNormal(ServiceTime):
    """A long tail: most events are quick, a few take far longer."""

    mean: float
    variation: float = 1.0

    def __post_init__(self) -> None:
        _check(self.mean, self.variation)

    def draw(self, random: np.random.Generator, count: int) -> Floats:
        """Independent draws."""
        square = math.log1p(self.variation**2)
        return random.lognormal(math.log(self.mean) - square / 2, math.sqrt(square), count)


@dataclass(frozen=True)
class ByValue(ServiceTime):
    """What an event costs follows from its value (the sensitive operators of DABS-Storm).

    >>> sensitive = ByValue((0.001, 0.010), zipf(2, skew=1.0))
    >>> round(sensitive.mean, 6)
    0.004
    """

    seconds: tuple[float, ...]
    """The execution time of every value."""
    chances: tuple[float, ...]
    """How likely an event has it."""

    def __post_init__(self) -> None:
        if not self.seconds or len(self.seconds) != len(self.chances):
            raise InvalidInputError(
                f"{len(self.seconds)} execution times for {len(self.chances)} values: "
                "give one for each"
            )
        for seconds in self.seconds:
            _check(seconds)
        if min(self.chances) < 0 or not math.isclose(math.fsum(self.chances), 1.0):
            raise InvalidInputError(f"the chances of values add up to {sum(self.chances):g}, not 1")

    @cached_property
    def mean(self) -> float:  # type: ignore[override]
        """Over values, by their chances."""
        return float(np.dot(self.seconds, self.chances))

    @property
    def variation(self) -> float:
        """Over values, by their chances."""
        square = float(np.dot(np.square(self.seconds), self.chances))
        return math.sqrt(max(square - self.mean**2, 0.0)) / self.mean

    @cached_property
    def costs(self) -> Floats:
        """`seconds` as an array."""
        return np.asarray(self.seconds)

    def values(self, random: np.random.Generator, count: int) -> NDArray[np.int64]:
        """The values of this many events."""
        return np.searchsorted(self._upper, random.random(count), side="right").astype(np.int64)

    def draw(self, random: np.random.Generator, count: int) -> Floats:
        """What events with values drawn at random take."""
        taken: Floats = self.costs[self.values(random, count)]
        return taken

    @cached_property
    def _upper(self) -> Floats:
        return np.cumsum(self.chances)[:-1]


def zipf(values: int, skew: float) -> tuple[float, ...]:
    """Chances in proportion to 1/rank^skew; a skew of 0 is the uniform distribution."""
    chances = np.arange(1, values + 1, dtype=np.float64) ** -skew
    return tuple((chances / chances.sum()).tolist())


def _check(mean: float, variation: ArrayLike = 1.0) -> None:
    for what, number in (("execution time", mean), ("variation", variation)):
        if not (np.isfinite(number) and np.all(np.asarray(number) > 0)):
            raise InvalidInputError(f"an {what} of {number}: it must be finite and above 0")
