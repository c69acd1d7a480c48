"""Whole episodes, policy included, in one compiled scan: for dynamics written in JAX."""

from typing import Protocol

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from firl.types import Policy, Trajectories


class Dynamics(Protocol):
    """An environment as pure functions of one state, which is observed. A pytree.

    It never terminates. (`PointMass` is one.)
    """

    @property
    def obs_dim(self) -> int:
        """Numbers in an observation."""
        ...

    @property
    def act_dim(self) -> int:
        """Numbers in an action."""
        ...

    @property
    def horizon(self) -> int:
        """T."""
        ...

    def reset(self, key: PRNGKeyArray) -> Float[Array, "o"]:
        """Draw s_0."""
        ...

    def step(self, obs: Float[Array, "o"], action: Float[Array, "a"], /) -> Float[Array, "o"]:
        """s_{t+1} from s_t and an action in [−1, 1]^a."""
        ...


def simulate(dynamics: Dynamics, key: PRNGKeyArray, policy: Policy, num: int) -> Trajectories:
    """Run `num` episodes: a pure function, for use inside a larger `jit` or `vmap`."""
    k_reset, k_policy = jr.split(key)
    start = jax.vmap(dynamics.reset)(jr.split(k_reset, num))

    def step(
        obs: Float[Array, "n o"], t: Array
    ) -> tuple[Float[Array, "n o"], tuple[Float[Array, "n o"], Float[Array, "n a"]]]:
        actions = jax.vmap(policy)(step_keys(k_policy, t, num), obs)
        next_obs = jax.vmap(dynamics.step)(obs, actions)
        return next_obs, (next_obs, actions)

    _, (visited, actions) = jax.lax.scan(step, start, jnp.arange(dynamics.horizon))
    return Trajectories(
        obs=jnp.concatenate([start[None], visited]).swapaxes(0, 1),
        actions=actions.swapaxes(0, 1),
        lengths=jnp.full(num, dynamics.horizon, jnp.int32),
        terminated=jnp.zeros(num, jnp.bool_),
    )


def step_keys(key: PRNGKeyArray, t: Array, num: int) -> PRNGKeyArray:
    """One key per episode for the policy's action at step t."""
    return jr.split(jr.fold_in(key, t), num)


class JaxSimulator:
    """`simulate`, compiled once per structure of the policy and number of episodes."""

    def __init__(self, dynamics: Dynamics):
        self.dynamics = dynamics
        self.obs_dim, self.act_dim = dynamics.obs_dim, dynamics.act_dim
        self.horizon = dynamics.horizon

    def rollout(self, key: PRNGKeyArray, policy: Policy, num: int) -> Trajectories:
        """Run `num` fresh episodes, the same ones for the same key."""
        return _simulate(self.dynamics, key, policy, num)


_simulate = eqx.filter_jit(simulate)
