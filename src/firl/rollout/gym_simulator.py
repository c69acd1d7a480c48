"""Episodes of any Gymnasium environment: MuJoCo and the like step on the host."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int, Int32, PRNGKeyArray, Shaped, UInt32

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
from firl.types import HostPolicy, Learn, Policy, Trajectories, Transition

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
        return _joined(parts)

    def practise(
        self, key: PRNGKeyArray, policy: Policy, num_steps: int, every: int, learn: Learn
    ) -> Trajectories:
        """Run fresh episodes one after the other until they have `num_steps` steps.

        `learn` gets transitions `every` at a time, across the ends of episodes, and once more
        what remains.
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

        acting = [act_by(policy)]
        chunk = _Chunk(every, self.obs_dim, self.act_dim)

        def on_step(*step: np.ndarray) -> None:
            chunk.append(*step)
            if chunk.size == every:
                acting[0] = act_by(learn(chunk.take()))

        parts: list[_Episodes] = []
        steps = 0
        while steps < num_steps:
            first = len(parts)
            seed = int(seeds.integers(2**32))
            # Whoever acts may change within an episode.
            parts.append(self._run(lambda *at: acting[0](*at), [seed], first, on_step))
            steps += int(parts[-1].lengths[0])
        if chunk.size:
            learn(chunk.take())
        return _joined(parts)

    def close(self) -> None:
        """Release what the environments hold."""
        self._batch.close()

    def _run(
        self, act: Act, seeds: list[int], first: int, on_step: "OnStep | None" = None
    ) -> "_Episodes":
        """Episodes `first`, `first` + 1, … together, until the last one has ended."""
        num, horizon = len(seeds), self.horizon
        obs = self._batch.reset(seeds)
        check_observations(self.name, obs, first, 0)
        episodes = _Episodes(
            obs=np.zeros((num, horizon + 1, self.obs_dim), np.float32),
            actions=np.zeros((num, horizon, self.act_dim), np.float32),
            lengths=np.zeros(num, np.int32),
            terminated=np.zeros(num, np.bool_),
            rewards=np.zeros((num, horizon), np.float32),
        )
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
            before, obs = obs, np.where(running[:, None], stepped, obs)
            check_observations(self.name, obs, first, t + 1)
            terminated &= running
            check_truncations(self.name, truncated & running & ~terminated, first, t + 1, horizon)
            episodes.actions[:, t] = actions
            episodes.obs[:, t + 1] = obs
            episodes.rewards[:, t] = np.where(running, rewards, np.float32(0))
            if on_step is not None:
                on_step(before, actions, obs, terminated, rewards)
            episodes.lengths[running] += 1
            episodes.terminated[terminated] = True
            running &= ~terminated
            if not running.any():
                episodes.obs[:, t + 1 :] = obs[:, None]
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
    rewards: Float32[np.ndarray, "m T"]


def _joined(parts: list[_Episodes]) -> Trajectories:
    joined = (np.concatenate(field) for field in zip(*parts, strict=True))
    return Trajectories(*map(jnp.asarray, joined))


OnStep = Callable[..., None]
"""Sees obs, actions, next obs, terminated and rewards of each step, a row for each episode."""


class _Chunk:
    """Transitions as they come, until somebody takes them."""

    def __init__(self, capacity: int, obs_dim: int, act_dim: int) -> None:
        widths = {"obs": obs_dim, "action": act_dim, "next_obs": obs_dim}
        self._fields = {name: np.zeros((capacity, n), np.float32) for name, n in widths.items()}
        self._terminated = np.zeros(capacity, np.bool_)
        self._rewards = np.zeros(capacity, np.float32)
        self.size = 0

    def append(
        self,
        obs: np.ndarray,
        action: np.ndarray,
        next_obs: np.ndarray,
        terminated: np.ndarray,
        reward: np.ndarray,
    ) -> None:
        """Of one episode."""
        for field, value in zip(self._fields.values(), (obs, action, next_obs), strict=True):
            field[self.size] = value[0]
        self._terminated[self.size], self._rewards[self.size] = terminated[0], reward[0]
        self.size += 1

    def take(self) -> Transition:
        """All of them, of which nothing is left."""
        end, self.size = self.size, 0
        # Copied here: a device would compile its copying anew for every number of rows.
        fields = {name: jnp.asarray(field[:end].copy()) for name, field in self._fields.items()}
        return Transition(
            **fields,
            terminated=jnp.asarray(self._terminated[:end].copy()),
            env_reward=jnp.asarray(self._rewards[:end].copy()),
        )


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
