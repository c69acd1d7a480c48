"""Episodes of any Gymnasium environment: MuJoCo and the like step on the host."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Array, Float, Float32, Int, PRNGKeyArray, Shaped, UInt32

from firl.rollout.batches import AbstractBatch, EnvList, VectorBatch
from firl.rollout.checks import (
    Env,
    EnvFactory,
    check_actions,
    check_observations,
    check_spaces,
    check_truncations,
    choose_horizon,
    factory_of,
    name_of,
)
from firl.rollout.episodes import Chunk, Episodes, joined
from firl.rollout.jax_simulator import step_keys
from firl.rollout.solo import Rescale, Solo
from firl.types import HostPolicy, Learn, Policy, Trajectories

Act = Callable[[int, int, Float32[np.ndarray, "m o"]], Float32[np.ndarray, "m a"]]
"""From the step, the first episode and the observations to the actions of these episodes."""


class GymSimulator:
    """Rolls out in a Gymnasium environment, given by its id or by a function that makes one.

    An id's own VectorEnv is used where it has one. The policy is called once per step for all
    environments, compiled. Episodes start from seeds that are drawn from the key, so that a
    rollout depends on (key, policy, num) and on nothing that ran before.
    """

    def __init__(
        self, env: str | EnvFactory, horizon: int | None = None, num_envs: int | None = None
    ):
        """Check the environment; `horizon` defaults to its own time limit.

        `num_envs` step together: 64 by default, or 1000 in a VectorEnv, which is as many as the
        density experiments roll out and more than enough to hide the policy's cost.
        """
        make = factory_of(env)
        first = make()
        observations, self._actions = check_spaces(first)
        self.name, self.spec = name_of(first), first.spec
        self.obs_dim, self.act_dim = observations.shape[0], self._actions.shape[0]
        self.horizon = choose_horizon(first, horizon)
        self._make, self._rescale = make, _rescale_to(self._actions)
        self._batch, default = _make_batch(env, make, first)
        self._num_envs = default if num_envs is None else num_envs

    @property
    def action_bounds(self) -> tuple[list[float], list[float]]:
        """The bounds of the environment's action space."""
        return self._actions.low.tolist(), self._actions.high.tolist()

    def rollout(self, key: PRNGKeyArray, policy: Policy, num: int) -> Trajectories:
        """Run `num` fresh episodes, the same ones for the same key."""
        k_seeds, k_policy = jr.split(key)
        seeds = np.asarray(jr.bits(k_seeds, (num,), jnp.uint32)).tolist()
        num_together = min(num, self._num_envs)
        act = _make_act(policy, k_policy, num_together)
        parts = [
            self._run(act, seeds[first : first + num_together], first)
            for first in range(0, num, num_together)
        ]
        return joined(parts)

    def practise(
        self, key: PRNGKeyArray, policy: Policy, num_steps: int, every: int, learn: Learn
    ) -> Trajectories:
        """Run fresh episodes one after the other until they have `num_steps` steps.

        `learn` gets transitions `every` at a time, across the ends of episodes, and at the end what
        remains, in few sizes.
        """
        k_seeds, k_policy = jr.split(key)
        # Drawn on the host: a device's answer takes as long as ten steps, and episodes are short
        # as long as the agent falls over.
        seeds = np.random.default_rng(np.asarray(jr.key_data(k_seeds)))
        noise = np.random.default_rng(np.asarray(jr.key_data(k_policy)))

        def act_by(policy: Policy) -> Act:
            if not isinstance(policy, HostPolicy):
                return _make_act(policy, k_policy, 1)
            on_host, act_dim = policy.on_host(), self.act_dim
            return lambda t, first, obs: on_host(
                obs, noise.standard_normal((1, act_dim), np.float32)
            )

        acting = act_by(policy)
        chunk = Chunk(every, self.obs_dim, self.act_dim)

        def on_step(*step: Any) -> None:
            nonlocal acting
            chunk.append(*step)
            if chunk.size == every:
                acting = act_by(learn(chunk.take()))

        def act(t: int, obs: Float32[np.ndarray, "1 o"]) -> Float32[np.ndarray, "1 a"]:
            return acting(t, len(parts), obs)  # whoever that is by now

        parts: list[Episodes] = []
        steps = 0
        while steps < num_steps:
            seed = int(seeds.integers(2**32))
            parts.append(self._alone.run(act, seed, len(parts), on_step))
            steps += int(parts[-1].lengths[0])
        for rest in chunk.take_in_powers_of_two():
            learn(rest)
        return joined(parts)

    def close(self) -> None:
        """Release what the environments hold."""
        self._batch.close()
        if "_alone" in self.__dict__:
            self._alone.env.close()

    @functools.cached_property
    def _alone(self) -> Solo:
        """An environment for one episode at a time."""
        sizes = (self.horizon, self.obs_dim, self.act_dim)
        return Solo(self._make(), self.name, *sizes, self._rescale)

    def _run(self, act: Act, seeds: list[int], first: int) -> Episodes:
        """Episodes `first`, `first` + 1, … together, until the last one has ended."""
        num, horizon = len(seeds), self.horizon
        obs = self._batch.reset(seeds)
        check_observations(self.name, obs, first, 0)
        episodes = Episodes.blank(num, horizon, self.obs_dim, self.act_dim)
        episodes.obs[:, 0] = obs
        running = np.ones(num, np.bool_)
        for t in range(horizon):
            actions = act(t, first, obs)
            if not running.all():
                actions = np.where(running[:, None], actions, np.float32(0))
            check_actions(actions, first, t)
            stepped, rewards, terminated, truncated = self._batch.step(
                self._rescale(actions), running
            )
            obs = np.where(running[:, None], stepped, obs)
            check_observations(self.name, obs, first, t + 1)
            terminated &= running
            check_truncations(self.name, truncated & running & ~terminated, first, t + 1, horizon)
            episodes.actions[:, t] = actions
            episodes.obs[:, t + 1] = obs
            episodes.rewards[:, t] = np.where(running, rewards, np.float32(0))
            episodes.lengths[running] += 1
            episodes.terminated[terminated] = True
            running &= ~terminated
            if not running.any():
                episodes.obs[:, t + 1 :] = obs[:, None]
                break
        return episodes


def _rescale_to(space: Box) -> Rescale:
    """From [−1, 1] to the environment's bounds; exact where those are [−1, 1] too."""
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    middle, half = (low + high) / 2, (high - low) / 2
    if (middle == 0).all() and (half == 1).all():
        return lambda actions: actions.astype(space.dtype)

    def rescale(actions: Float32[np.ndarray, "*m a"]) -> Shaped[np.ndarray, "*m a"]:
        scaled: np.ndarray = middle + half * actions
        return scaled.astype(space.dtype)

    return rescale


def _make_batch(env: str | EnvFactory, make: EnvFactory, first: Env) -> tuple[AbstractBatch, int]:
    """The fastest way to step several, and how many by default."""
    if isinstance(env, str) and first.spec is not None and first.spec.vector_entry_point:
        vector = VectorBatch(env)
        if vector.resets_itself:
            first.close()
            return vector, 1000
        vector.close()
    return EnvList(make, first), 64


def _make_act(policy: Policy, key: PRNGKeyArray, num_rows: int) -> Act:
    """The policy on the host, for up to `num_rows` episodes.

    It is taken apart once per roll-out: `eqx.filter_jit` would do so at every step, which costs
    several times what the policy itself does.
    """
    leaves, structure = jax.tree.flatten(policy)
    is_array = [isinstance(leaf, jax.Array | np.ndarray) for leaf in leaves]
    arrays = [leaf for leaf, array in zip(leaves, is_array, strict=True) if array]
    rest = tuple(None if array else leaf for leaf, array in zip(leaves, is_array, strict=True))
    compiled = _compile(rest, structure, str(jr.key_impl(key)))
    key_data = np.asarray(jr.key_data(key))

    def act(t: int, first: int, obs: Float32[np.ndarray, "m o"]) -> Float32[np.ndarray, "m a"]:
        num = len(obs)
        if num < num_rows:
            obs = np.pad(obs, ((0, num_rows - num), (0, 0)))
        actions = compiled(arrays, key_data, np.int32(t), np.int32(first), obs)
        return np.asarray(actions, np.float32)[:num]

    return act


@functools.lru_cache
def _compile(rest: tuple[Any, ...], structure: Any, key_impl: str) -> Callable[..., Array]:
    """The policy of all rows, compiled once per `structure`, `rest` and number of rows.

    `rest` is what of its leaves is not an array, with None in place of the arrays.
    """

    @jax.jit
    def act(
        arrays: list[Array],
        key_data: UInt32[Array, "k"],
        t: Int[Array, ""],
        first: Int[Array, ""],
        obs: Float[Array, "m o"],
    ) -> Float[Array, "m a"]:
        remaining = iter(arrays)
        leaves = [next(remaining) if leaf is None else leaf for leaf in rest]
        policy = jax.tree.unflatten(structure, leaves)
        key = jr.wrap_key_data(key_data, impl=key_impl)
        keys = step_keys(key, t, first + jnp.arange(obs.shape[0], dtype=jnp.int32))
        actions: Array = jax.vmap(policy)(keys, obs)
        return actions

    return act
