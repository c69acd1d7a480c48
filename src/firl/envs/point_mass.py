"""A point in a square room, moved by its actions: the smallest place to match a density in.

Appendices C.3 and C.4 of the paper: a room of 6×6 or 4×4 whose walls stop the point, which
starts in the corner (0, 0), moves by an action in [−1, 1]² and has T = 30 steps. (The reference
code's T = 30 makes 29 transitions; here there are 30.)
"""

from typing import ClassVar, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Array, Float, Float32, PRNGKeyArray

from firl.envs.fixed_horizon import (
    AbstractFixedHorizonEnv,
    AbstractFixedHorizonVectorEnv,
    check_horizon,
)
from firl.errors import FirlError

AnyArray = TypeVar("AnyArray", jax.Array, np.ndarray)


class PointMass(eqx.Module):
    """The dynamics, as pure functions of arrays with any leading axes."""

    size: float = eqx.field(static=True, default=4.0)
    """Length of the room's sides."""
    horizon: int = eqx.field(static=True, default=30)
    """T."""
    obs_dim: ClassVar[int] = 2
    act_dim: ClassVar[int] = 2

    def __check_init__(self) -> None:
        """Refuse a room or an episode that is empty."""
        if not 0 < self.size < float("inf"):
            raise FirlError(f"The point mass's size is {self.size}, but must be positive.")
        check_horizon(self.horizon)

    def reset(self, key: PRNGKeyArray) -> Float32[Array, "2"]:
        """Where an episode starts: always the same corner."""
        return jnp.zeros(2, jnp.float32)

    def observe(self, position: Float[Array, "2"]) -> Float[Array, "2"]:
        """Nothing is hidden."""
        return position

    def step(
        self, position: Float[AnyArray, "*n 2"], action: Float[AnyArray, "*n 2"]
    ) -> Float[AnyArray, "*n 2"]:
        """Move by the action, as far as the walls let. NumPy and JAX agree bit for bit."""
        moved: AnyArray = (position + action).clip(0.0, self.size)
        return moved


class PointMassEnv(AbstractFixedHorizonEnv):
    """`firl/PointMass-v0`."""

    def __init__(self, size: float = 4.0, horizon: int = 30):
        self.dynamics = PointMass(size, horizon)
        super().__init__(*_spaces(size), horizon)
        self._position = np.zeros(2, np.float32)

    def start(self) -> Float32[np.ndarray, "2"]:
        """Back to the corner."""
        self._position = np.zeros(2, np.float32)
        return self._position.copy()

    def advance(self, action: Float32[np.ndarray, "2"]) -> Float32[np.ndarray, "2"]:
        """Move the point."""
        self._position = self.dynamics.step(self._position, action)
        return self._position.copy()


class PointMassVectorEnv(AbstractFixedHorizonVectorEnv):
    """`firl/PointMass-v0` for many points at once."""

    def __init__(self, num_envs: int = 1, size: float = 4.0, horizon: int = 30):
        self.dynamics = PointMass(size, horizon)
        super().__init__(num_envs, *_spaces(size), horizon)
        self._positions = np.zeros((num_envs, 2), np.float32)

    def start(self) -> Float32[np.ndarray, "n 2"]:
        """Every point back to the corner."""
        self._positions = np.zeros((self.num_envs, 2), np.float32)
        return self._positions.copy()

    def advance(self, actions: Float32[np.ndarray, "n 2"]) -> Float32[np.ndarray, "n 2"]:
        """Move every point."""
        self._positions = self.dynamics.step(self._positions, actions)
        return self._positions.copy()


def _spaces(size: float) -> tuple[Box, Box]:
    """Of one point's observations and actions."""
    return Box(0.0, size, (2,), np.float32), Box(-1.0, 1.0, (2,), np.float32)
