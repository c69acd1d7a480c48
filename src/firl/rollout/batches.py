"""Gymnasium environments that step together: one by one, or as a VectorEnv of their own."""

import abc

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from jaxtyping import Bool, Float32, Shaped

from firl.rollout.checks import Env, EnvFactory

BatchStep = tuple[
    Float32[np.ndarray, "m o"],
    Float32[np.ndarray, "m"],
    Bool[np.ndarray, "m"],
    Bool[np.ndarray, "m"],
]
"""Observations, the environment's own rewards, terminated, truncated."""


class AbstractBatch(abc.ABC):
    """Some episodes at once. Whether one has ended is for the caller to remember."""

    @abc.abstractmethod
    def reset(self, seeds: list[int]) -> Float32[np.ndarray, "m o"]:
        """Start one episode per seed; what comes after depends on nothing before."""

    @abc.abstractmethod
    def step(self, actions: Shaped[np.ndarray, "m a"], running: Bool[np.ndarray, "m"]) -> BatchStep:
        """Step those that are still running."""

    @abc.abstractmethod
    def close(self) -> None:
        """Release what the environments hold."""


class EnvList(AbstractBatch):
    """Single environments, made when first needed. One that has ended stays where it is."""

    def __init__(self, make: EnvFactory, first: Env):
        self._make = make
        self._envs = [first]
        self._obs = np.zeros((0, 0), np.float32)

    def reset(self, seeds: list[int]) -> Float32[np.ndarray, "m o"]:
        """Each environment gets its own seed."""
        while len(self._envs) < len(seeds):
            self._envs.append(self._make())
        pairs = zip(self._envs, seeds, strict=False)
        self._obs = _to_float32([env.reset(seed=seed)[0] for env, seed in pairs])
        return self._obs.copy()

    def step(self, actions: Shaped[np.ndarray, "m a"], running: Bool[np.ndarray, "m"]) -> BatchStep:
        """Step one after the other, and only those that are still running."""
        terminated, truncated = np.zeros_like(running), np.zeros_like(running)
        rewards = np.zeros(len(running), np.float32)
        for i in np.flatnonzero(running):
            obs, rewards[i], terminated[i], truncated[i], _ = self._envs[i].step(actions[i])
            self._obs[i] = _to_float32(obs)
        return self._obs.copy(), rewards, terminated, truncated

    def close(self) -> None:
        """Close all."""
        for env in self._envs:
            env.close()


class VectorBatch(AbstractBatch):
    """An id's own VectorEnv, one per batch size. It steps everything or nothing."""

    def __init__(self, env_id: str):
        self._env_id = env_id
        self._vectors: dict[int, VectorEnv[np.ndarray, np.ndarray, np.ndarray]] = {}
        self._current = self._sized(1)

    @property
    def resets_itself(self) -> bool:
        """Whether it can be stepped on when some of its episodes have ended."""
        modes = (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP)
        return self._current.metadata.get("autoreset_mode") in modes

    def reset(self, seeds: list[int]) -> Float32[np.ndarray, "m o"]:
        """The first seed seeds all."""
        self._current = self._sized(len(seeds))
        return _to_float32(self._current.reset(seed=seeds[0])[0])

    def step(self, actions: Shaped[np.ndarray, "m a"], running: Bool[np.ndarray, "m"]) -> BatchStep:
        """What is started in place of an ended episode is for the caller to ignore."""
        obs, rewards, terminated, truncated, info = self._current.step(actions)
        obs, rewards = np.array(obs), np.asarray(rewards, np.float32)
        terminated, truncated = np.asarray(terminated), np.asarray(truncated)
        if self._current.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP:
            for i in np.flatnonzero(terminated | truncated):
                obs[i] = info["final_obs"][i]
        return _to_float32(obs), rewards, terminated, truncated

    def close(self) -> None:
        """Close all."""
        for vector in self._vectors.values():
            vector.close()

    def _sized(self, num: int) -> VectorEnv[np.ndarray, np.ndarray, np.ndarray]:
        if num not in self._vectors:
            self._vectors[num] = gymnasium.make_vec(self._env_id, num_envs=num)
        return self._vectors[num]


def _to_float32(obs: object) -> Float32[np.ndarray, "*m o"]:
    # What float32 cannot hold becomes infinite, and is refused as such.
    with np.errstate(over="ignore"):
        return np.asarray(obs).astype(np.float32)
