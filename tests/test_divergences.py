"""f and h_f against closed forms, automatic differentiation and the limits of float32."""

import re
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from firl.divergences import (
    DIVERGENCES,
    AbstractDivergence,
    ChiSquared,
    ForwardKL,
    JensenShannon,
    ReverseKL,
    TotalVariation,
    divergence_between,
)
from firl.errors import FirlError
from firl.generator import Generator

RATIO_FORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "fkl": lambda u: u * np.log(u),
    "rkl": lambda u: -np.log(u),
    "js": lambda u: u * np.log(u) - (1 + u) * np.log((1 + u) / 2),
    "tv": lambda u: np.abs(u - 1) / 2,
    "hellinger": lambda u: (np.sqrt(u) - 1) ** 2,
    "chi2": lambda u: (u - 1) ** 2,
    "chi2-neyman": lambda u: (u - 1) ** 2 / u,
}
"""f(u) as tables print them."""

H_FORMS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "fkl": lambda u: -u,
    "rkl": lambda u: 1 - np.log(u),
    "js": lambda u: np.log(2) - np.log(1 + u),
    "tv": lambda u: -np.sign(u - 1) / 2,
    "hellinger": lambda u: 1 - np.sqrt(u),
    "chi2": lambda u: 1 - u**2,
    "chi2-neyman": lambda u: 2 / u - 2,
}

SUMMANDS: dict[str, Callable[[Array, Array], Array]] = {
    "fkl": lambda p, q: p * jnp.log(p / q),
    "rkl": lambda p, q: q * jnp.log(q / p),
    "js": lambda p, q: p * jnp.log(2 * p / (p + q)) + q * jnp.log(2 * q / (p + q)),
    "tv": lambda p, q: jnp.abs(p - q) / 2,
    "hellinger": lambda p, q: (jnp.sqrt(p) - jnp.sqrt(q)) ** 2,
    "chi2": lambda p, q: (p - q) ** 2 / q,
    "chi2-neyman": lambda p, q: (p - q) ** 2 / p,
}
"""q f(p/q) as a user would write it."""

FLOAT32_MAX = float(np.finfo(np.float32).max)
OVERFLOW = {"chi2": 44.0}
"""Where the mathematical value of f or h leaves float32 before a log-ratio of 80."""

each_divergence = pytest.mark.parametrize("divergence", DIVERGENCES.values(), ids=DIVERGENCES)


@pytest.fixture
def float64():
    with jax.enable_x64(True):
        yield


def test_ids() -> None:
    assert list(DIVERGENCES) == ["fkl", "rkl", "js", "tv", "hellinger", "chi2", "chi2-neyman"]
    for name, divergence in DIVERGENCES.items():
        assert divergence.name == name
        assert "\n" not in divergence.description
        assert 20 < len(divergence.description) < 100


@each_divergence
@pytest.mark.usefixtures("float64")
def test_f_and_h_are_the_tables(divergence: AbstractDivergence) -> None:
    log_ratio = np.linspace(-12, 12, 481)
    ratio = np.exp(log_ratio)
    f, h = divergence.f(jnp.asarray(log_ratio)), divergence.h(jnp.asarray(log_ratio))
    np.testing.assert_allclose(f, RATIO_FORMS[divergence.name](ratio), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(h, H_FORMS[divergence.name](ratio), rtol=1e-9, atol=1e-9)


@each_divergence
@pytest.mark.usefixtures("float64")
def test_h_is_f_less_u_times_its_derivative(divergence: AbstractDivergence) -> None:
    log_ratio = jnp.linspace(-12, 12, 480)  # even: u = 1, where |u − 1| has no derivative, is out
    value, slope = jax.jvp(divergence.f, (log_ratio,), (jnp.ones_like(log_ratio),))
    scale = 1 + np.abs(value)
    np.testing.assert_array_less(np.abs(value - slope - divergence.h(log_ratio)) / scale, 1e-13)


@each_divergence
@pytest.mark.usefixtures("float64")
def test_f_is_zero_at_one_and_convex(divergence: AbstractDivergence) -> None:
    assert abs(float(divergence.f(jnp.zeros(())))) < 1e-15
    ratio = np.geomspace(1e-4, 1e4, 200)
    left, right = ratio[:, None], ratio[None]
    for weight in (0.1, 0.5, 0.8):
        between = divergence.f(jnp.log(weight * left + (1 - weight) * right))
        chord = weight * divergence.f(jnp.log(left)) + (1 - weight) * divergence.f(jnp.log(right))
        assert np.all(np.asarray(between) <= np.asarray(chord) + 1e-12 * (1 + np.abs(chord)))


@each_divergence
def test_h_never_rises(divergence: AbstractDivergence) -> None:
    h = np.asarray(divergence.h(jnp.linspace(-80, 80, 4001)), np.float64)
    assert np.all(np.diff(h) <= 0)
    assert h[-1] < h[0]


@each_divergence
def test_float32_keeps_its_digits_to_eighty(divergence: AbstractDivergence) -> None:
    log_ratio = np.linspace(-80, 80, 641, dtype=np.float32)
    exact = H_FORMS[divergence.name](np.exp(log_ratio.astype(np.float64)))
    f, h = divergence.f(jnp.asarray(log_ratio)), divergence.h(jnp.asarray(log_ratio))
    assert np.all(np.isfinite(f))
    assert np.all(np.isfinite(h))
    inside = log_ratio <= OVERFLOW.get(divergence.name, 80.0)
    np.testing.assert_allclose(h[inside], exact[inside], rtol=2e-5, atol=2e-6)
    f_exact = _exact_f(divergence.name, log_ratio.astype(np.float64))
    np.testing.assert_allclose(f[inside], f_exact[inside], rtol=2e-5, atol=2e-6)


def _exact_f(name: str, log_ratio: np.ndarray) -> np.ndarray:
    """f in float64; JS and its like cancel in u even there, so it goes by the summand at p + q."""
    p, q = np.exp(np.minimum(log_ratio, 0)), np.exp(-np.maximum(log_ratio, 0))
    if name == "js":
        return (p * np.log(2 * p / (p + q)) + q * np.log(2 * q / (p + q))) / q
    return RATIO_FORMS[name](p / q)


def test_chi_squared_saturates_at_the_largest_float() -> None:
    beyond = jnp.array([44.5, 60.0, 80.0])
    np.testing.assert_array_equal(ChiSquared().f(beyond), np.full(3, FLOAT32_MAX, np.float32))
    np.testing.assert_array_equal(ChiSquared().h(beyond), np.full(3, -FLOAT32_MAX, np.float32))
    assert abs(float(ChiSquared().h(jnp.asarray(44.3)))) < FLOAT32_MAX


@each_divergence
def test_infinite_log_ratios_are_finite_and_nan_stays(divergence: AbstractDivergence) -> None:
    infinite = jnp.array([-jnp.inf, jnp.inf])
    assert np.all(np.isfinite(divergence.f(infinite)))
    assert np.all(np.isfinite(divergence.h(infinite)))
    assert np.isnan(divergence.f(jnp.asarray(jnp.nan)))
    assert np.isnan(divergence.h(jnp.asarray(jnp.nan)))


def test_the_expert_may_avoid_a_state() -> None:
    """At u = 0, where a truncated target leaves the agent: f(0) and h(0) = f(0)."""
    nowhere = jnp.asarray(-jnp.inf)
    for divergence, value in ((ForwardKL(), 0.0), (JensenShannon(), np.log(2)), (ChiSquared(), 1)):
        np.testing.assert_allclose(divergence.f(nowhere), value, rtol=1e-6)
        np.testing.assert_allclose(divergence.h(nowhere), value, rtol=1e-6)


def test_total_variation_at_its_kink() -> None:
    assert float(TotalVariation().h(jnp.zeros(()))) == 0.0


@each_divergence
def test_any_shape(divergence: AbstractDivergence) -> None:
    for shape in ((), (3,), (2, 3), (2, 3, 4)):
        assert divergence.f(jnp.ones(shape)).shape == shape
        assert divergence.h(jnp.ones(shape)).shape == shape


def test_only_reverse_kl_takes_an_energy() -> None:
    """Adding a constant to log ρ_E adds a constant to h, and only to that one's."""
    log_ratio = jnp.linspace(-3, 3, 50)
    for divergence in (*DIVERGENCES.values(), *map(Generator, SUMMANDS.values())):
        moved = np.asarray(divergence.h(log_ratio + 1) - divergence.h(log_ratio))
        assert divergence.requires_normalised == (np.ptp(moved) > 1e-4)
    assert [d.name for d in DIVERGENCES.values() if not d.requires_normalised] == ["rkl"]


@pytest.mark.parametrize("name", SUMMANDS)
def test_a_generator_is_the_closed_form(name: str) -> None:
    generator, ours = Generator(SUMMANDS[name]), DIVERGENCES[name]
    log_ratio = jnp.linspace(-80, 80, 1601)
    log_ratio = log_ratio[jnp.abs(log_ratio) > 1e-3]
    inside = log_ratio <= OVERFLOW.get(name, 80.0)
    for theirs, closed in (
        (generator.f(log_ratio), ours.f(log_ratio)),
        (generator.h(log_ratio), ours.h(log_ratio)),
    ):
        assert np.all(np.isfinite(theirs))
        np.testing.assert_allclose(theirs[inside], closed[inside], rtol=1e-5, atol=2e-6)
    with jax.enable_x64(True):
        generator = Generator(SUMMANDS[name])
        log_ratio = jnp.linspace(-20, 20, 400)
        np.testing.assert_allclose(generator.h(log_ratio), ours.h(log_ratio), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(generator.f(log_ratio), ours.f(log_ratio), rtol=1e-9, atol=1e-9)


def test_a_generator_may_overflow_and_stays_finite() -> None:
    """χ² written with the quotient meets ∞ − ∞ on its way; its sign is known all the same."""
    generator = Generator(lambda p, q: q * (p / q - 1) ** 2)
    h = generator.h(jnp.array([20.0, 60.0, 80.0, jnp.inf]))
    np.testing.assert_allclose(h[0], -np.exp(40.0), rtol=1e-5)
    np.testing.assert_array_equal(h[1:], np.full(3, -FLOAT32_MAX, np.float32))
    assert np.isnan(generator.h(jnp.asarray(jnp.nan)))


def test_a_generator_works_under_transformations() -> None:
    generator = Generator(SUMMANDS["hellinger"], name="mine")
    log_ratio = jnp.linspace(-2, 2, 12).reshape(3, 4)
    np.testing.assert_allclose(
        jax.jit(jax.vmap(generator.h))(log_ratio), generator.h(log_ratio), rtol=1e-6
    )
    made_inside = jax.jit(lambda x: Generator(SUMMANDS["hellinger"]).h(x))(log_ratio)
    np.testing.assert_allclose(made_inside, generator.h(log_ratio), rtol=1e-6)
    assert generator.name == "mine"


@pytest.mark.parametrize(
    ("summand", "complaint"),
    [
        (lambda p, q: p * jnp.log(p / q) + q, r"is 1 at p = q = 1, where it must be 0"),
        (lambda p, q: (p - q) ** 2, r"goes from 0\.25 to 1 when p and q double"),
        (lambda p, q: q * jnp.log(p / q), r"rising at log-ratio"),
        (lambda p, q: jnp.sqrt(q - p), r"goes from nan|NaN"),
        (lambda p, q: q * (jnp.sqrt(p / q) - 1) ** 2, r"lost to rounding, so write q f\(p/q\)"),
        (lambda p, q: q * jnp.abs(p / q - 1) / 2, r"lost to rounding, so write q f\(p/q\)"),
    ],
    ids=["not-zero", "not-homogeneous", "concave", "nan", "rounded-hellinger", "rounded-tv"],
)
def test_a_wrong_generator_is_refused(
    summand: Callable[[Array, Array], Array], complaint: str
) -> None:
    with pytest.raises(FirlError, match=complaint) as error:
        Generator(summand, name="mine")
    assert "'mine'" in str(error.value)
    assert str(error.value).count("\n") == 0


@pytest.mark.parametrize("name", SUMMANDS)
@pytest.mark.usefixtures("float64")
def test_the_divergence_between_two_distributions(name: str) -> None:
    generator = np.random.default_rng(0)
    p, q = generator.dirichlet(np.ones(6)), generator.dirichlet(np.ones(6))
    ours = divergence_between(DIVERGENCES[name], jnp.log(p), jnp.log(q))
    np.testing.assert_allclose(ours, np.sum(SUMMANDS[name](p, q)), rtol=1e-12)
    same = divergence_between(DIVERGENCES[name], jnp.log(p), jnp.log(p))
    assert abs(float(same)) < 1e-15 < float(ours)


def test_divergences_of_two_coins() -> None:
    """By hand: p = (½, ½), q = (¼, ¾)."""
    log_p, log_q = jnp.log(jnp.array([0.5, 0.5])), jnp.log(jnp.array([0.25, 0.75]))
    by_hand = {
        "fkl": 0.5 * np.log(4 / 3),
        "rkl": 0.25 * np.log(1 / 2) + 0.75 * np.log(3 / 2),
        "js": 0.5 * np.log(4 / 3)
        + 0.5 * np.log(4 / 5)
        + 0.25 * np.log(2 / 3)
        + 0.75 * np.log(6 / 5),
        "tv": 1 / 4,
        "hellinger": 2 - 2 * (np.sqrt(1 / 8) + np.sqrt(3 / 8)),
        "chi2": 1 / 3,
        "chi2-neyman": 1 / 4,
    }
    for name, value in by_hand.items():
        ours = divergence_between(DIVERGENCES[name], log_p, log_q)
        np.testing.assert_allclose(ours, value, rtol=1e-5, err_msg=name)


def test_zeros_in_distributions() -> None:
    with np.errstate(divide="ignore"):
        log_p, log_q = np.log(np.float32([0.5, 0.5, 0])), np.log(np.float32([1, 0, 0]))
        log_both = np.log(np.float32([0.25, 0.75, 0]))

    def between(p: np.ndarray, q: np.ndarray) -> float:
        return float(divergence_between(TotalVariation(), jnp.array(p), jnp.array(q)))

    assert between(log_p, log_both) == pytest.approx(0.25)
    assert between(log_q, log_p) == pytest.approx(0.5)
    assert np.isnan(between(log_p, log_q))


def test_reverse_kl_keeps_a_huge_log_ratio() -> None:
    np.testing.assert_allclose(ReverseKL().h(jnp.array([-1e6, 1e6])), [1e6 + 1, 1 - 1e6])


PAGE = Path(__file__).parents[1] / "docs" / "add-a-divergence.md"


def test_the_page_runs() -> None:
    """Every block of docs/add-a-divergence.md, one after the other as a reader would."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(blocks) >= 3
    names: dict[str, object] = {}
    known = dict(DIVERGENCES)
    try:
        for block in blocks:
            exec(compile(block, str(PAGE), "exec"), names)
        tests = [value for name, value in names.items() if name.startswith("test_")]
        assert tests
        for test in tests:
            assert callable(test)
            test()
    finally:
        DIVERGENCES.clear()
        DIVERGENCES.update(known)
