"""SAC on a reward that is given: the environment's own, or one that a run has learned."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, PRNGKeyArray

from firl.config import TrainConfig
from firl.errors import FirlError
from firl.learned import load
from firl.methods.base import Info, Method, State, check_budget, share_spent
from firl.methods.practice import explore, practice_info, practise
from firl.problems import Problem
from firl.reward import RewardNet, StateReward
from firl.sac.agent import Agent
from firl.sac.replay import ReplayBuffer
from firl.types import RewardFn, Transition


class TrueReward(eqx.Module):
    """What the environment paid for the transition."""

    def __call__(self, batch: Transition) -> Float[Array, "batch"]:
        """Read it off."""
        assert batch.env_reward is not None
        return batch.env_reward

    def absorbed(self, batch: Transition, rewards: Float[Array, "batch"]) -> Float[Array, "batch"]:
        """Nothing."""
        del batch
        return jnp.zeros_like(rewards)


class SoloState(State):
    """What the next iteration of plain reinforcement learning needs."""

    agent: Agent
    reward: RewardNet | None
    """None where the environment pays."""
    env_steps: Int[Array, ""]
    buffer: ReplayBuffer


def true_reward(problem: Problem, config: TrainConfig) -> Method[SoloState]:
    """Reinforcement learning from what the environment pays: how experts come about."""
    return _reinforce(problem, config, None)


def learned_reward(problem: Problem, config: TrainConfig) -> Method[SoloState]:
    """Reinforcement learning from scratch on a frozen reward (Table 4)."""
    if config.learned_reward is None:
        raise FirlError(
            "--method learned-reward needs the run whose reward it is: --learned-reward RUN."
        )
    learned = load(config.learned_reward)
    net = learned.reward_net
    for name in ("hidden", "activation", "bound", "soft_bound"):
        ours, theirs = (getattr(each.reward, name) for each in (config, learned.config))
        if ours != theirs:
            raise FirlError(
                f"--reward.{name.replace('_', '-')} is {ours}, but was {theirs} where the reward "
                f"was learned, {config.learned_reward}: leave that option out."
            )
    if len(net.scaling.centre) != problem.state_dim:
        raise FirlError(
            f"--learned-reward {config.learned_reward}: its reward is of states of "
            f"{len(net.scaling.centre)} coordinates, but this problem's have {problem.state_dim}: "
            "take a task with the same states."
        )
    if net.scaling != problem.scaling(config):
        raise FirlError(
            f"--learned-reward {config.learned_reward}: its reward is of states in other units "
            "than this problem's: use firl.learned.adopt on the problem first."
        )
    return _reinforce(problem, config, net)


def _reinforce(problem: Problem, config: TrainConfig, net: RewardNet | None) -> Method[SoloState]:
    simulator, sac = problem.simulator, config.sac
    check_budget(config.env_steps, config.practice.random_steps, "--practice.random-steps")

    def init(key: PRNGKeyArray) -> SoloState:
        k_agent, k_random = jr.split(key)
        buffer = ReplayBuffer.create(
            sac.buffer_size, simulator.obs_dim, simulator.act_dim, keep_env_reward=net is None
        )
        buffer, episodes = explore(k_random, simulator, buffer, config.practice)
        agent = eqx.filter_jit(Agent.create)(k_agent, simulator.obs_dim, simulator.act_dim, sac)
        env_steps = jnp.asarray(episodes.env_steps if episodes else 0, jnp.int32)
        return SoloState(agent=agent, reward=net, env_steps=env_steps, buffer=buffer)

    def step(key: PRNGKeyArray, state: SoloState) -> tuple[SoloState, Info]:
        pays: RewardFn = (
            TrueReward() if state.reward is None else StateReward(state.reward, problem.state_map)
        )
        agent, buffer, episodes, sac_info = practise(
            key,
            simulator,
            state.agent,
            state.buffer,
            pays,
            config.practice,
            sac,
            share_spent(state.env_steps, config.env_steps),
        )
        env_steps = state.env_steps + episodes.env_steps
        return SoloState(
            agent=agent, reward=state.reward, env_steps=env_steps, buffer=buffer
        ), sac_info | practice_info(episodes)

    return Method(init, step)
