"""The smallest environment that ends where the agent wants it to, and trainings in it."""

from typing import ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from firl.config import (
    ClassifierConfig,
    ImitationConfig,
    PracticeConfig,
    RewardConfig,
    SACConfig,
    TrainConfig,
)
from firl.expert.demonstrations import from_arrays
from firl.problems import Problem
from firl.reward import Scaling
from firl.rollout import GymSimulator
from firl.types import Columns

EDGE, HORIZON = 1.0, 10


class Ledge(gymnasium.Env):
    """A point between a wall at −1 and a drop at 1. It pays 1 for each step taken."""

    observation_space = Box(-np.inf, np.inf, (1,), np.float32)
    action_space = Box(-2.0, 2.0, (1,), np.float32)
    steps_taken: ClassVar[int] = 0

    def __init__(self, push=0.25):
        self.push = push

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.uniform(-0.1, 0.1)
        return self._observation(), {}

    def step(self, action):
        Ledge.steps_taken += 1
        self.x = max(-1.0, self.x + self.push * float(action[0]))
        return self._observation(), 1.0, self.x > EDGE, False, {}

    def _observation(self):
        return np.array([self.x], np.float32)


class LedgeSimulator(GymSimulator):
    """Keeps what was practised."""

    def __init__(self, push=0.25):
        super().__init__(lambda: Ledge(push), HORIZON)
        self.practised = []

    def practise(self, *args):
        self.practised.append(super().practise(*args))
        return self.practised[-1]


def leaving(num=1) -> list[np.ndarray]:
    """Episodes that go over the edge as fast as they can."""
    return [np.array([[0.01 * i], [0.5], [1.0], [1.5]], np.float32) for i in range(num)]


def staying(num=1, horizon=HORIZON) -> list[np.ndarray]:
    """Episodes that stay close to where they started."""
    wobble = 0.05 * np.cos(np.arange(horizon + 1))
    return [(wobble + 0.01 * i).astype(np.float32)[:, None] for i in range(num)]


def actions_of(episodes, push=0.25) -> list[np.ndarray]:
    """What was done in them."""
    return [np.clip(np.diff(obs, axis=0) / push, -2.0, 2.0) for obs in episodes]


def problem(demonstrations, terminated, actions=None) -> Problem:
    """To imitate them on the ledge."""
    expert = from_arrays(demonstrations, terminated=terminated, actions=actions)
    return Problem(LedgeSimulator(), Columns((0,)), expert, None, Scaling((0.0,), (0.5,)))


SMALL = TrainConfig(
    task="custom",
    env_steps=3000,
    practice=PracticeConfig(random_steps=100, steps=100, every=20, updates=25),
    imitation=ImitationConfig(demonstrations=2, window=20, batch=20, tail=4, average=0.75),
    classifier=ClassifierConfig(hidden=(16,), steps=50, learning_rate=1e-2, batch_size=64),
    reward=RewardConfig(hidden=(16,), learning_rate=1e-2, gradient_steps=20),
    sac=SACConfig(
        hidden=(32,),
        learning_rate=3e-3,
        batch_size=64,
        discount=0.9,
        polyak=0.9,
        temperature=0.1,
        buffer_size=5000,
    ),
)
