"""The outer loop of methods whose reward *is* what tells the agent's steps from the expert's.

    π ← a while of MaxEntRL(r_ω), whose last episodes are τ;  ω ← fit(expert, τ)

The same episodes, absorbing states and counts of steps as in `imitate.py`; what is missing is a
reward that descends something: nothing remains of it when nobody can tell the two apart.
"""

from typing import Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from firl.config import TrainConfig
from firl.errors import FirlError
from firl.methods.base import Info, Method, State, check_budget, share_spent
from firl.methods.practice import explore, practice_info, practise
from firl.methods.recent import newest, push, shortened
from firl.problems import Problem
from firl.reward import RewardNet
from firl.sac.agent import Agent
from firl.sac.replay import ReplayBuffer
from firl.types import RewardFn, Trajectories


class Steps(eqx.Module):
    """Steps of episodes that go on until T: in an absorbing state the action is zero."""

    obs: Float[Array, "*n o"]
    action: Float[Array, "*n a"]
    next_obs: Float[Array, "*n o"]

    @property
    def flat(self) -> "Steps":
        """Without saying which episode they are of."""
        num = int(np.prod(self.obs.shape[:-1]))
        steps: Steps = jax.tree.map(lambda x: x.reshape(num, x.shape[-1]), self)
        return steps


@runtime_checkable
class Discriminator(Protocol):
    """Tells the expert's steps from the agent's, and pays for looking like the expert's."""

    @property
    def needs_actions(self) -> bool:
        """Whether the expert's have to be known."""
        ...

    def init(self, key: PRNGKeyArray) -> PyTree[Array]:
        """What it carries from one iteration to the next."""
        ...

    def reward(self, carry: PyTree[Array]) -> RewardFn:
        """What it pays."""
        ...

    def recovered(self, carry: PyTree[Array]) -> RewardNet | None:
        """What stays of it as a reward of its own, None where nothing does."""
        ...

    def fit(
        self, key: PRNGKeyArray, carry: PyTree[Array], expert: Steps, steps: Steps, agent: Agent
    ) -> tuple[PyTree[Array], Info]:
        """Go on from where the last fit stopped, between the expert's steps and the agent's."""
        ...


class AdversarialState(State):
    """What the next iteration needs."""

    agent: Agent
    reward: RewardNet | None
    env_steps: Int[Array, ""]
    buffer: ReplayBuffer
    discriminator: PyTree[Array]
    recent: Steps
    """The agent's last episodes, newest first."""
    num_recent: Int[Array, ""]


def adversarial(
    problem: Problem, config: TrainConfig, discriminator: Discriminator
) -> Method[AdversarialState]:
    """SAC against this discriminator."""
    simulator, sac, imitation = problem.simulator, config.sac, config.imitation
    check_budget(config.env_steps, config.practice.random_steps, "--practice.random-steps")
    expert = demonstrated(problem, imitation.demonstrations, imitation.tail)
    if expert.action.shape[-1] == 0 and discriminator.needs_actions:
        raise FirlError(
            f"--method {config.method} needs the expert's actions, and "
            f"{problem.demonstrations.source} has none: take a method that needs states alone, as "
            "firl does."
        )

    def init(key: PRNGKeyArray) -> AdversarialState:
        k_agent, k_discriminator, k_random = jr.split(key, 3)
        buffer = ReplayBuffer.create(sac.buffer_size, simulator.obs_dim, simulator.act_dim)
        buffer, episodes = explore(k_random, simulator, buffer, config.practice)
        carry = discriminator.init(k_discriminator)
        blank = (imitation.window, simulator.horizon)
        return AdversarialState(
            agent=eqx.filter_jit(Agent.create)(k_agent, simulator.obs_dim, simulator.act_dim, sac),
            reward=discriminator.recovered(carry),
            env_steps=jnp.asarray(episodes.env_steps if episodes else 0, jnp.int32),
            buffer=buffer,
            discriminator=carry,
            recent=Steps(
                jnp.zeros((*blank, simulator.obs_dim)),
                jnp.zeros((*blank, simulator.act_dim)),
                jnp.zeros((*blank, simulator.obs_dim)),
            ),
            num_recent=jnp.zeros((), jnp.int32),
        )

    def step(key: PRNGKeyArray, state: AdversarialState) -> tuple[AdversarialState, Info]:
        k_practice, k_fit = jr.split(key)
        agent, buffer, episodes, sac_info = practise(
            k_practice,
            simulator,
            state.agent,
            state.buffer,
            discriminator.reward(state.discriminator),
            config.practice,
            sac,
            share_spent(state.env_steps, config.env_steps),
        )
        recent = push(
            _steps(newest(episodes, imitation.window), imitation.tail), state.recent, episodes.num
        )
        num_recent = jnp.minimum(state.num_recent + episodes.num, imitation.window)
        # As often as it takes to fill the window, so that no shape changes while it fills.
        filled = jnp.arange(imitation.window) % num_recent
        agent_steps: Steps = jax.tree.map(lambda x: x[filled], recent)
        carry, fit_info = discriminator.fit(
            k_fit, state.discriminator, expert, agent_steps.flat, agent
        )
        return AdversarialState(
            agent=agent,
            reward=discriminator.recovered(carry),
            env_steps=state.env_steps + episodes.env_steps,
            buffer=buffer,
            discriminator=carry,
            recent=recent,
            num_recent=num_recent,
        ), sac_info | practice_info(episodes) | fit_info

    return Method(init, step)


def demonstrated(problem: Problem, num: int, tail: int) -> Steps:
    """The expert's steps; its actions have no coordinates where nobody knows them."""
    simulator, horizon = problem.simulator, problem.simulator.horizon
    problem.demonstrations.check_against(simulator.obs_dim)
    demos = problem.demonstrations.first(num)
    visited = demos.visited(horizon)
    start = np.stack([obs[:1] for obs in demos.observations]).astype(np.float32)
    obs = np.concatenate([start, visited], axis=1)
    acted = demos.actions is not None
    actions = np.zeros((num, horizon, simulator.act_dim if acted else 0), np.float32)
    low, high = (np.asarray(bound, np.float32) for bound in simulator.action_bounds)
    for episode, taken in enumerate(demos.actions or ()):
        actions[episode, : len(taken)] = (taken - low[None]) / (high - low)[None] * 2.0 - 1.0
    return _steps(
        Trajectories(
            obs=jnp.asarray(obs),
            actions=jnp.asarray(np.clip(actions, -1.0, 1.0)),
            lengths=jnp.asarray(demos.lengths, jnp.int32),
            terminated=jnp.asarray(demos.terminated),
            rewards=jnp.zeros((num, horizon)),
        ),
        tail,
    ).flat


def _steps(episodes: Trajectories, tail: int) -> Steps:
    steps = Steps(episodes.obs[:, :-1], episodes.actions, episodes.obs[:, 1:])
    stretched: Steps = shortened(steps, episodes.lengths, episodes.terminated, tail)
    return stretched
