"""What is fitted between expert and agent at the agent's states, one class for each kind."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from firl.config import RatioConfig
from firl.expert.base import AbstractDensity
from firl.ipm import AbstractIPM
from firl.log_ratio import (
    AbstractKernel,
    DensityLogRatio,
    Epanechnikov,
    GaussianKernel,
    KernelDensity,
    scott_bandwidth,
)
from firl.methods.base import Info, named

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
