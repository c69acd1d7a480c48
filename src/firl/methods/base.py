"""The contract of every method, and what a method is given."""

from collections.abc import Callable
from dataclasses import fields
from typing import NamedTuple

import equinox as eqx
from jaxtyping import Array, Float, Int, PRNGKeyArray

from firl.expert.base import AbstractDensity
from firl.expert.regions import AbstractRegion
from firl.reward import RewardNet
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


class Method(NamedTuple):
    """A method is two functions; configuration is in their closure."""

    init: Callable[[PRNGKeyArray], State]
    step: Callable[[PRNGKeyArray, State], tuple[State, Info]]
