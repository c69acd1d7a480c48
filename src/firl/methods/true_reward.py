"""SAC on the environment's own reward: how experts come about. Nothing is imitated."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, PRNGKeyArray

from firl.config import TrainConfig
from firl.methods.base import Info, Method, Problem, State, check_budget, named
from firl.methods.practice import explore, practise
from firl.sac.agent import Agent
from firl.sac.replay import ReplayBuffer
from firl.types import RewardFn, Transition


class TrueReward(eqx.Module):
    """What the environment paid for the transition."""

    def __call__(self, batch: Transition) -> Float[Array, "batch"]:
        """Read it off."""
        assert batch.env_reward is not None
        return batch.env_reward


class SoloState(State):
    """What the next iteration of plain reinforcement learning needs."""

    agent: Agent
    reward: RewardFn
    env_steps: Int[Array, ""]
    buffer: ReplayBuffer


def true_reward(problem: Problem, config: TrainConfig) -> Method[SoloState]:
    """Reinforcement learning from what the environment pays."""
    return reinforce(problem, config, TrueReward(), keep_env_reward=True)


def reinforce(
    problem: Problem, config: TrainConfig, reward: RewardFn, *, keep_env_reward: bool
) -> Method[SoloState]:
    """SAC on a reward that does not change."""
    simulator, sac = problem.simulator, config.sac
    check_budget(config.env_steps, config.practice.random_steps, "--practice.random-steps")

    def init(key: PRNGKeyArray) -> SoloState:
        k_agent, k_random = jr.split(key)
        buffer = ReplayBuffer.create(
            sac.buffer_size, simulator.obs_dim, simulator.act_dim, keep_env_reward=keep_env_reward
        )
        buffer, episodes = explore(k_random, simulator, buffer, config.practice)
        return SoloState(
            agent=eqx.filter_jit(Agent.create)(k_agent, simulator.obs_dim, simulator.act_dim, sac),
            reward=reward,
            env_steps=jnp.asarray(episodes.env_steps if episodes else 0, jnp.int32),
            buffer=buffer,
        )

    def step(key: PRNGKeyArray, state: SoloState) -> tuple[SoloState, Info]:
        agent, buffer, episodes, sac_info = practise(
            key, simulator, state.agent, state.buffer, state.reward, config.practice, sac
        )
        info = named("sac", sac_info) | {
            "agent/return": jnp.mean(episodes.returns),
            "agent/length": jnp.mean(episodes.lengths.astype(jnp.float32)),
        }
        env_steps = state.env_steps + episodes.env_steps
        return SoloState(agent=agent, reward=reward, env_steps=env_steps, buffer=buffer), info

    return Method(init, step)
