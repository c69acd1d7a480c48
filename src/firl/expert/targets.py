"""The target densities of the paper's experiments, each restricted to what can be reached."""

import math

from firl.expert.base import AbstractDensity
from firl.expert.densities import Gaussian, Mixture, Uniform
from firl.expert.regions import Box, Disc
from firl.expert.truncated import Truncated

REACH = 0.21
"""The arm's two links, 0.1 + 0.11. The hole of radius 0.01 in the middle is neglected, as there."""

_REACHER_STD = 0.05


def point_mass_gaussian() -> AbstractDensity:
    """Figure 6: μ = (2, 2), σ = 0.5 on the 4×4 arena, which cuts off 1 in 8 000."""
    return Truncated(Gaussian([2.0, 2.0], 0.5), Box([0.0, 0.0], [4.0, 4.0]))


def point_mass_uniform() -> AbstractDensity:
    """Figure 4: uniform on the 6×6 arena."""
    return Uniform(Box([0.0, 0.0], [6.0, 6.0]))


def reacher_gaussian() -> AbstractDensity:
    """Figure 2, single Gaussian: on the edge of the disc, so that over half is out of reach."""
    return Truncated(Gaussian([-REACH, 0.0], _REACHER_STD), Disc([0.0, 0.0], REACH))


def reacher_mixture() -> AbstractDensity:
    """Figure 2, two equal Gaussians on the edge of the disc, a quarter turn apart."""
    along = REACH / math.sqrt(2)
    below, above = Gaussian([-along, -along], _REACHER_STD), Gaussian([-along, along], _REACHER_STD)
    return Truncated(Mixture([below, above], [0.5, 0.5]), Disc([0.0, 0.0], REACH))
