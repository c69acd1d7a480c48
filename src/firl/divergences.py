"""f-divergences D_f(ρ_E ‖ ρ_θ) = Σ_s ρ_θ f(ρ_E/ρ_θ), each a convex generator f with f(1) = 0.

What Theorem 4.1 needs of one is h_f(u) = f(u) − u f′(u) (Table 2). Both are written on the log
ratio ℓ = log u = log ρ_E − log ρ_agent, so that a difference of log-densities goes in as it is.
These have closed forms; a user's own is a `Generator` (generator.py).

Every output is finite: where the mathematical value lies beyond the dtype (or is infinite, as at
an infinite log-ratio), it is the largest finite number of its sign, because one infinity would
turn a whole covariance into NaN. In float32 and within ±80 this concerns Pearson's χ² alone,
whose u² leaves the range at ℓ = 44.4. A NaN stays a NaN.
"""

import inspect
from abc import abstractmethod
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

LogRatios = Float[Array, "..."]


def saturate(values: Float[Array, "..."]) -> Float[Array, "..."]:
    """Values beyond ± the dtype's largest finite number, infinities included, become it."""
    largest = float(np.finfo(values.dtype).max)
    return jnp.clip(values, -largest, largest)


class AbstractDivergence(eqx.Module):
    """A generator f and its h_f, elementwise on log-ratios of any shape."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What the command line, files and tables call it."""

    @property
    @abstractmethod
    def requires_normalised(self) -> bool:
        """Whether a constant added to log ρ_E changes the gradient; if not, an energy will do."""

    @abstractmethod
    def f(self, log_ratio: LogRatios) -> LogRatios:
        """f(u) at u = exp(log_ratio)."""

    @abstractmethod
    def h(self, log_ratio: LogRatios) -> LogRatios:
        """h_f(u) = f(u) − u f′(u) at u = exp(log_ratio): non-increasing, as h′ = −u f″ ≤ 0."""

    @property
    def description(self) -> str:
        """The first line of the class's docstring."""
        return (inspect.getdoc(type(self)) or self.name).splitlines()[0]


class ForwardKL(AbstractDivergence):
    """Forward KL(ρ_E ‖ ρ_θ), f = u log u: covers every mode of the expert."""

    name: ClassVar[str] = "fkl"
    requires_normalised: ClassVar[bool] = True

    def f(self, log_ratio: LogRatios) -> LogRatios:
        """u log u, and 0 at u = 0."""
        log_ratio = saturate(log_ratio)
        return saturate(jnp.exp(log_ratio) * log_ratio)

    def h(self, log_ratio: LogRatios) -> LogRatios:
        """−u."""
        return saturate(-jnp.exp(log_ratio))


class ReverseKL(AbstractDivergence):
    """Reverse KL(ρ_θ ‖ ρ_E), f = −log u: seeks modes; an unnormalised log-density will do."""

    name: ClassVar[str] = "rkl"
    requires_normalised: ClassVar[bool] = False

    def f(self, log_ratio: LogRatios) -> LogRatios:
        """−log u."""
        return saturate(-log_ratio)

    def h(self, log_ratio: LogRatios) -> LogRatios:
        """1 − log u: a constant in log ρ_E is a constant here, which no covariance sees."""
        return saturate(1 - log_ratio)


class JensenShannon(AbstractDivergence):
    """Jensen-Shannon, KL(ρ_E ‖ m) + KL(ρ_θ ‖ m) with m their mean: between the two KLs.

    This is the paper's generator u log u − (1+u) log((1+u)/2), which gives twice the divergence
    that Table 2 writes as an integral with ½. Its exact h_f is −log((1+u)/2); Table 2 drops the
    log 2, which no covariance sees.
    """

    name: ClassVar[str] = "js"
    requires_normalised: ClassVar[bool] = True

    def f(self, log_ratio: LogRatios) -> LogRatios:
        """u (log 2 − log(1+1/u)) + log 2 − log(1+u): the generator without its cancellation."""
        log_ratio = saturate(log_ratio)
        expert_part = jnp.exp(log_ratio) * (jnp.log(2.0) - jax.nn.softplus(-log_ratio))
        return saturate(expert_part + jnp.log(2.0) - jax.nn.softplus(log_ratio))

    def h(self, log_ratio: LogRatios) -> LogRatios:
        """log 2 − log(1+u)."""
        return saturate(jnp.log(2.0) - jax.nn.softplus(log_ratio))


class TotalVariation(AbstractDivergence):
    """Total variation, f = |u − 1|/2: only which of the two is larger counts, not by how much."""

    name: ClassVar[str] = "tv"
    requires_normalised: ClassVar[bool] = True

    def f(self, log_ratio: LogRatios) -> LogRatios:
        """|u − 1|/2."""
        return saturate(jnp.abs(jnp.expm1(log_ratio)) / 2)

    def h(self, log_ratio: LogRatios) -> LogRatios:
        """−sign(u − 1)/2; at u = 1 the sub-derivative 0 (the paper's footnote allows any)."""
        return -jnp.sign(log_ratio) / 2


class SquaredHellinger(AbstractDivergence):
    """Squared Hellinger Σ (√ρ_E − √ρ_θ)², f = (√u − 1)²: bounded, milder than forward KL."""

    name: ClassVar[str] = "hellinger"
    requires_normalised: ClassVar[bool] = True

    def f(self, log_ratio: LogRatios) -> LogRatios:
        """(√u − 1)²."""
        return saturate(jnp.square(jnp.expm1(log_ratio / 2)))

    def h(self, log_ratio: LogRatios) -> LogRatios:
        """1 − √u."""
        return saturate(-jnp.expm1(log_ratio / 2))


class ChiSquared(AbstractDivergence):
    """Pearson's χ² Σ (ρ_E − ρ_θ)²/ρ_θ, f = (u − 1)²: the harshest on what the agent misses."""

    name: ClassVar[str] = "chi2"
    requires_normalised: ClassVar[bool] = True

    def f(self, log_ratio: LogRatios) -> LogRatios:
        """(u − 1)², saturated where it leaves the dtype (float32: beyond ℓ = 44.4)."""
        return saturate(jnp.square(jnp.expm1(log_ratio)))

    def h(self, log_ratio: LogRatios) -> LogRatios:
        """1 − u², saturated where it leaves the dtype (float32: beyond ℓ = 44.4)."""
        return saturate(-jnp.expm1(2 * log_ratio))


class NeymanChiSquared(AbstractDivergence):
    """Neyman's χ² Σ (ρ_E − ρ_θ)²/ρ_E, f = (u − 1)²/u: the harshest on what the expert avoids."""

    name: ClassVar[str] = "chi2-neyman"
    requires_normalised: ClassVar[bool] = True

    def f(self, log_ratio: LogRatios) -> LogRatios:
        """(u − 1)²/u = 4 sinh²(ℓ/2)."""
        return saturate(4 * jnp.square(jnp.sinh(log_ratio / 2)))

    def h(self, log_ratio: LogRatios) -> LogRatios:
        """2 (1/u − 1)."""
        return saturate(2 * jnp.expm1(-log_ratio))


def divergence_between(
    divergence: AbstractDivergence, log_p: Float[Array, "S"], log_q: Float[Array, "S"]
) -> Float[Array, ""]:
    """D_f(p ‖ q) = Σ_s q f(p/q) of two discrete distributions.

    Where p and q are both zero nothing is added. Where q alone is zero the answer is NaN: what
    f(u)/u tends to is not part of a generator.
    """
    q_is_zero = jnp.isneginf(log_q)
    both_zero = q_is_zero & jnp.isneginf(log_p)
    log_ratio = jnp.where(q_is_zero, 0.0, log_p) - jnp.where(q_is_zero, 0.0, log_q)
    terms = jnp.exp(log_q) * divergence.f(log_ratio)
    return jnp.sum(jnp.where(q_is_zero & ~both_zero, jnp.nan, terms))


DIVERGENCES: dict[str, AbstractDivergence] = {
    divergence.name: divergence
    for divergence in (
        ForwardKL(),
        ReverseKL(),
        JensenShannon(),
        TotalVariation(),
        SquaredHellinger(),
        ChiSquared(),
        NeymanChiSquared(),
    )
}
"""The divergences that have an id; any other `AbstractDivergence` works where these do."""
