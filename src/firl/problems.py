"""What a method is asked to solve: where to act, what of it to match, and whom."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from firl.config import TrainConfig
from firl.errors import FirlError
from firl.expert.base import AbstractDensity
from firl.expert.demonstrations import Demonstrations
from firl.expert.regions import AbstractRegion
from firl.reward import Scaling
from firl.types import Simulator, StateMap

_LEAST_SPREAD = 1e-6
"""Below this a coordinate counts as constant: dividing by it would make rounding a signal."""


class Problem(NamedTuple):
    """Where to act, what of it to match, and whom."""

    simulator: Simulator
    state_map: StateMap
    expert: AbstractDensity | Demonstrations | None
    """None where nobody is imitated and the environment's own reward is learned from."""
    arena: AbstractRegion | None
    """The states that can be reached, where that is known."""
    units: Scaling | None = None
    """What networks of the state do to it first, where that is settled already."""

    @property
    def density(self) -> AbstractDensity:
        """The expert, where it has to be a density."""
        if not isinstance(self.expert, AbstractDensity):
            raise FirlError(
                "There is no expert to imitate: name demonstrations, --demos FILE, or take a task "
                "that has a density or brings its own."
                if self.expert is None
                else "This needs an expert that is a density: choose a task that has one."
            )
        return self.expert

    @property
    def demonstrations(self) -> Demonstrations:
        """The expert, where it has to be episodes."""
        if not isinstance(self.expert, Demonstrations):
            raise FirlError("This needs demonstrations: name a file of them, --demos FILE.")
        return self.expert

    @property
    def state_dim(self) -> int:
        """d, the number of coordinates that are matched."""
        obs = jax.ShapeDtypeStruct((1, self.simulator.obs_dim), np.float32)
        dim: int = jax.eval_shape(self.state_map, obs).shape[-1]
        return dim

    def scaling(self, config: TrainConfig) -> Scaling:
        """What networks of the state do to it first: fit the arena, or the demonstrations used."""
        normalise = config.reward.normalise
        if self.units is not None:
            return self.units
        if isinstance(self.expert, Demonstrations) and normalise:
            return self._scaling_to(self.expert.first(config.imitation.demonstrations))
        if self.arena is None or not normalise:
            return Scaling((0.0,) * self.state_dim, (1.0,) * self.state_dim)
        low, high = (np.asarray(corner, float) for corner in self.arena.bounds())
        return Scaling(tuple(((low + high) / 2).tolist()), tuple(((high - low) / 2).tolist()))

    def _scaling_to(self, demonstrations: Demonstrations) -> Scaling:
        """Mean and standard deviation of the demonstrated states; a constant one keeps its unit."""
        visited = np.concatenate([obs[1:] for obs in demonstrations.observations])
        states = np.asarray(self.state_map(jnp.asarray(visited)), np.float64)
        spread = states.std(axis=0)
        spread = np.where(spread > _LEAST_SPREAD, spread, 1.0)
        return Scaling(tuple(states.mean(axis=0).tolist()), tuple(spread.tolist()))
