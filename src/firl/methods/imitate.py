"""Algorithm 1 from demonstrations, with the practical gradient of Eq. 6.

    π ← MaxEntRL(r_θ), whose last episodes are τ;  signal ← fit(expert, τ)
    θ ← θ − λ ∇ cov_{½ agent + ½ expert}(Σ_t h(signal), Σ_t r_θ)

SAC's own episodes are the sample of the agent, unless `imitation.rollouts` asks for as many more:
the paper rolls the policy out ten times in each iteration for it.
"""

from collections.abc import Callable
from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from firl.config import ImitationConfig, RewardConfig, TrainConfig
from firl.methods.base import Info, Method, State, check_budget, share_spent
from firl.methods.descent import descend
from firl.methods.practice import explore, practice_info, practise
from firl.methods.recent import newest, push, shortened
from firl.problems import Problem
from firl.reward import RewardNet, StateReward, make_reward
from firl.sac.adam import Adam
from firl.sac.agent import Agent
from firl.sac.replay import ReplayBuffer
from firl.types import Trajectories

Ask = Callable[[Float[Array, "n d"]], Float[Array, "n"]]
"""A fitted signal, asked at states. A pytree."""


@runtime_checkable
class SampleSignal(Protocol):
    """What separates two samples of states, the expert's and the agent's."""

    def init(self, key: PRNGKeyArray) -> PyTree[Array]:
        """What it carries from one iteration to the next."""
        ...

    def fit(
        self,
        key: PRNGKeyArray,
        carry: PyTree[Array],
        expert: Float[Array, "m d"],
        agent: Float[Array, "n d"],
    ) -> tuple[PyTree[Array], Ask, Info]:
        """Fit it to the two samples."""
        ...


@runtime_checkable
class ImitationLoss(Protocol):
    """From the signal and rewards along the agent's and the expert's trajectories to a scalar."""

    def __call__(
        self,
        agent: Float[Array, "n T"],
        agent_rewards: Float[Array, "n T"],
        expert: Float[Array, "m T"],
        expert_rewards: Float[Array, "m T"],
    ) -> Float[Array, ""]:
        """The loss."""
        ...


class ImitatingState(State):
    """What the next iteration needs."""

    agent: Agent
    reward: RewardNet
    env_steps: Int[Array, ""]
    taught: RewardNet
    """The reward that the agent learns from: an average of `reward` over iterations."""
    buffer: ReplayBuffer
    optimiser: Adam
    signal: PyTree[Array]
    recent: Float[Array, "w T d"]
    """What the agent's last episodes visited, newest first."""
    num_recent: Int[Array, ""]


def imitate(
    problem: Problem, config: TrainConfig, signal: SampleSignal, loss: ImitationLoss
) -> Method[ImitatingState]:
    """Algorithm 1 with this signal and this loss."""
    simulator, sac = problem.simulator, config.sac
    imitation = config.imitation
    check_budget(config.env_steps, config.practice.random_steps, "--practice.random-steps")
    problem.demonstrations.check_against(simulator.obs_dim)
    demos = problem.demonstrations.first(imitation.demonstrations)
    expert = problem.state_map(
        shortened(
            jnp.asarray(demos.visited(simulator.horizon)),
            jnp.asarray(demos.lengths, jnp.int32),
            jnp.asarray(demos.terminated),
            imitation.tail,
        )
    )
    scaling = problem.scaling(config)
    update = make_update(config.reward, imitation, loss)

    def remember(state: ImitatingState, episodes: Trajectories) -> tuple[Array, Array]:
        last = newest(episodes, imitation.window)
        visited = shortened(last.visited, last.lengths, last.terminated, imitation.tail)
        recent = push(problem.state_map(visited), state.recent, episodes.num)
        return recent, jnp.minimum(state.num_recent + episodes.num, imitation.window)

    def init(key: PRNGKeyArray) -> ImitatingState:
        k_agent, k_reward, k_signal, k_random = jr.split(key, 4)
        buffer = ReplayBuffer.create(sac.buffer_size, simulator.obs_dim, simulator.act_dim)
        buffer, episodes = explore(k_random, simulator, buffer, config.practice)
        reward = eqx.filter_jit(make_reward)(k_reward, scaling, config.reward)
        return ImitatingState(
            agent=eqx.filter_jit(Agent.create)(k_agent, simulator.obs_dim, simulator.act_dim, sac),
            reward=reward,
            env_steps=jnp.asarray(episodes.env_steps if episodes else 0, jnp.int32),
            taught=reward,
            buffer=buffer,
            optimiser=Adam.create(eqx.filter(reward, eqx.is_inexact_array)),
            signal=signal.init(k_signal),
            recent=jnp.zeros((imitation.window, *expert.shape[1:])),
            num_recent=jnp.zeros((), jnp.int32),
        )

    def step(key: PRNGKeyArray, state: ImitatingState) -> tuple[ImitatingState, Info]:
        k_practice, k_signal, k_reward, k_roll = jr.split(key, 4)
        reward_fn = StateReward(state.taught, problem.state_map)
        agent, buffer, episodes, sac_info = practise(
            k_practice,
            simulator,
            state.agent,
            state.buffer,
            reward_fn,
            config.practice,
            sac,
            share_spent(state.env_steps, config.env_steps),
        )
        env_steps = state.env_steps + episodes.env_steps
        sample = episodes
        if imitation.rollouts:
            sample = simulator.rollout(k_roll, agent.policy, imitation.rollouts)
            env_steps = env_steps + sample.env_steps
        recent, num_recent = remember(state, sample)
        # As often as it takes to fill the window, so that no shape changes while it fills.
        visited = recent[jnp.arange(imitation.window) % num_recent]
        carry, ask, signal_info = signal.fit(
            k_signal,
            state.signal,
            expert.reshape(-1, expert.shape[-1]),
            visited.reshape(-1, expert.shape[-1]),
        )
        reward, optimiser, reward_info = update(
            k_reward,
            state.reward,
            state.optimiser,
            ask,
            visited,
            expert,
            share_spent(env_steps, config.env_steps),
        )
        info = sac_info | practice_info(episodes) | signal_info | reward_info
        return ImitatingState(
            agent=agent,
            reward=reward,
            env_steps=env_steps,
            taught=_average(imitation.average, state.taught, reward),
            buffer=buffer,
            optimiser=optimiser,
            signal=carry,
            recent=recent,
            num_recent=num_recent,
        ), info

    return Method(init, step)


@eqx.filter_jit
def _average(keep: float, old: RewardNet, new: RewardNet) -> RewardNet:
    averaged: RewardNet = jax.tree.map(
        lambda o, n: keep * o + (1.0 - keep) * n if eqx.is_inexact_array(o) else n, old, new
    )
    return averaged


Update = Callable[
    [PRNGKeyArray, RewardNet, Adam, Ask, Array, Array, Array],
    tuple[RewardNet, Adam, Info],
]
"""From a key, the reward and its optimiser, the fitted signal, both sides' states, and the share of
the budget that is spent, to the reward after the iteration's gradient steps."""


def make_update(config: RewardConfig, imitation: ImitationConfig, loss: ImitationLoss) -> Update:
    """The iteration's gradient steps on the reward, compiled once per shape."""

    @eqx.filter_jit
    def update(
        key: PRNGKeyArray,
        reward: RewardNet,
        optimiser: Adam,
        ask: Ask,
        visited: Float[Array, "n T d"],
        expert: Float[Array, "m T d"],
        share_done: Float[Array, ""],
    ) -> tuple[RewardNet, Adam, Info]:
        at_expert = jax.vmap(ask)(expert)

        def loss_of(reward: RewardNet, key: PRNGKeyArray) -> tuple[Float[Array, ""], Info]:
            k_batch, k_slope = jr.split(key)
            drawn = jr.choice(k_batch, visited, (imitation.batch,), replace=False)
            at_agent = jax.vmap(ask)(drawn)
            rewards = jax.vmap(jax.vmap(reward))
            agent_rewards, expert_rewards = rewards(drawn), rewards(expert)
            value = loss(at_agent, agent_rewards, at_expert, expert_rewards)
            excess = slope_excess(k_slope, reward, drawn, expert, imitation.slope)
            return value + imitation.slope_penalty * excess, {
                "reward/agent_mean": jnp.mean(agent_rewards),
                "reward/expert_mean": jnp.mean(expert_rewards),
                "reward/slope_excess": excess,
                "signal/agent_mean": jnp.mean(at_agent),
                "signal/expert_mean": jnp.mean(at_expert),
            }

        return descend(key, reward, optimiser, loss_of, config, share_done)

    return update


_PAIRS = 512
"""Between which the reward's slope is looked at in each step."""


def slope_excess(
    key: PRNGKeyArray,
    reward: RewardNet,
    visited: Float[Array, "n T d"],
    expert: Float[Array, "m T d"],
    slope: float,
) -> Float[Array, ""]:
    """E relu(‖∇r‖ − slope)² on lines between expert and agent, in units of the scaled state."""
    k_agent, k_expert, k_mix = jr.split(key, 3)
    ours = jr.choice(k_agent, visited.reshape(-1, visited.shape[-1]), (_PAIRS,))
    theirs = jr.choice(k_expert, expert.reshape(-1, expert.shape[-1]), (_PAIRS,))
    mix = jr.uniform(k_mix, (_PAIRS, 1))
    gradients = jax.vmap(jax.grad(reward))(mix * theirs + (1 - mix) * ours)
    scaled = gradients * jnp.array(reward.scaling.scale)[None]
    slopes = jnp.sqrt(jnp.sum(scaled**2, axis=1) + 1e-12)
    return jnp.mean(jax.nn.relu(slopes - slope) ** 2)
