"""Densities made proper on what can be reached.

Half of the paper's Reacher target lies beyond the arm: no policy matches that half, so forward
KL to it is infinite and reverse KL can never be zero. Restricted to the disc and renormalised,
the target can be reached and a curve near zero means success.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray
from scipy.special import logsumexp

from firl.expert.base import AbstractDensity
from firl.expert.cells import Cells
from firl.expert.quadrature import RESOLUTION, check_same_space, log_masses_on_grid
from firl.expert.regions import AbstractRegion
from firl.types import FirlError

_NUM_DRAWS = 10_000
_LEAST_SHARE = 1e-3
"""Truncation to less than this is taken for a mistake in units; the sampler would draw a
thousand for each that it keeps."""

_Carry = tuple[PRNGKeyArray, Float[Array, "num d"], Bool[Array, "num"]]


class Truncated(AbstractDensity):
    """A normalised density with a sampler, restricted to a region and renormalised."""

    density: AbstractDensity
    region: AbstractRegion
    log_mass: Float[Array, ""]
    """Log of the share of the density that lies in the region."""

    def __init__(self, density: AbstractDensity, region: AbstractRegion) -> None:
        """Integrate the density over the region, by quadrature."""
        if not density.normalised:
            raise FirlError(
                f"Truncated needs a density that integrates to one, and {type(density).__name__} "
                "does not: use normalise_on(density, region)."
            )
        check_same_space(density, region)
        draws = density.sample(jax.random.key(0), _NUM_DRAWS)
        share = float(jnp.mean(region.contains(draws)))
        if share < _LEAST_SHARE:
            raise FirlError(
                f"Of {_NUM_DRAWS} draws from the target density only {share:.2%} lie where the "
                "agent can be: check its units and where it is centred."
            )
        log_mass = logsumexp(log_masses_on_grid(density, region))
        self.density, self.region = density, region
        self.log_mass = jnp.asarray(log_mass, dtype=float)

    @property
    def dim(self) -> int:
        """d."""
        return self.region.dim

    @property
    def normalised(self) -> bool:
        """Yes, on the region."""
        return True

    @eqx.filter_jit
    def log_prob(self, states: Float[Array, "n d"]) -> Float[Array, "n"]:
        """The density's own, shifted inside, −inf outside."""
        inside = self.region.contains(states)
        return jnp.where(inside, self.density.log_prob(states) - self.log_mass, -jnp.inf)

    @eqx.filter_jit
    def sample(self, key: PRNGKeyArray, num: int) -> Float[Array, "num d"]:
        """Rejection: each draw that falls outside is drawn again until it does not. Exact."""

        def redraw(carry: _Carry) -> _Carry:
            key, samples, inside = carry
            key, key_draw = jax.random.split(key)
            samples = jnp.where(inside[:, None], samples, self.density.sample(key_draw, num))
            return key, samples, self.region.contains(samples)

        start = (key, jnp.zeros((num, self.dim)), jnp.zeros(num, dtype=bool))
        return jax.lax.while_loop(lambda carry: ~jnp.all(carry[2]), redraw, start)[1]


class Normalised(AbstractDensity):
    """Any log-density in at most three dimensions, normalised on a region by quadrature."""

    density: AbstractDensity
    region: AbstractRegion
    log_integral: Float[Array, ""]
    """Log of the density's integral over the region."""
    cells: Cells
    """How much of it each cell of the quadrature grid holds."""

    def __init__(self, density: AbstractDensity, region: AbstractRegion) -> None:
        """Integrate the density over the region, by quadrature."""
        log_masses = log_masses_on_grid(density, region)
        log_integral = float(logsumexp(log_masses))
        self.density, self.region = density, region
        self.log_integral = jnp.asarray(log_integral, dtype=float)
        self.cells = Cells(np.exp(log_masses - log_integral))

    @property
    def dim(self) -> int:
        """d."""
        return self.region.dim

    @property
    def normalised(self) -> bool:
        """Yes, on the region."""
        return True

    def log_prob(self, states: Float[Array, "n d"]) -> Float[Array, "n"]:
        """The density's own, shifted inside, −inf outside."""
        inside = self.region.contains(states)
        return jnp.where(inside, self.density.log_prob(states) - self.log_integral, -jnp.inf)

    @eqx.filter_jit
    def sample(self, key: PRNGKeyArray, num: int) -> Float[Array, "num d"]:
        """Draw a cell by its mass, then a point spread uniformly over it.

        Where the density is not constant over a cell, an eighth of its relative change across the
        cell is the share of mass that is misplaced, by less than the cell's width: with 512 cells
        a side and the paper's targets, below 1 %. Unlike importance resampling it never repeats a
        point, which nearest-neighbour estimators would punish.
        """
        key_cell, key_within = jax.random.split(key)
        resolution = RESOLUTION[self.dim]
        flat = self.cells.sample(key_cell, num)
        index = jnp.stack(jnp.unravel_index(flat, (resolution,) * self.dim), axis=1).astype(float)
        within = jax.random.uniform(key_within, (num, self.dim))
        return self.region.from_unit_cube((index + within) / resolution)


def normalise_on(density: AbstractDensity, region: AbstractRegion) -> Normalised:
    """Make a density that is known up to a constant fit for every divergence, and sampling."""
    return Normalised(density, region)
