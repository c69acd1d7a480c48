"""Soft actor-critic against closed forms: densities, values of small problems, and an optimum."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from jaxtyping import Array, Float

from firl.config import SACConfig
from firl.sac import (
    Actor,
    Agent,
    FixedTemperature,
    LearnedTemperature,
    ReplayBuffer,
    improve,
)
from firl.sac.adam import Adam
from firl.sac.linear import product
from firl.sac.losses import critic_target, final_value
from firl.types import Transition

FLOAT32 = jnp.dtype("float32")
BASE = SACConfig(
    hidden=(32, 32),
    learning_rate=3e-3,
    batch_size=64,
    discount=0.9,
    polyak=0.9,  # targets that follow fast: these problems are small
    temperature=0.1,
    buffer_size=512,
)


def actor(key, obs_dim=3, act_dim=2) -> Actor:
    return Actor.create(key, obs_dim, act_dim, (16, 16), FLOAT32)


class Parabola(eqx.Module):
    """r(s′) = curvature · (s′ − centre)² + offset: one shape of reward, so one compilation."""

    curvature: Float[Array, ""]
    centre: Float[Array, ""]
    offset: Float[Array, ""]

    def __call__(self, batch: Transition) -> Float[Array, "b"]:
        return self.curvature * (batch.next_obs[:, 0] - self.centre) ** 2 + self.offset

    def absorbed(self, batch, rewards):
        return rewards


def parabola(curvature: float, centre: float, offset: float) -> Parabola:
    return Parabola(jnp.asarray(curvature), jnp.asarray(centre), jnp.asarray(offset))


def constant(value: float) -> Parabola:
    return parabola(0.0, 0.0, value)


def one_state(key, *, terminated: bool, num: int = BASE.buffer_size) -> Transition:
    """A single state, seen from everywhere, with actions all over [−1, 1]."""
    obs = jnp.ones((num, 1))
    action = jr.uniform(key, (num, 1), minval=-1.0, maxval=1.0)
    return Transition(obs, action, obs, jnp.full(num, terminated))


def train(key, transitions, reward, *, alpha=None, config=BASE, blocks=5):
    """An agent fresh from `blocks` times 300 updates on these transitions, and its last info."""
    k_agent, *k_blocks = jr.split(key, 1 + blocks)
    agent = Agent.create(k_agent, 1, 1, config)
    if alpha is not None:
        agent = eqx.tree_at(lambda a: a.temperature.alpha, agent, jnp.asarray(alpha))
    buffer = ReplayBuffer.create(config.buffer_size, 1, 1).insert(transitions)
    for k in k_blocks:
        agent, info = improve(k, agent, buffer, reward, num_updates=300, config=config)
    return agent, info


# Densities


def test_the_actor_s_density_integrates_to_one(getkey):
    policy = actor(getkey(), act_dim=1)
    for obs in jr.normal(getkey(), (3, 3)):
        u = jnp.linspace(-7.0, 7.0, 20_001)  # a = tanh u puts grid points where density piles up
        a = jnp.tanh(u)[:, None]
        density = jnp.exp(jax.vmap(lambda a, obs=obs: policy.log_prob(obs, a))(a))
        assert np.trapezoid(density, a[:, 0]) == pytest.approx(1.0, abs=1e-4)


def test_sampling_and_asking_give_the_same_log_density(getkey):
    policy = actor(getkey())
    obs = jr.normal(getkey(), (200, 3))
    actions, log_probs = jax.vmap(policy.sample)(jr.split(getkey(), 200), obs)
    np.testing.assert_allclose(log_probs, jax.vmap(policy.log_prob)(obs, actions), atol=2e-3)


def test_log_density_stays_finite_at_the_bounds(getkey):
    policy = actor(getkey())
    edge = jnp.asarray([1.0, -1.0])
    value, gradient = eqx.filter_value_and_grad(lambda p: p.log_prob(jnp.zeros(3), edge))(policy)
    assert jnp.isfinite(value)
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))


def test_deterministic_policy_is_the_tanh_of_the_mean(getkey):
    agent = Agent.create(getkey(), 3, 2, BASE)
    obs = jr.normal(getkey(), (3,))
    mean, _ = agent.actor.distribution(obs)
    np.testing.assert_allclose(agent.deterministic_policy(getkey(), obs), jnp.tanh(mean))
    assert not jnp.allclose(agent.policy(getkey(), obs), agent.policy(getkey(), obs))


# Products and Adam


@pytest.mark.parametrize("shape", [(5, 4, 3), (5, 3, 4), (5, 4, 1)])
@pytest.mark.parametrize(("precision", "tolerance"), [("float32", 1e-6), ("bfloat16", 3e-2)])
def test_product_and_its_gradients(getkey, shape, precision, tolerance):
    batch, num_in, num_out = shape
    x, w = jr.normal(getkey(), (2, batch, num_in)), jr.normal(getkey(), (2, num_in, num_out))
    dtype = jnp.dtype(precision)

    def ours(x, w):
        return jnp.sum(jnp.sin(jax.vmap(lambda x, w: product(x, w, dtype))(x, w)))

    def plain(x, w):
        return jnp.sum(jnp.sin(x @ w))

    for got, expected in zip(
        jax.jit(jax.grad(ours, (0, 1)))(x, w), jax.grad(plain, (0, 1))(x, w), strict=True
    ):
        np.testing.assert_allclose(got, expected, atol=tolerance * 4, rtol=tolerance)


def test_adam_takes_the_steps_of_its_algorithm(getkey):
    gradients = np.asarray(jr.normal(getkey(), (5, 3)), np.float64)
    p = m = v = np.zeros(3)
    for t, g in enumerate(gradients, start=1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        p = p - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    ours, adam = jnp.zeros(3), Adam.create(jnp.zeros(3))
    for g in gradients:
        ours, adam = adam.descend(ours, jnp.asarray(g, jnp.float32), 0.1)
    np.testing.assert_allclose(ours, p, rtol=1e-5)


# Values: a ladder of problems, each of which adds one thing


def test_rung_1_a_constant_reward_is_worth_r_over_1_minus_discount(getkey):
    # with an α so small that its entropy does not count beside r / (1 − γ) = 20
    _, info = train(getkey(), one_state(getkey(), terminated=False), constant(2.0), alpha=1e-4)
    assert float(info.q) == pytest.approx(20.0, rel=0.02)


def test_rung_2_the_entropy_is_paid_for(getkey):
    # Without a reward the best policy is uniform on [−1, 1], H = log 2, and
    # Q = 0 + γ(α log 2 + γ α log 2 + …) = γ α log 2 / (1 − γ)
    _, info = train(getkey(), one_state(getkey(), terminated=False), constant(0.0), alpha=1.0)
    assert float(info.entropy) == pytest.approx(np.log(2.0), abs=0.06)
    assert float(info.q) == pytest.approx(0.9 * np.log(2.0) / 0.1, rel=0.08)


@pytest.mark.parametrize("reward", [1.0, -1.0])
def test_rung_3_an_absorbing_state_keeps_paying(getkey, reward):
    # r / (1 − γ) = ±10, where a terminal value of zero would leave ±1; and no entropy is added
    absorbing = one_state(getkey(), terminated=True)
    _, info = train(getkey(), absorbing, constant(reward), alpha=1.0)
    assert float(info.q) == pytest.approx(10.0 * reward, rel=0.02)


def test_rung_4_the_discount_carries_value_one_step_back(getkey):
    # State −1 leads to state 1, whose transition ends in the absorbing state 2. Only state 2 pays:
    # Q(1) = 1 / (1 − γ) = 10 and Q(−1) = γ Q(1) = 9.
    early = jnp.arange(BASE.buffer_size) % 2 == 0
    obs = jnp.where(early, -1.0, 1.0)[:, None]
    next_obs = jnp.where(early, 1.0, 2.0)[:, None]
    action = jr.uniform(getkey(), obs.shape, minval=-1.0, maxval=1.0)
    chain = Transition(obs, action, next_obs, ~early)
    agent, _ = train(getkey(), chain, parabola(-1.0, 2.0, 1.0), alpha=1e-4, blocks=8)
    values = agent.critics(jnp.asarray([[-1.0], [1.0]]), jnp.zeros((2, 1)))
    np.testing.assert_allclose(values, jnp.asarray([[9.0, 10.0]] * 2), rtol=0.04)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_rung_5_the_policy_finds_the_action_that_pays_most(getkey, precision):
    # one step to s′ = a, absorbing, r = −(s′ − 0.4)²
    transitions = one_state(getkey(), terminated=True)
    transitions = eqx.tree_at(lambda t: t.next_obs, transitions, transitions.action)
    config = dataclasses.replace(BASE, precision=precision)
    agent, _ = train(getkey(), transitions, parabola(-1.0, 0.4, 0.0), alpha=1e-3, config=config)
    best = agent.deterministic_policy(getkey(), jnp.ones(1))
    assert float(best[0]) == pytest.approx(0.4, abs=0.06)


def test_a_small_navigation_problem_is_solved(getkey):
    # s′ = s + 0.2 a on [−1, 1], r = −s′²: go to the origin at full speed, then stand still
    obs, action = jr.uniform(getkey(), (2, BASE.buffer_size, 1), minval=-1.0, maxval=1.0)
    next_obs = jnp.clip(obs + 0.2 * action, -1.0, 1.0)
    walk = Transition(obs, action, next_obs, jnp.zeros(BASE.buffer_size, dtype=jnp.bool_))
    agent, _ = train(getkey(), walk, parabola(-1.0, 0.0, 0.0), alpha=1e-4, blocks=8)
    state = jnp.asarray([[-0.8], [-0.4], [0.4], [0.8]])
    best = jax.vmap(lambda o: agent.deterministic_policy(getkey(), o))(state)
    np.testing.assert_allclose(best[:, 0], [1.0, 1.0, -1.0, -1.0], atol=0.2)
    for _ in range(10):
        state = state + 0.2 * jax.vmap(lambda o: agent.deterministic_policy(getkey(), o))(state)
    np.testing.assert_allclose(state, jnp.zeros((4, 1)), atol=0.1)


def test_the_target_of_an_absorbing_state_is_exact(getkey):
    agent = Agent.create(getkey(), 1, 1, BASE)
    batch = one_state(getkey(), terminated=True, num=4)
    rewards = jnp.asarray([1.0, -2.0, 0.0, 3.0])
    target = critic_target(
        agent.actor,
        agent.targets,
        batch,
        rewards,
        final_value(rewards, rewards, 0.9),
        jnp.zeros((4, 1)),
        jnp.asarray(0.5),
        0.9,
    )
    np.testing.assert_allclose(target, rewards * 10.0, rtol=1e-5)


class Paid(eqx.Module):
    """One, from the environment, and nothing once the episode has ended."""

    def __call__(self, batch: Transition) -> Float[Array, "b"]:
        return jnp.ones(batch.terminated.shape)

    def absorbed(self, batch, rewards):
        return jnp.zeros_like(rewards)


def test_what_an_environment_pays_ends_with_the_episode(getkey):
    agent, _ = train(getkey(), one_state(getkey(), terminated=True), Paid(), alpha=1e-4)
    critic = agent.critics(jnp.ones((1, 1)), jnp.zeros((1, 1)))
    np.testing.assert_allclose(critic, np.ones((2, 1)), rtol=0.03)


def test_rewards_are_those_of_now_not_of_then(getkey):
    agent = Agent.create(getkey(), 1, 1, BASE)
    absorbing = one_state(getkey(), terminated=True)
    buffer = ReplayBuffer.create(BASE.buffer_size, 1, 1).insert(absorbing)
    for value in (1.0, -1.0):  # the same buffer, two rewards: the critics follow the second
        for _ in range(4):
            agent, info = improve(
                getkey(), agent, buffer, constant(value), num_updates=300, config=BASE
            )
        assert float(info.reward) == pytest.approx(value)
        critic = agent.critics(jnp.ones((1, 1)), jnp.zeros((1, 1)))
        np.testing.assert_allclose(critic, 10.0 * value * np.ones((2, 1)), rtol=0.03)


# Temperature


def test_a_learned_temperature_brings_the_entropy_to_its_target(getkey):
    config = dataclasses.replace(BASE, learn_temperature=True, target_entropy=0.0)
    transitions = one_state(getkey(), terminated=True)
    transitions = eqx.tree_at(lambda t: t.next_obs, transitions, transitions.action)
    _, info = train(getkey(), transitions, parabola(-1.0, 0.0, 0.0), config=config, blocks=8)
    assert float(info.entropy) == pytest.approx(0.0, abs=0.1)


def test_a_learned_temperature_moves_against_the_entropy(getkey):
    temperature = LearnedTemperature.create(0.5, 0.0)
    assert temperature.value == pytest.approx(0.5)
    assert temperature.update(jnp.asarray(1.0), 0.01).value < 0.5
    assert temperature.update(jnp.asarray(-1.0), 0.01).value > 0.5


def test_the_target_entropy_is_minus_the_action_dimension_unless_given(getkey):
    config = dataclasses.replace(BASE, learn_temperature=True)
    assert Agent.create(getkey(), 3, 2, config).temperature.target_entropy == -2.0
    assert isinstance(Agent.create(getkey(), 3, 2, BASE).temperature, FixedTemperature)


# Steps that fall over the budget


def test_step_sizes_fall_linearly_to_their_share(getkey):
    config = dataclasses.replace(BASE, hidden=(4,), batch_size=16, learn_temperature=True)
    transitions, k_agent, key = one_state(getkey(), terminated=False, num=64), getkey(), getkey()

    def improved(share_done=0.0, **changes):
        ours = dataclasses.replace(config, **changes)
        buffer = ReplayBuffer.create(64, 1, 1).insert(transitions)
        agent = Agent.create(k_agent, 1, 1, ours)
        options = {"num_updates": 3, "config": ours, "share_done": share_done}
        agent, _ = improve(key, agent, buffer, constant(1.0), **options)
        learned = (agent.actor, agent.critics, agent.temperature.value)
        return [np.asarray(leaf) for leaf in jax.tree.leaves(learned)]

    def same(left, right):
        return all((a == b).all() for a, b in zip(left, right, strict=True))

    rate = config.learning_rate
    untouched = Agent.create(k_agent, 1, 1, config)
    at_start = [untouched.actor, untouched.critics, untouched.temperature.value]
    assert same(improved(1.0, anneal_to=0.0), jax.tree.leaves(at_start))
    assert same(improved(0.5, anneal_to=0.5), improved(learning_rate=0.75 * rate))
    assert same(improved(1.0), improved(0.0)), "they stay what they are if nothing is said"
    assert not same(improved(0.5, anneal_to=0.5), improved())


# Many agents at once


def test_a_batch_of_agents_learns_what_each_would_alone(getkey):
    config = dataclasses.replace(BASE, hidden=(4,), batch_size=16)
    keys = jr.split(getkey(), 3)
    agents = eqx.filter_vmap(lambda k: Agent.create(k, 1, 1, config))(keys)
    buffer = ReplayBuffer.create(64, 1, 1).insert(one_state(getkey(), terminated=False, num=64))
    values = jnp.asarray([0.0, 1.0, 2.0])
    rewards = Parabola(jnp.zeros(3), jnp.zeros(3), values)
    alone = [
        improve(
            keys[i],
            Agent.create(keys[i], 1, 1, config),
            buffer,
            constant(float(values[i])),
            num_updates=20,
            config=config,
        )
        for i in range(3)
    ]

    def block(key, agent, reward):
        return improve(key, agent, buffer, reward, num_updates=20, config=config)

    agents, info = eqx.filter_vmap(block)(keys, agents, rewards)
    for i, (agent, own) in enumerate(alone):
        np.testing.assert_allclose(info.q[i], own.q, rtol=1e-3, atol=1e-4)
        for got, expected in zip(
            jax.tree.leaves(agents.critics), jax.tree.leaves(agent.critics), strict=True
        ):
            np.testing.assert_allclose(got[i], expected, rtol=1e-3, atol=1e-3)
