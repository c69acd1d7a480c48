"""Episodes of any Gymnasium environment: MuJoCo and the like step on the host."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int32, PRNGKeyArray, Shaped, UInt32

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
from firl.rollout.jax_simulator import step_keys
from firl.types import Policy, Trajectories

Act = Callable[[UInt32[np.ndarray, "m k"], Float32[np.ndarray, "m o"]], Float[np.ndarray, "m a"]]


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
        self.name = name_of(first)
        self.obs_dim, self.act_dim = observations.shape[0], self._actions.shape[0]
        self.horizon = choose_horizon(first, horizon)
        self._batch, default = _make_batch(env, make, first)
        self._num_envs = default if num_envs is None else num_envs

    def rollout(self, key: PRNGKeyArray, policy: Policy, num: int) -> Trajectories:
        """Run `num` fresh episodes, the same ones for the same key."""
        k_seeds, k_policy = jr.split(key)
        seeds = np.asarray(jr.bits(k_seeds, (num,), jnp.uint32)).tolist()
        keys = np.asarray(_all_keys(k_policy, self.horizon, num))
        act = _make_act(policy, str(jr.key_impl(key)), min(num, self._num_envs))
        parts = []
        for first in range(0, num, self._num_envs):
            batch = slice(first, first + self._num_envs)
            parts.append(self._run(act, seeds[batch], keys[:, batch], first))
        joined = (np.concatenate(field) for field in zip(*parts, strict=True))
        return Trajectories(*map(jnp.asarray, joined))

    def close(self) -> None:
        """Release what the environments hold."""
        self._batch.close()

    def _run(
        self, act: Act, seeds: list[int], keys: UInt32[np.ndarray, "T m k"], first: int
    ) -> "_Episodes":
        """Episodes `first`, `first` + 1, … together, until the last one has ended."""
        num, horizon = len(seeds), self.horizon
        obs = self._batch.reset(seeds)
        check_observations(self.name, obs, first, 0)
        episodes = _Episodes(
            obs=np.repeat(obs[:, None], horizon + 1, axis=1),
            actions=np.zeros((num, horizon, self.act_dim), np.float32),
            lengths=np.zeros(num, np.int32),
            terminated=np.zeros(num, np.bool_),
        )
        running = np.ones(num, np.bool_)
        for t in range(horizon):
            actions = np.where(running[:, None], act(keys[t], obs), np.float32(0))
            check_actions(actions, first, t)
            stepped, terminated, truncated = self._batch.step(self._rescale(actions), running)
            obs = np.where(running[:, None], stepped, obs)
            check_observations(self.name, obs, first, t + 1)
            terminated &= running
            check_truncations(self.name, truncated & running & ~terminated, first, t + 1, horizon)
            episodes.actions[:, t] = actions
            episodes.obs[:, t + 1 :] = obs[:, None]
            episodes.lengths[running] += 1
            episodes.terminated[terminated] = True
            running &= ~terminated
            if not running.any():
                break
        return episodes

    def _rescale(self, actions: Float32[np.ndarray, "m a"]) -> Shaped[np.ndarray, "m a"]:
        """From [−1, 1] to the environment's bounds; exact where those are [−1, 1] too."""
        low, high = self._actions.low.astype(np.float64), self._actions.high.astype(np.float64)
        scaled: np.ndarray = (low + high) / 2 + (high - low) / 2 * actions
        return scaled.astype(self._actions.dtype)


class _Episodes(NamedTuple):
    """`Trajectories` while they are being written, on the host."""

    obs: Float32[np.ndarray, "m T_plus_1 o"]
    actions: Float32[np.ndarray, "m T a"]
    lengths: Int32[np.ndarray, "m"]
    terminated: Bool[np.ndarray, "m"]


def _make_batch(env: str | EnvFactory, make: EnvFactory, first: Env) -> tuple[AbstractBatch, int]:
    """The fastest way to step several, and how many by default."""
    if isinstance(env, str) and first.spec is not None and first.spec.vector_entry_point:
        vector = VectorBatch(env)
        if vector.resets_itself:
            return vector, 1000
    return EnvList(make, first), 64


@functools.partial(jax.jit, static_argnames=("horizon", "num"))
def _all_keys(key: PRNGKeyArray, horizon: int, num: int) -> UInt32[Array, "T m k"]:
    """The policy's keys at every step, as `simulate` draws them."""
    return jr.key_data(jax.vmap(lambda t: step_keys(key, t, num))(jnp.arange(horizon)))


def _make_act(policy: Policy, key_impl: str, num_rows: int) -> Act:
    """The policy on the host, compiled once per structure and `num_rows`.

    `eqx.filter_jit` would take the policy apart at every step, which costs more than the policy.
    """
    arrays, rest = eqx.partition(policy, lambda leaf: isinstance(leaf, jax.Array | np.ndarray))
    leaves, structure = jax.tree.flatten(rest)
    static = (tuple(leaves), structure, key_impl)

    def act(
        keys: UInt32[np.ndarray, "m k"], obs: Float32[np.ndarray, "m o"]
    ) -> Float[np.ndarray, "m a"]:
        num = len(obs)
        padding = ((0, num_rows - num), (0, 0))
        actions = _act(static, arrays, np.pad(keys, padding), np.pad(obs, padding))
        return np.asarray(actions)[:num]

    return act


@functools.partial(jax.jit, static_argnums=0)
def _act(
    static: tuple[tuple[Any, ...], Any, str],
    arrays: Policy,
    keys: UInt32[Array, "m k"],
    obs: Float[Array, "m o"],
) -> Float[Array, "m a"]:
    leaves, structure, key_impl = static
    policy = eqx.combine(arrays, jax.tree.unflatten(structure, leaves))
    actions: Array = jax.vmap(policy)(jr.wrap_key_data(keys, impl=key_impl), obs)
    return actions
