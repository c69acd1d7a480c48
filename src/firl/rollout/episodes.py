"""Episodes and transitions while they are being written, on the host."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float32, Int32

from firl.types import Trajectories, Transition

OnStep = Callable[..., None]
"""Sees obs, action, next obs, terminated and reward of each step of an episode."""


class Episodes(NamedTuple):
    """`Trajectories`, not yet handed over."""

    obs: Float32[np.ndarray, "m T_plus_1 o"]
    actions: Float32[np.ndarray, "m T a"]
    lengths: Int32[np.ndarray, "m"]
    terminated: Bool[np.ndarray, "m"]
    rewards: Float32[np.ndarray, "m T"]

    @classmethod
    def blank(cls, num: int, horizon: int, obs_dim: int, act_dim: int) -> "Episodes":
        """To be filled."""
        return cls(
            obs=np.zeros((num, horizon + 1, obs_dim), np.float32),
            actions=np.zeros((num, horizon, act_dim), np.float32),
            lengths=np.zeros(num, np.int32),
            terminated=np.zeros(num, np.bool_),
            rewards=np.zeros((num, horizon), np.float32),
        )


def joined(parts: list[Episodes]) -> Trajectories:
    """All of them, handed over."""
    return Trajectories(*(jnp.asarray(np.concatenate(field)) for field in zip(*parts, strict=True)))


class Chunk:
    """Transitions as they come, until somebody takes them."""

    def __init__(self, capacity: int, obs_dim: int, act_dim: int) -> None:
        self._obs = np.zeros((capacity, obs_dim), np.float32)
        self._action = np.zeros((capacity, act_dim), np.float32)
        self._next_obs = np.zeros((capacity, obs_dim), np.float32)
        self._terminated = np.zeros(capacity, np.bool_)
        self._rewards = np.zeros(capacity, np.float32)
        self.size = 0

    def append(
        self,
        obs: np.ndarray,
        action: np.ndarray,
        next_obs: np.ndarray,
        terminated: np.ndarray | bool,
        reward: np.ndarray | float,
    ) -> None:
        """One step of one episode."""
        i = self.size
        self._obs[i], self._action[i], self._next_obs[i] = obs, action, next_obs
        self._terminated[i], self._rewards[i] = terminated, reward
        self.size = i + 1

    def take(self) -> Transition:
        """All of them, of which nothing is left."""
        whole = self._part(0, self.size)
        self.size = 0
        return whole

    def take_in_powers_of_two(self) -> Iterator[Transition]:
        """The same in few sizes, because for each size something is compiled."""
        start, end = 0, self.size
        self.size = 0
        while start < end:
            num = 1 << ((end - start).bit_length() - 1)
            yield self._part(start, start + num)
            start += num

    def _part(self, start: int, end: int) -> Transition:
        # Copied here: a device would compile its copying anew for every number of rows.
        fields = (self._obs, self._action, self._next_obs, self._terminated, self._rewards)
        return Transition(*(jnp.asarray(field[start:end].copy()) for field in fields))
