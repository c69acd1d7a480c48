"""A circular buffer of transitions that lives where learning happens. Rewards are not in it."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from firl.types import Transition


class ReplayBuffer(eqx.Module):
    """The last `capacity` transitions, one packed row each, so that a draw is a single gather."""

    rows: Float[Array, "capacity width"]
    """obs, next_obs, action, terminated (0 or 1), and the environment's reward if it is kept."""
    size: Int[Array, ""]
    """Rows filled so far."""
    position: Int[Array, ""]
    """The row that the next transition goes to."""
    obs_dim: int = eqx.field(static=True)
    act_dim: int = eqx.field(static=True)

    @classmethod
    def create(
        cls, capacity: int, obs_dim: int, act_dim: int, *, keep_env_reward: bool = False
    ) -> "ReplayBuffer":
        """An empty buffer; imitation does not keep the environment's reward."""
        rows = jnp.zeros((capacity, 2 * obs_dim + act_dim + 1 + keep_env_reward))
        zero = jnp.zeros((), jnp.int32)
        return cls(rows, zero, jnp.copy(zero), obs_dim, act_dim)

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
        return unpack(self.rows[chosen], self.obs_dim, self.act_dim)


def unpack(rows: Float[Array, "*batch width"], obs_dim: int, act_dim: int) -> Transition:
    """Take packed rows apart."""
    ends = np.cumsum([obs_dim, obs_dim, act_dim, 1]).tolist()
    obs, next_obs, action, terminated, env_reward = jnp.split(rows, ends, -1)
    kept = env_reward[..., 0] if env_reward.shape[-1] else None
    return Transition(obs, action, next_obs, terminated[..., 0] > 0, kept)


def pack(transitions: Transition, width: int) -> Float[Array, "*batch width"]:
    """Put transitions into rows; the environment's reward only where it has a place."""
    columns = [transitions.obs, transitions.next_obs, transitions.action]
    columns.append(transitions.terminated[..., None].astype(transitions.obs.dtype))
    if sum(column.shape[-1] for column in columns) < width:
        assert transitions.env_reward is not None
        columns.append(transitions.env_reward[..., None])
    return jnp.concatenate(columns, axis=-1)


@eqx.filter_jit(donate="all-except-first")
def _insert(transitions: Transition, buffer: ReplayBuffer) -> ReplayBuffer:
    num, capacity = transitions.obs.shape[0], buffer.capacity
    kept = min(num, capacity)  # of more than fit, the last ones: what wrote over the others
    start = buffer.position + (num - kept)
    where = (start + jnp.arange(kept)) % capacity
    packed = pack(transitions, buffer.rows.shape[-1])[num - kept :]
    rows = buffer.rows.at[where].set(packed, unique_indices=True)
    size = jnp.minimum(buffer.size + num, capacity)
    position = (buffer.position + num) % capacity
    return ReplayBuffer(rows, size, position, buffer.obs_dim, buffer.act_dim)
