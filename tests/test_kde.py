"""The kernel density estimate is scikit-learn's, finite everywhere, and fast."""

import math
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import neighbors

from firl.expert import CallableDensity, Disc, Gaussian, Truncated, Uniform
from firl.log_ratio import (
    AbstractKernel,
    DensityLogRatio,
    Epanechnikov,
    GaussianKernel,
    KernelDensity,
    kde,
    scott_bandwidth,
)
from firl.types import FirlError

KERNELS = {"epanechnikov": Epanechnikov(), "gaussian": GaussianKernel()}


def clipped_walk(num: int, dim: int, seed: int) -> np.ndarray:
    """Clipped, so that some states repeat, as a point mass at a wall."""
    return np.random.default_rng(seed).normal(2, 1, (num, dim)).clip(0, 4).astype(np.float32)


def sklearn_log_prob(
    points: np.ndarray, queries: np.ndarray, bandwidth: float, kernel: str
) -> np.ndarray:
    theirs = neighbors.KernelDensity(kernel=kernel, bandwidth=bandwidth, rtol=0).fit(points)
    return np.asarray(theirs.score_samples(queries))


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(("dim", "bandwidth"), [(1, 0.02), (1, 0.2), (2, 0.2), (3, 0.5)])
def test_agrees_with_scikit_learn(kernel: str, dim: int, bandwidth: float) -> None:
    points, queries = clipped_walk(3000, dim, 0), clipped_walk(500, dim, 1)
    ours = KernelDensity(jnp.asarray(points), bandwidth, KERNELS[kernel])
    theirs = sklearn_log_prob(points, queries, bandwidth, kernel)
    floor = ours.log_prob(jnp.full((1, dim), 1e6))[0]
    higher = theirs > floor + 1e-4
    assert higher.sum() > 400
    np.testing.assert_allclose(
        np.asarray(ours.log_prob(jnp.asarray(queries)))[higher], theirs[higher], rtol=0, atol=1e-5
    )


def test_gaussian_tails_agree_with_a_lower_floor() -> None:
    points, queries = clipped_walk(1000, 2, 0), np.float32([[5.0, 5.0], [6.0, 2.0], [-1.0, -1.5]])
    ours = KernelDensity(jnp.asarray(points), 0.3, GaussianKernel(), floor=1e-30)
    theirs = sklearn_log_prob(points, queries, 0.3, "gaussian")
    assert theirs.min() < -20
    np.testing.assert_allclose(ours.log_prob(jnp.asarray(queries)), theirs, rtol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_sums_of_many_equal_summands_stay_accurate(kernel: str) -> None:
    points, query = jnp.zeros((30_000, 2)), jnp.asarray([[0.1, 0.05]])
    ours = KernelDensity(points, 0.2, KERNELS[kernel]).log_prob(query)
    theirs = sklearn_log_prob(np.zeros((1, 2)), np.asarray(query), 0.2, kernel)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_each_point_is_estimated_from_the_others(kernel: str) -> None:
    points = clipped_walk(200, 2, 0)
    ours = KernelDensity(jnp.asarray(points), 0.3, KERNELS[kernel])
    theirs = [
        sklearn_log_prob(np.delete(points, i, axis=0), points[i : i + 1], 0.3, kernel)[0]
        for i in range(200)
    ]
    estimates = np.asarray(ours.log_prob_at_points())
    higher = np.array(theirs) > estimates.min() + 1e-4
    assert 150 < higher.sum() < 200
    np.testing.assert_allclose(estimates[higher], np.array(theirs)[higher], rtol=0, atol=1e-5)
    assert np.mean(ours.log_prob(ours.points)) > np.mean(estimates) + 0.1


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("floor", [0.5, 0.01])
def test_where_there_is_nothing_the_estimate_is_its_floor(kernel: str, floor: float) -> None:
    points = jnp.asarray([[0.0, 0.0], [0.1, 0.0], [3.0, 3.0]])
    ours = KernelDensity(points, 0.2, KERNELS[kernel], floor=floor)
    far = jnp.asarray([[100.0, 0.0], [-7.0, 1e9]])
    assert sklearn_log_prob(np.asarray(points), np.asarray(far), 0.2, "epanechnikov")[0] == -np.inf
    log_integral = KERNELS[kernel].log_integral(2) + 2 * math.log(0.2)
    np.testing.assert_allclose(ours.log_prob(far), math.log(floor / 3) - log_integral, atol=1e-5)
    own = np.asarray(ours.log_prob_at_points())
    assert own[2] == pytest.approx(math.log(floor / 2) - log_integral, abs=1e-5)
    assert own[0] > own[2]


def test_nan_is_not_hidden_by_the_floor() -> None:
    ours = KernelDensity(jnp.zeros((5, 2)), 0.2, Epanechnikov())
    assert jnp.isnan(ours.log_prob(jnp.asarray([[jnp.nan, 0.0]]))[0])
    assert jnp.isnan(
        KernelDensity(ours.points * jnp.nan, 0.2, Epanechnikov()).log_prob_at_points()
    )[0]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_kernels_integrate_to_what_they_say(kernel: str, dim: int) -> None:
    distance = np.linspace(0, 12, 200_001)
    heights = np.asarray(KERNELS[kernel].height(jnp.asarray(distance**2)), float)
    sphere = {1: 2.0, 2: 2 * math.pi, 3: 4 * math.pi}[dim] * distance ** (dim - 1)
    integral = np.trapezoid(heights * sphere, distance)
    second = np.trapezoid(heights * sphere * distance**2, distance) / integral / dim
    assert math.log(integral) == pytest.approx(KERNELS[kernel].log_integral(dim), abs=1e-5)
    assert math.sqrt(second) == pytest.approx(KERNELS[kernel].std(dim), rel=1e-4)
    assert heights[0] == 1


@pytest.mark.parametrize("kernel", KERNELS)
def test_scotts_rule_recovers_a_gaussian(kernel: str) -> None:
    target = Gaussian([0.0, 0.0], 3.0)
    points, queries = (target.sample(jax.random.key(i), 5000) for i in (0, 1))
    bandwidth = scott_bandwidth(points, KERNELS[kernel])
    ours = KernelDensity(points, bandwidth, KERNELS[kernel]).log_prob(queries)
    assert float(jnp.mean(target.log_prob(queries) - ours)) < 0.02
    assert scott_bandwidth(points * 7, KERNELS[kernel]) == pytest.approx(7 * bandwidth, rel=1e-4)


def test_compiles_once_per_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    traced = []
    original = KernelDensity._sum_heights

    def counted(self: KernelDensity, queries: jax.Array) -> jax.Array:
        traced.append(queries.shape)
        return original(self, queries)

    monkeypatch.setattr(KernelDensity, "_sum_heights", counted)
    for bandwidth, shift in ((0.2, 0.0), (0.1, 1.0), (0.3, 2.0)):
        ours = KernelDensity(jnp.ones((77, 2)) * shift, bandwidth, Epanechnikov())
        ours.log_prob(jnp.zeros((33, 2)))
        ours.log_prob(jnp.zeros((34, 2)))
    assert traced == [(33, 2), (34, 2)]


@pytest.mark.parametrize(("kernel", "seconds"), [("epanechnikov", 1.0), ("gaussian", 4.0)])
def test_thirty_thousand_by_thirty_thousand_is_fast(kernel: str, seconds: float) -> None:
    """0.1 s and 0.45 s of one core; the limits leave room for a busy machine."""
    points, queries = (jnp.asarray(clipped_walk(30_000, 2, seed)) for seed in (0, 1))
    ours = KernelDensity(points, 0.2, KERNELS[kernel])
    ours.log_prob(queries).block_until_ready()
    start = time.process_time()
    ours.log_prob(queries).block_until_ready()
    assert time.process_time() - start < seconds


def test_log_ratio_is_expert_minus_agent_and_close_to_the_truth() -> None:
    expert, agent = Gaussian([0.5, 0.0], 0.6), Gaussian([0.0, 0.0], 0.7)
    points = agent.sample(jax.random.key(0), 20_000)
    ratio = DensityLogRatio(expert, KernelDensity(points, 0.2, Epanechnikov()))
    queries = agent.sample(jax.random.key(1), 1000)
    truth = expert.log_prob(queries) - agent.log_prob(queries)
    assert float(jnp.mean(jnp.abs(ratio(queries) - truth))) < 0.15
    np.testing.assert_allclose(
        ratio(queries), expert.log_prob(queries) - ratio.agent.log_prob(queries), rtol=1e-5
    )
    own = ratio.at_agent_points()
    np.testing.assert_allclose(
        own, expert.log_prob(points) - ratio.agent.log_prob_at_points(), rtol=1e-5
    )
    assert bool(jnp.all(own >= ratio(points) - 1e-3))


def test_log_ratio_is_bounded_where_the_expert_never_is() -> None:
    disc = Disc([0.0, 0.0], 1.0)
    agent = KernelDensity(jnp.asarray([[2.0, 0.0], [0.0, 0.0]]), 0.2, Epanechnikov())
    ratio = DensityLogRatio(Uniform(disc), agent)
    values = ratio(jnp.asarray([[2.0, 0.0], [0.0, 0.0], [0.9, 0.0]]))
    assert values[0] == -80
    assert bool(jnp.all(jnp.isfinite(values)))
    assert bool(jnp.all(jnp.isfinite(ratio.at_agent_points())))
    assert DensityLogRatio(Uniform(disc), agent, limit=20.0)(jnp.asarray([[2.0, 0.0]]))[0] == -20


def test_log_ratio_takes_a_users_callable_and_a_trace() -> None:
    disc = Disc([0.0, 0.0], 1.0)
    agent = KernelDensity(disc.sample(jax.random.key(0), 300), 0.2, Epanechnikov())
    by_hand = CallableDensity(lambda states: -np.sum(states**2, axis=1) / 0.5, disc)
    known = Truncated(Gaussian([0.0, 0.0], 0.5), disc)
    states = disc.sample(jax.random.key(1), 50)
    ratio = DensityLogRatio(known, agent)
    difference = DensityLogRatio(by_hand, agent)(states) - ratio(states)
    np.testing.assert_allclose(difference, difference[0], atol=1e-4)
    traced = jax.jit(lambda fitted, at: fitted(at))(ratio, states)
    np.testing.assert_allclose(traced, ratio(states), rtol=1e-5)


def test_bad_input_is_refused() -> None:
    points = jnp.zeros((5, 2))
    with pytest.raises(FirlError, match="bandwidth"):
        KernelDensity(points, 0.0, Epanechnikov())
    with pytest.raises(FirlError, match="bandwidth"):
        KernelDensity(points, math.nan, Epanechnikov())
    with pytest.raises(FirlError, match="floor"):
        KernelDensity(points, 0.2, Epanechnikov(), floor=0.0)
    with pytest.raises(FirlError, match="all the same"):
        scott_bandwidth(points, Epanechnikov())


def test_papers_bandwidths() -> None:
    assert (kde.POINT_MASS_BANDWIDTH, kde.REACHER_BANDWIDTH) == (0.2, 0.02)
    assert all(isinstance(kernel, AbstractKernel) for kernel in KERNELS.values())
