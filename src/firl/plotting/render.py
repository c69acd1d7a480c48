"""Replays an episode and renders it: a program of its own, because OpenGL can crash or hang.

    python -m firl.plotting.render FOLDER

FOLDER has the environment's spec in env.json, the episode's in actions.npy, and in steps.npy after
how many of them to take a picture; the pictures go to frames.npy.
"""

import os
import sys
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

SEED = 0
"""Of the episode: the environment starts from it here as it did when the policy acted."""


def render(folder: Path) -> None:
    """Write frames.npy."""
    spec = EnvSpec.from_json((folder / "env.json").read_text())
    actions, steps = np.load(folder / "actions.npy"), np.load(folder / "steps.npy").tolist()
    env = gymnasium.make(spec, render_mode="rgb_array", disable_env_checker=True)
    env.reset(seed=SEED)
    frames = []
    for t in range(len(actions) + 1):
        if t > 0:
            env.step(actions[t - 1])
        if t in steps:
            frames.append(np.array(env.render()))
    np.save(folder / "frames.npy", np.stack(frames))


if __name__ == "__main__":
    try:
        render(Path(sys.argv[1]))
    except Exception as error:
        message = str(error).partition("\n")[0]
        print(f"{type(error).__name__}: {message}", file=sys.stderr, flush=True)
        os._exit(1)
    os._exit(0)  # Closing an OpenGL context can crash too, and all is written.
