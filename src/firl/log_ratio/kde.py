"""Kernel density estimate of what the agent visits (paper appendix C.1).

30 000 points against 30 000 queries are 9·10⁸ pairs. They are never materialised: a scan runs
over the points, sixteen at a time and unrolled, and adds their bumps to a sum that is as long as
the queries, so that the compiler fuses the arithmetic of sixteen points into one vectorised pass.
(The same as a `jnp.sum` over an axis of sixteen runs fifty times slower on a CPU; a tree over the
points, with its branches, thirty.) At 0.1 s it is not worth the lines to sort the points and skip
those that are far.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from firl.log_ratio.kernels import AbstractKernel
from firl.types import FirlError

POINT_MASS_BANDWIDTH = 0.2
"""Appendix C.1, with the Epanechnikov kernel, in units of the 4×4 and 6×6 arenas."""

REACHER_BANDWIDTH = 0.02
"""Appendix C.1, with the Epanechnikov kernel, in metres."""

_UNROLLED = 16
"""Points per pass over the queries. From 4 to 32 the time is the same; fewer read the sum more
often, more compile longer."""

_PASSES = 64
"""Passes per partial sum: adding 30 000 single-precision numbers one after the other may lose
3e-5 of the total, in two levels 1e-6."""


class KernelDensity(eqx.Module):
    """ρ(s) = Σ_i K(|s − s_i| / h) / (m h^d ∫K), and never less than `floor` of one summand.

    Near a wall at which states pile up it underestimates, as bumps stick out beyond the wall.
    """

    points: Float[Array, "m d"]
    """What it is fitted to."""
    bandwidth: Float[Array, ""]
    """h."""
    kernel: AbstractKernel
    floor: float = eqx.field(static=True)
    """The least that Σ_i K may be, in samples.

    Where the agent has never been the sum is zero and its log −∞ (what scikit-learn returns),
    which would make the log-ratio infinite. But no visit among m samples does not mean density
    zero: it means less than about one sample's worth. Half a sample is what Krichevsky and
    Trofimov's estimator grants to an outcome not yet seen; and half of what a state always has
    that is counted at its own place, so that leaving it out moves no log-ratio beyond log 2
    past that bound. The estimate is untouched wherever it is larger. It then integrates to more
    than one over all of space, as every density with a floor.
    """

    def __init__(
        self,
        points: Float[Array, "m d"],
        bandwidth: float,
        kernel: AbstractKernel,
        *,
        floor: float = 0.5,
    ) -> None:
        """Nothing is learned: the points are kept."""
        if not 0 < bandwidth < float("inf"):
            raise FirlError(f"A kernel's bandwidth must be positive and finite, got {bandwidth}.")
        if not 1e-30 <= floor <= 1:
            raise FirlError(
                f"The floor of a kernel density must lie between 1e-30 (what single precision "
                f"resolves) and 1 sample, got {floor}."
            )
        self.points, self.kernel, self.floor = points, kernel, floor
        self.bandwidth = jnp.asarray(bandwidth, dtype=points.dtype)

    @eqx.filter_jit
    def log_prob(self, queries: Float[Array, "n d"]) -> Float[Array, "n"]:
        """Log-density at each query. A query that is one of the points counts itself."""
        return self._log_density(self._sum_heights(queries), self.points.shape[0])

    @eqx.filter_jit
    def log_prob_at_points(self) -> Float[Array, "m"]:
        """Log-density at each point, as estimated from all the others.

        A point that counts itself sees at least one bump: in a thinly visited place that is most
        of the estimate, and the ratio there is biased low.
        """
        others = self.points.shape[0] - 1
        return self._log_density(self._sum_heights(self.points) - 1, others)

    def _log_density(self, heights: Float[Array, "n"], num: int) -> Float[Array, "n"]:
        """From sums of bumps of height one to log-densities."""
        dim = self.points.shape[1]
        log_normaliser = self.kernel.log_integral(dim) + dim * jnp.log(self.bandwidth)
        return jnp.log(jnp.maximum(heights, self.floor)) - (log_normaliser + math.log(num))

    def _sum_heights(self, queries: Float[Array, "n d"]) -> Float[Array, "n"]:
        """Σ_i K(|q − s_i| / h) for each query."""
        columns = tuple(queries.T)
        scale = self.bandwidth**-2

        def add_few(total: Float[Array, "n"], few: Float[Array, "b d"]) -> tuple[Array, None]:
            for point in few:
                squares = [(column - x) ** 2 for column, x in zip(columns, point, strict=True)]
                total = total + self.kernel.height(sum(squares[1:], squares[0]) * scale)
            return total, None

        def add_many(total: Float[Array, "n"], many: Float[Array, "p b d"]) -> tuple[Array, None]:
            return total + jax.lax.scan(add_few, jnp.zeros_like(total), many)[0], None

        num, dim = self.points.shape
        padding = jnp.full((-num % (_PASSES * _UNROLLED), dim), jnp.inf, self.points.dtype)
        points = jnp.concatenate([self.points, padding]).reshape(-1, _PASSES, _UNROLLED, dim)
        return jax.lax.scan(add_many, jnp.zeros_like(queries[:, 0]), points)[0]


def scott_bandwidth(points: Float[Array, "m d"], kernel: AbstractKernel) -> float:
    """Scott's rule, σ m^(−1/(d+4)), for data of unknown scale.

    σ² is the mean variance of the coordinates, and kernels are made comparable by their standard
    deviations: an Epanechnikov bandwidth, a radius, is √(d + 4) times the Gaussian's. The rule is
    right for one Gaussian and smooths too much what has several peaks.
    """
    num, dim = points.shape
    std = float(jnp.sqrt(jnp.mean(jnp.var(points, axis=0))))
    if not std > 0:
        raise FirlError(
            "Scott's rule has no bandwidth for states that are all the same: give a number."
        )
    return std / math.pow(num, 1 / (dim + 4)) / kernel.std(dim)
