"""Densities integrate to one, sample what they say, and refuse what is wrong."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import PRNGKeyArray
from scipy.special import erf
from scipy.stats import chisquare, multivariate_normal

from firl.expert import (
    AbstractDensity,
    AbstractRegion,
    Box,
    CallableDensity,
    Disc,
    Energy,
    Gaussian,
    Mixture,
    Normalised,
    Truncated,
    Uniform,
    normalise_on,
)
from firl.expert.cells import Cells
from firl.expert.targets import (
    REACH,
    point_mass_gaussian,
    point_mass_uniform,
    reacher_gaussian,
    reacher_mixture,
)
from firl.types import FirlError

log_prob = eqx.filter_jit(lambda density, states: density.log_prob(states))
sample = eqx.filter_jit(lambda density, key, num: density.sample(key, num))

ARENA = Box([0.0, 0.0], [4.0, 4.0])
ARM = Disc([0.0, 0.0], REACH)
RING = Energy(lambda states: -8 * (jnp.linalg.norm(states, axis=1) - 1) ** 2 + 3, 2)
"""Not normalised: e³ too high, for one."""

CASES: dict[str, tuple[Callable[[], AbstractDensity], AbstractRegion]] = {
    "point_mass_gaussian": (point_mass_gaussian, ARENA),
    "point_mass_uniform": (point_mass_uniform, Box([0.0, 0.0], [6.0, 6.0])),
    "reacher_gaussian": (reacher_gaussian, ARM),
    "reacher_mixture": (reacher_mixture, ARM),
    "uniform_disc": (lambda: Uniform(Disc([1.0, -1.0], 0.5)), Disc([1.0, -1.0], 0.5)),
    "correlated": (
        lambda: Gaussian.with_covariance([0.5, -0.5], np.array([[1.0, 0.6], [0.6, 0.5]])),
        Box([-6.0, -6.0], [7.0, 5.0]),
    ),
    "uneven_mixture": (
        lambda: Mixture([Gaussian([0.0, 0.0], [0.3, 0.6]), Uniform(ARENA)], [3.0, 1.0]),
        Box([-4.0, -4.0], [4.0, 4.0]),
    ),
    "normalised_energy": (lambda: normalise_on(RING, ARENA), ARENA),
    "normalised_callable": (
        lambda: normalise_on(CallableDensity(lambda states: -np.sum(states**2, 1), ARM), ARM),
        ARM,
    ),
    "one_dimension": (
        lambda: Truncated(Gaussian([0.0], 1.0), Box([-1.0], [2.0])),
        Box([-1.0], [2.0]),
    ),
    "three_dimensions": (
        lambda: Truncated(Gaussian([0.0, 0.0, 0.5], 0.4), Box([-1.0] * 3, [0.5] * 3)),
        Box([-1.0] * 3, [0.5] * 3),
    ),
}


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[AbstractDensity, AbstractRegion]:
    make, region = CASES[request.param]
    return make(), region


def gauss_legendre(region: AbstractRegion) -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of a rule that shares nothing with the one that is tested.

    In six panels to an axis, at whose borders the cases above may jump.
    """
    nodes, weights = np.polynomial.legendre.leggauss({1: 200, 2: 50, 3: 8}[region.dim])
    low, high = (np.asarray(corner, float) for corner in region.bounds())
    if isinstance(region, Disc):
        center, radius = np.asarray(region.center, float), float(region.radius)
        distance, angle = (nodes + 1) / 2 * radius, np.arange(400) / 400 * 2 * np.pi
        arms = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        points = center + (distance[:, None, None] * arms).reshape(-1, 2)
        return points, np.repeat(weights * radius / 2 * distance, 400) * 2 * np.pi / 400
    panels = 8
    nodes = ((nodes + 1) / 2 + np.arange(panels)[:, None]).ravel() / panels
    weights = np.tile(weights, panels) / 2 / panels
    axes = [bottom + nodes * (top - bottom) for bottom, top in zip(low, high, strict=True)]
    points = np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
    grids = np.meshgrid(*[weights * side for side in high - low], indexing="ij")
    return points, np.prod(grids, axis=0).ravel()


def density_at(density: AbstractDensity, points: np.ndarray) -> np.ndarray:
    on_host = isinstance(density, Normalised) and isinstance(density.density, CallableDensity)
    ask = density.log_prob if on_host else eqx.Partial(log_prob, density)
    return np.exp(np.asarray(ask(jnp.asarray(points, jnp.float32)), float))


def test_integrates_to_one(case: tuple[AbstractDensity, AbstractRegion]) -> None:
    density, region = case
    points, weights = gauss_legendre(region)
    assert density.normalised
    assert np.sum(density_at(density, points) * weights) == pytest.approx(1, abs=1e-4)


def test_samples_follow_the_density(case: tuple[AbstractDensity, AbstractRegion]) -> None:
    density, region = case
    num = 20_000
    samples = sample(density, jax.random.key(1), num)
    assert samples.shape == (num, density.dim)
    assert bool(jnp.all(region.contains(samples)))
    points, weights = gauss_legendre(region)
    low, high = (np.asarray(corner, float) for corner in region.bounds())
    bins = {1: 40, 2: 8, 3: 4}[region.dim]
    ranges = list(zip(low, high, strict=True))
    masses = density_at(density, points) * weights
    expected = np.histogramdd(points, bins, ranges, weights=masses)[0].ravel() * num
    observed = np.histogramdd(np.asarray(samples), bins, ranges)[0].ravel()
    often = expected > 10
    rare = np.array([expected[~often].sum(), observed[~often].sum()]) + 1e-9
    counts = np.append(observed[often], rare[1])
    shares = np.append(expected[often], rare[0])
    assert len(counts) > 6
    assert chisquare(counts, shares / shares.sum() * counts.sum()).pvalue > 1e-3


def test_samples_do_not_repeat(case: tuple[AbstractDensity, AbstractRegion]) -> None:
    samples = np.asarray(sample(case[0], jax.random.key(2), 20_000))
    assert len(np.unique(samples, axis=0)) > 19_900


@pytest.mark.parametrize("name", ["reacher_mixture", "normalised_energy"])
def test_vmaps(name: str) -> None:
    make, region = CASES[name]
    density = make()
    states = region.sample(jax.random.key(0), 12)
    batched = jax.jit(jax.vmap(density.log_prob))(states.reshape(3, 4, -1))
    np.testing.assert_allclose(batched.ravel(), log_prob(density, states), 1e-4)
    keys = jax.random.split(jax.random.key(0), 3)
    batch = jax.jit(jax.vmap(lambda key: density.sample(key, 5)))(keys)
    np.testing.assert_allclose(batch[1], sample(density, keys[1], 5), 1e-4, 1e-6)


def test_gaussian_is_scipys(getkey: Callable[[], PRNGKeyArray]) -> None:
    covariance = np.array([[0.5, 0.2, 0.0], [0.2, 0.3, -0.1], [0.0, -0.1, 0.9]])
    mean = np.array([1.0, -2.0, 0.5])
    density = Gaussian.with_covariance(mean, covariance)
    samples = density.sample(getkey(), 100_000)
    theirs = multivariate_normal(mean, covariance).logpdf(np.asarray(samples[:100], float))
    np.testing.assert_allclose(density.log_prob(samples[:100]), theirs, atol=2e-5)
    np.testing.assert_allclose(np.mean(samples, 0), mean, atol=0.015)
    np.testing.assert_allclose(np.cov(np.asarray(samples).T), covariance, atol=0.015)


def test_mass_within_reach_has_closed_form() -> None:
    box = Box([0.0, 0.0], [4.0, 1.0])
    truncated = Truncated(Gaussian([2.0, 1.5], [0.5, 0.7]), box)

    def normal(z: float) -> float:
        return 0.5 * (1 + float(erf(z / math.sqrt(2))))

    mass = (normal(4) - normal(-4)) * (normal(-0.5 / 0.7) - normal(-1.5 / 0.7))
    assert float(jnp.exp(truncated.log_mass)) == pytest.approx(mass, rel=1e-5)


def test_most_of_the_reacher_target_is_out_of_reach() -> None:
    target = reacher_gaussian()
    assert isinstance(target, Truncated)
    free = np.asarray(target.density.sample(jax.random.key(0), 200_000))
    inside = np.mean(np.linalg.norm(free, axis=1) <= REACH)
    assert float(jnp.exp(target.log_mass)) == pytest.approx(inside, abs=0.004)
    assert 0.4 < inside < 0.5


def test_edge_of_the_region_counts_as_inside() -> None:
    angle = jnp.linspace(0, 6.28, 1000)
    fingertip = REACH * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)
    assert bool(jnp.all(ARM.contains(fingertip)))
    assert not bool(jnp.any(ARM.contains(fingertip * 1.0001)))
    corners = jnp.asarray([[0.0, 0.0], [4.0, 4.0], [0.0, 4.0]])
    assert bool(jnp.all(ARENA.contains(corners)))
    assert not bool(jnp.any(ARENA.contains(jnp.asarray([[4.001, 2.0], [2.0, -0.001]]))))


def test_density_is_zero_out_of_reach() -> None:
    outside = jnp.asarray([[-0.25, 0.0], [0.3, 0.3]])
    for density in (reacher_gaussian(), normalise_on(RING, ARM), Uniform(ARM)):
        assert np.all(np.asarray(density.log_prob(outside)) == -np.inf)


def test_grid_covers_the_region_with_equal_cells() -> None:
    for region, exact in ((ARENA, 16.0), (ARM, math.pi * REACH**2)):
        points, cell = region.grid(50)
        assert points.shape == (2500, 2)
        assert float(cell) * 2500 == pytest.approx(exact, rel=1e-5)
        assert bool(jnp.all(region.contains(points)))
        second_moment = float(jnp.sum((points - points.mean(0)[None]) ** 2) * cell)
        truth = 2 * 16 * 4**2 / 12 if isinstance(region, Box) else math.pi / 2 * REACH**4
        assert second_moment == pytest.approx(truth, rel=1e-3)


def test_cells_without_mass_are_never_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the draws at which rounding would show: the first, the last, and those at a border."""
    draws = np.array([0, 2**30 - 1, 2**30, 2**31 - 1], np.uint32) * 2 + 1
    monkeypatch.setattr(jax.random, "bits", lambda *_: jnp.asarray(draws))
    cells = Cells(np.array([0.0, 3.0, 0.0, 3.0, 0.0]))
    assert cells.sample(jax.random.key(0), 4).tolist() == [1, 1, 3, 3]


def test_constant_in_an_energy_does_not_matter() -> None:
    shifted = Energy(lambda states: RING.function(states) + 40, 2)
    states = ARENA.sample(jax.random.key(0), 50)
    ours, theirs = normalise_on(RING, ARENA), normalise_on(shifted, ARENA)
    np.testing.assert_allclose(ours.log_prob(states), theirs.log_prob(states), atol=1e-4)
    assert not RING.normalised


def good(states: np.ndarray) -> np.ndarray:
    return -np.sum(states**2, axis=1)


def nan_in_a_corner(states: np.ndarray) -> np.ndarray:
    return np.where(states[:, 0] > 3.5, np.nan, good(states))


def fails(states: np.ndarray) -> np.ndarray:
    return states @ np.ones(3)


BAD_INPUT: dict[str, tuple[Callable[[], object], str]] = {
    "wrong shape": (lambda: CallableDensity(lambda s: s, ARENA), "one log-density per state"),
    "wrong number": (lambda: CallableDensity(lambda s: good(s)[:5], ARENA), r"got \(5,\)"),
    "summed": (lambda: CallableDensity(lambda s: good(s).sum(), ARENA), r"got \(\)"),
    "NaN": (lambda: CallableDensity(nan_in_a_corner, ARENA), "returned nan for the state"),
    "plus infinity": (lambda: CallableDensity(lambda s: good(s) + np.inf, ARENA), "returned inf"),
    "nowhere finite": (
        lambda: CallableDensity(lambda s: np.where(s[:, 0] > 9, 0.0, -np.inf), ARENA),
        "−inf at all of",
    ),
    "wrong dimension": (lambda: CallableDensity(fails, ARENA), "failed on states of shape"),
    "sampling a callable": (
        lambda: CallableDensity(good, ARENA).sample(jax.random.key(0), 1),
        "normalise_on",
    ),
    "sampling an energy": (lambda: RING.sample(jax.random.key(0), 1), "normalise_on"),
    "energy shape": (
        lambda: Energy(lambda s: s, 2).log_prob(jnp.zeros((3, 2))),
        "one log-density per state",
    ),
    "truncated energy": (lambda: Truncated(RING, ARENA), "normalise_on"),
    "mixed energy": (lambda: Mixture([RING, RING], [1, 1]), "normalise_on"),
    "mixed dimensions": (
        lambda: Mixture([Gaussian([0.0], 1.0), Uniform(ARENA)], [1, 1]),
        "same number of coordinates",
    ),
    "weights": (lambda: Mixture([Uniform(ARENA)], [0.0]), "positive weights"),
    "far away": (lambda: Truncated(Gaussian([50.0, 0.0], 1.0), ARENA), "units"),
    "too narrow": (lambda: Truncated(Gaussian([2.0, 2.0], 1e-4), ARENA), "too narrow"),
    "energy nowhere finite": (
        lambda: normalise_on(Energy(lambda s: s[:, 0] * 0 - jnp.inf, 2), ARENA),
        "zero",
    ),
    "energy NaN": (lambda: normalise_on(Energy(lambda s: jnp.log(s[:, 0] - 2), 2), ARENA), "NaN"),
    "dimensions": (lambda: Truncated(Gaussian([0.0] * 3, 1.0), ARENA), "3 coordinates"),
    "four dimensions": (
        lambda: normalise_on(Gaussian([0.0] * 4, 1.0), Box([-1.0] * 4, [1.0] * 4)),
        "at most 3",
    ),
    "std": (lambda: Gaussian([0.0, 0.0], [1.0, -1.0]), "positive std"),
    "std length": (lambda: Gaussian([0.0, 0.0], [1.0, 1.0, 1.0]), "positive std"),
    "mean": (lambda: Gaussian([math.nan, 0.0], 1.0), "finite mean"),
    "covariance": (
        lambda: Gaussian.with_covariance([0.0, 0.0], np.array([[1.0, 2.0], [2.0, 1.0]])),
        "positive definite",
    ),
    "box": (lambda: Box([0.0, 1.0], [1.0, 1.0]), "low < high"),
    "disc": (lambda: Disc([0.0, 0.0], 0.0), "positive radius"),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_refused_in_one_sentence(name: str) -> None:
    make, says = BAD_INPUT[name]
    with pytest.raises(FirlError, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_callable_is_checked_at_every_call() -> None:
    density = CallableDensity(nan_in_a_corner, Box([0.0, 0.0], [3.0, 3.0]))
    assert density.log_prob(jnp.asarray([[1.0, 2.0]])).tolist() == [-5.0]
    with pytest.raises(FirlError, match=r"returned nan for the state \[3.75, 0.0\]"):
        density.log_prob(jnp.asarray([[1.0, 2.0], [3.75, 0.0]]))
