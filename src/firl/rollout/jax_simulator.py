"""Whole episodes, policy included, in one compiled scan: for dynamics written in JAX."""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, Key, PRNGKeyArray, PyTree

from firl.rollout.transitions import transitions
from firl.types import Learn, Policy, Trajectories


@runtime_checkable
class Dynamics(Protocol):
    """An environment as pure functions of its state. A pytree. It never terminates.

    `PointMass` is one.
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

    def reset(self, key: PRNGKeyArray) -> PyTree[Array]:
        """Draw the state that an episode starts in."""
        ...

    def observe(self, state: PyTree[Array], /) -> Float[Array, "o"]:
        """What the policy sees of a state."""
        ...

    def step(self, state: PyTree[Array], action: Float[Array, "a"], /) -> PyTree[Array]:
        """The state after an action in [−1, 1]^a."""
        ...


def simulate(dynamics: Dynamics, key: PRNGKeyArray, policy: Policy, num: int) -> Trajectories:
    """Run `num` episodes: a pure function, for use inside a larger `jit` or `vmap`."""
    k_reset, k_policy = jr.split(key)
    episodes = jnp.arange(num)

    def step(
        states: PyTree[Array], t: Int[Array, ""]
    ) -> tuple[PyTree[Array], tuple[Float[Array, "n o"], Float[Array, "n a"]]]:
        obs = jax.vmap(dynamics.observe)(states)
        actions = jax.vmap(policy)(step_keys(k_policy, t, episodes), obs)
        return jax.vmap(dynamics.step)(states, actions), (obs, actions)

    start = jax.vmap(dynamics.reset)(jr.split(k_reset, num))
    last, (obs, actions) = jax.lax.scan(step, start, jnp.arange(dynamics.horizon))
    return Trajectories(
        obs=jnp.concatenate([obs, jax.vmap(dynamics.observe)(last)[None]]).swapaxes(0, 1),
        actions=actions.swapaxes(0, 1),
        lengths=jnp.full(num, dynamics.horizon, jnp.int32),
        terminated=jnp.zeros(num, jnp.bool_),
        rewards=jnp.zeros((num, dynamics.horizon)),
    )


def step_keys(key: PRNGKeyArray, t: Int[Array, ""], episodes: Int[Array, "n"]) -> Key[Array, "n"]:
    """The policy's key in each of these episodes at step t, whichever others run beside them."""
    return jax.vmap(jr.fold_in, in_axes=(None, 0))(jr.fold_in(key, t), episodes)


class JaxSimulator:
    """`simulate`, compiled once per structure of the policy and number of episodes."""

    def __init__(self, dynamics: Dynamics):
        self.dynamics = dynamics
        self.obs_dim, self.act_dim = dynamics.obs_dim, dynamics.act_dim
        self.horizon = dynamics.horizon

    @property
    def action_bounds(self) -> tuple[list[float], list[float]]:
        """Dynamics in JAX take actions in [−1, 1] as they are."""
        return [-1.0] * self.act_dim, [1.0] * self.act_dim

    def rollout(self, key: PRNGKeyArray, policy: Policy, num: int) -> Trajectories:
        """Run `num` fresh episodes, the same ones for the same key."""
        return _simulate(self.dynamics, key, policy, num)

    def practise(
        self, key: PRNGKeyArray, policy: Policy, num_steps: int, every: int, learn: Learn
    ) -> Trajectories:
        """Episodes run compiled and as a whole, so that `learn` gets at least one at a time."""
        num, at_once = -(-num_steps // self.horizon), max(1, every // self.horizon)
        parts = []
        for first in range(0, num, at_once):
            together = min(at_once, num - first)
            parts.append(self.rollout(jr.fold_in(key, first), policy, together))
            policy = learn(transitions(parts[-1]))
        joined: Trajectories = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)
        return joined


_simulate = eqx.filter_jit(simulate)
