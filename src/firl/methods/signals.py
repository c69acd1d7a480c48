"""What is fitted between expert and agent, one class for each kind.

Towards a density a signal is asked at the agent's states, from demonstrations at those of both.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from firl.config import ClassifierConfig, RatioConfig, TrainConfig
from firl.errors import FirlError
from firl.expert.base import AbstractDensity
from firl.ipm import AbstractCritic, AbstractIPM
from firl.log_ratio import (
    AbstractKernel,
    DensityLogRatio,
    Epanechnikov,
    GaussianKernel,
    KernelDensity,
    classifier,
    scott_bandwidth,
)
from firl.methods.base import Info, named
from firl.methods.imitate import Ask
from firl.problems import Problem
from firl.reward import Scaling

KERNELS: dict[str, AbstractKernel] = {
    "epanechnikov": Epanechnikov(),
    "gaussian": GaussianKernel(),
}


class KnownDensitySignal(eqx.Module):
    """log ρ_E − log ρ̂_θ: ρ_E is written down, ρ̂_θ is a kernel density estimate (Algorithm 1)."""

    expert: AbstractDensity
    config: RatioConfig

    def init(self, key: PRNGKeyArray) -> tuple[()]:
        """Nothing is carried: each iteration fits anew."""
        del key
        return ()

    def fit(
        self, key: PRNGKeyArray, carry: tuple[()], states: Float[Array, "n T d"]
    ) -> tuple[tuple[()], Float[Array, "n T"], Info]:
        """Fit ρ̂_θ to the states and return the log-ratio there."""
        del key
        points = states.reshape(-1, states.shape[-1])
        kernel, bandwidth = KERNELS[self.config.kernel], self.config.bandwidth
        if bandwidth is None:
            bandwidth = scott_bandwidth(points, kernel)
        fitted = DensityLogRatio(self.expert, KernelDensity(points, bandwidth, kernel))
        log_ratio = fitted.at_agent_points() if self.config.leave_one_out else fitted(points)
        info = {
            "ratio/mean": jnp.mean(log_ratio),
            "ratio/std": jnp.std(log_ratio),
            "ratio/max": jnp.max(log_ratio),
            "ratio/kde_reverse_kl": -jnp.mean(log_ratio),
        }
        return carry, log_ratio.reshape(states.shape[:2]), info


def importance_signal(problem: Problem, config: TrainConfig) -> KnownDensitySignal:
    """For losses that weigh the agent's states by ρ_E/ρ̂_θ."""
    if not (config.ratio.self_normalise or problem.density.normalised):
        raise FirlError(
            f"--method {config.method} needs a normalised density where "
            "--ratio.no-self-normalise is given, and this one is known up to a constant only: "
            "leave that option out."
        )
    return KnownDensitySignal(problem.density, config.ratio)


class CriticSignal(eqx.Module):
    """D_ω, the critic of an integral probability metric, in the log-ratio's place (A.3)."""

    expert: AbstractDensity
    metric: AbstractIPM

    def init(self, key: PRNGKeyArray) -> PyTree[Array]:
        """What one fit hands on to the next."""
        return self.metric.init(key, self.expert.dim)

    def fit(
        self, key: PRNGKeyArray, carry: PyTree[Array], states: Float[Array, "n T d"]
    ) -> tuple[PyTree[Array], Float[Array, "n T"], Info]:
        """Fit the critic between the states and as many of the expert's, and ask it there."""
        k_expert, k_fit = jax.random.split(key)
        points = states.reshape(-1, states.shape[-1])
        expert = self.expert.sample(k_expert, points.shape[0])
        carry, critic, info = self.metric.fit(k_fit, carry, expert, points)
        return carry, critic(states), named("critic", info)


class ClassifierSignal(eqx.Module):
    """log ρ_E − log ρ_θ from samples of both: the logit of a classifier (Eq. 4)."""

    config: ClassifierConfig
    scaling: Scaling

    def init(self, key: PRNGKeyArray) -> classifier.Fit:
        """Nothing fitted yet."""
        fit: classifier.Fit = eqx.filter_jit(classifier.start)(key, self.scaling, self.config)
        return fit

    def fit(
        self,
        key: PRNGKeyArray,
        carry: classifier.Fit,
        expert: Float[Array, "m d"],
        agent: Float[Array, "n d"],
    ) -> tuple[classifier.Fit, Ask, Info]:
        """Go on from where the last fit stopped."""
        carry, info = classifier.fit(key, carry, expert, agent, self.config)
        return carry, carry.classifier, named("ratio", info)


class Scaled(eqx.Module):
    """A critic of scaled states, asked at unscaled ones."""

    critic: AbstractCritic
    scaling: Scaling

    def __call__(self, states: Float[Array, "n d"]) -> Float[Array, "n"]:
        """D at each state."""
        return self.critic(jax.vmap(self.scaling)(states))


_MOST_STATES = 2000
"""Of each side that a metric sees: the discrepancy takes the square of their number."""


class SampleCriticSignal(eqx.Module):
    """D_ω between two samples, distances being measured in the expert's standard deviations."""

    metric: AbstractIPM
    scaling: Scaling

    def init(self, key: PRNGKeyArray) -> PyTree[Array]:
        """What one fit hands on to the next."""
        return self.metric.init(key, len(self.scaling.centre))

    def fit(
        self,
        key: PRNGKeyArray,
        carry: PyTree[Array],
        expert: Float[Array, "m d"],
        agent: Float[Array, "n d"],
    ) -> tuple[PyTree[Array], Ask, Info]:
        """Fit the critic between evenly spaced states of both."""

        def thinned(states: Float[Array, "n d"]) -> Float[Array, "k d"]:
            few = states[:: -(-states.shape[0] // _MOST_STATES)]
            scaled: Array = jax.vmap(self.scaling)(few)
            return scaled

        carry, critic, info = self.metric.fit(key, carry, thinned(expert), thinned(agent))
        return carry, Scaled(critic, self.scaling), named("critic", info)


class NoSignal(eqx.Module):
    """For losses that need none: zero everywhere."""

    def init(self, key: PRNGKeyArray) -> tuple[()]:
        """Nothing is carried."""
        del key
        return ()

    def fit(
        self,
        key: PRNGKeyArray,
        carry: tuple[()],
        expert: Float[Array, "m d"],
        agent: Float[Array, "n d"],
    ) -> tuple[tuple[()], Ask, Info]:
        """Nothing is fitted."""
        del key, expert, agent
        return carry, _zero, {}


def _zero(states: Float[Array, "n d"]) -> Float[Array, "n"]:
    return jnp.zeros(states.shape[0])
