"""Entropy and KL divergence from samples alone, by nearest neighbours (paper appendix C.1).

The ball around x_i that just holds k of the other samples has k/(n − 1) of the mass in volume
V_d ε_i^d: that is a density, and averages of its log are an entropy (Kozachenko & Leonenko 1987)
or a divergence (Wang, Kulkarni & Verdú 2009), with digammas, E log of a Gamma variable, where
the naive formula has logs.

**Duplicates.** Walls make them: every agent that pushes into a corner of the point mass is
*exactly* there, and a k-th neighbour at distance zero makes the estimate infinite. A tiny jitter
instead makes it depend on the jitter: each duplicate pays d·log(jitter). Here neighbours are
counted by place: the ball around a sample reaches to the k-th *other place*, and the number of
samples that it holds stands where k stood. Without duplicates this is the estimator as published;
with them it is finite, and a corner is as dense as its surroundings can tell: a divergence at the
samples' own resolution, for that from a true atom to a density is infinite, and this grows with
the log of their number. (Where every sample comes several times it errs by log(k + 1) − ψ(k),
0.5 nats at k = 3.)

**Far apart.** Where q has no samples near, its density is read off the distance to the nearest,
and falls like a power of it instead of exponentially: large divergences come out too small.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.spatial import cKDTree
from scipy.special import digamma

from firl.expert.base import AbstractDensity
from firl.log_ratio.kernels import log_ball_volume
from firl.types import FirlError

Samples = Float[np.ndarray | Array, "n d"]
Others = Float[np.ndarray | Array, "m e"]


class _Balls(NamedTuple):
    """One per query."""

    log_radius: Float[np.ndarray, "n"]
    held: Float[np.ndarray, "n"]
    """Samples in the ball, the query itself not counted."""


def knn_entropy(x: Samples, k: int = 3) -> float:
    """Differential entropy of p, in nats, from x ~ p. −∞ if all samples are one point.

    k = 3 is the paper's.
    """
    x = _checked(x, k + 1)
    num, dim = x.shape
    balls = _balls(x, x, k, own=True)
    log_density = digamma(balls.held) - digamma(num) - log_ball_volume(dim)
    return float(np.mean(dim * balls.log_radius - log_density))


def knn_kl(x: Samples, y: Others, k: int = 3) -> float:
    """KL(p‖q), in nats, from x ~ p and y ~ q. It may come out slightly below zero."""
    x, y = _checked(x, k + 1), _checked(y, k)
    if x.shape[1] != y.shape[1]:
        raise FirlError(
            f"KL compares states of the same kind, got {x.shape[1]} and {y.shape[1]} coordinates."
        )
    among_x, among_y = _balls(x, x, k, own=True), _balls(y, x, k, own=False)
    log_volumes = x.shape[1] * (among_y.log_radius - among_x.log_radius)
    log_masses = digamma(among_x.held) - np.log(len(x) - 1) - digamma(among_y.held)
    return float(np.mean(log_volumes + log_masses) + np.log(len(y)))


def forward_kl(expert_samples: Samples, agent_states: Others, k: int = 3) -> float:
    """KL(ρ_E‖ρ_agent), from samples of both (the left of the paper's Figure 2)."""
    return knn_kl(expert_samples, agent_states, k)


def reverse_kl(expert_samples: Samples, agent_states: Others, k: int = 3) -> float:
    """KL(ρ_agent‖ρ_E), from samples of both (the right of the paper's Figure 2)."""
    return knn_kl(agent_states, expert_samples, k)


def reverse_kl_to_density(expert: AbstractDensity, agent_states: Samples, k: int = 3) -> float:
    """KL(ρ_agent‖ρ_E) = −H(ρ_agent) − E_agent log ρ_E, when ρ_E is known: half of the noise.

    +∞ where the agent has been and the expert never is.
    """
    if not expert.normalised:
        raise FirlError(
            "Reverse KL needs a density that integrates to one: use normalise_on(density, region)."
        )
    states = jnp.asarray(agent_states)
    cross_entropy = -np.mean(np.asarray(expert.log_prob(states), dtype=np.float64))
    return float(cross_entropy - knn_entropy(states, k))


def _checked(samples: Samples, at_least: int) -> Float[np.ndarray, "n d"]:
    """In double precision, finite and enough."""
    samples = np.asarray(samples, dtype=np.float64)
    if len(samples) < at_least:
        raise FirlError(
            f"Nearest-neighbour estimates need at least {at_least} samples, got {len(samples)}."
        )
    if not np.all(np.isfinite(samples)):
        raise FirlError("Nearest-neighbour estimates need finite states, got NaN or infinity.")
    return samples


def _balls(
    samples: Float[np.ndarray, "m d"], queries: Float[np.ndarray, "n d"], k: int, *, own: bool
) -> _Balls:
    """For each query the ball that reaches to the k-th place of a sample elsewhere.

    `own` says that the queries are the samples, each of which is then not counted for itself.
    The tree is over places, each with its number of samples: a search through thousands of
    duplicates would be quadratic.
    """
    places, multiplicity = np.unique(samples, axis=0, return_counts=True)
    asked, back = np.unique(queries, axis=0, return_inverse=True)
    reach = np.arange(1, min(k + 1, len(places)) + 1)
    distance, index = cKDTree(places).query(asked, k=reach)
    held = np.cumsum(multiplicity[index], axis=1) - int(own)
    at_a_place = (distance[:, 0] == 0).astype(int)
    last = np.minimum(k - 1 + at_a_place, len(reach) - 1)[:, None]
    with np.errstate(divide="ignore"):  # all samples at the query's place: no other to reach to
        log_radius = np.log(np.take_along_axis(distance, last, axis=1)[:, 0])
    return _Balls(log_radius[back], np.take_along_axis(held, last, axis=1)[back, 0].astype(float))
