"""Conventions, decided once, and the data that every module passes on.

A trajectory is s_0, a_0, s_1, …, s_T. What is matched is s_1 … s_T: the agent has no say in
s_0. The reward of a transition (s, a, s′) is r(s′). `log_ratio` is always log ρ_expert − log
ρ_agent. Horizons are fixed at T: when an environment terminates early, its terminal state is
absorbing and repeats until T, in what is matched and in the agent's value alike. A time limit
truncates and does not terminate.

An *observation* is what the environment emits and the policy sees; a *state* is what is
matched and rewarded, a function of the observation (`StateMap`).
"""

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int, PRNGKeyArray

from firl.errors import FirlError as FirlError


class Transition(eqx.Module):
    """One environment step, or a batch of them along a leading axis."""

    obs: Float[Array, "*batch o"]
    action: Float[Array, "*batch a"]
    """In [−1, 1]: the environment's own bounds are applied where it is stepped."""
    next_obs: Float[Array, "*batch o"]
    terminated: Bool[Array, "*batch"]
    """True where `next_obs` is absorbing. Never true for a time limit."""
    env_reward: Float[Array, "*batch"] | None = None
    """The environment's own reward, for agents that learn from it. Imitation never gets to see
    it: its replay buffer has no room for it."""


class Trajectories(eqx.Module):
    """N episodes of fixed horizon T, padded with their last observation where they ended early."""

    obs: Float[Array, "n T_plus_1 o"]
    """s_0 … s_T."""
    actions: Float[Array, "n T a"]
    """In [−1, 1]; zero where padded."""
    lengths: Int[Array, "n"]
    """Real transitions in each episode, at most T."""
    terminated: Bool[Array, "n"]
    """True where the environment ended the episode (rather than the horizon)."""
    rewards: Float[Array, "n T"]
    """The environment's own, zero where padded: for scores, and for learning from it outright."""

    @property
    def num(self) -> int:
        """Number of episodes."""
        return self.actions.shape[0]

    @property
    def horizon(self) -> int:
        """T."""
        return self.actions.shape[1]

    @property
    def env_steps(self) -> int:
        """Simulator steps that these episodes took: padding is free, everything else counts."""
        # On the host: a device would compile the sum anew for every number of episodes.
        return int(np.asarray(self.lengths).sum())

    @property
    def returns(self) -> Float[Array, "n"]:
        """Σ_t of the environment's own reward, by which experts and imitators are scored."""
        return jnp.sum(self.rewards, axis=1)

    @property
    def visited(self) -> Float[Array, "n T o"]:
        """The observations that are matched, s_1 … s_T."""
        return self.obs[:, 1:]


@runtime_checkable
class Policy(Protocol):
    """Chooses an action in [−1, 1]^a for one observation (callers vmap). A pytree."""

    def __call__(self, key: PRNGKeyArray, obs: Float[Array, "o"]) -> Float[Array, "a"]:
        """Sample an action."""
        ...


HostAct = Callable[[Float32[np.ndarray, "m o"], Float32[np.ndarray, "m a"]], np.ndarray]
"""From observations and standard normal noise to actions in [−1, 1], in NumPy."""


@runtime_checkable
class HostPolicy(Policy, Protocol):
    """A policy that also acts in NumPy, where one observation at a time is handed over."""

    def on_host(self) -> HostAct:
        """A copy of it, that stays what it is."""
        ...


@runtime_checkable
class RewardFn(Protocol):
    """Rewards a batch of transitions when it is drawn; rewards are never stored. A pytree."""

    def __call__(self, batch: Transition) -> Float[Array, "batch"]:
        """Reward each transition."""
        ...

    def absorbed(self, batch: Transition, rewards: Float[Array, "batch"]) -> Float[Array, "batch"]:
        """What each further step pays, for ever, if what a transition led to is absorbing.

        A reward of states pays `rewards` again; what an environment pays ends with the episode.
        """
        ...


@runtime_checkable
class Simulator(Protocol):
    """Rolls a policy out in an environment. The only thing that knows how an environment steps."""

    obs_dim: int
    act_dim: int
    horizon: int

    @property
    def action_bounds(self) -> tuple[list[float], list[float]]:
        """What −1 and 1 mean to the environment, per coordinate."""
        ...

    def rollout(self, key: PRNGKeyArray, policy: Policy, num: int) -> Trajectories:
        """Run `num` fresh episodes, the same ones for the same key."""
        ...

    def practise(
        self, key: PRNGKeyArray, policy: Policy, num_steps: int, every: int, learn: "Learn"
    ) -> Trajectories:
        """Run fresh episodes one after the other until they have `num_steps` steps.

        After each `every` steps `learn` is given them, and answers with the policy to go on with;
        what remains at the end it gets too.
        """
        ...


Learn = Callable[[Transition], Policy]
"""Learns from some transitions, and says how to act from now on."""

StateMap = Callable[[Float[Array, "*batch o"]], Float[Array, "*batch d"]]
"""From observations to the states that are matched, along the last axis."""


class Columns(eqx.Module):
    """The state is some of the observation's coordinates."""

    indices: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, obs: Float[Array, "*batch o"]) -> Float[Array, "*batch d"]:
        """Pick the columns."""
        return obs[..., jnp.asarray(self.indices)]


def columns_of(columns: Sequence[int], obs_dim: int) -> Columns:
    """These columns, if observations have them."""
    for column in columns:
        if not 0 <= column < obs_dim:
            raise FirlError(
                f"state has column {column}, but observations have columns 0 to {obs_dim - 1}."
            )
    return Columns(tuple(columns))
