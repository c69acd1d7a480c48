"""Our update, alone, with a reward network to relabel by, and with the environment's steps."""

from typing import ClassVar

import equinox as eqx
import gymnasium as gym
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float

from firl.bench.setting import BLOCK, ENVIRONMENT, WARM_UP, Contender, Setting
from firl.config import SACConfig
from firl.sac.agent import Agent
from firl.sac.networks import Actor, squashed_gaussian
from firl.sac.replay import ReplayBuffer
from firl.sac.update import improve
from firl.types import RewardFn, Transition

_CAPACITY = 100_000


class FirstCoordinate(eqx.Module):
    """A reward that costs nothing, as it costs the others nothing to read theirs."""

    pays_on: ClassVar[bool] = False

    def __call__(self, batch: Transition) -> Float[Array, "batch"]:
        """Hopper's height."""
        return batch.next_obs[:, 0]


class NetworkReward(eqx.Module):
    """A reward as f-IRL learns it: tanh units, 64 × 64."""

    net: eqx.nn.MLP
    pays_on: ClassVar[bool] = True

    def __call__(self, batch: Transition) -> Float[Array, "batch"]:
        """r(s′)."""
        return jax.vmap(self.net)(batch.next_obs)


def network_reward(setting: Setting) -> NetworkReward:
    """A fresh one."""
    return NetworkReward(
        eqx.nn.MLP(setting.obs_dim, "scalar", 64, 2, activation=jnp.tanh, key=jr.key(1))
    )


@jax.jit
def _act(actor: Actor, obs: Float[Array, "o"], noise: Float[Array, "a"]) -> Float[Array, "a"]:
    return squashed_gaussian(*actor.distribution(obs), noise)[0]


class Learner:
    """The engine on one environment: steps on the host, then a block of updates on the device."""

    def __init__(self, setting: Setting, precision: str, reward: RewardFn) -> None:
        self._config = SACConfig(
            hidden=(setting.hidden, setting.hidden),
            batch_size=setting.batch_size,
            precision="bfloat16" if precision == "bfloat16" else "float32",
        )
        self._reward = reward
        self._keys = iter(jr.split(jr.key(0), 10_000))
        self._random = np.random.default_rng(0)
        self._environment = gym.make(ENVIRONMENT)
        self._obs, _ = self._environment.reset(seed=0)
        shape = (setting.obs_dim, setting.act_dim)
        self._agent = Agent.create(next(self._keys), *shape, self._config)
        self._buffer = ReplayBuffer.create(_CAPACITY, *shape)
        self._collect(WARM_UP)

    def update(self) -> None:
        """A block of updates."""
        self._agent, _ = improve(
            next(self._keys),
            self._agent,
            self._buffer,
            self._reward,
            num_updates=BLOCK,
            config=self._config,
        )
        jax.block_until_ready(self._agent)

    def step_and_update(self) -> None:
        """As many steps, then a block of updates."""
        self._collect(BLOCK)
        self.update()

    def _collect(self, num: int) -> None:
        obs, actions, next_obs, ended = [], [], [], []
        noise = self._random.standard_normal((num, 3), dtype=np.float32)
        for i in range(num):
            action = np.asarray(_act(self._agent.actor, self._obs.astype(np.float32), noise[i]))
            following, _, terminated, truncated, _ = self._environment.step(action)
            obs.append(self._obs)
            actions.append(action)
            next_obs.append(following)
            ended.append(terminated)
            reset = terminated or truncated
            self._obs = self._environment.reset()[0] if reset else following
        self._buffer = self._buffer.insert(
            Transition(
                jnp.asarray(np.stack(obs), jnp.float32),
                jnp.asarray(np.stack(actions), jnp.float32),
                jnp.asarray(np.stack(next_obs), jnp.float32),
                jnp.asarray(ended),
            )
        )


def contenders(setting: Setting) -> dict[str, Contender]:
    """Ours, in every form."""
    free, network = FirstCoordinate(), network_reward(setting)
    named: dict[str, Contender] = {}
    for precision in ("float32", "bfloat16"):
        learner = Learner(setting, precision, free)
        named[f"firl {precision}, update"] = Contender(learner.update, BLOCK)
        named[f"firl {precision}, step + update"] = Contender(learner.step_and_update, BLOCK)
    relabelling = Learner(setting, "float32", network)
    named["firl float32, update, reward network"] = Contender(relabelling.update, BLOCK)
    return named
