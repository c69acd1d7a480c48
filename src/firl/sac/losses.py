"""What the critics and the actor minimise (Haarnoja et al. 2018, Eqs. 5 and 7)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from firl.sac.networks import Actor, Critics, squashed_gaussian
from firl.types import Transition


def critic_target(
    actor: Actor,
    targets: Critics,
    batch: Transition,
    rewards: Float[Array, "b"],
    final: Float[Array, "b"],
    noise: Float[Array, "b a"],
    alpha: Float[Array, ""],
    discount: float,
) -> Float[Array, "b"]:
    """r + γ(min Q′(s′, a′) − α log π(a′|s′)), and `final` where s′ is absorbing.

    Nothing is chosen there, so there is no entropy to be paid for either.
    """
    means, log_stds = actor.distributions(batch.next_obs)
    actions, log_probs = jax.vmap(squashed_gaussian)(means, log_stds, noise)
    values = jnp.min(targets(batch.next_obs, actions), axis=0) - alpha * log_probs
    return jnp.where(batch.terminated, final, rewards + discount * values)


def final_value(
    rewards: Float[Array, "*b"], absorbed: Float[Array, "*b"], discount: float
) -> Float[Array, "*b"]:
    """What a transition into an absorbing state is worth.

    It repeats for ever, and what it pays each time adds up to r′/(1 − γ), from the next step on.
    """
    return rewards + discount / (1.0 - discount) * absorbed


def critic_loss(
    critics: Critics, batch: Transition, target: Float[Array, "b"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """½ E[(Q₁ − y)² + (Q₂ − y)²]; and the mean of Q."""
    values = critics(batch.obs, batch.action)
    return 0.5 * jnp.mean(jnp.sum((values - target[None]) ** 2, axis=0)), jnp.mean(values)


def actor_loss(
    actor: Actor,
    critics: Critics,
    obs: Float[Array, "b o"],
    noise: Float[Array, "b a"],
    alpha: Float[Array, ""],
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """E[α log π(a|s) − min Q(s, a)], a reparametrised; and the entropy −E[log π]."""
    means, log_stds = actor.distributions(obs)
    actions, log_probs = jax.vmap(squashed_gaussian)(means, log_stds, noise)
    values = jnp.min(critics(obs, actions), axis=0)
    return jnp.mean(alpha * log_probs - values), -jnp.mean(log_probs)
