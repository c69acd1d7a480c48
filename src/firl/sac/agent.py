"""What SAC carries from one update to the next."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import PRNGKeyArray

from firl.config import SACConfig
from firl.sac.adam import Adam
from firl.sac.networks import Actor, Critics, ModePolicy
from firl.sac.temperature import AbstractTemperature, FixedTemperature, LearnedTemperature
from firl.types import Policy


class Agent(eqx.Module):
    """Actor, twin critics and their targets, temperature, and Adam's moments of each."""

    actor: Actor
    critics: Critics
    targets: Critics
    temperature: AbstractTemperature
    actor_optimiser: Adam
    critic_optimiser: Adam

    @classmethod
    def create(cls, key: PRNGKeyArray, obs_dim: int, act_dim: int, config: SACConfig) -> "Agent":
        """A fresh agent."""
        k_actor, k_critics = jr.split(key)
        dtype = jnp.dtype(config.precision)
        actor = Actor.create(k_actor, obs_dim, act_dim, config.hidden, dtype)
        critics = Critics.create(k_critics, obs_dim, act_dim, config.hidden, dtype)
        return cls(
            actor=actor,
            critics=critics,
            targets=jax.tree.map(jnp.copy, critics),  # an array can be donated only once
            temperature=_temperature(act_dim, config),
            actor_optimiser=Adam.create(actor),
            critic_optimiser=Adam.create(critics),
        )

    @property
    def policy(self) -> Policy:
        """The stochastic policy."""
        return self.actor

    @property
    def deterministic_policy(self) -> Policy:
        """tanh of the mean."""
        return ModePolicy(self.actor)


def _temperature(act_dim: int, config: SACConfig) -> AbstractTemperature:
    if not config.learn_temperature:
        return FixedTemperature(jnp.asarray(config.temperature, jnp.float32))
    target = -float(act_dim) if config.target_entropy is None else config.target_entropy
    return LearnedTemperature.create(config.temperature, target)
