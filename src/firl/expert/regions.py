"""Where states can be. A region is the image of the unit cube under a map that keeps volume.

Keeping volume (up to the constant factor `volume`) makes one map serve everything: uniform
points in the cube become uniform points in the region, and a regular lattice in the cube
becomes cells of equal volume, a midpoint rule whose sum is an integral over the region.
"""

import abc
import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from firl.expert.base import Vector
from firl.types import FirlError

EDGE = 1e-5
"""Share of its size by which a region is widened in `contains`. A fingertip at full stretch
lies *on* the edge, and single precision (6e-8 a rounding) puts it outside half of the time."""


class AbstractRegion(eqx.Module):
    """A bounded set of states that can be reached."""

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """d."""

    @property
    @abc.abstractmethod
    def volume(self) -> Float[Array, ""]:
        """Its d-dimensional volume."""

    @abc.abstractmethod
    def bounds(self) -> tuple[Float[Array, "d"], Float[Array, "d"]]:
        """Lowest and highest corner of the smallest box around it."""

    @abc.abstractmethod
    def contains(self, states: Float[Array, "n d"]) -> Bool[Array, "n"]:
        """Which states lie in it, its edge and the rounding of single precision included."""

    @abc.abstractmethod
    def from_unit_cube(self, units: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The map from [0, 1]^d onto the region that keeps ratios of volumes."""

    @eqx.filter_jit
    def sample(self, key: PRNGKeyArray, num: int) -> Float[Array, "num d"]:
        """Points spread uniformly."""
        return self.from_unit_cube(jax.random.uniform(key, (num, self.dim)))

    @eqx.filter_jit
    def grid(self, resolution: int) -> tuple[Float[Array, "g d"], Float[Array, ""]]:
        """Midpoints of resolution^d cells of equal volume, last axis fastest, and that volume."""
        midpoints = (jnp.arange(resolution, dtype=float) + 0.5) / resolution
        axes = jnp.meshgrid(*[midpoints] * self.dim, indexing="ij")
        units = jnp.stack([axis.ravel() for axis in axes], axis=1)
        return self.from_unit_cube(units), self.volume / resolution**self.dim


class Box(AbstractRegion):
    """All x with low ≤ x ≤ high."""

    low: Float[Array, "d"]
    high: Float[Array, "d"]

    def __init__(self, low: Vector, high: Vector) -> None:
        self.low = jnp.asarray(low, dtype=float)
        self.high = jnp.asarray(high, dtype=float)
        same_shape = self.low.ndim == 1 and self.low.shape == self.high.shape
        finite = np.all(np.isfinite(self.low)) and np.all(np.isfinite(self.high))
        if not (same_shape and finite and np.all(np.asarray(self.low < self.high))):
            raise FirlError(
                f"A Box needs finite corners with low < high in every coordinate, got low={low!r} "
                f"and high={high!r}: give two lists of the same length."
            )

    @property
    def dim(self) -> int:
        """d."""
        return self.low.shape[0]

    @property
    def volume(self) -> Float[Array, ""]:
        """Product of the sides."""
        return jnp.prod(self.high - self.low)

    def bounds(self) -> tuple[Float[Array, "d"], Float[Array, "d"]]:
        """The corners."""
        return self.low, self.high

    @eqx.filter_jit
    def contains(self, states: Float[Array, "n d"]) -> Bool[Array, "n"]:
        """Which states lie between the corners."""
        edge = EDGE * (self.high - self.low)
        above, below = states >= (self.low - edge)[None, :], states <= (self.high + edge)[None, :]
        return jnp.all(above & below, axis=1)

    def from_unit_cube(self, units: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Stretch and shift."""
        return self.low[None, :] + units * (self.high - self.low)[None, :]


class Disc(AbstractRegion):
    """All x in the plane with |x − center| ≤ radius: what a two-link arm's fingertip reaches."""

    center: Float[Array, "2"]
    radius: Float[Array, ""]

    def __init__(self, center: Vector, radius: float) -> None:
        self.center = jnp.asarray(center, dtype=float)
        self.radius = jnp.asarray(radius, dtype=float)
        finite = np.all(np.isfinite(self.center)) and math.isfinite(radius)
        if self.center.shape != (2,) or not finite or radius <= 0:
            raise FirlError(
                f"A Disc needs two finite coordinates and a positive radius, "
                f"got center={center!r} and radius={radius!r}."
            )

    @property
    def dim(self) -> int:
        """The plane's two."""
        return 2

    @property
    def volume(self) -> Float[Array, ""]:
        """π radius²."""
        return jnp.pi * self.radius**2

    def bounds(self) -> tuple[Float[Array, "d"], Float[Array, "d"]]:
        """The square around it."""
        return self.center - self.radius[None], self.center + self.radius[None]

    @eqx.filter_jit
    def contains(self, states: Float[Array, "n d"]) -> Bool[Array, "n"]:
        """Which states are within the radius."""
        distance = jnp.linalg.norm(states - self.center[None, :], axis=1)
        within: Array = distance <= self.radius[None] * (1 + EDGE)
        return within

    def from_unit_cube(self, units: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Polar coordinates: the area within r grows as r², so r = radius √u spreads evenly."""
        distance = self.radius[None] * jnp.sqrt(units[:, 0])
        angle = 2 * jnp.pi * units[:, 1]
        directions = jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
        return self.center[None, :] + distance[:, None] * directions
