"""f-IRL: descend a divergence between state marginals by its analytic gradient (Theorem 4.1)."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from firl.config import TrainConfig
from firl.divergences import DIVERGENCES, AbstractDivergence
from firl.errors import FirlError, unknown
from firl.expert.demonstrations import Demonstrations
from firl.gradient import covariance_loss, mixture_loss
from firl.ipm import MMD, AbstractIPM
from firl.methods.alternate import alternate
from firl.methods.base import Method
from firl.methods.imitate import imitate
from firl.methods.signals import CriticSignal, KnownDensitySignal
from firl.problem import Problem
from firl.wasserstein import Wasserstein

METRICS: dict[str, AbstractIPM] = {"w1": Wasserstein(), "mmd": MMD()}
"""The integral probability metrics that `--divergence` takes."""


class DivergenceLoss(eqx.Module):
    """Its gradient is cov(Σ_t h_f(ρ_E/ρ_θ), Σ_t ∇r_θ) / (αT)."""

    divergence: AbstractDivergence
    temperature: float

    def __call__(
        self, signal: Float[Array, "n T"], rewards: Float[Array, "n T"]
    ) -> Float[Array, ""]:
        """The loss at these log-ratios."""
        return covariance_loss(self.divergence.h(signal), rewards, temperature=self.temperature)


class CriticLoss(eqx.Module):
    """Appendix A.3: an integral probability metric has −D_ω where an f-divergence has h_f."""

    temperature: float

    def __call__(
        self, signal: Float[Array, "n T"], rewards: Float[Array, "n T"]
    ) -> Float[Array, ""]:
        """The loss at these values of the critic."""
        return covariance_loss(-signal, rewards, temperature=self.temperature)


class MixtureLoss(eqx.Module):
    """Eq. 6: the covariance under half agent, half expert."""

    divergence: AbstractDivergence
    temperature: float
    standardise: bool = eqx.field(static=True)
    """Divide h_f by its standard deviation over both sides."""

    def __call__(
        self,
        agent: Float[Array, "n T"],
        agent_rewards: Float[Array, "n T"],
        expert: Float[Array, "m T"],
        expert_rewards: Float[Array, "m T"],
    ) -> Float[Array, ""]:
        """The loss at these log-ratios."""
        h_agent, h_expert = self.divergence.h(agent), self.divergence.h(expert)
        spread = jnp.sqrt(
            0.5 * (jnp.var(h_agent) + jnp.var(h_expert)) + _between(h_agent, h_expert)
        )
        scale = jnp.maximum(spread, 1e-6) if self.standardise else 1.0
        return mixture_loss(
            h_agent / scale,
            agent_rewards,
            h_expert / scale,
            expert_rewards,
            temperature=self.temperature,
            agent_ddof=0,
        )


def _between(h_agent: Float[Array, "n T"], h_expert: Float[Array, "m T"]) -> Float[Array, ""]:
    """The part of a half-and-half mixture's variance that lies between its halves."""
    return (jnp.mean(h_agent) - jnp.mean(h_expert)) ** 2 / 4


def firl(problem: Problem, config: TrainConfig) -> Method[Any]:
    """f-IRL with the configured divergence."""
    if isinstance(problem.expert, Demonstrations):
        if config.divergence not in DIVERGENCES:
            raise unknown("divergence", config.divergence, DIVERGENCES)
        divergence = DIVERGENCES[config.divergence]
        loss = MixtureLoss(divergence, config.sac.temperature, config.imitation.standardise)
        return imitate(problem, config, loss)
    temperature = config.sac.temperature
    if config.divergence in METRICS:
        problem.density.sample(jax.random.key(0), 1)  # refuses now what has no sampler
        signal = CriticSignal(problem.density, METRICS[config.divergence])
        return alternate(problem, config, signal, CriticLoss(temperature))
    if config.divergence not in DIVERGENCES:
        raise unknown("divergence", config.divergence, [*DIVERGENCES, *METRICS])
    divergence = DIVERGENCES[config.divergence]
    if divergence.requires_normalised and not problem.density.normalised:
        raise FirlError(
            f"--divergence {config.divergence} needs a normalised density, and this one is known "
            "up to a constant only: take --divergence rkl, which needs no more, or normalise it "
            "with firl.expert.normalise_on."
        )
    known = KnownDensitySignal(problem.density, config.ratio)
    return alternate(problem, config, known, DivergenceLoss(divergence, temperature))
