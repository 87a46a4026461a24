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
import optax

from elastream.errors import InvalidInputError
from elastream.predictors.recurrent.architecture import Architecture
from elastream.predictors.recurrent.network import Network
from elastream.predictors.recurrent.split import Starts

LEARNING_RATE = 1e-2
WEIGHT_DECAY = 1e-3
BATCH = 128
PATIENCE = 10
"""After so many epochs without a better validation error, training ends."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """What there is to tell after each pass over the training part."""

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

    `after_epoch` is told of every epoch, and says whether to go on.
    """
    if epochs < 1:
        raise InvalidInputError(f"training needs at least 1 epoch, not {epochs}")
    network_key, shuffle_key = jax.random.split(jax.random.key(seed))
    series = jnp.asarray(scaled, jnp.float32)
    batch = min(BATCH, len(train))
    rate = optax.cosine_decay_schedule(LEARNING_RATE, epochs * (len(train) // batch))
    adam = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(rate, weight_decay=WEIGHT_DECAY))
    network = Network(architecture, key=network_key)
    state = adam.init(eqx.filter(network, eqx.is_inexact_array))
    best, best_epoch, best_mse = network, 0, float("inf")
    for number in range(1, epochs + 1):
        key = jax.random.fold_in(shuffle_key, number)
        network, state = _epoch(adam, architecture, batch, network, state, series, train, key)
        mse = float(_mse(network, architecture, series, validation))
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
    adam: optax.GradientTransformation,
    architecture: Architecture,
    batch: int,
    network: Network,
    state: Any,
    series: jax.Array,
    starts: Starts,
    key: jax.Array,
) -> tuple[Network, Any]:
    """One pass over the training part in a new order; the windows left over wait for the next."""
    weights, fixed = eqx.partition(network, eqx.is_inexact_array)
    batches = jax.random.permutation(key, starts)[: len(starts) // batch * batch]

    def loss(weights: Any, some: jax.Array) -> jax.Array:
        return _mse(eqx.combine(weights, fixed), architecture, series, some)

    def step(carry: tuple[Any, Any], some: jax.Array) -> tuple[tuple[Any, Any], None]:
        weights, state = carry
        updates, state = adam.update(jax.grad(loss)(weights, some), state, weights)
        return (optax.apply_updates(weights, updates), state), None

    (weights, state), _ = jax.lax.scan(step, (weights, state), batches.reshape(-1, batch))
    return eqx.combine(weights, fixed), state


@eqx.filter_jit
def _mse(
    network: Network, architecture: Architecture, series: jax.Array, starts: jax.Array | Starts
) -> jax.Array:
    """Equation 4 over the windows that begin at `starts`."""
    length = architecture.window + architecture.horizon
    samples = series[jnp.asarray(starts)[:, None] + jnp.arange(length)]
    windows, truth = samples[:, : architecture.window], samples[:, architecture.window :]
    forecasts = windows[:, -1:] + jax.vmap(network)(windows)
    return jnp.mean((truth - forecasts) ** 2)
