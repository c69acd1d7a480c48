"""Kernels for density estimation: a bump of height one, and what it integrates to."""

import abc
import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float


class AbstractKernel(eqx.Module):
    """A radial bump, at distances measured in bandwidths."""

    @abc.abstractmethod
    def height(self, squared_distance: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """Its value there, one at distance zero."""

    @abc.abstractmethod
    def log_integral(self, dim: int) -> float:
        """Log of its integral over d-dimensional space."""

    @abc.abstractmethod
    def std(self, dim: int) -> float:
        """Its standard deviation along a coordinate, as a density."""


class Epanechnikov(AbstractKernel):
    """max(0, 1 − r²), the paper's: zero beyond one bandwidth, and cheap."""

    def height(self, squared_distance: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """max(0, 1 − r²)."""
        return jnp.maximum(1 - squared_distance, 0)

    def log_integral(self, dim: int) -> float:
        """∫(1 − r²) over the unit ball is 2/(d + 2) of the ball's volume."""
        return log_ball_volume(dim) + math.log(2 / (dim + 2))

    def std(self, dim: int) -> float:
        """E r² = d/(d + 4), shared by d coordinates."""
        return 1 / math.sqrt(dim + 4)


class GaussianKernel(AbstractKernel):
    """exp(−r²/2): never zero, five times the price."""

    def height(self, squared_distance: Float[Array, "*batch"]) -> Float[Array, "*batch"]:
        """exp(−r²/2)."""
        return jnp.exp(-0.5 * squared_distance)

    def log_integral(self, dim: int) -> float:
        """(2π)^(d/2)."""
        return dim / 2 * math.log(2 * math.pi)

    def std(self, dim: int) -> float:
        """The bandwidth is the standard deviation."""
        return 1.0


def log_ball_volume(dim: int) -> float:
    """Log-volume of the d-dimensional unit ball."""
    return dim / 2 * math.log(math.pi) - math.lgamma(dim / 2 + 1)
