"""What an environment must be like, and one sentence for each way in which it is not."""

import difflib
from collections.abc import Callable

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from jaxtyping import Float32

from firl.envs.fixed_horizon import AbstractFixedHorizonEnv, check_horizon
from firl.errors import FirlError, LearningDiverged

Env = gymnasium.Env[np.ndarray, np.ndarray]
EnvFactory = Callable[[], Env]

_NOT_THERE = (
    gymnasium.error.Error,  # itself: what is not spelt like an id at all
    gymnasium.error.NameNotFound,
    gymnasium.error.NamespaceNotFound,
    gymnasium.error.VersionNotFound,
    gymnasium.error.DeprecatedEnv,
)


def factory_of(env: str | EnvFactory) -> EnvFactory:
    """A function that makes the environment; of an unknown id it names the nearest known ones."""
    if not isinstance(env, str):
        return env

    def make() -> Env:
        try:
            # Spaces and observations are checked here, in our own words and without the slowdown.
            return gymnasium.make(env, disable_env_checker=True)
        except gymnasium.error.Error as error:
            if type(error) not in _NOT_THERE:
                raise
            near = difflib.get_close_matches(env, list(gymnasium.registry), cutoff=0.5)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "is it registered?"
            raise FirlError(f"Gymnasium has no environment {env!r}: {hint}") from error
        except ModuleNotFoundError as error:
            module = error.name or env.partition(":")[0]
            raise FirlError(
                f"The environment {env!r} needs the module {module!r}, which is not installed."
            ) from error

    return make


def name_of(env: Env) -> str:
    """What messages call the environment."""
    return type(env.unwrapped).__name__ if env.spec is None else env.spec.id


def check_spaces(env: Env) -> tuple[Box, Box]:
    """The spaces of observations and actions, if they are vectors that firl can learn from."""
    name, observations, actions = name_of(env), env.observation_space, env.action_space
    if not isinstance(observations, Box) or len(observations.shape) != 1:
        raise FirlError(
            f"{name} emits observations in {observations}, but firl needs vectors (a 1-D Box): "
            "wrap it in gymnasium.wrappers.FlattenObservation."
        )
    if not isinstance(actions, Box):
        raise FirlError(
            f"{name} takes actions in {actions}, but firl needs continuous ones (a 1-D Box): "
            "choose or write a version of it with continuous actions."
        )
    if len(actions.shape) != 1 or not np.issubdtype(actions.dtype, np.floating):
        raise FirlError(
            f"{name} takes actions in {actions}, but firl needs vectors of floats: wrap it in "
            "gymnasium.wrappers.TransformAction."
        )
    if not np.isfinite([actions.low, actions.high]).all():
        raise FirlError(
            f"{name} takes actions in {actions}, which has no bounds: wrap it in "
            "gymnasium.wrappers.TransformAction with an action space that has."
        )
    return observations, actions


def choose_horizon(env: Env, horizon: int | None) -> int:
    """T: what was asked for, or else where the environment truncates its episodes."""
    name, limit = name_of(env), _time_limit(env)
    if horizon is None and limit is None:
        raise FirlError(
            f"{name} has no time limit of its own: say how many steps an episode takes (horizon)."
        )
    if horizon is None:
        assert limit is not None
        return limit
    if limit is not None and limit < horizon:
        raise FirlError(
            f"{name} truncates its episodes after {limit} steps, before the horizon of {horizon}: "
            "choose a shorter horizon, or make it with a later time limit."
        )
    return check_horizon(horizon)


def _time_limit(env: Env) -> int | None:
    limits = []
    if env.spec is not None and env.spec.max_episode_steps is not None:
        limits.append(env.spec.max_episode_steps)
    if isinstance(env.unwrapped, AbstractFixedHorizonEnv):
        limits.append(env.unwrapped.horizon)
    return min(limits, default=None)


def check_observations(
    name: str, obs: Float32[np.ndarray, "m o"], first_episode: int, step: int
) -> None:
    """Refuse NaN and infinity where they come from, before they spread."""
    if np.isfinite(obs).all():
        return
    row, column = np.argwhere(~np.isfinite(obs))[0]
    raise FirlError(
        f"{name} emitted {obs[row, column]} as number {column} of its observation after step "
        f"{step} of episode {first_episode + row}: make it stay finite (as float32), or terminate."
    )


def check_truncations(
    name: str, truncated: np.ndarray, first_episode: int, step: int, horizon: int
) -> None:
    """Refuse a time limit before the horizon: the episode goes on, but nobody saw how."""
    if step == horizon or not truncated.any():
        return
    raise FirlError(
        f"{name} truncated episode {first_episode + int(np.argmax(truncated))} after {step} steps, "
        f"before the horizon of {horizon}: choose a horizon of {step}, or make it with a later "
        "time limit."
    )


def check_actions(actions: Float32[np.ndarray, "m a"], first_episode: int, step: int) -> None:
    """Refuse what a broken policy does: it would be silently clipped, or break the simulator."""
    if (np.abs(actions) <= 1).all():
        return
    row = int(np.argmin((np.abs(actions) <= 1).all(axis=1)))
    where = f"at step {step} of episode {first_episode + row}"
    if not np.isfinite(actions).all():
        raise LearningDiverged(
            f"The policy's action {where} is {actions[row]}, which is no number."
        )
    raise ValueError(f"The policy's action {where} is {actions[row]}, outside of [-1, 1].")
