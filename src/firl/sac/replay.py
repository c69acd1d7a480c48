"""A circular buffer of transitions that lives where learning happens. Rewards are not in it."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, PRNGKeyArray

from firl.types import Transition


class ReplayBuffer(eqx.Module):
    """The last `capacity` transitions, one packed row each, so that a draw is a single gather."""

    rows: Float[Array, "capacity width"]
    """obs, next_obs, action, terminated (0 or 1), side by side."""
    size: Int[Array, ""]
    """Rows filled so far."""
    position: Int[Array, ""]
    """The row that the next transition goes to."""
    obs_dim: int = eqx.field(static=True)

    @classmethod
    def create(cls, capacity: int, obs_dim: int, act_dim: int) -> "ReplayBuffer":
        """An empty buffer."""
        rows = jnp.zeros((capacity, 2 * obs_dim + act_dim + 1))
        zero = jnp.zeros((), jnp.int32)
        return cls(rows, zero, jnp.copy(zero), obs_dim)

    @property
    def capacity(self) -> int:
        """Transitions that fit."""
        return self.rows.shape[-2]

    def insert(self, transitions: Transition) -> "ReplayBuffer":
        """Write n transitions in order, over the oldest where it is full. Donates this buffer."""
        return _insert(transitions, self)

    def sample(self, key: PRNGKeyArray, batch_size: int) -> Transition:
        """Draw uniformly, with replacement, from what is there (at least one transition)."""
        chosen = jr.randint(key, (batch_size,), 0, self.size)
        return unpack(self.rows[chosen], self.obs_dim)


def unpack(rows: Float[Array, "*batch width"], obs_dim: int) -> Transition:
    """Take packed rows apart."""
    obs, next_obs, action, terminated = jnp.split(
        rows, [obs_dim, 2 * obs_dim, -1 % rows.shape[-1]], -1
    )
    return Transition(obs, action, next_obs, terminated[..., 0] > 0)


def pack(transitions: Transition) -> Float[Array, "*batch width"]:
    """Put transitions into rows."""
    terminated = transitions.terminated[..., None].astype(transitions.obs.dtype)
    return jnp.concatenate(
        [transitions.obs, transitions.next_obs, transitions.action, terminated], axis=-1
    )


@eqx.filter_jit(donate="all-except-first")
def _insert(transitions: Transition, buffer: ReplayBuffer) -> ReplayBuffer:
    num, capacity = transitions.obs.shape[0], buffer.capacity
    kept = min(num, capacity)  # of more than fit, the last ones: what wrote over the others
    start = buffer.position + (num - kept)
    where = (start + jnp.arange(kept)) % capacity
    rows = buffer.rows.at[where].set(pack(transitions)[num - kept :], unique_indices=True)
    size = jnp.minimum(buffer.size + num, capacity)
    return ReplayBuffer(rows, size, (buffer.position + num) % capacity, buffer.obs_dim)
