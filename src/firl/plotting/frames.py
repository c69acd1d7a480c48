"""A few frames of the policy at work, side by side, where the environment can be rendered."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from jaxtyping import Float, Int, UInt8

from firl.errors import FirlError
from firl.learned import Learned, load
from firl.plotting.render import SEED
from firl.plotting.style import figure
from firl.problems import Problem
from firl.rollout.gym_simulator import GymSimulator
from firl.rundir import RunDir

_FRAMES = 8
_TIMEOUT = 60.0
"""Seconds that rendering may take: it takes two where it works."""


def draw_frames(run: RunDir, problem: Problem) -> None:
    """Write the run's frames.png: one episode of the stochastic policy, evenly spaced."""
    simulator = problem.simulator
    if not isinstance(simulator, GymSimulator):
        raise FirlError("The environment cannot be rendered, as dynamics in JAX have no pictures.")
    spec = simulator.spec
    if spec is None:
        raise FirlError(
            f"{simulator.name} cannot be rendered, as Gymnasium has no id to make it by."
        )
    actions = _act(spec, load(run.path), simulator.horizon)
    steps = np.unique(np.linspace(0, len(actions), _FRAMES).round().astype(int))
    frames = _render(spec, actions, steps)
    height, width = frames.shape[1:3]
    with figure(1.5 * len(steps), 1.5 * height / width + 0.25, run.frames) as drawn:
        panels = drawn.subplots(1, len(steps), squeeze=False)[0]
        for axes, frame, step in zip(panels, frames, steps, strict=True):
            axes.imshow(frame)
            axes.set_title(f"t = {step}")
            axes.set_axis_off()


def _act(spec: EnvSpec, learned: Learned, horizon: int) -> Float[np.ndarray, "t a"]:
    """What the policy does in an episode, which needs no OpenGL yet."""
    env = gymnasium.make(spec, disable_env_checker=True)
    if "rgb_array" not in env.metadata.get("render_modes", ()):
        raise FirlError(f"{spec.id} cannot be rendered, as it has no render mode 'rgb_array'.")
    obs, _ = env.reset(seed=SEED)
    actions: list[np.ndarray] = []
    ended = False
    while not ended and len(actions) < horizon:
        actions.append(learned.policy(obs[None], seed=len(actions))[0])
        obs, _, terminated, truncated, _ = env.step(actions[-1])
        ended = terminated or truncated
    env.close()
    return np.stack(actions)


def _render(
    spec: EnvSpec, actions: Float[np.ndarray, "t a"], steps: Int[np.ndarray, "k"]
) -> UInt8[np.ndarray, "k height width 3"]:
    """The pictures, by the first of MuJoCo's backends that works here."""
    complaints = []
    with tempfile.TemporaryDirectory() as folder:
        try:
            Path(folder, "env.json").write_text(spec.to_json())
        except ValueError as error:
            raise FirlError(
                f"{spec.id} cannot be rendered: a separate process must be able to make it, so "
                "register it by a string, 'module:Class', and with arguments that JSON can hold."
            ) from error
        np.save(Path(folder, "actions.npy"), actions)
        np.save(Path(folder, "steps.npy"), steps)
        for backend in _backends():
            complaint = _try(Path(folder), backend)
            if complaint is None:
                frames: np.ndarray = np.load(Path(folder, "frames.npy"))
                return frames
            complaints.append(f"{backend}: {complaint}" if backend else complaint)
    raise FirlError(f"{spec.id} could not be rendered here ({'; '.join(complaints)}).")


def _backends() -> list[str]:
    """Values of MUJOCO_GL to try; only the user's where there is one. '' leaves it open."""
    if chosen := os.environ.get("MUJOCO_GL"):
        return [chosen]
    return ["egl", "osmesa", "glfw"] if sys.platform == "linux" else [""]


def _try(folder: Path, backend: str) -> str | None:
    """Render in a process of its own. Returns what went wrong, if something did."""
    # What this process can import, that one can.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    if backend:
        environment["MUJOCO_GL"] = backend
    command = [sys.executable, "-P", "-m", "firl.plotting.render", str(folder)]
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_TIMEOUT:.0f} s"
    if done.returncode == 0:
        return None
    last = done.stderr.strip().splitlines()[-1:]
    return last[0].rstrip(".") if last else f"it ended with code {done.returncode}"
