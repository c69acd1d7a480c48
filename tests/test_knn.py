"""Nearest-neighbour estimates against closed forms, and what duplicates do to them."""

import math
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from firl.expert import Box, Energy, Gaussian, Uniform
from firl.log_ratio import DensityLogRatio, Epanechnikov, KernelDensity
from firl.metrics import (
    divergences_from_log_ratios,
    forward_kl,
    kde_divergences,
    knn_entropy,
    knn_kl,
    reverse_kl,
    reverse_kl_to_density,
)
from firl.types import FirlError

Moments = tuple[np.ndarray, np.ndarray]


def moments(dim: int) -> tuple[Moments, Moments]:
    """Means and covariances of two overlapping Gaussians, correlated and of unequal scales."""
    mixing = np.eye(dim) + 0.1 * np.tri(dim, k=-1)
    p = np.zeros(dim), mixing @ mixing.T
    q = np.full(dim, 0.4), np.diag(np.linspace(1.0, 1.5, dim))
    return p, q


def draw(which: Moments, num: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).multivariate_normal(*which, size=num)


def gaussian_entropy(p: Moments) -> float:
    dim = len(p[0])
    return float(0.5 * (dim * math.log(2 * math.pi * math.e) + np.linalg.slogdet(p[1])[1]))


def gaussian_kl(p: Moments, q: Moments) -> float:
    precision = np.linalg.inv(q[1])
    shift = q[0] - p[0]
    log_dets = np.linalg.slogdet(q[1])[1] - np.linalg.slogdet(p[1])[1]
    trace = np.trace(precision @ p[1])
    return float(0.5 * (trace - len(shift) + shift @ precision @ shift + log_dets))


TOLERANCE = {1: 0.06, 2: 0.06, 5: 0.15}
"""In nats at 5000 samples: four standard deviations over seeds, plus in five dimensions the bias
of taking the density as constant over balls that are not small."""

TOLERANCE_FROM_WIDE = {1: 0.06, 2: 0.06, 5: 0.2}
"""Of KL from the wider to the narrower Gaussian: the wide one has samples where the narrow one
has next to none, and in five dimensions this costs 0.14 nats of 0.41 (0.11 at 20 000 samples)."""


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_entropy_of_a_gaussian(dim: int, seed: int) -> None:
    p, _ = moments(dim)
    estimate = knn_entropy(draw(p, 5000, seed))
    assert estimate == pytest.approx(gaussian_entropy(p), abs=TOLERANCE[dim])


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_kl_between_gaussians_both_ways(dim: int, seed: int) -> None:
    p, q = moments(dim)
    x, y = draw(p, 5000, seed), draw(q, 8000, seed + 100)
    assert knn_kl(x, y) == pytest.approx(gaussian_kl(p, q), abs=TOLERANCE[dim])
    assert knn_kl(y, x) == pytest.approx(gaussian_kl(q, p), abs=TOLERANCE_FROM_WIDE[dim])
    assert forward_kl(x, y) == reverse_kl(y, x) == knn_kl(x, y)


@pytest.mark.parametrize("k", [1, 3, 7])
@pytest.mark.parametrize("dim", [1, 2, 20])
def test_without_duplicates_it_is_the_published_estimator(dim: int, k: int) -> None:
    """Wang, Kulkarni & Verdú 2009, equation 5, by brute force."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(150, dim)), rng.normal(size=(200, dim)) * 1.5

    def kth(samples: np.ndarray, which: int) -> np.ndarray:
        distances = np.linalg.norm(x[:, None] - samples[None], axis=2)
        return np.asarray(np.sort(distances, axis=1)[:, which])

    published = dim * np.mean(np.log(kth(y, k - 1) / kth(x, k))) + math.log(200 / 149)
    assert knn_kl(x, y, k) == pytest.approx(published, abs=1e-9)


def test_forward_is_from_the_expert() -> None:
    """A narrow agent inside a wide expert: the forward direction is the larger by far.

    It is 21 nats; no estimate from thousands of samples can see as much.
    """
    wide, narrow = (np.zeros(2), np.eye(2)), (np.zeros(2), 0.04 * np.eye(2))
    expert, agent = draw(wide, 3000, 0), draw(narrow, 3000, 1)
    assert forward_kl(expert, agent) > 3
    assert reverse_kl(expert, agent) == pytest.approx(gaussian_kl(narrow, wide), abs=0.15)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_nearly_unbiased_over_seeds_for_every_k(k: int) -> None:
    """At k = 10 of 1000 samples the balls are large, and in the tails too dense."""
    p, q = moments(2)
    x = [draw(p, 1000, seed) for seed in range(30)]
    y = [draw(q, 1500, seed + 100) for seed in range(30)]
    entropies = [knn_entropy(sample, k) for sample in x]
    divergences = [knn_kl(*pair, k) for pair in zip(x, y, strict=True)]
    assert np.mean(entropies) == pytest.approx(gaussian_entropy(p), abs=0.05)
    assert np.mean(divergences) == pytest.approx(gaussian_kl(p, q), abs=0.05)


def test_same_distribution_has_no_divergence() -> None:
    p, _ = moments(2)
    assert knn_kl(draw(p, 10_000, 0), draw(p, 30_000, 1)) == pytest.approx(0, abs=0.05)


def test_units_do_not_matter() -> None:
    p, q = moments(2)
    x, y = draw(p, 500, 0), draw(q, 500, 1)
    assert knn_kl(1e-3 * x + 5, 1e-3 * y + 5) == pytest.approx(knn_kl(x, y), abs=1e-6)
    shift = 2 * math.log(1e-3)
    assert knn_entropy(1e-3 * x) == pytest.approx(knn_entropy(x) + shift, abs=1e-6)


def test_known_density_agrees_with_samples_of_it() -> None:
    expert = Gaussian([0.0, 0.0], 1.0)
    samples = np.asarray(expert.sample(jax.random.key(0), 10_000))
    agent = draw((np.array([0.5, 0.0]), 0.5 * np.eye(2)), 10_000, 1)
    truth = gaussian_kl((np.array([0.5, 0.0]), 0.5 * np.eye(2)), (np.zeros(2), np.eye(2)))
    assert reverse_kl_to_density(expert, agent) == pytest.approx(truth, abs=0.05)
    assert reverse_kl(samples, agent) == pytest.approx(truth, abs=0.08)


def at_walls(num: int, seed: int) -> np.ndarray:
    """A point mass that is pushed into the corner of its arena: a third of it is exactly there."""
    return np.random.default_rng(seed).normal(3.9, 0.5, (num, 2)).clip(0, 4)


def test_duplicates_neither_break_nor_dominate() -> None:
    agent = at_walls(6000, 0)
    in_corner = np.mean(np.all(agent == 4.0, axis=1))
    assert 0.1 < in_corner < 0.5
    expert = np.asarray(Uniform(Box([0.0, 0.0], [4.0, 4.0])).sample(jax.random.key(0), 4000))
    for estimate in (forward_kl(expert, agent), reverse_kl(expert, agent), knn_entropy(agent)):
        assert math.isfinite(estimate)
    assert 0 < reverse_kl(expert, agent) < 12
    assert knn_kl(agent, at_walls(6000, 1)) == pytest.approx(0, abs=0.8)


def test_repeated_samples_say_little_new() -> None:
    """Every sample several times over: half a nat off, where a jitter of 1e-10 is 40."""
    p, q = moments(2)
    x, y = draw(p, 3000, 0), draw(q, 3000, 1)
    for times in (2, 3, 4, 10):
        again = np.repeat(x, times, axis=0)
        assert knn_entropy(again) == pytest.approx(gaussian_entropy(p), abs=0.55)
        assert knn_kl(again, y) == pytest.approx(gaussian_kl(p, q), abs=0.55)
        assert knn_kl(y, again) == pytest.approx(gaussian_kl(q, p), abs=0.55)


@pytest.mark.parametrize(
    ("k", "balls"), [(1, [(1, 4)] * 5 + [(2, 2)] * 2), (2, [(3, 6)] * 4 + [(2, 6)] + [(3, 6)] * 2)]
)
def test_balls_around_duplicates_by_hand(k: int, balls: list[tuple[int, int]]) -> None:
    """Four samples at 0, one at 1, two at 3: radii and counts can be written down."""
    x = np.array([[0.0]] * 4 + [[1.0]] + [[3.0]] * 2)
    digamma = {n: -0.5772156649015329 + sum(1 / i for i in range(1, n)) for n in range(1, 8)}
    by_hand = np.mean([math.log(2 * radius) - digamma[held] for radius, held in balls])
    assert knn_entropy(x, k) == pytest.approx(by_hand + digamma[7], abs=1e-9)


def test_single_place_has_no_entropy() -> None:
    stuck = np.full((50, 2), 4.0)
    assert knn_entropy(stuck) == -math.inf
    assert knn_kl(stuck, draw(moments(2)[0], 50, 0)) == math.inf
    assert math.isfinite(knn_kl(draw(moments(2)[0], 50, 0), stuck))


def test_papers_sizes_are_fast() -> None:
    """10 000 expert samples, 30 000 states: 0.15 s of one core each way, in the corner as well."""
    p, q = moments(2)
    expert, agent = draw(p, 10_000, 0), draw(q, 30_000, 1)
    for states in (agent, at_walls(30_000, 2), agent.clip(-9, -1)):
        start = time.process_time()
        forward_kl(expert, states)
        reverse_kl(expert, states)
        assert time.process_time() - start < 2


def test_kde_curves_are_close_to_the_truth() -> None:
    expert, agent = Gaussian([0.5, 0.0], 0.8), Gaussian([0.0, 0.0], 1.0)
    samples, states = (d.sample(jax.random.key(i), 10_000) for i, d in enumerate((expert, agent)))
    ratio = DensityLogRatio(expert, KernelDensity(states, 0.4, Epanechnikov()))
    estimate = kde_divergences(ratio, samples)
    e, a = (np.array([0.5, 0.0]), 0.64 * np.eye(2)), (np.zeros(2), np.eye(2))
    assert estimate.forward_kl == pytest.approx(gaussian_kl(e, a), abs=0.06)
    assert estimate.reverse_kl == pytest.approx(gaussian_kl(a, e), abs=0.06)
    left_out, counted = (float(jnp.mean(at)) for at in (ratio.at_agent_points(), ratio(states)))
    assert left_out > counted + 1e-3
    assert estimate.reverse_kl == pytest.approx(-left_out, abs=1e-6)


def test_divergences_from_exact_log_ratios() -> None:
    """One dimension, so that each is an integral that can be done on a grid."""
    p, q = Gaussian([0.0], 1.0), Gaussian([1.0], 0.7)

    def log_ratio(states: jax.Array) -> jax.Array:
        return p.log_prob(states) - q.log_prob(states)

    x, y = p.sample(jax.random.key(0), 200_000), q.sample(jax.random.key(1), 200_000)
    estimate = divergences_from_log_ratios(log_ratio(x), log_ratio(y))
    grid = np.linspace(-9, 9, 20_001)
    at_grid = jnp.asarray(grid, jnp.float32)[:, None]
    log_p, log_q = (np.asarray(density.log_prob(at_grid), float) for density in (p, q))
    mix = np.logaddexp(log_p, log_q) - math.log(2)

    def integral(values: np.ndarray) -> float:
        return float(np.trapezoid(values, grid))

    truth = {
        "forward_kl": integral(np.exp(log_p) * (log_p - log_q)),
        "reverse_kl": integral(np.exp(log_q) * (log_q - log_p)),
        "jensen_shannon": 0.5
        * integral(np.exp(log_p) * (log_p - mix) + np.exp(log_q) * (log_q - mix)),
        "total_variation": 0.5 * integral(np.abs(np.exp(log_p) - np.exp(log_q))),
        "squared_hellinger": 1 - integral(np.exp((log_p + log_q) / 2)),
    }
    for name, exact in truth.items():
        assert float(getattr(estimate, name)) == pytest.approx(exact, abs=0.01), name


def test_bounded_divergences_stay_bounded() -> None:
    far = divergences_from_log_ratios(jnp.full(10, 80.0), jnp.full(10, -80.0))
    assert float(far.jensen_shannon) == pytest.approx(math.log(2), abs=1e-6)
    assert float(far.total_variation) == pytest.approx(1, abs=1e-6)
    assert float(far.squared_hellinger) == pytest.approx(1, abs=1e-6)
    none = divergences_from_log_ratios(jnp.zeros(10), jnp.zeros(10))
    assert all(abs(float(value)) < 1e-6 for value in jax.tree.leaves(none))


BAD_INPUT: dict[str, tuple[Callable[[], float], str]] = {
    "too few": (lambda: knn_entropy(np.zeros((3, 2))), "at least 4"),
    "too few others": (lambda: knn_kl(np.zeros((9, 2)), np.zeros((2, 2))), "at least 3"),
    "NaN": (lambda: knn_entropy(np.full((9, 2), np.nan)), "finite"),
    "dimensions": (lambda: knn_kl(np.zeros((9, 2)), np.zeros((9, 3))), "2 and 3 coordinates"),
    "energy": (
        lambda: reverse_kl_to_density(Energy(lambda s: s[:, 0], 2), np.zeros((9, 2))),
        "normalise_on",
    ),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_refused(name: str) -> None:
    estimate, says = BAD_INPUT[name]
    with pytest.raises(FirlError, match=says):
        estimate()
