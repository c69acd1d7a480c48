"""State marginal matching (Lee et al. 2019): fictitious play between policies and densities.

    q ← the density of what all policies so far visited
    π ← a while of MaxEntRL(r = log ρ_E − log q)

The average policy, one of the past ones for each episode, descends the reverse KL: a policy that
only answers the last density goes where that one was not, and back. So policies and states are
kept from all of the past, a fair sample of each. r changes as long as the play goes on, and is
flat where it ends well: no reward is recovered.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from firl.config import TrainConfig
from firl.expert.base import AbstractDensity
from firl.log_ratio import KernelDensity, scott_bandwidth
from firl.methods.alternate import warm_up
from firl.methods.base import Info, Method, State, check_budget, named, share_spent
from firl.methods.signals import KERNELS
from firl.problems import Problem
from firl.reward import SoftBound
from firl.rollout import transitions
from firl.sac.agent import Agent
from firl.sac.networks import Actor
from firl.sac.replay import ReplayBuffer
from firl.sac.update import improve
from firl.types import Policy, StateMap, Transition

_STATES = 6000
"""Of the past that are kept for q: as many as ten iterations' roll-outs have by default."""

_POLICIES = 20
"""Of the past that are kept to be drawn from."""


class MatchingReward(eqx.Module):
    """log ρ_E − log q, softly bounded: log ρ_E falls without end where the expert never is."""

    expert: AbstractDensity
    visited: KernelDensity
    bound: SoftBound
    state_map: StateMap

    def __call__(self, batch: Transition) -> Float[Array, "batch"]:
        """Reward each transition by the state it leads to."""
        states = self.state_map(batch.next_obs)
        return jax.vmap(self.bound)(self.expert.log_prob(states) - self.visited.log_prob(states))

    def absorbed(self, batch: Transition, rewards: Float[Array, "batch"]) -> Float[Array, "batch"]:
        """The same again: it is the same state."""
        del batch
        return rewards


class MatchingState(State):
    """What the next round needs."""

    agent: Agent
    reward: None
    env_steps: Int[Array, ""]
    buffer: ReplayBuffer
    states: Float[Array, "k d"]
    """A fair sample of all states that were visited."""
    num_states: Int[Array, ""]
    """How many that were."""
    past: tuple[Actor, ...]
    """A fair sample of all policies."""
    rounds: Int[Array, ""]

    @property
    def policies(self) -> tuple[Policy, ...]:
        """The average policy: each of these for as many episodes."""
        return self.past


def smm(problem: Problem, config: TrainConfig) -> Method[Any]:
    """SMM towards the problem's density."""
    simulator, state_map, collect = problem.simulator, problem.state_map, config.collect
    expert, ratio = problem.density, config.ratio
    kernel, bound = KERNELS[ratio.kernel], SoftBound(config.reward.bound)
    check_budget(
        config.env_steps, collect.random_episodes * simulator.horizon, "--collect.random-episodes"
    )

    def init(key: PRNGKeyArray) -> MatchingState:
        k_agent, k_random, k_first, k_kept = jr.split(key, 4)
        agent = eqx.filter_jit(Agent.create)(
            k_agent, simulator.obs_dim, simulator.act_dim, config.sac
        )
        buffer, env_steps = warm_up(k_random, simulator, config)
        first = simulator.rollout(k_first, agent.policy, collect.rollouts)
        visited = state_map(first.visited).reshape(-1, problem.state_dim)
        kept = jr.choice(k_kept, visited, (_STATES,))  # more than once each, where they are few
        return MatchingState(
            agent=agent,
            reward=None,
            env_steps=jnp.asarray(env_steps + first.env_steps, jnp.int32),
            buffer=buffer.insert(transitions(first)),
            states=kept,
            num_states=jnp.asarray(len(visited), jnp.int32),
            past=tuple(jax.tree.map(jnp.copy, agent.actor) for _ in range(_POLICIES)),
            rounds=jnp.asarray(1, jnp.int32),
        )

    def step(key: PRNGKeyArray, state: MatchingState) -> tuple[MatchingState, Info]:
        k_update, k_roll, k_states, k_policy = jr.split(key, 4)
        bandwidth = ratio.bandwidth or scott_bandwidth(state.states, kernel)
        density = KernelDensity(state.states, bandwidth, kernel)
        agent, sac_info = improve(
            k_update,
            state.agent,
            state.buffer,
            MatchingReward(expert, density, bound, state_map),
            num_updates=collect.updates,
            config=config.sac,
            share_done=share_spent(state.env_steps, config.env_steps),
        )
        rollouts = simulator.rollout(k_roll, agent.policy, collect.rollouts)
        new = state_map(rollouts.visited).reshape(-1, problem.state_dim)
        num_states = state.num_states + len(new)
        log_ratio = expert.log_prob(new) - density.log_prob(new)
        info = named("sac", sac_info) | {
            "sac/updates": jnp.asarray(collect.updates, jnp.float32),
            "ratio/mean": jnp.mean(log_ratio),
            "ratio/std": jnp.std(log_ratio),
        }
        return MatchingState(
            agent=agent,
            reward=None,
            env_steps=state.env_steps + rollouts.env_steps,
            buffer=state.buffer.insert(transitions(rollouts)),
            states=_mixed(k_states, state.states, new, len(new) / num_states),
            num_states=num_states,
            past=_remembered(k_policy, state.past, agent.actor, int(state.rounds) + 1),
            rounds=state.rounds + 1,
        ), info

    return Method(init, step)


@jax.jit
def _mixed(
    key: PRNGKeyArray, old: Float[Array, "k d"], new: Float[Array, "n d"], share: Float[Array, ""]
) -> Float[Array, "k d"]:
    """Each is replaced with the new ones' share of all: what is kept stays a fair sample."""
    k_which, k_new = jr.split(key)
    replaced = jr.bernoulli(k_which, share, (old.shape[0], 1))
    return jnp.where(replaced, jr.choice(k_new, new, (old.shape[0],)), old)


def _remembered(
    key: PRNGKeyArray, past: tuple[Actor, ...], actor: Actor, rounds: int
) -> tuple[Actor, ...]:
    """Each place goes to the new policy once in as many times as there were policies."""
    replaced = np.asarray(jr.bernoulli(key, 1 / rounds, (len(past),)))
    # A copy for each: the agent's own arrays are donated to its next updates.
    return tuple(
        jax.tree.map(jnp.copy, actor) if new else old
        for old, new in zip(past, replaced, strict=True)
    )
