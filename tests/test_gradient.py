"""The covariance gradient against NumPy, against all samples there are, and against overflow."""

import itertools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from firl.divergences import ChiSquared
from firl.errors import FirlError
from firl.gradient import covariance_loss, exact_covariance_loss, mixture_loss

NUM, HORIZON, FEATURES = 7, 5, 3


@pytest.fixture
def float64():
    with jax.enable_x64(True):
        yield


def batch(*, num: int = NUM, seed: int = 0) -> tuple[jax.Array, jax.Array]:
    """h and the features of each state; a linear reward's gradient is the features."""
    generator = np.random.default_rng(seed)
    h = generator.normal(size=(num, HORIZON))
    features = generator.normal(size=(num, HORIZON, FEATURES)) + h[..., None]
    return jnp.asarray(h, float), jnp.asarray(features, float)


def covariance(h: np.ndarray, features: np.ndarray, *, ddof: int = 0) -> np.ndarray:
    """cov(Σ_t h, Σ_t ∇r)/T as NumPy computes it."""
    h_sum, feature_sum = np.sum(h, axis=1), np.sum(features, axis=1)
    return np.array(
        [np.cov(h_sum, column, ddof=ddof)[0, 1] / h.shape[1] for column in feature_sum.T]
    )


PARAMETERS = np.array([0.3, -1.2, 0.7])


def gradient_of(loss: Callable[[jax.Array], jax.Array]) -> np.ndarray:
    """In the reward's parameters."""
    return np.asarray(jax.jit(jax.grad(loss))(jnp.asarray(PARAMETERS, float)))


@pytest.mark.usefixtures("float64")
def test_the_gradient_is_the_sample_covariance() -> None:
    h, features = batch()
    for ddof in (0, 1):
        gradient = gradient_of(
            lambda w, ddof=ddof: covariance_loss(h, features @ w, temperature=0.2, ddof=ddof)
        )
        np.testing.assert_allclose(gradient, covariance(h, features, ddof=ddof) / 0.2, rtol=1e-12)
    default = gradient_of(lambda w: covariance_loss(h, features @ w))
    np.testing.assert_allclose(default, covariance(h, features, ddof=1), rtol=1e-12)


@pytest.mark.usefixtures("float64")
def test_the_value_is_the_covariance_with_the_rewards() -> None:
    h, features = batch()
    value = covariance_loss(h, features @ jnp.asarray(PARAMETERS))
    np.testing.assert_allclose(value, covariance(h, features, ddof=1) @ PARAMETERS, rtol=1e-12)


@pytest.mark.usefixtures("float64")
def test_h_is_held_constant() -> None:
    """Also when h and the reward share parameters, as with a ratio that is fitted to r."""
    h, features = batch()
    rewards = features @ jnp.asarray(PARAMETERS)
    losses = (
        lambda w: covariance_loss(h * w[0], rewards),
        lambda w: exact_covariance_loss(h * w[0], rewards, jnp.full(NUM, 1 / NUM)),
        lambda w: mixture_loss(h * w[0], rewards, h * w[1], rewards),
    )
    for loss in losses:
        assert loss(jnp.asarray(PARAMETERS)) != 0
        np.testing.assert_array_equal(gradient_of(loss), np.zeros(3))


@pytest.mark.usefixtures("float64")
def test_the_exact_version_takes_probabilities() -> None:
    h, features = batch()
    weights = jnp.asarray(np.random.default_rng(1).dirichlet(np.ones(NUM)))
    gradient = gradient_of(
        lambda w: exact_covariance_loss(h, features @ w, weights, temperature=0.5)
    )
    h_sum, feature_sum = np.sum(h, axis=1), np.sum(features, axis=1)
    by_hand = [np.cov(h_sum, f, aweights=weights, ddof=0)[0, 1] for f in feature_sum.T]
    np.testing.assert_allclose(gradient, np.array(by_hand) / HORIZON / 0.5, rtol=1e-11)
    uniform = exact_covariance_loss(h, features[..., 0], jnp.full(NUM, 1 / NUM))
    np.testing.assert_allclose(uniform, covariance_loss(h, features[..., 0], ddof=0), rtol=1e-12)


@pytest.mark.usefixtures("float64")
def test_unbiased_over_every_sample_there_is() -> None:
    """All 4³ samples of three out of four equally likely trajectories: no statistics needed."""
    h, features = batch(num=4)
    rewards = features[..., 0]
    draws = jnp.array(list(itertools.product(range(4), repeat=3)))
    estimates = {
        ddof: jnp.mean(
            jax.jit(jax.vmap(lambda i, d=ddof: covariance_loss(h[i], rewards[i], ddof=d)))(draws)
        )
        for ddof in (0, 1)
    }
    exact = exact_covariance_loss(h, rewards, jnp.full(4, 1 / 4))
    np.testing.assert_allclose(estimates[1], exact, rtol=1e-12)
    np.testing.assert_allclose(estimates[0], exact * 2 / 3, rtol=1e-12)


@pytest.mark.usefixtures("float64")
def test_the_mixture_is_eq_6() -> None:
    """With unequal counts: each side weighs ½ however many trajectories it has."""
    (h_a, f_a), (h_e, f_e) = batch(num=5), batch(num=2, seed=1)
    h_e, f_e = h_e - 1.5, f_e + 0.8
    gradient = gradient_of(
        lambda w: mixture_loss(
            h_a, f_a @ w, h_e, f_e @ w, temperature=0.3, agent_ddof=0, expert_ddof=0
        )
    )
    weights = jnp.array([0.5 / 5] * 5 + [0.5 / 2] * 2)
    definition = gradient_of(
        lambda w: exact_covariance_loss(
            jnp.concatenate([h_a, h_e]), jnp.concatenate([f_a, f_e]) @ w, weights, temperature=0.3
        )
    )
    np.testing.assert_allclose(gradient, definition, rtol=1e-12)
    pooled = gradient_of(
        lambda w: covariance_loss(
            jnp.concatenate([h_a, h_e]), jnp.concatenate([f_a, f_e]) @ w, temperature=0.3, ddof=0
        )
    )
    assert np.max(np.abs(pooled - definition)) > 0.1 * np.max(np.abs(definition))


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("expert_sampled", [True, False])
def test_the_mixture_is_unbiased_over_every_sample(expert_sampled: bool) -> None:
    """Three draws of four agent trajectories; the expert's three drawn twice, or all given."""
    (h_a, f_a), (h_e, f_e) = batch(num=4), batch(num=3, seed=1)
    h_e, r_a, r_e = h_e - 1.5, f_a[..., 0], f_e[..., 0] + 0.8
    agent = jnp.array(list(itertools.product(range(4), repeat=3)))
    expert = jnp.array(list(itertools.product(range(3), repeat=2)))
    expert = expert if expert_sampled else jnp.arange(3)[None]

    def mean_of(agent_ddof: int, expert_ddof: int) -> jax.Array:
        def estimate(i: jax.Array, j: jax.Array) -> jax.Array:
            return mixture_loss(
                h_a[i], r_a[i], h_e[j], r_e[j], agent_ddof=agent_ddof, expert_ddof=expert_ddof
            )

        return jnp.mean(jax.jit(jax.vmap(jax.vmap(estimate, (None, 0)), (0, None)))(agent, expert))

    exact = mixture_loss(h_a, r_a, h_e, r_e, agent_ddof=0, expert_ddof=0)
    np.testing.assert_allclose(mean_of(1, int(expert_sampled)), exact, rtol=1e-12)
    assert abs(float(mean_of(0, 0) / exact) - 1) > 0.004

    def pooled(i: jax.Array, j: jax.Array) -> jax.Array:
        h, r = jnp.concatenate([h_a[i], h_e[j]]), jnp.concatenate([r_a[i], r_e[j]])
        return covariance_loss(h, r)

    if expert_sampled:
        equal_counts = jnp.array(list(itertools.product(range(4), repeat=2)))
        pooled_mean = jnp.mean(
            jax.jit(jax.vmap(jax.vmap(pooled, (None, 0)), (0, None)))(equal_counts, expert)
        )
        assert abs(float(pooled_mean / exact) - 1) > 0.01


@pytest.mark.parametrize("offset", [1e4, -3e5])
def test_a_common_offset_does_not_round_h(offset: float) -> None:
    """An energy's unknown constant: E[HR] − E[H]E[R] would lose every digit in float32."""
    h, features = batch()
    h, rewards = jnp.round(16 * h) / 16, features[..., 0]  # h is exact beside the offset
    weights = jnp.full(NUM, 1 / NUM)
    others = (h[:3], rewards[:3])
    offset_others = (others[0] + offset, others[1])
    for plain, moved in (
        (covariance_loss(h, rewards), covariance_loss(h + offset, rewards)),
        (
            exact_covariance_loss(h, rewards, weights),
            exact_covariance_loss(h + offset, rewards, weights),
        ),
        (
            mixture_loss(h, rewards, *others),
            mixture_loss(h + offset, rewards, *offset_others),
        ),
    ):
        np.testing.assert_allclose(moved, plain, rtol=0.01)


def test_large_rewards_do_not_round() -> None:
    h, features = batch()
    rewards = features[..., 0]
    np.testing.assert_allclose(
        covariance_loss(h, rewards + 1000.0), covariance_loss(h, rewards), rtol=1e-3
    )


def test_saturated_ratios_stay_finite() -> None:
    """χ² at log-ratios of ±80, T = 30: each −3.4e38, their sum would be −∞, and ∞ − ∞ NaN."""
    generator = np.random.default_rng(0)
    log_ratios = generator.choice([-80.0, 80.0], size=(20, 30))
    features = jnp.asarray(generator.normal(size=(20, 30, FEATURES)), float)
    h = ChiSquared().h(jnp.asarray(log_ratios, float))
    losses = (
        lambda w: covariance_loss(h, features @ w),
        lambda w: exact_covariance_loss(h, features @ w, jnp.full(20, 1 / 20)),
        lambda w: mixture_loss(h[:15], features[:15] @ w, h[15:], features[15:] @ w),
    )
    for loss in losses:
        value, gradient = jax.jit(jax.value_and_grad(loss))(jnp.asarray(PARAMETERS, jnp.float32))
        assert np.isfinite(value)
        assert np.all(np.isfinite(gradient))
        assert np.all(np.abs(gradient) > 1e30)
    plain = gradient_of(losses[0])
    exact = covariance(np.asarray(h, np.float64), np.asarray(features, np.float64), ddof=1)
    np.testing.assert_allclose(plain, exact, rtol=1e-4)


def test_constant_h_has_no_gradient() -> None:
    rewards = jnp.arange(6.0).reshape(2, 3)
    for constant in (0.0, 0.5, -80.0):
        h = jnp.full((2, 3), constant)
        assert abs(float(covariance_loss(h, rewards))) < 1e-5
        assert abs(float(mixture_loss(h, rewards, h, rewards + 1))) < 1e-5


def test_nan_is_not_hidden() -> None:
    h = jnp.zeros((3, 2)).at[1, 1].set(jnp.nan)
    assert np.isnan(covariance_loss(h, jnp.ones((3, 2))))


def test_one_trajectory_has_no_covariance() -> None:
    one, two = jnp.ones((1, 4)), jnp.ones((2, 4))
    with pytest.raises(FirlError, match=r"1 agent trajectories with ddof=1 .* pass more"):
        covariance_loss(one, one)
    with pytest.raises(FirlError, match="agent"):
        mixture_loss(one, one, two, two)
    with pytest.raises(FirlError, match="expert"):
        mixture_loss(two, two, one, one, expert_ddof=1)
    assert float(mixture_loss(two, two, one, one)) == 0.0
    assert float(covariance_loss(one, one, ddof=0)) == 0.0
