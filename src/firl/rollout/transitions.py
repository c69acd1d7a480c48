"""From episodes to what a replay buffer holds.

Padding never gets there: the absorbing state's future is the value's business, not a step that
somebody took. How many transitions remain therefore depends on the data as soon as an episode
ends early, and so does their array's shape. Where episodes always have full length, the shape is
n·T and nothing that receives them is ever compiled twice.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from firl.types import Trajectories, Transition


def transitions(trajectories: Trajectories) -> Transition:
    """The real transitions, episode by episode. On the host: not for use under `jit`."""
    flat: Transition = _all_transitions(trajectories)
    real = np.asarray(_is_real(trajectories)).reshape(-1)
    if not real.all():
        # NumPy picks the rows, for JAX would compile the choice anew for every number of them.
        flat = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[real]), flat)
    return flat


def all_transitions(trajectories: Trajectories) -> Transition:
    """All n·T transitions, under `jit` too. Right where no episode ends before its horizon."""
    steps = jnp.arange(trajectories.horizon)[None, :]
    is_last = steps == trajectories.lengths[:, None] - 1
    nested = Transition(
        obs=trajectories.obs[:, :-1],
        action=trajectories.actions,
        next_obs=trajectories.obs[:, 1:],
        terminated=is_last & trajectories.terminated[:, None],
        env_reward=trajectories.rewards,
    )
    flat: Transition = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), nested)
    return flat


_all_transitions = jax.jit(all_transitions)


def _is_real(trajectories: Trajectories) -> Bool[np.ndarray, "n T"]:
    return np.arange(trajectories.horizon) < np.asarray(trajectories.lengths)[:, None]
