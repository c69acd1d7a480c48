"""MaxEntRL(r): the agent acts and learns at the same time, under a reward that stays what it is."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from firl.config import PracticeConfig, SACConfig
from firl.methods.base import Info, named
from firl.rollout import UniformPolicy
from firl.sac.agent import Agent
from firl.sac.replay import ReplayBuffer
from firl.sac.update import SACInfo, improve
from firl.types import Policy, RewardFn, Simulator, Trajectories, Transition


def explore(
    key: PRNGKeyArray, simulator: Simulator, buffer: ReplayBuffer, config: PracticeConfig
) -> tuple[ReplayBuffer, Trajectories | None]:
    """Fill the buffer with what uniformly random actions do."""
    if not config.random_steps:
        return buffer, None
    policy = UniformPolicy(simulator.act_dim)

    def learn(chunk: Transition) -> Policy:
        nonlocal buffer
        buffer = buffer.insert(chunk)
        return policy

    episodes = simulator.practise(key, policy, config.random_steps, config.every, learn)
    return buffer, episodes


def practise(
    key: PRNGKeyArray,
    simulator: Simulator,
    agent: Agent,
    buffer: ReplayBuffer,
    reward: RewardFn,
    config: PracticeConfig,
    sac: SACConfig,
    share_done: float | Float[Array, ""] = 0.0,
) -> tuple[Agent, ReplayBuffer, Trajectories, Info]:
    """An iteration's episodes, with a block of updates after every few of their steps.

    What is left of the steps at the end is stored and not followed by updates, unless there were
    none at all.
    """
    k_play, k_learn = jr.split(key)
    infos: list[SACInfo] = []
    waiting = 0

    def update() -> None:
        nonlocal agent
        k_block = jr.fold_in(k_learn, len(infos))
        agent, info = improve(
            k_block,
            agent,
            buffer,
            reward,
            num_updates=config.updates,
            config=sac,
            share_done=share_done,
        )
        infos.append(info)

    def learn(chunk: Transition) -> Policy:
        nonlocal buffer, waiting
        buffer = buffer.insert(chunk)
        waiting += chunk.obs.shape[0]
        for _ in range(waiting // config.every):
            update()
        waiting %= config.every
        return agent.policy

    episodes = simulator.practise(k_play, agent.policy, config.steps, config.every, learn)
    if not infos:
        update()
    # Means on the host: their number varies, and with it what a device would have to compile.
    mean: SACInfo = jax.tree.map(
        lambda *values: jnp.asarray(np.mean(values), jnp.float32), *jax.device_get(infos)
    )
    updates = jnp.asarray(len(infos) * config.updates, jnp.float32)
    return agent, buffer, episodes, named("sac", mean) | {"sac/updates": updates}


def practice_info(episodes: Trajectories) -> Info:
    """How the agent did while it practised, for looking at: nothing learns from its return."""
    returns, lengths = np.asarray(episodes.rewards).sum(axis=1), np.asarray(episodes.lengths)
    return {
        "agent/return": jnp.asarray(returns.mean(), jnp.float32),
        "agent/length": jnp.asarray(lengths.mean(), jnp.float32),
    }
