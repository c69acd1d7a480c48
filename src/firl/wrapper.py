"""An environment that pays what a run learned, so that any library can train on it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium.spaces import Box

from firl.errors import FirlError
from firl.learned import Learned, load
from firl.types import StateMap, columns_of


class RewardWrapper(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Pays r(s′), the learned reward of the state that a step leads to.

    Nothing else changes; what the environment itself pays is in `info["true_reward"]`.

    **Termination.** To firl a terminal state is absorbing: it repeats for ever, and is worth
    r + γr + γ²r + … = r/(1 − γ). Other libraries end the sum with the episode: what follows counts
    as 0. Under the plain r(s′) their agents would hurry to fall over where rewards are negative,
    and avoid every end where they are positive, whatever was learned. The step that terminates
    therefore pays all that would follow at once, r(s_T)/(1 − γ): the target of the value is then
    the one that the reward was learned with. `discount` is γ of the agent that will train here,
    the run's own by default; 0 pays r(s_T) once. A time limit truncates, where libraries bootstrap
    by themselves, and pays r(s′) like any other step.

    `state` is what of the observation the reward is of: columns, or a JAX function along the last
    axis. It is needed where the run was trained with a function, or in another environment.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        learned: Learned | str | Path,
        *,
        state: Sequence[int] | StateMap | None = None,
        discount: float | None = None,
    ):
        super().__init__(env)
        learned = learned if isinstance(learned, Learned) else load(learned)
        state_map = _state_map(state, learned, env.observation_space)
        net = learned.reward_net
        self._pay = jax.jit(lambda obs: net(state_map(obs[None])[0]))
        self._discount = learned.config.sac.discount if discount is None else discount
        if not 0 <= self._discount < 1:
            raise FirlError(f"discount is {discount}, but must be in [0, 1).")

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take one step, and be paid what was learned for it."""
        obs, true_reward, terminated, truncated, info = self.env.step(action)
        reward = float(self._pay(np.asarray(obs, np.float32)))
        if terminated:
            reward /= 1.0 - self._discount
        return obs, reward, terminated, truncated, {**info, "true_reward": true_reward}


def _state_map(
    state: Sequence[int] | StateMap | None, learned: Learned, space: gymnasium.Space[Any]
) -> StateMap:
    """From what the environment emits to the states that the reward is of."""
    if not isinstance(space, Box) or len(space.shape) != 1:
        raise FirlError(f"The environment emits {space}, but a reward is of vectors (a 1-D Box).")
    width = space.shape[0]
    if state is None and learned.state_columns is None:
        raise FirlError(
            "The run's states are a function of the observation, which it does not hold: pass "
            "state=, the one that it was trained with."
        )
    if state is None and width != learned.obs_dim:
        raise FirlError(
            f"The run was trained on observations of {learned.obs_dim} coordinates, but the "
            f"environment emits {width}: make it as it was then, or say with state= where the "
            "states are."
        )
    state = learned.state_columns if state is None else state
    assert state is not None
    state_map = state if callable(state) else columns_of(state, width)
    obs = jax.ShapeDtypeStruct((1, width), np.float32)
    shape = jax.eval_shape(state_map, obs).shape
    if shape != (1, learned.state_dim):
        raise FirlError(
            f"The reward is of states of {learned.state_dim} coordinates, but state= makes them "
            f"of shape {shape[1:]}: pass the one that the run was trained with."
        )
    return state_map
