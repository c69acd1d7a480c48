"""f-IRL: descend a divergence between state marginals by its analytic gradient (Theorem 4.1)."""

import equinox as eqx
import jax
from jaxtyping import Array, Float

from firl.config import TrainConfig
from firl.divergences import DIVERGENCES, AbstractDivergence
from firl.errors import FirlError, unknown
from firl.gradient import covariance_loss
from firl.ipm import MMD, AbstractIPM
from firl.methods.alternate import AlternatingState, alternate
from firl.methods.base import Method, Problem
from firl.methods.signals import CriticSignal, KnownDensitySignal
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


def firl(problem: Problem, config: TrainConfig) -> Method[AlternatingState]:
    """f-IRL with the configured divergence."""
    temperature = config.sac.temperature
    if config.divergence in METRICS:
        problem.expert.sample(jax.random.key(0), 1)  # refuses now what has no sampler
        signal = CriticSignal(problem.expert, METRICS[config.divergence])
        return alternate(problem, config, signal, CriticLoss(temperature))
    if config.divergence not in DIVERGENCES:
        raise unknown("divergence", config.divergence, [*DIVERGENCES, *METRICS])
    divergence = DIVERGENCES[config.divergence]
    if divergence.requires_normalised and not problem.expert.normalised:
        raise FirlError(
            f"--divergence {config.divergence} needs a normalised density, and this one is known "
            "up to a constant only: take --divergence rkl, which needs no more, or normalise it "
            "with firl.expert.normalise_on."
        )
    known = KnownDensitySignal(problem.expert, config.ratio)
    return alternate(problem, config, known, DivergenceLoss(divergence, temperature))
