"""Gymnasium's interface for what all our environments have in common: episodes of one length.

They never terminate, are truncated at `horizon`, and reward nothing: rewards are what is learned.
A concrete environment says how episodes start and how they advance.
"""

import abc
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.spaces import Box, Space
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from jaxtyping import Bool, Float, Float32

from firl.errors import FirlError

Info = dict[str, Any]
BatchStep = tuple[
    Float32[np.ndarray, "n o"],
    Float[np.ndarray, "n"],
    Bool[np.ndarray, "n"],
    Bool[np.ndarray, "n"],
    Info,
]
_VECTOR_METADATA: Info = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}


class AbstractFixedHorizonEnv(gymnasium.Env[np.ndarray, np.ndarray], abc.ABC):
    """One episode at a time."""

    def __init__(self, observation_space: Box, action_space: Box, horizon: int):
        self.observation_space = observation_space
        self.action_space = action_space
        self.horizon = check_horizon(horizon)
        self._elapsed: int | None = None

    @abc.abstractmethod
    def start(self) -> Float32[np.ndarray, "o"]:
        """Begin an episode, drawing from `self.np_random`."""

    @abc.abstractmethod
    def advance(self, action: Float32[np.ndarray, "a"]) -> Float32[np.ndarray, "o"]:
        """Take one step."""

    def reset(
        self, *, seed: int | None = None, options: Info | None = None
    ) -> tuple[Float32[np.ndarray, "o"], Info]:
        """Start afresh; there are no options."""
        super().reset(seed=seed)
        self._elapsed = 0
        return self.start(), {}

    def step(self, action: np.ndarray) -> tuple[Float32[np.ndarray, "o"], float, bool, bool, Info]:
        """Take one step."""
        if self._elapsed is None:
            raise ResetNeeded("Call reset before step.")
        obs = self.advance(_checked(action, self.action_space))
        self._elapsed += 1
        return obs, 0.0, False, self._elapsed >= self.horizon, {}


class AbstractFixedHorizonVectorEnv(VectorEnv[np.ndarray, np.ndarray, np.ndarray], abc.ABC):
    """Many episodes in one array program. They start and end together."""

    metadata = _VECTOR_METADATA

    def __init__(self, num_envs: int, observation_space: Box, action_space: Box, horizon: int):
        if num_envs < 1:
            raise FirlError(f"num_envs is {num_envs}, but there must be at least one environment.")
        self.num_envs = num_envs
        self.horizon = check_horizon(horizon)
        self.single_observation_space = observation_space
        self.single_action_space = action_space
        self.observation_space = batch_space(observation_space, num_envs)
        self.action_space = batch_space(action_space, num_envs)
        self._elapsed: int | None = None

    @abc.abstractmethod
    def start(self) -> Float32[np.ndarray, "n o"]:
        """Begin every episode, drawing from `self.np_random`."""

    @abc.abstractmethod
    def advance(self, actions: Float32[np.ndarray, "n a"]) -> Float32[np.ndarray, "n o"]:
        """Take one step in every episode."""

    def reset(
        self, *, seed: int | None = None, options: Info | None = None
    ) -> tuple[Float32[np.ndarray, "n o"], Info]:
        """Start every episode afresh; there are no options."""
        super().reset(seed=seed)
        self._elapsed = 0
        return self.start(), {}

    def step(self, actions: np.ndarray) -> BatchStep:
        """Step every episode, or after their last step start them all again (`NEXT_STEP`)."""
        if self._elapsed is None:
            raise ResetNeeded("Call reset before step.")
        if self._elapsed == self.horizon:
            obs, _ = self.reset()
        else:
            obs = self.advance(_checked(actions, self.action_space))
            self._elapsed += 1
        terminated = np.zeros(self.num_envs, np.bool_)
        truncated = np.full(self.num_envs, self._elapsed == self.horizon)
        return obs, np.zeros(self.num_envs), terminated, truncated, {}


def check_horizon(horizon: int) -> int:
    """The horizon, if episodes can have it."""
    if horizon < 1:
        raise FirlError(f"The horizon is {horizon}, but an episode takes at least one step.")
    return horizon


def _checked(actions: np.ndarray, space: Space[Any]) -> Float32[np.ndarray, "*n a"]:
    """The actions as float32, refused rather than clipped when they leave their space."""
    actions = np.asarray(actions, np.float32)
    if not space.contains(actions):
        raise InvalidAction(f"The action {actions} is not in the action space {space}.")
    return actions
