"""The agent's last episodes, whole, as every method sees them that compares them with the expert's.

What terminated stays where it is, as a state that is visited like any other, and the critic's
target agrees (`sac/losses.py`).
"""

from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, PyTree

from firl.types import Trajectories

Leaves = TypeVar("Leaves", bound=PyTree[Array])


def newest(episodes: Trajectories, window: int) -> Trajectories:
    """The last `window` of them, newest first; where there are fewer, as often as it takes.

    Chosen on the host: their number varies, and no shape that is compiled may depend on it.
    """
    chosen = np.arange(episodes.num - 1, episodes.num - 1 - window, -1) % episodes.num
    taken: Trajectories = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[chosen]), episodes)
    return taken


def push(new: Leaves, recent: Leaves, num: int) -> Leaves:
    """The first `num` of `new` before what is recent, as many in all as there were."""
    window = jax.tree.leaves(recent)[0].shape[0]
    kept = np.arange(window) - num
    chosen = np.where(kept < 0, np.arange(window), window + kept)
    pushed: Leaves = jax.tree.map(lambda n, r: jnp.concatenate([n, r])[chosen], new, recent)
    return pushed


@eqx.filter_jit
def shortened(
    steps: Leaves, lengths: Int[Array, "n"], terminated: Bool[Array, "n"], tail: int
) -> Leaves:
    """Steps 0 … T−1 with at most `tail` in a terminal state; the rest is stretched to T."""
    horizon = jax.tree.leaves(steps)[0].shape[1]
    ends = jnp.where(terminated, jnp.minimum(lengths + tail, horizon), horizon)
    at = (jnp.arange(horizon)[None] * ends[:, None]) // horizon
    stretched: Leaves = jax.tree.map(
        lambda x: jnp.take_along_axis(x, at.reshape(*at.shape, *[1] * (x.ndim - 2)), axis=1), steps
    )
    return stretched
