"""The networks: recurrent layers over a window of samples, and a dense layer to the forecast.

BGElasor equations 1 to 3, with σ the gates of an LSTM or GRU cell:

    F_t = σ(W_F x_t + U_F F_{t-1} + b_F)      (1) forwards
    B_t = σ(W_B x_t + U_B B_{t+1} + b_B)      (2) backwards, in the bidirectional networks only
    y   = V_F F + V_B B + b_o                 (3) from the last state of each direction

Three choices are ours. x_t is a stride of several samples instead of one, so that half a day of
5-minute samples is 48 recurrent steps and not 144: quicker, and easier to learn. The dense layer
is linear, as σ would bound a forecast to the range that was seen in training. And y is the change
from the last sample of the window: a load beyond that range shifts the forecast with it.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from elastream.errors import InvalidInputError
from elastream.predictors.recurrent.architecture import Architecture
from elastream.predictors.recurrent.model import Weights


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

    def __call__(self, window: jax.Array, dropout: jax.Array | float = 1.0) -> jax.Array:
        """The changes from the last sample of a scaled window to each sample of the horizon.

        The states are multiplied by `dropout`: in training it silences some of them, which keeps
        the network from learning the samples by heart.
        """
        strides = window.reshape(-1, self.stride)
        states = [_last_state(cell, strides, bool(back)) for back, cell in enumerate(self.cells)]
        return self.head(jnp.concatenate(states) * dropout)


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


def fresh_network(architecture: Architecture, random: np.random.Generator) -> Network:
    """A network with weights drawn evenly from ±1/√n, where n is the size of its state.

    By numpy, like all that is random here: to compile JAX's own generators takes longer than to
    train a small network.
    """
    widest = 1 / np.sqrt(architecture.hidden)
    return network_with(
        architecture,
        {
            name: random.uniform(-widest, widest, shape).astype(np.float32)
            for name, shape in _shapes(architecture).items()
        },
    )


def network_with(architecture: Architecture, weights: Weights) -> Network:
    """The network that has these weights, or an error when they are not those of its shape."""
    shapes = _shapes(architecture)
    if shapes != {name: weight.shape for name, weight in weights.items()}:
        raise InvalidInputError(
            f"the weights are not those of a {architecture.model} with a hidden state of "
            f"{architecture.hidden} and {architecture.horizon} samples out"
        )
    structure = jax.tree_util.tree_structure(_skeleton(architecture))
    values = [np.asarray(weights[name], np.float32) for name in shapes]
    network: Network = jax.tree_util.tree_unflatten(structure, values)
    return network


def _shapes(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    leaves = jax.tree_util.tree_leaves_with_path(_skeleton(architecture))
    return {jax.tree_util.keystr(path): leaf.shape for path, leaf in leaves}


def _skeleton(architecture: Architecture) -> Any:
    """A network with the shapes of its weights in their place; nothing is computed."""
    return eqx.filter_eval_shape(lambda: Network(architecture, key=jax.random.key(0)))
