"""The errors of a network over many windows at once, and those of `basic`."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from elastream.predictors.accuracy import mae, rmse
from elastream.predictors.base import Samples, repeat_last
from elastream.predictors.recurrent.architecture import Architecture
from elastream.predictors.recurrent.model import Errors
from elastream.predictors.recurrent.network import Network
from elastream.predictors.recurrent.scaling import Range
from elastream.predictors.recurrent.split import Starts


def forecasts_after(
    network: Network, span: Range, windows: NDArray[np.float64]
) -> NDArray[np.float64]:
    """What follows each of the windows, one per row, in events per sample."""
    changes = _changes(network, jnp.asarray(span.scaled(windows), jnp.float32))
    return np.maximum(windows[:, -1:] + span.width * np.asarray(changes, np.float64), 0.0)


def measured(
    network: Network, architecture: Architecture, span: Range, samples: Samples, starts: Starts
) -> Errors:
    """The errors of the forecasts that follow the windows which begin at `starts`."""
    window, horizon = architecture.window, architecture.horizon
    examples = sliding_window_view(samples, window + horizon)[starts]
    windows, truth = examples[:, :window], examples[:, window:]
    forecasts = forecasts_after(network, span, windows)
    basic = np.stack([repeat_last(window, horizon) for window in windows])
    return Errors(
        rmse=rmse(truth, forecasts),
        mae=mae(truth, forecasts),
        basic_rmse=rmse(truth, basic),
        basic_mae=mae(truth, basic),
    )


@eqx.filter_jit
def _changes(network: Network, windows: jax.Array) -> jax.Array:
    return jax.vmap(network)(windows)
