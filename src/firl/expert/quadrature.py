"""Integrals of a density over a region, by the midpoint rule, checked."""

import numpy as np
from jaxtyping import Float
from scipy.special import logsumexp

from firl.expert.base import AbstractDensity
from firl.expert.regions import AbstractRegion
from firl.types import FirlError

RESOLUTION = {1: 2**14, 2: 512, 3: 96}
"""Cells along each axis, by dimension: up to a million evaluations, a second's work."""

_TOLERANCE = 1e-3
"""Largest change of the integral, relative, when every cell is split in 2^d: the midpoint rule
has then an error of about a third of that for a smooth density."""


def log_masses_on_grid(density: AbstractDensity, region: AbstractRegion) -> Float[np.ndarray, "g"]:
    """Log-mass of each cell of the region's grid, whose sum a coarser grid confirms."""
    check_same_space(density, region)
    if region.dim not in RESOLUTION:
        raise FirlError(
            f"A density can be normalised by quadrature in at most {max(RESOLUTION)} dimensions, "
            f"not {region.dim}: match fewer coordinates or give a normalised density."
        )
    resolution = RESOLUTION[region.dim]
    fine = _midpoint_rule(density, region, resolution)
    coarse = _midpoint_rule(density, region, resolution // 2)
    if not abs(logsumexp(fine) - logsumexp(coarse)) < _TOLERANCE:
        raise FirlError(
            f"The target density is too narrow or too rough to be normalised on a grid of "
            f"{resolution} cells along each axis of the region: widen it or shrink the region."
        )
    return fine


def check_same_space(density: AbstractDensity, region: AbstractRegion) -> None:
    """Refuse a density over other coordinates than the region's."""
    if density.dim != region.dim:
        raise FirlError(
            f"The target density takes states of {density.dim} coordinates, but the region it is "
            f"to live on has {region.dim}: make them agree."
        )


def _midpoint_rule(
    density: AbstractDensity, region: AbstractRegion, resolution: int
) -> Float[np.ndarray, "g"]:
    """Log of density × volume in each cell."""
    points, cell_volume = region.grid(resolution)
    log_density = np.asarray(density.log_prob(points), dtype=np.float64)
    log_masses: np.ndarray = log_density + np.log(float(cell_volume))
    if np.any(np.isnan(log_masses) | (log_masses == np.inf)):
        raise FirlError(
            "The target log-density is NaN or +inf somewhere in the region that can be reached: "
            "return −inf where it is zero."
        )
    if np.all(log_masses == -np.inf):
        raise FirlError(
            "The target density is zero (its log −inf) everywhere in the region that can be "
            "reached: check its units and where it is centred."
        )
    return log_masses
