"""The theorem against the exact oracle, and where the trajectory law stops being exact."""

from collections.abc import Callable, Iterator
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

from firl.divergences import (
    DIVERGENCES,
    AbstractDivergence,
    ForwardKL,
    JensenShannon,
    divergence_between,
)
from firl.errors import FirlError
from firl.gradient import covariance_loss, exact_covariance_loss, mixture_loss
from firl.ipm import GaussianKernel, witness
from firl.tabular import (
    TabularMDP,
    chain_critic,
    deterministic,
    enumerate_trajectories,
    log_ratio,
    loss,
    marginal,
    policy_law,
    sample,
    soft_optimal_policy,
    theorem_gradient,
    trajectory_law,
    trajectory_weights,
)

each_divergence = pytest.mark.parametrize("divergence", DIVERGENCES.values(), ids=DIVERGENCES)


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def grid(*, stay: bool, horizon: int) -> TabularMDP:
    """A 3×3 room. With `stay` walls hold the agent; without, they throw it back: no parity kept."""
    moves = [(1, 0), (-1, 0), (0, 1), (0, -1), *([(0, 0)] if stay else [])]
    table = np.zeros((9, len(moves)), int)
    for state in range(9):
        for action, (down, right) in enumerate(moves):
            row, column = state // 3 + down, state % 3 + right
            if not (0 <= row < 3 and 0 <= column < 3):
                bounced = (state // 3 - down, state % 3 - right)
                row, column = (state // 3, state % 3) if stay else bounced
            table[state, action] = 3 * row + column
    return deterministic(jnp.asarray(table), _start(9, 0), horizon=horizon)


def chain() -> TabularMDP:
    """Eight places in a row, the last of which five steps do not reach."""
    places = np.arange(8)
    table = np.stack([np.maximum(places - 1, 0), places, np.minimum(places + 1, 7)], axis=1)
    return deterministic(jnp.asarray(table), _start(8, 1), horizon=5, temperature=0.5)


def random_graph(*, several_starts: bool = False) -> TabularMDP:
    """Seven states and three actions that lead anywhere."""
    generator = np.random.default_rng(0)
    start = _start(7, 2)
    if several_starts:
        start = jnp.asarray(generator.dirichlet(np.ones(7))).at[3].set(0.0)
        start = start / jnp.sum(start)
    table = jnp.asarray(generator.integers(7, size=(7, 3)))
    return deterministic(table, start, horizon=5, temperature=0.7)


def slippery() -> TabularMDP:
    """The random graph, but one action in three goes astray."""
    mdp = random_graph()
    return TabularMDP(2 / 3 * mdp.transition + 1 / 21, mdp.initial, mdp.horizon, mdp.temperature)


def _start(num_states: int, state: int) -> Array:
    return jnp.asarray(np.eye(num_states)[state])


MDPS: dict[str, Callable[[], TabularMDP]] = {
    "grid": lambda: grid(stay=True, horizon=4),
    "chain": chain,
    "graph": random_graph,
    "graph-with-starts": lambda: random_graph(several_starts=True),
}
each_mdp = pytest.mark.parametrize("make", MDPS.values(), ids=MDPS)


def random_rewards(mdp: TabularMDP, seed: int = 1) -> Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=mdp.initial.shape[0]))


def random_expert(mdp: TabularMDP, seed: int = 2) -> Array:
    """Any law over the states that can be reached; one of them it leaves out."""
    expert = np.random.default_rng(seed).dirichlet(np.ones(mdp.initial.shape[0]))
    reachable = np.asarray(agent_marginal(mdp, jnp.zeros(len(expert)))) > 0
    return jnp.asarray(expert * reachable / np.sum(expert * reachable))


def network(mdp: TabularMDP) -> tuple[Callable[[Array], Array], Array]:
    """A reward with fewer parameters than states, and not linear in them."""
    features = jnp.asarray(np.random.default_rng(3).normal(size=(mdp.initial.shape[0], 2)))

    def reward_of(parameters: Array) -> Array:
        return jnp.tanh(features @ parameters[:4].reshape(2, 2)) @ parameters[4:]

    return reward_of, jnp.asarray(np.random.default_rng(4).normal(size=6))


@jax.jit
def agent_marginal(mdp: TabularMDP, rewards: Array) -> Array:
    return marginal(trajectory_law(mdp, rewards))


@jax.jit
def visited_by_policy(mdp: TabularMDP, rewards: Array) -> Array:
    return marginal(policy_law(mdp, rewards))


# The law, by dynamic programming and by brute force.


@each_mdp
def test_dynamic_programming_is_enumeration(make: Callable[[], TabularMDP]) -> None:
    mdp = make()
    rewards = 3 * random_rewards(mdp)
    trajectories = enumerate_trajectories(mdp)
    paths = np.asarray(trajectories[0])
    assert len(paths) == np.count_nonzero(mdp.initial) * mdp.transition.shape[1] ** mdp.horizon
    weights = np.asarray(trajectory_weights(mdp, rewards, trajectories))
    visits = np.stack([np.mean(paths[:, 1:] == s, axis=1) for s in range(len(rewards))], axis=1)
    law = jax.jit(trajectory_law)(mdp, rewards)
    np.testing.assert_allclose(agent_marginal(mdp, rewards), weights @ visits, atol=1e-10)
    starts = [np.sum(weights[paths[:, 0] == s]) for s in range(len(rewards))]
    np.testing.assert_allclose(law.initial, starts, atol=1e-10)
    by_definition = np.asarray(mdp.initial)[paths[:, 0]] * np.exp(
        np.sum(np.asarray(rewards)[paths[:, 1:]], axis=1) / mdp.temperature
    )
    np.testing.assert_allclose(weights, by_definition / np.sum(by_definition), atol=1e-12)


def test_the_marginal_survives_extreme_rewards() -> None:
    """Log-space messages: rewards of ±1000 underflow no partition function."""
    mdp = chain()
    best = agent_marginal(mdp, jnp.zeros(8).at[1].set(1000.0).at[3].set(-1000.0))
    np.testing.assert_allclose(best, _start(8, 1), atol=1e-10)


def test_stochastic_dynamics_cannot_be_enumerated_by_actions() -> None:
    with pytest.raises(FirlError, match="one outcome"):
        enumerate_trajectories(slippery())


def all_losses(mdp: TabularMDP, expert: Array, rewards: Array) -> Array:
    """L_f of each divergence, from one marginal."""
    with np.errstate(divide="ignore"):
        log_expert = jnp.asarray(np.log(expert))
    agent = agent_marginal(mdp, rewards)
    log_agent = jnp.where(agent > 0, jnp.log(jnp.where(agent > 0, agent, 1.0)), -jnp.inf)
    return jnp.stack([divergence_between(d, log_expert, log_agent) for d in DIVERGENCES.values()])


@each_divergence
def test_the_loss_is_the_divergence_between_the_marginals(divergence: AbstractDivergence) -> None:
    mdp = chain()
    expert, rewards = random_expert(mdp), random_rewards(mdp)
    ours = jax.jit(lambda r: loss(divergence, mdp, expert, r))(rewards)
    index = list(DIVERGENCES).index(divergence.name)
    np.testing.assert_allclose(ours, all_losses(mdp, expert, rewards)[index], rtol=1e-12)


def test_autodiff_is_finite_differences() -> None:
    """So that the theorem is held against something that is right itself."""
    mdp = random_graph()
    expert, rewards = random_expert(mdp), random_rewards(mdp)
    losses = jax.jit(lambda rewards: all_losses(mdp, expert, rewards))
    gradients = jax.jit(jax.jacrev(losses))(rewards)
    step = 1e-5
    for state, nudge in enumerate(step * np.eye(len(rewards))):
        slopes = (losses(rewards + nudge) - losses(rewards - nudge)) / (2 * step)
        np.testing.assert_allclose(slopes, gradients[:, state], atol=1e-8)


# Theorem 4.1 and its extension.


@cache
def gradients(name: str) -> list[tuple[dict[str, Array], dict[str, Array]]]:
    """Autodiff's and the theorem's of each divergence: for a table, and for a network."""
    mdp = MDPS[name]()
    expert = random_expert(mdp)

    def both(reward_of: Callable[[Array], Array], theta: Array) -> tuple[Array, Array]:
        ratio = log_ratio(expert, agent_marginal(mdp, reward_of(theta)))
        h = jnp.stack([divergence.h(ratio) for divergence in DIVERGENCES.values()])
        exact = jax.jacrev(lambda theta: all_losses(mdp, expert, reward_of(theta)))(theta)
        return exact, jax.vmap(lambda h: theorem_gradient(mdp, h, reward_of, theta))(h)

    reward_of, parameters = network(mdp)
    rewards = random_rewards(mdp)
    results = jax.jit(lambda r, theta: (both(lambda r: r, r), both(reward_of, theta)))
    return [
        (dict(zip(DIVERGENCES, exact, strict=True)), dict(zip(DIVERGENCES, ours, strict=True)))
        for exact, ours in results(rewards, parameters)
    ]


@pytest.mark.parametrize("mdp", MDPS)
@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_the_theorem_is_autodiff(mdp: str, divergence: str) -> None:
    for exact, ours in gradients(mdp):
        scale = np.max(np.abs(exact[divergence]))
        np.testing.assert_allclose(ours[divergence], exact[divergence], rtol=0, atol=1e-8 * scale)
        assert scale > 1e-3


@pytest.mark.parametrize("name", ["grid", "graph-with-starts"])
def test_the_theorem_for_mmd(name: str) -> None:
    """−D in the place of h, D the normalised witness: the derivative of MMD itself."""
    mdp = MDPS[name]()
    expert = random_expert(mdp)
    reward_of, parameters = network(mdp)
    places = jnp.asarray(np.random.default_rng(5).normal(size=(len(expert), 2)))
    kernel = GaussianKernel(jnp.asarray(0.8))

    def distance(theta: Array) -> Array:
        return witness(kernel, places, expert - agent_marginal(mdp, reward_of(theta))).norm

    critic = witness(kernel, places, expert - agent_marginal(mdp, reward_of(parameters)))
    exact = jax.jit(jax.grad(distance))(parameters)
    ours = jax.jit(lambda theta: theorem_gradient(mdp, -critic(places), reward_of, theta))(
        parameters
    )
    np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-8 * np.max(np.abs(exact)))


def test_the_theorem_for_wasserstein() -> None:
    """On the chain the best 1-Lipschitz critic is known, and W₁ is Σ |F_E − F_θ|."""
    mdp = chain()
    expert = random_expert(mdp)
    reward_of, parameters = network(mdp)

    def distance(theta: Array) -> Array:
        return jnp.sum(jnp.abs(jnp.cumsum(expert - agent_marginal(mdp, reward_of(theta)))))

    agent = agent_marginal(mdp, reward_of(parameters))
    critic = chain_critic(expert, agent)
    np.testing.assert_allclose(critic @ (expert - agent), distance(parameters), rtol=1e-12)
    assert np.max(np.abs(np.diff(critic))) == 1.0
    exact = jax.jit(jax.grad(distance))(parameters)
    ours = jax.jit(lambda theta: theorem_gradient(mdp, -critic, reward_of, theta))(parameters)
    np.testing.assert_allclose(ours, exact, rtol=0, atol=1e-8 * np.max(np.abs(exact)))


def test_only_reverse_kl_ignores_a_constant_in_the_log_density() -> None:
    mdp = random_graph()
    expert, rewards = random_expert(mdp), random_rewards(mdp)
    ratio = log_ratio(expert, agent_marginal(mdp, rewards))
    theorem = jax.jit(lambda h: theorem_gradient(mdp, h, lambda r: r, rewards))
    for name, divergence in DIVERGENCES.items():
        gradients = [np.asarray(theorem(divergence.h(ratio + c))) for c in (0.0, 1.5, -0.7)]
        moved = max(np.max(np.abs(g - gradients[0])) for g in gradients)
        scale = np.max(np.abs(gradients[0]))
        assert moved < 1e-12 * scale if name == "rkl" else moved > 0.1 * scale, name
        assert divergence.requires_normalised == (name != "rkl")


# The estimator from samples.


@cache
def sampled() -> tuple[Array, Array, Array]:
    """2¹⁷ trajectories of the random graph, h with the exact ratio, and the exact gradient."""
    mdp = random_graph()
    expert, rewards = random_expert(mdp), random_rewards(mdp)
    law = trajectory_law(mdp, rewards)
    h = JensenShannon().h(log_ratio(expert, marginal(law)))
    exact = jax.jit(jax.grad(lambda r: loss(JensenShannon(), mdp, expert, r)))(rewards)
    return jax.jit(sample, static_argnums=2)(jax.random.key(0), law, 2**17), h, exact


def estimates(num: int, *, ddof: int = 1) -> np.ndarray:
    """One of the gradient from every `num` trajectories."""
    mdp = random_graph()
    rewards = random_rewards(mdp)
    states, h, _ = sampled()

    def estimate(states: Array) -> Array:
        return jax.grad(
            lambda r: covariance_loss(h[states], r[states], temperature=mdp.temperature, ddof=ddof)
        )(rewards)

    return np.asarray(jax.jit(jax.vmap(estimate))(states.reshape(-1, num, mdp.horizon)))


def test_the_sampler_follows_the_law() -> None:
    mdp = random_graph(several_starts=True)
    law = jax.jit(trajectory_law)(mdp, random_rewards(mdp))
    states = np.asarray(jax.jit(sample, static_argnums=2)(jax.random.key(0), law, 100_000))
    seen = np.bincount(states.reshape(-1), minlength=7) / states.size
    np.testing.assert_allclose(seen, marginal(law), atol=4 * 0.5 / np.sqrt(100_000))
    allowed = np.asarray(mdp.kernel)[states[:, :-1], states[:, 1:]]
    assert np.all(allowed > 0)


def test_the_estimator_converges_at_one_over_root_n() -> None:
    """Slope −½ ± 0.05 of log error over log N, from 8 to 2048 trajectories."""
    exact = np.asarray(sampled()[2])
    counts = [8, 128, 2048]
    errors = [np.sqrt(np.mean(np.sum((estimates(n) - exact) ** 2, axis=1))) for n in counts]
    slope = np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert -0.55 < slope < -0.45, slope
    assert errors[-1] < 0.1 * np.linalg.norm(exact)


def test_the_estimator_is_unbiased_and_the_plug_in_is_not() -> None:
    """Means over 32 768 batches of 4: within 4 standard errors of the truth, and of ¾ of it."""
    exact = np.asarray(sampled()[2])
    moving = np.abs(exact) > 1e-3
    for ddof, share, other_share in ((1, 1, 3 / 4), (0, 3 / 4, 1)):
        each = estimates(4, ddof=ddof)
        mean, error = np.mean(each, axis=0), np.std(each, axis=0) / np.sqrt(len(each))
        assert np.all(np.abs(mean - share * exact)[moving] < 4 * error[moving])
        assert np.max(np.abs(mean - other_share * exact)[moving] / error[moving]) > 10


def test_the_plug_in_estimate_is_smaller_by_a_known_factor() -> None:
    np.testing.assert_allclose(estimates(4, ddof=0), estimates(4) * 3 / 4, rtol=1e-10, atol=1e-15)


def test_a_ratio_from_the_same_sample_is_biased() -> None:
    """÷(N − 1) does not help when ρ_θ is the histogram of the very states h is taken at."""
    mdp = random_graph()
    expert, rewards = random_expert(mdp), random_rewards(mdp)
    states, _, exact = sampled()

    def estimate(states: Array) -> Array:
        histogram = jnp.mean(jax.nn.one_hot(states, 7, dtype=rewards.dtype), axis=(0, 1))
        h = JensenShannon().h(log_ratio(expert, histogram))
        return jax.grad(
            lambda r: covariance_loss(h[states], r[states], temperature=mdp.temperature)
        )(rewards)

    each = np.asarray(jax.jit(jax.vmap(estimate))(states.reshape(-1, 8, mdp.horizon)))
    error = np.std(each, axis=0) / np.sqrt(len(each))
    assert np.max(np.abs(np.mean(each, axis=0) - exact) / error) > 20


# Descending it, and the reward that is found (appendix A.4).


@cache
def descended(*, stay: bool) -> tuple[TabularMDP, Array, dict[str, tuple[Array, Array, Array]]]:
    """The room, the true reward, and of each divergence: L_f before, L_f after, the reward found.

    Gradient descent from zero with momentum on the theorem's gradient, its length kept below 1.
    Total variation's gradient does not shrink on the way, so that its steps have to.
    """
    mdp = grid(stay=stay, horizon=4)
    colour = jnp.asarray(np.arange(9) % 2, float)
    truth = (random_rewards(mdp) + colour) / 2
    expert = agent_marginal(mdp, truth)
    trajectories = enumerate_trajectories(mdp)
    states = trajectories[0][:, 1:]

    def gradient(h: Array, rewards: Array) -> Array:
        weights = trajectory_weights(mdp, rewards, trajectories)
        gradient = jax.grad(
            lambda r: exact_covariance_loss(
                h[states], r[states], weights, temperature=mdp.temperature
            )
        )(rewards)
        return gradient / (1 + jnp.linalg.norm(gradient))

    def step(carry: tuple[Array, Array], sizes: Array) -> tuple[tuple[Array, Array], None]:
        rewards, velocities = carry
        ratios = jax.vmap(lambda r: log_ratio(expert, agent_marginal(mdp, r)))(rewards)
        h = [d.h(ratio) for d, ratio in zip(DIVERGENCES.values(), ratios, strict=True)]
        velocities = 0.9 * velocities + jax.vmap(gradient)(jnp.stack(h), rewards)
        return (rewards - sizes[:, None] * velocities, velocities), None

    start = jnp.zeros((len(DIVERGENCES), 9))
    sizes = jnp.stack(
        [jnp.geomspace(0.5, 1e-5 if name == "tv" else 0.5, 4000) for name in DIVERGENCES], axis=1
    )
    (found, _), _ = jax.jit(lambda: jax.lax.scan(step, (start, jnp.zeros_like(start)), sizes))()

    losses = jax.jit(lambda rewards: all_losses(mdp, expert, rewards))
    before = losses(start[0])
    after = [losses(rewards)[index] for index, rewards in enumerate(found)]
    return mdp, truth, dict(zip(DIVERGENCES, zip(before, after, found, strict=True), strict=True))


@each_divergence
def test_descent_finds_the_reward_up_to_a_constant(divergence: AbstractDivergence) -> None:
    """All nine states are linked, so L_f = 0 leaves one constant open and nothing else."""
    _, truth, results = descended(stay=True)
    before, after, found = map(np.asarray, results[divergence.name])
    kinked = divergence.name == "tv"
    assert before > 0.05
    assert abs(after) < (1e-4 if kinked else 1e-12)
    assert np.ptp(found) > 0.5
    assert np.ptp(found - truth) < (1e-3 if kinked else 1e-5)


@each_divergence
def test_what_is_not_linked_is_not_found(divergence: AbstractDivergence) -> None:
    """On a bipartite room each trajectory spends the same time on either colour.

    So a constant may be moved from the one colour to the other: L_f is zero all the same, the
    policy is the same, and the reward is not the truth up to one constant but up to two.
    """
    mdp, truth, results = descended(stay=False)
    before, after, found = map(np.asarray, results[divergence.name])
    kinked = divergence.name == "tv"
    assert before > 0.05
    assert abs(after) < (1e-4 if kinked else 1e-12)
    error, tolerance = np.asarray(found - truth), 1e-3 if kinked else 1e-5
    assert np.ptp(error) > 0.4
    assert np.ptp(error[0::2]) < tolerance
    assert np.ptp(error[1::2]) < tolerance
    policy = jax.jit(soft_optimal_policy)
    np.testing.assert_allclose(policy(mdp, jnp.asarray(found)), policy(mdp, truth), atol=tolerance)


@each_mdp
def test_the_reward_is_open_in_the_directions_that_no_trajectory_varies(
    make: Callable[[], TabularMDP],
) -> None:
    """The exponential family's statement: the null space of the covariance of visit counts."""
    mdp = make()
    rewards = random_rewards(mdp)
    trajectories = enumerate_trajectories(mdp)
    weights = np.asarray(trajectory_weights(mdp, rewards, trajectories))
    states = np.asarray(trajectories[0][:, 1:])
    visits = np.stack([np.sum(states == s, axis=1) for s in range(len(rewards))], axis=1)
    jacobian = np.asarray(jax.jit(jax.jacobian(lambda r: agent_marginal(mdp, r)))(rewards))
    covariance = np.cov(visits.T, aweights=weights, ddof=0)
    np.testing.assert_allclose(
        jacobian, covariance / (mdp.temperature * mdp.horizon), rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(jacobian @ np.ones(len(rewards)), 0, atol=1e-12)


# Eq. 6.


def _mixture_gradient(
    mdp: TabularMDP, rewards: Array, truth: Array, expert: Array
) -> tuple[np.ndarray, np.ndarray]:
    """Eq. 6 by enumeration, and Theorem 4.1."""
    trajectories = enumerate_trajectories(mdp)
    states = trajectories[0][:, 1:]
    agent_weights = trajectory_weights(mdp, rewards, trajectories)
    weights = (agent_weights + trajectory_weights(mdp, truth, trajectories)) / 2
    h = ForwardKL().h(log_ratio(expert, agent_marginal(mdp, rewards)))
    mixture, plain = (
        jax.jit(
            jax.grad(
                lambda r, w=w: exact_covariance_loss(
                    h[states], r[states], w, temperature=mdp.temperature
                )
            )
        )(rewards)
        for w in (weights, agent_weights)
    )
    return np.asarray(mixture), np.asarray(plain)


def test_the_mixture_is_biased_and_right_at_convergence() -> None:
    mdp = random_graph()
    truth = random_rewards(mdp)
    expert = agent_marginal(mdp, truth)
    mixture, plain = _mixture_gradient(mdp, truth, truth, expert)
    np.testing.assert_allclose(mixture, 0, atol=1e-14)
    np.testing.assert_allclose(plain, 0, atol=1e-14)
    mixture, plain = _mixture_gradient(mdp, random_rewards(mdp, 9), truth, expert)
    assert np.linalg.norm(mixture - plain) > 0.2 * np.linalg.norm(plain)
    assert np.sum(mixture * plain) > 0


def test_the_sampled_mixture_converges_to_eq_6() -> None:
    """20 000 agent and 2 000 expert trajectories, each side still weighing one half."""
    mdp = random_graph()
    truth, rewards = random_rewards(mdp), random_rewards(mdp, 9)
    expert = agent_marginal(mdp, truth)
    mixture, plain = _mixture_gradient(mdp, rewards, truth, expert)
    h = ForwardKL().h(log_ratio(expert, agent_marginal(mdp, rewards)))
    k_agent, k_expert = jax.random.split(jax.random.key(0))
    draw, law = jax.jit(sample, static_argnums=2), jax.jit(trajectory_law)
    agent_states = draw(k_agent, law(mdp, rewards), 20_000)
    expert_states = draw(k_expert, law(mdp, truth), 2_000)

    @jax.jit
    @jax.grad
    def gradient(r: Array) -> Array:
        return mixture_loss(
            h[agent_states],
            r[agent_states],
            h[expert_states],
            r[expert_states],
            temperature=mdp.temperature,
            expert_ddof=1,
        )

    sampled = gradient(rewards)
    assert np.linalg.norm(sampled - mixture) < 0.05 * np.linalg.norm(mixture)
    assert np.linalg.norm(sampled - plain) > 0.2 * np.linalg.norm(plain)


# Where the law and the policy part.


def test_one_start_and_deterministic_dynamics_make_law_and_policy_agree() -> None:
    for mdp in (grid(stay=True, horizon=4), chain(), random_graph()):
        rewards = 3 * random_rewards(mdp)
        np.testing.assert_allclose(
            visited_by_policy(mdp, rewards), agent_marginal(mdp, rewards), atol=1e-10
        )


def _gamble() -> TabularMDP:
    """Play safe: state 1. Or gamble: state 2 or 3, each with probability ½. Then stay there."""
    transition = np.zeros((4, 2, 4))
    transition[0, 0, 1] = 1
    transition[0, 1, [2, 3]] = 1 / 2
    for state in (1, 2, 3):
        transition[state, :, state] = 1
    return TabularMDP(jnp.asarray(transition), _start(4, 0), horizon=1)


def test_stochastic_dynamics_make_the_law_wishful() -> None:
    """A gamble for +4 or −4 against a safe 0, at α = 1.

    MaxEnt RL finds both worth 0 and takes either half of the time. The law gives the trajectories
    weights 1/2, e⁴/4 and e⁻⁴/4: it wins the gamble 96 % of the time, as if luck were an action.
    """
    mdp = _gamble()
    rewards = jnp.array([0.0, 0.0, 4.0, -4.0])
    visited = visited_by_policy(mdp, rewards)
    np.testing.assert_allclose(visited, [0, 0.5, 0.25, 0.25], atol=1e-10)
    weights = np.array([0, 2, np.exp(4), np.exp(-4)])
    wished = agent_marginal(mdp, rewards)
    np.testing.assert_allclose(wished, weights / np.sum(weights), atol=1e-10)
    assert abs(float(wished[2] - visited[2])) > 0.7


def test_the_gap_grows_with_the_slip() -> None:
    mdp = slippery()
    rewards = random_rewards(mdp)
    gap = agent_marginal(mdp, rewards) - visited_by_policy(mdp, rewards)
    assert np.sum(np.abs(gap)) / 2 > 0.1


def test_random_starts_need_the_covariance_within_each() -> None:
    """No policy chooses s_0. The law does, and so does a covariance over all roll-outs at once.

    With ρ_0 fixed, D_f of what the policy visits has as its gradient the mean over s_0 of the
    covariance given s_0. The covariance of everything adds that between the starts, a bias.
    """
    mdp = random_graph(several_starts=True)
    expert, rewards = random_expert(mdp), random_rewards(mdp)
    visited = visited_by_policy(mdp, rewards)
    assert np.max(np.abs(agent_marginal(mdp, rewards) - visited)) > 0.01
    divergence = JensenShannon()

    @jax.jit
    @jax.grad
    def gradient_of_loss(rewards: Array) -> Array:
        visited = visited_by_policy(mdp, rewards)
        return jnp.sum(visited * divergence.f(log_ratio(expert, visited)))

    exact = np.asarray(gradient_of_loss(rewards))
    h = divergence.h(log_ratio(expert, visited))
    paths, log_base = enumerate_trajectories(mdp)
    scores = np.exp(log_base + jnp.sum(rewards[paths[:, 1:]], axis=1) / mdp.temperature)
    starts = np.asarray(paths[:, 0])
    weights = np.zeros(len(starts))
    for start in np.unique(starts):
        here = starts == start
        weights[here] = mdp.initial[start] * scores[here] / np.sum(scores[here])

    states = paths[:, 1:]

    @jax.jit
    def covariance(weights: Array) -> Array:
        return jax.grad(
            lambda r: exact_covariance_loss(
                h[states], r[states], weights, temperature=mdp.temperature
            )
        )(rewards)

    within = sum(
        start_mass * np.asarray(covariance(jnp.where(starts == start, weights, 0) / start_mass))
        for start, start_mass in enumerate(np.asarray(mdp.initial))
        if start_mass > 0
    )
    np.testing.assert_allclose(within, exact, rtol=0, atol=1e-8 * np.max(np.abs(exact)))
    total = np.asarray(covariance(jnp.asarray(weights)))
    assert np.linalg.norm(total - exact) > 0.05 * np.linalg.norm(exact)
