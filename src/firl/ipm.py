"""Integral probability metrics in the place of an f-divergence (appendix A.3).

    L_B(θ) = max_{D ∈ B} E_{ρ_E}[D] − E_{ρ_θ}[D],   ∇L_B = −1/(αT) · cov(Σ_t D(s_t), Σ_t ∇r_θ(s_t)),

so the critic's −D stands where h_f stands: `covariance_loss(-critic(states), rewards)`. The set
B makes the metric: the unit ball of a kernel's Hilbert space gives the maximum mean discrepancy,
the 1-Lipschitz functions give Wasserstein-1.
"""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

Kernel = Callable[[Float[Array, "a d"], Float[Array, "b d"]], Float[Array, "a b"]]
"""A positive definite kernel between all pairs of two sets of states."""


class AbstractCritic(eqx.Module):
    """D: high where the expert is and the agent is not."""

    @abstractmethod
    def __call__(self, states: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """D at each state."""


class CriticInfo(eqx.Module):
    """What a fit found."""

    distance: Float[Array, ""]
    """E_expert[D] − E_agent[D], the metric between the two samples as far as D attains it."""


class AbstractIPM(eqx.Module):
    """A metric is fitted to two samples; the critic that it gives is then asked."""

    @abstractmethod
    def init(self, key: PRNGKeyArray, dim: int) -> PyTree[Array]:
        """What one fit hands on to the next, of constant shapes; None if each starts afresh."""

    @abstractmethod
    def fit(
        self,
        key: PRNGKeyArray,
        warm: PyTree[Array],
        expert: Float[Array, "m d"],
        agent: Float[Array, "n d"],
    ) -> tuple[PyTree[Array], AbstractCritic, CriticInfo]:
        """Fit a critic between these two samples."""


class GaussianKernel(eqx.Module):
    """exp(−‖x − y‖²/2σ²)."""

    bandwidth: Float[Array, ""]
    """σ."""

    def __call__(self, x: Float[Array, "a d"], y: Float[Array, "b d"]) -> Float[Array, "a b"]:
        """Between all pairs."""
        return jnp.exp(-_square_distances(x, y) / (2 * jnp.square(self.bandwidth)))


def median_distance(states: Float[Array, "n d"], *, max_states: int = 1000) -> Float[Array, ""]:
    """The median heuristic for σ: over pairs of distinct states, 1 if there are none.

    Of evenly spaced states where there are more than `max_states`, whose 500 000 pairs pin a
    median to a fraction of a percent.
    """
    states = states[:: -(-states.shape[0] // max_states)]
    # By differences: equal states must be at a distance of exactly zero to be left out.
    distances = jnp.linalg.norm(states[:, None] - states[None], axis=-1)
    median = jnp.nanmedian(jnp.where(distances > 0, distances, jnp.nan))
    return jnp.where(jnp.isnan(median), 1.0, median)


class WitnessCritic(AbstractCritic):
    """The function of unit norm in the kernel's Hilbert space that tells the samples apart best.

    The witness Σ_i w_i k(·, z_i) is the difference of the two mean embeddings, w being the
    expert's probabilities less the agent's; over its norm, which is the discrepancy, it is D.
    """

    kernel: Kernel
    points: Float[Array, "k d"]
    weights: Float[Array, "k"]
    """Probability of each point under the expert less that under the agent."""
    norm: Float[Array, ""]

    def __call__(self, states: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """The witness over its norm; zero everywhere where the two sides are the same."""
        flat = states.reshape(-1, states.shape[-1])
        values = _embed(self.kernel, flat, self.points, self.weights)
        return jnp.where(self.norm > 0, values / self.norm, 0.0).reshape(states.shape[:-1])


def witness(
    kernel: Kernel, points: Float[Array, "k d"], weights: Float[Array, "k"]
) -> WitnessCritic:
    """The critic between two weighted sets of points; its `norm` is the discrepancy."""
    square = jnp.sum(weights * _embed(kernel, points, points, weights))
    return WitnessCritic(kernel, points, weights, jnp.sqrt(jnp.maximum(square, 0)))


class MMD(AbstractIPM):
    """Maximum mean discrepancy: nothing is trained, the best critic is known.

    The value is the biased (V-statistic) one, the norm that D is divided by: never negative, and
    of order 1/√n between two samples of the same distribution. Takes (m + n)² kernel values.
    """

    kernel: Kernel | None = None
    """None: Gaussian, with the median distance of both samples together as its bandwidth."""

    def init(self, key: PRNGKeyArray, dim: int) -> None:
        """Nothing is handed on."""

    @eqx.filter_jit
    def fit(
        self,
        key: PRNGKeyArray,
        warm: None,
        expert: Float[Array, "m d"],
        agent: Float[Array, "n d"],
    ) -> tuple[None, WitnessCritic, CriticInfo]:
        """The witness between the two samples."""
        points = jnp.concatenate([expert, agent])
        sides = (expert.shape[0], agent.shape[0])
        weights = jnp.repeat(
            jnp.array([1 / sides[0], -1 / sides[1]], points.dtype),
            jnp.array(sides),
            total_repeat_length=sum(sides),
        )
        kernel = self.kernel or GaussianKernel(median_distance(points))
        critic = witness(kernel, points, weights)
        return None, critic, CriticInfo(critic.norm)


def _embed(
    kernel: Kernel,
    states: Float[Array, "a d"],
    points: Float[Array, "k d"],
    weights: Float[Array, "k"],
) -> Float[Array, "a"]:
    """Σ_i w_i k(·, z_i) at each state, a block of rows at a time to bound the memory."""

    def one(state: Float[Array, "d"]) -> Float[Array, ""]:
        return jnp.dot(kernel(state[None], points)[0], weights)

    embedded: Float[Array, "a"] = jax.lax.map(one, states, batch_size=256)
    return embedded


def _square_distances(x: Float[Array, "a d"], y: Float[Array, "b d"]) -> Float[Array, "a b"]:
    """‖x − y‖² as a matrix product, about the mean so that far-off origins do not round it."""
    origin = jnp.mean(y, axis=0, keepdims=True)
    x, y = x - origin, y - origin
    squares = jnp.sum(x**2, axis=1)[:, None] + jnp.sum(y**2, axis=1)[None]
    return jnp.maximum(squares - 2 * jnp.matmul(x, y.T, precision="highest"), 0)
