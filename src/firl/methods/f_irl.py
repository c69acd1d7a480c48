"""f-IRL: descend a divergence between state marginals by its analytic gradient (Theorem 4.1)."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from firl.config import TrainConfig
from firl.divergences import DIVERGENCES
from firl.errors import FirlError, unknown
from firl.expert.demonstrations import Demonstrations
from firl.gradient import covariance_loss, mixture_loss
from firl.ipm import MMD, AbstractIPM
from firl.methods.alternate import alternate
from firl.methods.base import Method
from firl.methods.imitate import SampleSignal, imitate
from firl.methods.signals import (
    ClassifierSignal,
    CriticSignal,
    KnownDensitySignal,
    SampleCriticSignal,
)
from firl.problems import Problem
from firl.wasserstein import Wasserstein

METRICS: dict[str, AbstractIPM] = {"w1": Wasserstein(), "mmd": MMD()}
"""The integral probability metrics that `--divergence` takes."""


HOf = Callable[[Float[Array, "n T"]], Float[Array, "n T"]]
"""From what is asked at the states to what stands where h_f stands in Theorem 4.1."""


def minus_critic(values: Float[Array, "n T"]) -> Float[Array, "n T"]:
    """Appendix A.3: an integral probability metric has −D_ω where an f-divergence has h_f."""
    return -values


class CovarianceLoss(eqx.Module):
    """Its gradient is cov(Σ_t h_f(ρ_E/ρ_θ), Σ_t ∇r_θ) / (αT)."""

    h: HOf
    temperature: float

    def __call__(
        self, signal: Float[Array, "n T"], rewards: Float[Array, "n T"]
    ) -> Float[Array, ""]:
        """The loss at these log-ratios, or values of a critic."""
        return covariance_loss(self.h(signal), rewards, temperature=self.temperature)


class MixtureLoss(eqx.Module):
    """Eq. 6: the covariance under half agent, half expert."""

    h: HOf
    temperature: float
    standardise: bool = eqx.field(static=True)
    """Divide by h_f's standard deviation over both sides and by T/α, so that the loss is of order
    one however long episodes are: what is added to it keeps its weight."""

    def __call__(
        self,
        agent: Float[Array, "n T"],
        agent_rewards: Float[Array, "n T"],
        expert: Float[Array, "m T"],
        expert_rewards: Float[Array, "m T"],
    ) -> Float[Array, ""]:
        """The loss at these log-ratios."""
        h_agent, h_expert = self.h(agent), self.h(expert)
        spread = jnp.sqrt(
            0.5 * (jnp.var(h_agent) + jnp.var(h_expert)) + _between(h_agent, h_expert)
        )
        standard = jnp.maximum(spread, 1e-6) * agent.shape[1] / self.temperature
        scale = standard if self.standardise else jnp.ones(())
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
    if config.divergence not in [*DIVERGENCES, *METRICS]:
        raise unknown("divergence", config.divergence, [*DIVERGENCES, *METRICS])
    if isinstance(problem.expert, Demonstrations):
        return _from_demonstrations(problem, config)
    return _towards_density(problem, config)


def _from_demonstrations(problem: Problem, config: TrainConfig) -> Method[Any]:
    scaling = problem.scaling(config)
    signal: SampleSignal
    h: HOf
    if config.divergence in METRICS:
        signal, h = SampleCriticSignal(METRICS[config.divergence], scaling), minus_critic
    else:
        signal, h = ClassifierSignal(config.classifier, scaling), DIVERGENCES[config.divergence].h
    loss = MixtureLoss(h, config.sac.temperature, config.imitation.standardise)
    return imitate(problem, config, signal, loss)


def _towards_density(problem: Problem, config: TrainConfig) -> Method[Any]:
    temperature = config.sac.temperature
    if config.divergence in METRICS:
        problem.density.sample(jax.random.key(0), 1)  # refuses now what has no sampler
        critic = CriticSignal(problem.density, METRICS[config.divergence])
        return alternate(problem, config, critic, CovarianceLoss(minus_critic, temperature))
    divergence = DIVERGENCES[config.divergence]
    if divergence.requires_normalised and not problem.density.normalised:
        raise FirlError(
            f"--divergence {config.divergence} needs a normalised density, and this one is known "
            "up to a constant only: take --divergence rkl, which needs no more, or normalise it "
            "with firl.expert.normalise_on."
        )
    known = KnownDensitySignal(problem.density, config.ratio)
    return alternate(problem, config, known, CovarianceLoss(divergence.h, temperature))
