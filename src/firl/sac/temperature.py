"""The weight α of the entropy: a number, or one that keeps the entropy at a target."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from firl.sac.adam import Adam


class AbstractTemperature(eqx.Module):
    """α, and how it answers to the policy's entropy."""

    @property
    @abstractmethod
    def value(self) -> Float[Array, ""]:
        """α."""

    @abstractmethod
    def update(
        self, entropy: Float[Array, ""], learning_rate: float | Float[Array, ""]
    ) -> "AbstractTemperature":
        """Answer to the entropy of the policy on the last batch."""


class FixedTemperature(AbstractTemperature):
    """α stays what it is."""

    alpha: Float[Array, ""]

    @property
    def value(self) -> Float[Array, ""]:
        """α."""
        return self.alpha

    def update(
        self, entropy: Float[Array, ""], learning_rate: float | Float[Array, ""]
    ) -> "FixedTemperature":
        """Nothing to learn."""
        del entropy, learning_rate
        return self


class LearnedTemperature(AbstractTemperature):
    """α rises while the entropy is below the target: one Adam step on log α · (H − H*).

    Haarnoja et al. (2018b, Eq. 18) descend on α itself; on log α the step keeps α positive.
    """

    log_alpha: Float[Array, ""]
    target_entropy: Float[Array, ""]
    optimiser: Adam

    @classmethod
    def create(cls, alpha: float, target_entropy: float) -> "LearnedTemperature":
        """Start at `alpha`, above zero."""
        log_alpha = jnp.log(jnp.asarray(alpha, jnp.float32))
        return cls(log_alpha, jnp.asarray(target_entropy, jnp.float32), Adam.create(log_alpha))

    @property
    def value(self) -> Float[Array, ""]:
        """α."""
        return jnp.exp(self.log_alpha)

    def update(
        self, entropy: Float[Array, ""], learning_rate: float | Float[Array, ""]
    ) -> "LearnedTemperature":
        """One Adam step: d/d log α of log α · (H − H*) is H − H*."""
        gradient = entropy - self.target_entropy
        log_alpha, optimiser = self.optimiser.descend(self.log_alpha, gradient, learning_rate)
        return type(self)(log_alpha, self.target_entropy, optimiser)
