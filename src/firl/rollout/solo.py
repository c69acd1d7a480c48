"""One episode at a time in one environment, with nothing between its steps but what must be.

It does what `GymSimulator` does with several at once, at a third of the cost beyond the simulator.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Shaped

from firl.rollout.checks import Env, check_actions, check_observations, check_truncations
from firl.rollout.episodes import Episodes, OnStep

Rescale = Callable[[Float32[np.ndarray, "*m a"]], Shaped[np.ndarray, "*m a"]]
"""From [−1, 1] to the environment's bounds."""


class Solo(NamedTuple):
    """An environment, and what must be known of it."""

    env: Env
    name: str
    horizon: int
    obs_dim: int
    act_dim: int
    rescale: Rescale

    def run(
        self,
        act: Callable[[int, Float32[np.ndarray, "1 o"]], Float32[np.ndarray, "1 a"]],
        seed: int,
        index: int,
        on_step: OnStep,
    ) -> Episodes:
        """Episode `index`; `act` chooses from the step and the observation."""
        name, horizon, step, rescale = self.name, self.horizon, self.env.step, self.rescale
        episodes = Episodes.blank(1, horizon, self.obs_dim, self.act_dim)
        all_obs, all_actions, all_rewards = (
            episodes.obs[0],
            episodes.actions[0],
            episodes.rewards[0],
        )
        # What float32 cannot hold becomes infinite, and is refused as such.
        with np.errstate(over="ignore"):
            obs = np.asarray(self.env.reset(seed=seed)[0]).astype(np.float32)
        check_observations(name, obs[None], index, 0)
        all_obs[0] = obs
        for t in range(horizon):
            action = act(t, obs[None])[0]
            if not np.abs(action).max() <= 1.0:
                check_actions(action[None], index, t)
            emitted, reward, terminated, truncated, _ = step(rescale(action))
            before = obs
            with np.errstate(over="ignore"):
                obs = np.asarray(emitted).astype(np.float32)
                suspicious = not math.isfinite(obs.dot(obs))
            if suspicious:  # or merely large
                check_observations(name, obs[None], index, t + 1)
            if truncated and not terminated:
                check_truncations(name, np.ones(1, np.bool_), index, t + 1, horizon)
            all_actions[t], all_obs[t + 1], all_rewards[t] = action, obs, reward
            on_step(before, action, obs, terminated, reward)
            if terminated:
                all_obs[t + 2 :] = obs
                episodes.terminated[0] = True
                break
        episodes.lengths[0] = t + 1
        return episodes
