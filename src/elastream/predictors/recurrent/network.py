"""The networks: recurrent layers over a window of samples, and a dense layer to the forecast.

BGElasor equations 1 to 3, with σ the gates of an LSTM or GRU cell:

    F_t = σ(W_F x_t + U_F F_{t-1} + b_F)      (1) forwards
    B_t = σ(W_B x_t + U_B B_{t+1} + b_B)      (2) backwards, in the bidirectional networks only
    y   = V_F F + V_B B + b_o                 (3) from the last state of each direction

Three choices are ours. x_t is a stride of several samples instead of one, so that a day of
5-minute samples is 24 recurrent steps and not 288: quicker, and easier to learn. The dense layer
is linear, as σ would bound a forecast to the range that was seen in training. And y is the change
from the last sample of the window: a load beyond that range shifts the forecast with it.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from elastream.errors import InvalidInputError
from elastream.predictors.recurrent.architecture import Architecture
from elastream.predictors.recurrent.model import Weights

DROPOUT = 0.1


class Network(eqx.Module):
    """The weights, and how a window becomes a forecast."""

    cells: list[eqx.nn.LSTMCell | eqx.nn.GRUCell]
    head: eqx.nn.Linear
    stride: int = eqx.field(static=True)

    def __init__(self, architecture: Architecture, *, key: jax.Array) -> None:
        head_key, *cell_keys = jax.random.split(key, 1 + architecture.directions)
        kind = eqx.nn.LSTMCell if architecture.cell == "lstm" else eqx.nn.GRUCell
        hidden, stride = architecture.hidden, architecture.stride
        self.cells = [kind(stride, hidden, key=cell_key) for cell_key in cell_keys]
        inputs = hidden * architecture.directions
        self.head = eqx.nn.Linear(inputs, architecture.horizon, key=head_key)
        self.stride = stride

    def __call__(self, window: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """The changes from the last sample of a scaled window to each sample of the horizon.

        With a `key`, dropout is on: in training it keeps the network from learning by heart.
        """
        strides = window.reshape(-1, self.stride)
        states = [_last_state(cell, strides, bool(back)) for back, cell in enumerate(self.cells)]
        kept = eqx.nn.Dropout(DROPOUT)(jnp.concatenate(states), key=key, inference=key is None)
        return self.head(kept)


def _last_state(
    cell: eqx.nn.LSTMCell | eqx.nn.GRUCell, strides: jax.Array, backwards: bool
) -> jax.Array:
    """Equation 1, or equation 2 when `backwards`, over the whole window."""
    state = jnp.zeros(cell.hidden_size)
    if isinstance(cell, eqx.nn.LSTMCell):
        (state, _), _ = jax.lax.scan(
            lambda carry, x: (cell(x, carry), None), (state, state), strides, reverse=backwards
        )
    else:
        state, _ = jax.lax.scan(
            lambda carry, x: (cell(x, carry), None), state, strides, reverse=backwards
        )
    return state


def weights_of(network: Network) -> Weights:
    """The weights by name, as plain arrays."""
    leaves = jax.tree_util.tree_leaves_with_path(eqx.filter(network, eqx.is_array))
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in leaves}


def network_with(architecture: Architecture, weights: Weights) -> Network:
    """The network that has these weights, or an error when they are not those of its shape."""
    shape = eqx.filter_eval_shape(Network, architecture, key=jax.random.key(0))
    leaves, structure = jax.tree_util.tree_flatten_with_path(shape)
    wanted = {jax.tree_util.keystr(path): leaf.shape for path, leaf in leaves}
    found = {name: weight.shape for name, weight in weights.items()}
    if wanted != found:
        raise InvalidInputError(
            f"the weights are not those of a {architecture.model} with a hidden state of "
            f"{architecture.hidden} and {architecture.horizon} samples out"
        )
    values = [jnp.asarray(weights[name], jnp.float32) for name in wanted]
    network: Network = jax.tree_util.tree_unflatten(structure, values)
    return network
