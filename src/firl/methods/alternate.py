"""Algorithm 1: alternate MaxEnt RL under the reward with one descent of the reward.

    π ← MaxEntRL(r_θ);  τ ~ π;  signal ← fit(expert, τ);  θ ← θ − λ ∇ loss(signal, r_θ(τ))

f-IRL, its IPM extension and MaxEntIRL are this loop; they differ in the signal that is fitted
between expert and agent, and in the loss that turns it into a gradient.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from firl.config import RewardConfig, TrainConfig
from firl.methods.base import Info, Method, State, check_budget, named, share_spent
from firl.methods.descent import descend
from firl.problems import Problem
from firl.reward import RewardNet, StateReward, make_reward
from firl.rollout import UniformPolicy, transitions
from firl.sac.adam import Adam
from firl.sac.agent import Agent
from firl.sac.replay import ReplayBuffer
from firl.sac.update import improve
from firl.types import RewardFn, Simulator, StateMap


@runtime_checkable
class Signal(Protocol):
    """What separates expert and agent at the states that the agent visited."""

    def init(self, key: PRNGKeyArray) -> PyTree[Array]:
        """What it carries from one iteration to the next (a critic's weights, say)."""
        ...

    def fit(
        self, key: PRNGKeyArray, carry: PyTree[Array], states: Float[Array, "n T d"]
    ) -> tuple[PyTree[Array], Float[Array, "n T"], Info]:
        """Fit it to the agent's states, and ask it there."""
        ...


@runtime_checkable
class RewardLoss(Protocol):
    """A scalar whose gradient in the rewards' parameters is the method's."""

    def __call__(
        self, signal: Float[Array, "n T"], rewards: Float[Array, "n T"]
    ) -> Float[Array, ""]:
        """The loss."""
        ...


class AlternatingState(State):
    """What the next iteration of Algorithm 1 needs."""

    agent: Agent
    reward: RewardNet
    env_steps: Int[Array, ""]
    buffer: ReplayBuffer
    optimiser: Adam
    signal: PyTree[Array]
    window: Float[Array, "w n T d"]
    """States of the last `collect.window` iterations' roll-outs, newest first."""
    window_filled: Int[Array, ""]


Pays = Callable[[RewardNet, StateMap], RewardFn]
"""What the agent is paid for the network that the loss is of."""


def alternate(
    problem: Problem,
    config: TrainConfig,
    signal: Signal,
    reward_loss: RewardLoss,
    pays: Pays = StateReward,
) -> Method[AlternatingState]:
    """Algorithm 1 with this signal and this loss."""
    simulator, state_map = problem.simulator, problem.state_map
    collect, sac = config.collect, config.sac
    update = make_update(config.reward, reward_loss)
    random_steps = collect.random_episodes * simulator.horizon
    check_budget(config.env_steps, random_steps, "--collect.random-episodes")

    def init(key: PRNGKeyArray) -> AlternatingState:
        k_agent, k_reward, k_signal, k_random = jax.random.split(key, 4)
        scaling = problem.scaling(config)
        reward = eqx.filter_jit(make_reward)(k_reward, scaling, config.reward)
        buffer, env_steps = warm_up(k_random, simulator, config)
        return AlternatingState(
            # Compiled, because one by one their many small operations take seconds to start.
            agent=eqx.filter_jit(Agent.create)(k_agent, simulator.obs_dim, simulator.act_dim, sac),
            reward=reward,
            env_steps=jnp.asarray(env_steps, jnp.int32),
            buffer=buffer,
            optimiser=Adam.create(eqx.filter(reward, eqx.is_inexact_array)),
            signal=signal.init(k_signal),
            window=jnp.zeros(
                (collect.window - 1, collect.rollouts, simulator.horizon, problem.state_dim)
            ),
            window_filled=jnp.asarray(0, jnp.int32),
        )

    def step(key: PRNGKeyArray, state: AlternatingState) -> tuple[AlternatingState, Info]:
        k_sac, k_update, k_roll, k_signal, k_reward = jax.random.split(key, 5)
        buffer, env_steps = state.buffer, state.env_steps

        if collect.sac_episodes:
            episodes = simulator.rollout(k_sac, state.agent.policy, collect.sac_episodes)
            buffer = buffer.insert(transitions(episodes))
            env_steps = env_steps + episodes.env_steps
        reward_fn = pays(state.reward, state_map)
        agent, sac_info = improve(
            k_update,
            state.agent,
            buffer,
            reward_fn,
            num_updates=collect.updates,
            config=sac,
            share_done=share_spent(env_steps, config.env_steps),
        )

        rollouts = simulator.rollout(k_roll, agent.policy, collect.rollouts)
        env_steps = env_steps + rollouts.env_steps
        if collect.learn_from_rollouts:
            buffer = buffer.insert(transitions(rollouts))

        recent = jnp.concatenate([state_map(rollouts.visited)[None], state.window])
        filled = min(int(state.window_filled) + 1, collect.window)
        states = jnp.concatenate(list(recent[:filled]))
        carry, values, signal_info = signal.fit(k_signal, state.signal, states)
        reward, optimiser, reward_info = update(
            k_reward,
            state.reward,
            state.optimiser,
            values,
            states,
            share_spent(env_steps, config.env_steps),
        )

        updates = {"sac/updates": jnp.asarray(collect.updates, jnp.float32)}
        info = named("sac", sac_info) | updates | signal_info | reward_info
        return AlternatingState(
            agent=agent,
            reward=reward,
            env_steps=env_steps,
            buffer=buffer,
            optimiser=optimiser,
            signal=carry,
            window=recent[: collect.window - 1],
            window_filled=jnp.asarray(min(filled, collect.window - 1), jnp.int32),
        ), info

    return Method(init, step)


def warm_up(
    key: PRNGKeyArray, simulator: Simulator, config: TrainConfig
) -> tuple[ReplayBuffer, int]:
    """A buffer with what uniformly random actions do, and the steps that took."""
    buffer = ReplayBuffer.create(config.sac.buffer_size, simulator.obs_dim, simulator.act_dim)
    if not config.collect.random_episodes:
        return buffer, 0
    policy = UniformPolicy(simulator.act_dim)
    episodes = simulator.rollout(key, policy, config.collect.random_episodes)
    return buffer.insert(transitions(episodes)), episodes.env_steps


Update = Callable[
    [PRNGKeyArray, RewardNet, Adam, Array, Array, Array], tuple[RewardNet, Adam, Info]
]
"""From a key, the reward and its optimiser, the signal and the states it was asked at, and the
share of the budget that is spent, to the reward after the iteration's gradient steps."""


def make_update(config: RewardConfig, loss: RewardLoss) -> Update:
    """The iteration's gradient steps on the reward, compiled once per shape."""

    @eqx.filter_jit
    def update(
        key: PRNGKeyArray,
        reward: RewardNet,
        optimiser: Adam,
        values: Float[Array, "n T"],
        states: Float[Array, "n T d"],
        share_done: Float[Array, ""],
    ) -> tuple[RewardNet, Adam, Info]:
        def loss_of(reward: RewardNet, key: PRNGKeyArray) -> tuple[Float[Array, ""], Info]:
            del key
            rewards = jax.vmap(jax.vmap(reward))(states)
            return loss(values, rewards), {"reward/agent_mean": jnp.mean(rewards)}

        return descend(key, reward, optimiser, loss_of, config, share_done)

    return update
