"""Our update, alone, with a reward network to relabel by, and with the environment's steps."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from firl.bench.setting import BLOCK, ENVIRONMENT, WARM_UP, Contender, Setting
from firl.config import PracticeConfig, SACConfig
from firl.methods.practice import explore, practise
from firl.rollout import make_simulator
from firl.sac.agent import Agent
from firl.sac.replay import ReplayBuffer
from firl.sac.update import improve
from firl.types import RewardFn, Transition

_CAPACITY = 100_000


class FirstCoordinate(eqx.Module):
    """A reward that costs nothing, as it costs the others nothing to read theirs."""

    def __call__(self, batch: Transition) -> Float[Array, "batch"]:
        """Hopper's height."""
        return batch.next_obs[:, 0]

    def absorbed(self, batch: Transition, rewards: Float[Array, "batch"]) -> Float[Array, "batch"]:
        """The same again."""
        return rewards


class NetworkReward(eqx.Module):
    """A reward as f-IRL learns it: tanh units, 64 × 64."""

    net: eqx.nn.MLP

    def __call__(self, batch: Transition) -> Float[Array, "batch"]:
        """r(s′)."""
        return jax.vmap(self.net)(batch.next_obs)

    def absorbed(self, batch: Transition, rewards: Float[Array, "batch"]) -> Float[Array, "batch"]:
        """The same again."""
        return rewards


def network_reward(setting: Setting) -> NetworkReward:
    """A fresh one."""
    return NetworkReward(
        eqx.nn.MLP(setting.obs_dim, "scalar", 64, 2, activation=jnp.tanh, key=jr.key(1))
    )


class Learner:
    """The engine on one environment: a block of updates after as many steps."""

    def __init__(self, setting: Setting, precision: str, reward: RewardFn) -> None:
        self._config = SACConfig(
            hidden=(setting.hidden, setting.hidden),
            batch_size=setting.batch_size,
            precision="bfloat16" if precision == "bfloat16" else "float32",
        )
        self._reward = reward
        self._keys = iter(jr.split(jr.key(0), 10_000))
        self._simulator = make_simulator(ENVIRONMENT)
        shape = (setting.obs_dim, setting.act_dim)
        self._agent = Agent.create(next(self._keys), *shape, self._config)
        self._buffer, _ = explore(
            next(self._keys),
            self._simulator,
            ReplayBuffer.create(_CAPACITY, *shape),
            PracticeConfig(random_steps=WARM_UP, every=BLOCK),
        )

    def update(self) -> int:
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
        return BLOCK

    def step_and_update(self) -> int:
        """An iteration as every method has it: 1000 steps, updates after each block of them."""
        self._agent, self._buffer, _, info = practise(
            next(self._keys),
            self._simulator,
            self._agent,
            self._buffer,
            self._reward,
            PracticeConfig(every=BLOCK, updates=BLOCK),
            self._config,
        )
        jax.block_until_ready(self._agent)
        return int(info["sac/updates"])


def contenders(setting: Setting) -> dict[str, Contender]:
    """Ours, in every form."""
    free, network = FirstCoordinate(), network_reward(setting)
    named: dict[str, Contender] = {}
    for precision in ("float32", "bfloat16"):
        learner = Learner(setting, precision, free)
        named[f"firl {precision}, update"] = Contender(learner.update)
        named[f"firl {precision}, step + update"] = Contender(learner.step_and_update)
    relabelling = Learner(setting, "float32", network)
    named["firl float32, update, reward network"] = Contender(relabelling.update)
    return named
