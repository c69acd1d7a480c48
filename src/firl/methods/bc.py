"""Behaviour cloning: the policy of highest likelihood, max_π E_{(s,a)~expert}[log π(a|s)].

No environment step is taken and no reward is learned. It stops where the likelihood of actions
that were held out no longer rises, and keeps the policy that had the highest.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from firl.config import CloningConfig, TrainConfig
from firl.errors import FirlError
from firl.methods.base import Info, Method, State
from firl.problems import Problem
from firl.sac.adam import Adam
from firl.sac.agent import Agent
from firl.sac.networks import Actor

_EDGE = 0.99
"""How far out actions are believed. Before tanh ±1 is infinite, and a few saturated actions would
outweigh all others: held-out likelihood fell from the first hundred steps on."""


class CloningState(State):
    """What the next block of steps needs."""

    agent: Agent
    """Its actor is the best one so far; the rest of it is never used."""
    reward: None
    env_steps: Int[Array, ""]
    actor: Actor
    """The one that learns."""
    optimiser: Adam
    best: Float[Array, ""]
    """The held-out log-likelihood of `agent`."""
    stale: Int[Array, ""]
    """Iterations since it was found."""
    steps: Int[Array, ""]


def bc(problem: Problem, config: TrainConfig) -> Method[CloningState]:
    """Clone the demonstrations' actions."""
    cloning, simulator = config.cloning, problem.simulator
    obs, actions = _pairs(problem, config.imitation.demonstrations)
    # The same split whatever the seed, spread over the episodes: neighbours in time are alike, so
    # that what is held out comes in stretches and not one by one.
    block = np.arange(len(obs)) // cloning.stretch
    held = block % cloning.hold_out_every == cloning.hold_out_every - 1
    if not held.any():
        raise FirlError(
            f"--method bc holds out every {cloning.hold_out_every}th stretch of {cloning.stretch} "
            f"steps, but there are {len(obs)} in all: lower --cloning.stretch."
        )
    train = (jnp.asarray(obs[~held]), jnp.asarray(actions[~held]))
    test = (jnp.asarray(obs[held]), jnp.asarray(actions[held]))

    def init(key: PRNGKeyArray) -> CloningState:
        agent = eqx.filter_jit(Agent.create)(key, simulator.obs_dim, simulator.act_dim, config.sac)
        zero = jnp.zeros((), jnp.int32)
        return CloningState(
            agent=agent,
            reward=None,
            env_steps=zero,
            actor=agent.actor,
            optimiser=Adam.create(agent.actor),
            best=jnp.asarray(-np.inf, jnp.float32),
            stale=zero,
            steps=zero,
        )

    def step(key: PRNGKeyArray, state: CloningState) -> tuple[CloningState, Info]:
        actor, optimiser, likelihood = _fit(key, state.actor, state.optimiser, *train, cloning)
        held_out = _likelihood(actor, *test)
        better = bool(held_out > state.best)
        agent = eqx.tree_at(lambda a: a.actor, state.agent, actor) if better else state.agent
        return CloningState(
            agent=agent,
            reward=None,
            env_steps=state.env_steps,
            actor=actor,
            optimiser=optimiser,
            best=jnp.maximum(held_out, state.best),
            stale=jnp.zeros_like(state.stale) if better else state.stale + 1,
            steps=state.steps + cloning.steps,
        ), {
            "bc/log_likelihood": likelihood,
            "bc/held_out": held_out,
            "sac/updates": jnp.asarray(cloning.steps, jnp.float32),
        }

    def finished(state: CloningState) -> bool:
        return int(state.stale) >= cloning.patience or int(state.steps) >= cloning.most_steps

    return Method(init, step, finished)


def _pairs(problem: Problem, num: int) -> tuple[Float[np.ndarray, "n o"], Float[np.ndarray, "n a"]]:
    """Observations and the actions taken there, in [−1, 1]."""
    demos = problem.demonstrations.first(num)
    if demos.actions is None:
        raise FirlError(
            f"--method bc needs the expert's actions, and {demos.source} has none: take a method "
            "that needs states alone, as firl does."
        )
    low, high = (np.asarray(bound, np.float32) for bound in problem.simulator.action_bounds)
    actions = np.concatenate(demos.actions)
    scaled = (actions - low[None]) / (high - low)[None] * 2.0 - 1.0
    obs = np.concatenate([obs[:-1] for obs in demos.observations])
    return obs, np.clip(scaled, -_EDGE, _EDGE)


@eqx.filter_jit
def _fit(
    key: PRNGKeyArray,
    actor: Actor,
    optimiser: Adam,
    obs: Float[Array, "n o"],
    actions: Float[Array, "n a"],
    config: CloningConfig,
) -> tuple[Actor, Adam, Float[Array, ""]]:
    """`config.steps` of Adam on batches."""

    def one(
        carry: tuple[Actor, Adam], key: PRNGKeyArray
    ) -> tuple[tuple[Actor, Adam], Float[Array, ""]]:
        actor, optimiser = carry
        at = jr.randint(key, (config.batch_size,), 0, obs.shape[0])
        value, gradient = eqx.filter_value_and_grad(
            lambda actor: -_likelihood(actor, obs[at], actions[at])
        )(actor)
        return optimiser.descend(actor, gradient, config.learning_rate), -value

    (actor, optimiser), values = jax.lax.scan(one, (actor, optimiser), jr.split(key, config.steps))
    return actor, optimiser, jnp.mean(values)


@eqx.filter_jit
def _likelihood(
    actor: Actor, obs: Float[Array, "n o"], actions: Float[Array, "n a"]
) -> Float[Array, ""]:
    """Mean log π(a|s)."""
    return jnp.mean(jax.vmap(actor.log_prob)(obs, actions))
