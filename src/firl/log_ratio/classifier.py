"""The log-ratio of two samples: the logit of a classifier that tells them apart (Eq. 4).

At its optimum the logit *is* log ρ_E − log ρ_agent. Left alone it never gets there: one
demonstration is a thousand points in a dozen dimensions, which a network separates perfectly from
whatever the agent does, and then grows its logits until something stops them. They are then the
same for all states of a side and h_f says nothing. What keeps them apart from one another is the
slope: the network's gradient between expert and agent is held near or below `slope` per
standard deviation of the expert's states.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from firl.config import ClassifierConfig
from firl.log_ratio.base import AbstractLogRatio
from firl.reward import Scaling, SoftBound
from firl.sac.adam import Adam


class Classifier(AbstractLogRatio):
    """A multi-layer perceptron of the scaled state; its logit is bounded softly."""

    scaling: Scaling
    layers: tuple[eqx.nn.Linear, ...]
    bound: SoftBound

    @classmethod
    def create(cls, key: PRNGKeyArray, scaling: Scaling, config: ClassifierConfig) -> "Classifier":
        """A fresh one."""
        sizes = (len(scaling.centre), *config.hidden, 1)
        keys = jr.split(key, len(sizes) - 1)
        layers = tuple(
            eqx.nn.Linear(fan_in, fan_out, key=k)
            for fan_in, fan_out, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
        )
        return cls(scaling, layers, SoftBound(config.bound))

    def __call__(self, states: Float[Array, "n d"]) -> Float[Array, "n"]:
        """The logit at each state."""
        return jax.vmap(lambda state: self.logit(self.scaling(state)))(states)

    def logit(self, scaled: Float[Array, "d"]) -> Float[Array, ""]:
        """Of one state that is scaled already."""
        x = scaled
        for layer in self.layers[:-1]:
            x = jnp.tanh(layer(x))
        return self.bound(self.layers[-1](x)[0])


class ClassifierInfo(eqx.Module):
    """How well the two sides are told apart, on the last batches."""

    cross_entropy: Float[Array, ""]
    """log 2 where they cannot be, 0 where they always are."""
    slope: Float[Array, ""]


class Fit(NamedTuple):
    """What one fit hands on to the next."""

    classifier: Classifier
    optimiser: Adam


def start(key: PRNGKeyArray, scaling: Scaling, config: ClassifierConfig) -> Fit:
    """Nothing fitted yet."""
    classifier = Classifier.create(key, scaling, config)
    return Fit(classifier, Adam.create(eqx.filter(classifier, eqx.is_inexact_array)))


@eqx.filter_jit
def fit(
    key: PRNGKeyArray,
    before: Fit,
    expert: Float[Array, "m d"],
    agent: Float[Array, "n d"],
    config: ClassifierConfig,
) -> tuple[Fit, ClassifierInfo]:
    """`config.steps` of Adam on the cross-entropy, from where the last fit stopped."""
    params, static = eqx.partition(before.classifier, eqx.is_inexact_array)

    def loss_of(params: Classifier, key: PRNGKeyArray) -> tuple[Float[Array, ""], ClassifierInfo]:
        classifier: Classifier = eqx.combine(params, static)
        k_expert, k_agent, k_mix = jr.split(key, 3)
        scale = jax.vmap(classifier.scaling)
        real = scale(jr.choice(k_expert, expert, (config.batch_size,)))
        fake = scale(jr.choice(k_agent, agent, (config.batch_size,)))
        mix = jr.uniform(k_mix, (config.batch_size, 1))
        logit = jax.vmap(classifier.logit)
        cross_entropy = 0.5 * (
            jnp.mean(jax.nn.softplus(-logit(real))) + jnp.mean(jax.nn.softplus(logit(fake)))
        )
        gradients = jax.vmap(jax.grad(classifier.logit))(mix * real + (1 - mix) * fake)
        slopes = jnp.sqrt(jnp.sum(gradients**2, axis=1) + 1e-12)
        penalty = jnp.mean(jax.nn.relu(slopes - config.slope) ** 2)
        return cross_entropy + config.gradient_penalty * penalty, ClassifierInfo(
            cross_entropy, jnp.mean(slopes)
        )

    def one(
        carry: tuple[Classifier, Adam], key: PRNGKeyArray
    ) -> tuple[tuple[Classifier, Adam], ClassifierInfo]:
        params, optimiser = carry
        gradient, info = jax.grad(loss_of, has_aux=True)(params, key)
        gradient = jax.tree.map(lambda g, p: g + config.weight_decay * p, gradient, params)
        params, optimiser = optimiser.descend(params, gradient, config.learning_rate)
        return (params, optimiser), info

    keys = jr.split(key, config.steps)
    (params, optimiser), infos = jax.lax.scan(one, (params, before.optimiser), keys)
    last = jax.tree.map(lambda x: jnp.mean(x[-20:]), infos)
    return Fit(eqx.combine(params, static), optimiser), last
