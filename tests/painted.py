"""An environment whose pictures tell its step, or that gets into trouble when asked for one."""

import os
import time

import gymnasium
import numpy as np
from gymnasium.spaces import Box


class Painted(gymnasium.Env):
    """It ends after `length` steps."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 1}  # noqa: RUF012
    observation_space = Box(-1.0, 1.0, (1,), np.float32)
    action_space = Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, render_mode=None, trouble="none", length=14):
        self.render_mode, self.trouble, self.length = render_mode, trouble, length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        self.at = self.np_random.uniform(-1, 1, 1).astype(np.float32)
        return self.at, {}

    def step(self, action):
        self.steps += 1
        self.at = np.clip(self.at + action, -1, 1).astype(np.float32)
        return self.at, 0.0, self.steps == self.length, False, {}

    def render(self):
        """Red is the step, green where it is."""
        assert self.render_mode == "rgb_array"
        if self.trouble == "crash":
            os.abort()
        if self.trouble == "hang":
            time.sleep(600)
        if self.trouble == "raise":
            raise RuntimeError("no paint.\nNone at all.")
        colour = (10 * self.steps, int(100 * (1 + self.at[0])), 0)
        return np.full((20, 30, 3), colour, np.uint8)


class Blind(Painted):
    """It has no pictures."""

    metadata = {"render_modes": []}  # noqa: RUF012
