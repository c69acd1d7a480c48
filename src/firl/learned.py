"""What a run learned, read back from its directory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from firl.checkpoint import has_part, load_part
from firl.config import TrainConfig
from firl.errors import FirlError
from firl.problems import Problem
from firl.reward import RewardNet, Scaling, make_reward
from firl.rundir import RunDir
from firl.sac.agent import Agent
from firl.sac.networks import Actor
from firl.tasks import TASKS
from firl.types import Policy


@dataclass(frozen=True)
class Learned:
    """What a run learned, as functions of NumPy arrays."""

    config: TrainConfig
    _reward_net: RewardNet | None
    _agent: Agent
    _action_low: Float[np.ndarray, "a"]
    _action_high: Float[np.ndarray, "a"]
    state_columns: tuple[int, ...] | None
    """Which of an observation's coordinates are the state. None where the state is a function of
    the observation, which only whoever trained the run has."""

    @property
    def obs_dim(self) -> int:
        """Coordinates of an observation."""
        return int(self.actor.net.weights[0].shape[0])

    @property
    def state_dim(self) -> int:
        """Coordinates of a state."""
        return len(self.reward_net.scaling.centre)

    @property
    def has_reward(self) -> bool:
        """Whether there is one: some methods learn a policy only."""
        return self._reward_net is not None

    @property
    def reward_net(self) -> RewardNet:
        """The reward as JAX takes it, one state at a time."""
        if self._reward_net is None:
            raise FirlError(
                f"A run of {self.config.method} has no reward of its own: name one that learned a "
                "reward."
            )
        return self._reward_net

    def reward(self, states: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n"]:
        """r_θ of each state."""
        return np.asarray(_rewards(self.reward_net, jnp.asarray(states, jnp.float32)))

    @property
    def actor(self) -> Actor:
        """The policy's network."""
        return self._agent.actor

    @property
    def stochastic_policy(self) -> Policy:
        """The policy as our simulators take it: JAX in, actions in [−1, 1] out."""
        return self._agent.policy

    def policy(
        self, obs: Float[np.ndarray, "n o"], *, seed: int | None = 0
    ) -> Float[np.ndarray, "n a"]:
        """Actions for observations, in the environment's own bounds; without noise if no seed."""
        policy = self._agent.deterministic_policy if seed is None else self._agent.policy
        keys = jax.random.split(jax.random.key(seed or 0), len(obs))
        actions = np.asarray(_actions(policy, keys, jnp.asarray(obs, jnp.float32)))
        share = (actions + 1.0) / 2.0
        return np.asarray(self._action_low + share * (self._action_high - self._action_low))


@eqx.filter_jit
def _rewards(net: RewardNet, states: Float[Array, "n d"]) -> Float[Array, "n"]:
    return jax.vmap(net)(states)


@eqx.filter_jit
def _actions(policy: Any, keys: Array, obs: Float[Array, "n o"]) -> Float[Array, "n a"]:
    actions: Array = jax.vmap(policy)(keys, obs)
    return actions


def load(path: str | Path) -> Learned:
    """What the run in this directory learned, as far as it got."""
    run = RunDir(Path(path))
    config, about = run.read_config(), run.read_about()
    if not run.checkpoint.exists():
        raise FirlError(f"{run.path} has no checkpoint yet: let it train, or resume it.")
    key = jax.random.key(0)
    agent = Agent.create(key, about["obs_dim"], about["act_dim"], config.sac)
    reward = None
    if has_part(run.checkpoint, "reward"):
        blank = make_reward(key, _scaling_of(run), config.reward)
        reward = load_part(run.checkpoint, "reward", blank)
    return Learned(
        config,
        reward,
        load_part(run.checkpoint, "agent", agent),
        np.asarray(about["action_low"], np.float32),
        np.asarray(about["action_high"], np.float32),
        _columns_of(config, about),
    )


def adopt(problem: Problem, run: str | Path) -> Problem:
    """The problem in the units of the reward that this run learned, so that it can be used."""
    return problem._replace(units=_scaling_of(RunDir(Path(run))))


def _columns_of(config: TrainConfig, about: dict[str, Any]) -> tuple[int, ...] | None:
    """As the run recorded them; those of its task for a run from before they were recorded."""
    columns = about.get("state_columns")
    if "state_columns" not in about and config.task in TASKS:
        columns = TASKS[config.task].state_columns or range(about["obs_dim"])
    return None if columns is None else tuple(columns)


def _scaling_of(run: RunDir) -> Scaling:
    about = run.read_about()
    return Scaling(tuple(about["state_centre"]), tuple(about["state_scale"]))
