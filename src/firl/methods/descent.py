"""How a reward goes down a loss: Adam steps whose size falls to rest over the budget."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import optax
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from firl.config import RewardConfig
from firl.methods.base import Info
from firl.reward import RewardNet
from firl.sac.adam import Adam, annealed

Loss = Callable[[RewardNet, PRNGKeyArray], tuple[Float[Array, ""], Info]]
"""A scalar whose gradient in the reward's parameters is the method's, and what to log of it."""


def descend(
    key: PRNGKeyArray,
    reward: RewardNet,
    optimiser: Adam,
    loss_of: Loss,
    config: RewardConfig,
    share_done: Float[Array, ""],
) -> tuple[RewardNet, Adam, Info]:
    """`config.gradient_steps` of them. For use under `jit`."""
    step_size = annealed(config.learning_rate, config.anneal_to, share_done)
    params, static = eqx.partition(reward, eqx.is_inexact_array)

    def loss_at(params: PyTree[Array], key: PRNGKeyArray) -> tuple[Float[Array, ""], Info]:
        return loss_of(eqx.combine(params, static), key)

    def one(
        carry: tuple[PyTree[Array], Adam], key: PRNGKeyArray
    ) -> tuple[tuple[PyTree[Array], Adam], Info]:
        params, optimiser = carry
        (loss, info), gradient = jax.value_and_grad(loss_at, has_aux=True)(params, key)
        logged = info | {
            "reward/loss": loss,
            "reward/gradient_norm": jnp.asarray(optax.tree.norm(gradient)),
        }
        # The ℓ2 penalty is part of the gradient, as in the paper, not AdamW's decay.
        gradient = jax.tree.map(lambda g, p: g + config.weight_decay * p, gradient, params)
        params, optimiser = optimiser.descend(params, gradient, step_size)
        return (params, optimiser), logged

    keys = jr.split(key, config.gradient_steps)
    (params, optimiser), infos = jax.lax.scan(one, (params, optimiser), keys)
    first = {name: values[0] for name, values in infos.items()}
    return eqx.combine(params, static), optimiser, first
