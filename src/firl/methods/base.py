"""The contract of every method, and what a method is given."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Generic, NamedTuple, TypeVar

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from firl.expert.base import AbstractDensity
from firl.expert.regions import AbstractRegion
from firl.reward import RewardNet, Scaling
from firl.sac.agent import Agent
from firl.types import Simulator, StateMap


class Problem(NamedTuple):
    """Where to act, what of it to match, and whom."""

    simulator: Simulator
    state_map: StateMap
    expert: AbstractDensity
    arena: AbstractRegion | None
    """The states that can be reached, where that is known."""

    @property
    def state_dim(self) -> int:
        """d, the number of coordinates that are matched."""
        return self.expert.dim

    def scaling(self, normalise: bool) -> Scaling:
        """What the reward network is to do to states first: fit the arena, if there is one."""
        if self.arena is None or not normalise:
            return Scaling((0.0,) * self.state_dim, (1.0,) * self.state_dim)
        low, high = (np.asarray(corner, float) for corner in self.arena.bounds())
        return Scaling(tuple(((low + high) / 2).tolist()), tuple(((high - low) / 2).tolist()))


class State(eqx.Module):
    """What the next step needs; methods add to it. Everything in it is checkpointed."""

    agent: eqx.AbstractVar[Agent]
    reward: eqx.AbstractVar[RewardNet]
    env_steps: eqx.AbstractVar[Int[Array, ""]]
    """All simulator steps that training took."""


Info = dict[str, Float[Array, ""]]
"""What gets logged, as `area/name`."""


def named(area: str, info: eqx.Module) -> Info:
    """The fields of an info module as `area/field`."""
    return {f"{area}/{field.name}": getattr(info, field.name) for field in fields(info)}


AnyState = TypeVar("AnyState", bound=State)


@dataclass(frozen=True)
class Method(Generic[AnyState]):
    """A method is two functions; configuration is in their closure."""

    init: Callable[[PRNGKeyArray], AnyState]
    step: Callable[[PRNGKeyArray, AnyState], tuple[AnyState, Info]]
