"""A two-link arm whose fingertip draws: Reacher without its target (appendix C.1).

MuJoCo steps the dynamics of Gymnasium's Reacher: links of 0.1 and 0.11, torques in [−1, 1] with
gear 200, two physics steps of 0.01 s per action, the elbow limited to ±3 rad, T = 30. The start
is q ~ U(±0.1), q̇ ~ U(±0.005).

The observation is the paper's, of 8 numbers: fingertip x, y; cos and sin of both joint angles;
fingertip velocity x, y. The reference code emits 9, with the fingertip's z and the velocities of
the joints. It is computed here from the joints, by the arm's kinematics: MuJoCo's own
`xpos` after a step lags behind the joints by up to one physics step.
"""

import os
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Float32, Float64
from mujoco.rollout import Rollout

from firl.envs.fixed_horizon import AbstractFixedHorizonEnv, AbstractFixedHorizonVectorEnv

_MODEL = Path(__file__).parent / "assets" / "reacher_trace.xml"
_UPPER_ARM, _FOREARM = 0.1, 0.11
_FRAME_SKIP = 2
_START_ANGLE, _START_SPEED = 0.1, 0.005
_MAX_JOINT_SPEED = 200.0
"""Gear 200 against damping 1: the speed at which a joint's torque is used up, in rad/s."""


def observe(
    angles: Float64[np.ndarray, "*n 2"], speeds: Float64[np.ndarray, "*n 2"]
) -> Float32[np.ndarray, "*n 8"]:
    """What the arm's joints look like to the policy."""
    inner, outer = angles[..., 0], angles[..., 0] + angles[..., 1]
    inner_speed, outer_speed = speeds[..., 0], speeds[..., 0] + speeds[..., 1]
    tip = (
        _UPPER_ARM * np.cos(inner) + _FOREARM * np.cos(outer),
        _UPPER_ARM * np.sin(inner) + _FOREARM * np.sin(outer),
    )
    tip_velocity = (
        -_UPPER_ARM * np.sin(inner) * inner_speed - _FOREARM * np.sin(outer) * outer_speed,
        _UPPER_ARM * np.cos(inner) * inner_speed + _FOREARM * np.cos(outer) * outer_speed,
    )
    cosines, sines = np.cos(angles), np.sin(angles)
    columns = [*tip, *np.moveaxis(cosines, -1, 0), *np.moveaxis(sines, -1, 0), *tip_velocity]
    return np.stack(columns, axis=-1).astype(np.float32)


def _spaces() -> tuple[Box, Box]:
    """Of one arm's observations and actions."""
    reach = _UPPER_ARM + _FOREARM
    max_speed = reach * _MAX_JOINT_SPEED + _FOREARM * _MAX_JOINT_SPEED
    high = np.array([reach] * 2 + [1.0] * 4 + [max_speed] * 2, np.float32)
    return Box(-high, high, dtype=np.float32), Box(-1.0, 1.0, (2,), np.float32)


def _draw_start(
    generator: np.random.Generator, *shape: int
) -> tuple[Float64[np.ndarray, "*n 2"], Float64[np.ndarray, "*n 2"]]:
    """Joint angles and speeds that episodes start from."""
    angles = generator.uniform(-_START_ANGLE, _START_ANGLE, (*shape, 2))
    speeds = generator.uniform(-_START_SPEED, _START_SPEED, (*shape, 2))
    return angles, speeds


_METADATA: dict[str, Any] = {
    "render_modes": ["human", "rgb_array", "depth_array", "rgbd_tuple"],
    "render_fps": 50,
}
_PIXELS = 480


class ReacherTraceEnv(AbstractFixedHorizonEnv):
    """`firl/ReacherTrace-v0`."""

    metadata = _METADATA

    def __init__(self, horizon: int = 30, render_mode: str | None = None):
        super().__init__(*_spaces(), horizon)
        self.render_mode = render_mode
        self._model = mujoco.MjModel.from_xml_path(str(_MODEL))
        self._data = mujoco.MjData(self._model)
        self._renderer: Any = None

    def set_state(
        self, angles: Float64[np.ndarray, "2"], speeds: Float64[np.ndarray, "2"]
    ) -> Float32[np.ndarray, "8"]:
        """Put the arm where it should be."""
        self._data.qpos[:], self._data.qvel[:] = angles, speeds
        return self._show()

    def start(self) -> Float32[np.ndarray, "8"]:
        """Draw where the episode starts."""
        mujoco.mj_resetData(self._model, self._data)
        return self.set_state(*_draw_start(self.np_random))

    def advance(self, action: Float32[np.ndarray, "2"]) -> Float32[np.ndarray, "8"]:
        """Apply torques in [−1, 1]² for 0.02 s."""
        self._data.ctrl[:] = action
        # The constraint solver's warm start is the one thing that MuJoCo would remember besides
        # the joints. Without it the joints are the whole state, as in the vectorised arm.
        self._data.qacc_warmstart[:] = 0.0
        mujoco.mj_step(self._model, self._data, nstep=_FRAME_SKIP)
        return self._show()

    def render(self) -> Any:
        """A picture of the arm from above, in the environment's render mode."""
        if self._renderer is None:
            # Needs OpenGL, which who only wants the dynamics may not have.
            from gymnasium.envs.mujoco.mujoco_rendering import MujocoRenderer

            self._renderer = MujocoRenderer(
                self._model, self._data, width=_PIXELS, height=_PIXELS, camera_name="top"
            )
        # Before the first step nothing is where it should be, the camera included.
        mujoco.mj_kinematics(self._model, self._data)
        mujoco.mj_camlight(self._model, self._data)
        return self._renderer.render(self.render_mode)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def _show(self) -> Float32[np.ndarray, "8"]:
        """The observation; and the arm itself to a human who watches."""
        if self.render_mode == "human":
            self.render()
        return observe(self._data.qpos, self._data.qvel)


class ReacherTraceVectorEnv(AbstractFixedHorizonVectorEnv):
    """`firl/ReacherTrace-v0` for many arms at once, on all cores, bit for bit as one by one.

    Arms share nothing, so that the number of threads changes no result.
    """

    def __init__(self, num_envs: int = 1, horizon: int = 30, num_threads: int | None = None):
        super().__init__(num_envs, *_spaces(), horizon)
        num_threads = _usable_cores() if num_threads is None else num_threads
        self._model = mujoco.MjModel.from_xml_path(str(_MODEL))
        self._scratch = [mujoco.MjData(self._model) for _ in range(num_threads)]
        # One thread needs no pool.
        self._pool = Rollout(nthread=num_threads if num_threads > 1 else 0)
        self._states = np.zeros((num_envs, 1 + self._model.nq + self._model.nv))

    def set_state(
        self, angles: Float64[np.ndarray, "n 2"], speeds: Float64[np.ndarray, "n 2"]
    ) -> Float32[np.ndarray, "n 8"]:
        """Put every arm where it should be."""
        # MuJoCo's full physics state is time, positions, velocities.
        self._states = np.concatenate([np.zeros((self.num_envs, 1)), angles, speeds], axis=1)
        return observe(angles, speeds)

    def start(self) -> Float32[np.ndarray, "n 8"]:
        """Draw where the episodes start."""
        return self.set_state(*_draw_start(self.np_random, self.num_envs))

    def advance(self, actions: Float32[np.ndarray, "n 2"]) -> Float32[np.ndarray, "n 8"]:
        """Apply torques to every arm for 0.02 s."""
        controls = np.repeat(actions[:, None].astype(np.float64), _FRAME_SKIP, axis=1)
        path, _ = self._pool.rollout(self._model, self._scratch, self._states, controls)
        self._states = path[:, -1]
        return observe(self._states[:, 1:3], self._states[:, 3:5])

    def close_extras(self) -> None:
        """End the threads."""
        self._pool.close()


def _usable_cores() -> int:
    """Cores this process may run on, where the system tells."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
