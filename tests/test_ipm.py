"""MMD against its closed form on a few points, the Wasserstein critic against known distances."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from firl.gradient import covariance_loss
from firl.ipm import MMD, GaussianKernel, WitnessCritic, median_distance, witness
from firl.wasserstein import Wasserstein

KEY = jax.random.key(0)


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def kernel(x: np.ndarray, y: np.ndarray, bandwidth: float) -> np.ndarray:
    return np.exp(-np.sum((x[:, None] - y[None]) ** 2, axis=-1) / (2 * bandwidth**2))


def test_mmd_of_two_points() -> None:
    """Of two Diracs: MMD² = 2 − 2k, and D = (k(·, x) − k(·, y))/MMD, by hand."""
    k = np.exp(-0.5 * 4.0)
    for expert, agent in ((0.0, 2.0), (100.0, 102.0)):
        _, critic, info = MMD(GaussianKernel(jnp.asarray(1.0))).fit(
            KEY, None, jnp.array([[expert]]), jnp.array([[agent]])
        )
        np.testing.assert_allclose(info.distance, np.sqrt(2 - 2 * k), rtol=1e-6)
        both = critic(jnp.array([[expert], [agent]]))
        np.testing.assert_allclose(both, np.array([1, -1]) * (1 - k) / np.sqrt(2 - 2 * k), 1e-5)


def test_mmd_of_samples() -> None:
    """With unequal counts and repeated points, in three dimensions."""
    expert, agent = normal(0, 9, 3), normal(1, 6, 3) + 0.5
    agent[2] = agent[4]
    bandwidth = 1.3
    _, critic, info = MMD(GaussianKernel(jnp.asarray(bandwidth))).fit(
        KEY, None, jnp.asarray(expert), jnp.asarray(agent)
    )
    square = (
        kernel(expert, expert, bandwidth).mean()
        + kernel(agent, agent, bandwidth).mean()
        - 2 * kernel(expert, agent, bandwidth).mean()
    )
    np.testing.assert_allclose(info.distance, np.sqrt(square), rtol=1e-5)
    states = normal(2, 4, 3)
    raw = kernel(states, expert, bandwidth).mean(axis=1) - kernel(states, agent, bandwidth).mean(1)
    np.testing.assert_allclose(critic(jnp.asarray(states)), raw / np.sqrt(square), rtol=1e-4)
    attained = jnp.mean(critic(jnp.asarray(expert))) - jnp.mean(critic(jnp.asarray(agent)))
    np.testing.assert_allclose(attained, info.distance, rtol=1e-5)


def test_mmd_of_two_gaussians() -> None:
    """Population value in closed form: smoothing N(0,1) with the kernel adds σ² to variances."""
    shift, bandwidth, num = 1.5, 0.8, 4000
    expert, agent = normal(0, num, 1) + shift, normal(1, num, 1)

    def expected(distance: float) -> float:
        return (
            bandwidth / np.sqrt(bandwidth**2 + 2) * np.exp(-(distance**2) / 2 / (bandwidth**2 + 2))
        )

    _, _, info = MMD(GaussianKernel(jnp.asarray(bandwidth))).fit(
        KEY, None, jnp.asarray(expert), jnp.asarray(agent)
    )
    np.testing.assert_allclose(
        info.distance, np.sqrt(2 * expected(0) - 2 * expected(shift)), atol=3 / np.sqrt(num)
    )


def test_no_function_of_unit_norm_does_better_than_the_witness() -> None:
    """Any other Σ c_i k(·, z_i) of unit norm separates the samples by less."""
    points, weights = normal(0, 8, 2), np.repeat([0.25, -0.25], 4).astype(np.float32)
    gaussian = GaussianKernel(jnp.asarray(1.0))
    critic = witness(gaussian, jnp.asarray(points), jnp.asarray(weights))
    np.testing.assert_allclose(weights @ critic(jnp.asarray(points)), critic.norm, rtol=1e-5)
    gram = kernel(points, points, 1.0)
    for seed in range(20):
        other = normal(seed + 10, 8)
        separation = weights @ gram @ other / np.sqrt(other @ gram @ other)
        assert separation < float(critic.norm)


def test_mmd_of_the_same_sample_is_zero() -> None:
    same = jnp.asarray(normal(0, 5, 2))
    _, critic, info = MMD().fit(KEY, None, same, same)
    assert float(info.distance) < 1e-3  # the root of one rounding
    np.testing.assert_allclose(critic(same), np.zeros(5), atol=1e-3)
    _, critic, info = MMD().fit(KEY, None, same[:1], same[:1])
    assert float(info.distance) == 0.0
    np.testing.assert_array_equal(critic(same), np.zeros(5))


def test_the_median_heuristic() -> None:
    assert float(median_distance(jnp.array([[0.0], [1.0], [3.0], [3.0]]))) == 2.0
    assert float(median_distance(jnp.ones((4, 2)))) == 1.0
    many = jnp.asarray(normal(0, 5000, 1))
    exact = 2**0.5 * 0.6744898  # the median of |x − y| ~ √2 |N(0, 1)|
    np.testing.assert_allclose(median_distance(many), exact, rtol=0.05)
    expert, agent = normal(0, 50, 2), normal(1, 70, 2) + 1
    _, critic, _ = MMD().fit(KEY, None, jnp.asarray(expert), jnp.asarray(agent))
    assert isinstance(critic, WitnessCritic)
    pooled = np.concatenate([expert, agent])
    distances = np.linalg.norm(pooled[:, None] - pooled[None], axis=-1)
    assert isinstance(critic.kernel, GaussianKernel)
    np.testing.assert_allclose(critic.kernel.bandwidth, np.median(distances[distances > 0]), 1e-4)


def test_critics_take_any_batch() -> None:
    expert, agent = jnp.asarray(normal(0, 20, 2)), jnp.asarray(normal(1, 20, 2) + 1)
    for metric in (MMD(), Wasserstein(num_steps=2)):
        warm, critic, _ = metric.fit(KEY, metric.init(KEY, 2), expert, agent)
        assert critic(jnp.ones((2,))).shape == ()
        assert critic(jnp.ones((3, 4, 2))).shape == (3, 4)
        flat, batched = critic(agent), critic(agent.reshape(4, 5, 2))
        np.testing.assert_allclose(batched.reshape(-1), flat, rtol=1e-5, atol=1e-6)
        shapes = jax.tree.map(jnp.shape, metric.init(KEY, 2))
        assert jax.tree.map(jnp.shape, warm) == shapes


SAMPLES = {
    "shifted": (normal(0, 2000, 1) + 1.5, normal(1, 2000, 1), None),
    "wider": (2 * normal(0, 2000, 1), normal(1, 2000, 1), None),
    "in-the-plane": (3 * normal(0, 2000, 2) + 3, 3 * normal(1, 2000, 2), 3 * 2**0.5),
    "far-and-small": (
        0.001 * normal(0, 2000, 2) + np.float32([7.05, 7.0]),
        0.001 * normal(1, 2000, 2) + np.float32(7.0),
        0.05,
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_wasserstein_distances(name: str) -> None:
    """In 1-D the sample's own distance is known; in 2-D that of the shifted law, the shift."""
    expert, agent, distance = SAMPLES[name]
    distance = distance or wasserstein_distance(expert[:, 0], agent[:, 0])
    metric = Wasserstein()
    _, critic, info = metric.fit(KEY, metric.init(KEY, expert.shape[1]), expert, agent)
    np.testing.assert_allclose(info.distance, distance, rtol=0.03)
    slopes = np.asarray(critic.slopes(jnp.concatenate([expert, agent])))
    assert np.quantile(slopes, 0.99) < 1.1


def test_the_wasserstein_critic_points_the_way() -> None:
    """Along a shift the best D is the coordinate itself, up to a constant."""
    expert, agent, _ = SAMPLES["shifted"]
    metric = Wasserstein()
    _, critic, _ = metric.fit(KEY, metric.init(KEY, 1), expert, agent)
    between = jnp.linspace(-1.0, 2.5, 50)[:, None]
    values = np.asarray(critic(between))
    np.testing.assert_allclose(values - values[0], between[:, 0] + 1, atol=0.1)


def test_wasserstein_of_the_same_law_is_small() -> None:
    """Between two samples of it: no larger than their own distance, and never negative."""
    expert, agent = normal(0, 2000, 1), normal(1, 2000, 1)
    metric = Wasserstein()
    _, _, info = metric.fit(KEY, metric.init(KEY, 1), expert, agent)
    assert 0 < float(info.distance) < 1.1 * wasserstein_distance(expert[:, 0], agent[:, 0])


def test_a_warm_start_helps_and_a_fit_repeats() -> None:
    """Ten more steps from a trained critic are nearly there; ten from a fresh one are not."""
    expert, agent, _ = SAMPLES["shifted"]
    distance = wasserstein_distance(expert[:, 0], agent[:, 0])
    metric, short = Wasserstein(), Wasserstein(num_steps=10, learning_rate=1e-4)
    fresh = metric.init(KEY, 1)
    warm, _, info = metric.fit(KEY, fresh, expert, agent)
    _, _, again = metric.fit(KEY, fresh, expert, agent)
    assert float(info.distance) == float(again.distance)
    _, _, from_warm = short.fit(KEY, warm, expert, agent)
    _, _, from_fresh = short.fit(KEY, fresh, expert, agent)
    np.testing.assert_allclose(from_warm.distance, distance, rtol=0.03)
    assert abs(float(from_fresh.distance) - distance) > 0.3 * distance


def test_coinciding_samples_are_no_accident() -> None:
    """All states the same: no spread to measure in, and nothing to tell apart."""
    point = jnp.ones((20, 2))
    metric = Wasserstein(num_steps=2)
    _, critic, info = metric.fit(KEY, metric.init(KEY, 2), point, point)
    assert abs(float(info.distance)) < 1e-6
    assert np.all(np.isfinite(critic(point)))


@pytest.mark.parametrize("metric", [MMD(), Wasserstein()], ids=["mmd", "w1"])
def test_descending_raises_the_reward_where_the_expert_is(metric: MMD | Wasserstein) -> None:
    """−D in the place of h: trajectories nearer to the expert get more reward."""
    agent = normal(0, 200, 10, 1) + normal(2, 200, 1, 1)
    expert = normal(1, 2000, 1) + 2
    warm = metric.init(KEY, 1)
    _, critic, _ = metric.fit(KEY, warm, jnp.asarray(expert), jnp.asarray(agent.reshape(-1, 1)))
    slope = jax.grad(lambda w: covariance_loss(-critic(jnp.asarray(agent)), w * agent[..., 0]))(1.0)
    assert float(slope) < 0
