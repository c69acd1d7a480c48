"""The contract of every method."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray

from firl.errors import FirlError
from firl.reward import RewardNet
from firl.sac.agent import Agent
from firl.types import Policy


def check_budget(env_steps: int, random_steps: int, option: str) -> None:
    """Refuse a budget that exploration uses up: nothing would be learned."""
    if env_steps <= random_steps:
        raise FirlError(
            f"--env-steps is {env_steps}, which {random_steps} random steps use up: raise it, or "
            f"lower {option}."
        )


def share_spent(env_steps: Int[Array, ""], budget: int) -> Float[Array, ""]:
    """Of the budget, for what falls as it is used up."""
    return jnp.minimum(env_steps / budget, 1.0)


class State(eqx.Module):
    """What the next step needs; methods add to it. Everything in it is checkpointed."""

    agent: eqx.AbstractVar[Agent]
    reward: eqx.AbstractVar[RewardNet | None]
    env_steps: eqx.AbstractVar[Int[Array, ""]]
    """All simulator steps that training took."""

    @property
    def policies(self) -> tuple[Policy, ...]:
        """What is to be scored: each of them for as many episodes."""
        return (self.agent.policy,)


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
    finished: Callable[[AnyState], bool] | None = None
    """Where something other than the budget of environment steps ends it."""
