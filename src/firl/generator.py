"""A user's own f-divergence, with h_f by automatic differentiation."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from firl.divergences import AbstractDivergence, saturate
from firl.errors import FirlError

Values = Float[Array, "..."]


class Generator(AbstractDivergence):
    """Your own: the summand q f(p/q) of any D_f = Σ q f(p/q), and h_f by automatic differentiation.

    `fn` takes the two densities p (expert) and q (agent) rather than their ratio: h_f(p/q) is the
    derivative of q f(p/q) in q, and so needs no difference f − u f′. That difference is hopeless
    in float32 for every bounded divergence: there f grows like c·u, and h_f is what is left of
    two numbers of that size. An f(u) from a table is q f(p/q), simplified by hand: (√u − 1)²
    becomes (√p − √q)². A summand whose h_f is not non-increasing within ±80 is refused.
    """

    fn: Callable[[Values, Values], Values] = eqx.field(static=True)
    """q f(p/q), elementwise and homogeneous: fn(c p, c q) = c fn(p, q)."""
    name: str = eqx.field(static=True, default="custom")

    def __check_init__(self) -> None:
        """Refuse what is no f-divergence, or cannot be told from one in this precision."""
        grid, h = self._tabulated()
        with jax.ensure_compile_time_eval():
            points = jnp.array([[1.0, 1.0], [2.0, 1.0], [1.0, 0.5]])
            at_one, doubled, half = map(float, self.fn(points[:, 0], points[:, 1]))
        # A constant h may be left with the roundings of a handful of operations.
        rounding = 128 * np.finfo(grid.dtype).eps * (1 + np.abs(h[1:]))
        rises = ~(h[1:] <= h[:-1] + rounding)
        if not np.isclose(at_one, 0, atol=1e-5):
            wrong = f"is {at_one:g} at p = q = 1, where it must be 0: subtract {at_one:g} q"
        elif not np.isclose(2 * half, doubled, rtol=1e-5):
            wrong = f"goes from {half:g} to {doubled:g} when p and q double: make it q f(p/q)"
        elif np.any(rises):
            wrong = (
                f"has h_f = f − u f′ NaN or rising at log-ratio {grid[1:][rises][0]:g}: f is not "
                "convex there, or is lost to rounding, so write q f(p/q) without the quotient p/q"
            )
        else:
            return
        raise FirlError(f"The summand of divergence {self.name!r} {wrong}.")

    @property
    def requires_normalised(self) -> bool:
        """Unless h_f is affine in log ρ_E, which is −a log u + b, reverse KL: found by trying."""
        _, h = self._tabulated()
        steps = np.diff(h)
        return not np.allclose(steps, steps[0], rtol=1e-3)

    def _tabulated(self) -> tuple[np.ndarray, np.ndarray]:
        """Log-ratios within ±80, and h_f there in the default precision, under jit too."""
        with jax.ensure_compile_time_eval():
            grid = jnp.linspace(-80.0, 80.0, 641)
            return np.asarray(grid), np.asarray(self.h(grid), np.float64)

    def f(self, log_ratio: Values) -> Values:
        """fn(p, q)/q."""
        p, q = _densities(log_ratio)
        return saturate(self.fn(p, q) / q)

    def h(self, log_ratio: Values) -> Values:
        """∂fn/∂q at p/q = u; only where it overflows is its sign used, as h_f cannot rise.

        The derivative is the same for (p, q) and (p/q, 1) but its intermediate results are not:
        1/q² overflows in the one, p² in the other. The finite one of the two is taken.
        """
        p, q = _densities(log_ratio)
        one = jnp.ones_like(q)
        ratio = p / q
        value, slope = jax.jvp(lambda q: self.fn(p, q), (q,), (one,))
        other_value, other_slope = jax.jvp(lambda q: self.fn(ratio, q), (one,), (one,))
        slope = jnp.where(jnp.isfinite(slope), slope, other_slope)
        overflowed = ~jnp.isfinite(slope) & (jnp.isinf(value) | jnp.isinf(other_value))
        return saturate(jnp.where(overflowed, -jnp.sign(log_ratio) * jnp.inf, slope))


def _densities(log_ratio: Values) -> tuple[Values, Values]:
    """Densities of this ratio, the larger of them 1 and the smaller a normal number.

    For that, ratios beyond what the dtype can hold (float32: ±87) count as the last it can.
    """
    bound = float(np.floor(-np.log(np.finfo(log_ratio.dtype).tiny)))
    log_ratio = jnp.clip(log_ratio, -bound, bound)
    return jnp.exp(jnp.minimum(log_ratio, 0)), jnp.exp(-jnp.maximum(log_ratio, 0))
