"""How a network learns: mean squared error, Adam, and an early stop on the validation part.

    MSE = 1/n Σ (x_i - x̂_i)²      (BGElasor equation 4)

The whole of it is compiled: an epoch is one loop over shuffled batches, and a batch is cut from the
series where it is needed, so that memory holds the series and not its windows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from elastream.errors import InvalidInputError
from elastream.predictors.recurrent.architecture import Architecture
from elastream.predictors.recurrent.network import Network, fresh_network
from elastream.predictors.recurrent.split import Starts

LEARNING_RATE = 1e-2
WEIGHT_DECAY = 1e-3
BATCH = 128
DROPOUT = 0.1
# One optimiser for every training, so that a network of a known shape is not compiled again.
ADAM = optax.chain(
    optax.clip_by_global_norm(1.0),
    optax.scale_by_adam(),
    optax.add_decayed_weights(WEIGHT_DECAY),
)
PATIENCE = 10
"""Training ends after this many epochs without a better validation error."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """The state after each pass over the training part."""

    number: int
    of: int
    validation_mse: float
    """In the units of the network, where the range of the training part is 1."""
    best_mse: float


def fit(
    architecture: Architecture,
    scaled: Any,
    train: Starts,
    validation: Starts,
    *,
    epochs: int,
    seed: int,
    after_epoch: Callable[[Epoch], bool],
) -> tuple[Network, int]:
    """The network that was best on the validation part, and after how many epochs it was.

    `after_epoch` is called with every epoch, and returns whether to continue.
    """
    if epochs < 1:
        raise InvalidInputError(f"training needs at least 1 epoch, not {epochs}")
    random = np.random.default_rng(seed)
    series = jnp.asarray(scaled, jnp.float32)
    batch = min(BATCH, len(train))
    rates = LEARNING_RATE * np.cos(np.linspace(0, np.pi / 2, epochs, endpoint=False)) ** 2
    network = fresh_network(architecture, random)
    state = ADAM.init(network)
    states = architecture.hidden * architecture.directions
    all_kept = np.ones((len(validation), states), np.float32)
    best, best_epoch, best_mse = network, 0, float("inf")
    for number, rate in enumerate(rates, start=1):
        batches = random.permutation(train)[: len(train) // batch * batch].reshape(-1, batch)
        kept = random.random((*batches.shape, states), np.float32) >= DROPOUT
        network, state = _epoch(
            architecture, network, state, series, batches, kept, np.float32(rate)
        )
        mse = float(_mse(network, architecture, series, validation, all_kept))
        if mse < best_mse:
            best, best_epoch, best_mse = network, number, mse
        go_on = after_epoch(Epoch(number, epochs, mse, best_mse))
        if not go_on or number - best_epoch >= PATIENCE:
            break
    if best_epoch == 0:
        raise InvalidInputError("training found no finite error: are the samples very far apart?")
    return best, best_epoch


@eqx.filter_jit
def _epoch(
    architecture: Architecture,
    network: Network,
    state: Any,
    series: jax.Array,
    batches: Any,
    kept: Any,
    rate: np.float32,
) -> tuple[Network, Any]:
    """One pass over the batches, each with the states that dropout keeps in it."""

    def loss(network: Network, starts: jax.Array, kept: jax.Array) -> jax.Array:
        return _mse(network, architecture, series, starts, kept / (1 - DROPOUT))

    def step(
        carry: tuple[Network, Any], batch: tuple[jax.Array, jax.Array]
    ) -> tuple[tuple[Network, Any], None]:
        network, state = carry
        updates, state = ADAM.update(jax.grad(loss)(network, *batch), state, network)
        changes = jax.tree.map(lambda update: -rate * update, updates)
        return (optax.apply_updates(network, changes), state), None

    return jax.lax.scan(step, (network, state), (batches, kept))[0]


@eqx.filter_jit
def _mse(
    network: Network,
    architecture: Architecture,
    series: jax.Array,
    starts: jax.Array | Starts,
    dropout: Any,
) -> jax.Array:
    """Equation 4 over the windows that begin at `starts`."""
    length = architecture.window + architecture.horizon
    samples = series[starts[:, None] + np.arange(length)]
    windows, truth = samples[:, : architecture.window], samples[:, architecture.window :]
    forecasts = windows[:, -1:] + jax.vmap(network)(windows, dropout)
    return jnp.mean((truth - forecasts) ** 2)
