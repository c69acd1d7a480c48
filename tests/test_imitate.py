"""Learning from demonstrations: what every method promises, and what an episode's end is worth."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from ledge import EDGE, HORIZON, SMALL, Ledge, leaving, problem, staying

from firl.config import ImitationConfig
from firl.divergences import DIVERGENCES
from firl.errors import FirlError
from firl.evaluation import first_non_finite
from firl.expert.demonstrations import from_arrays
from firl.methods import METHODS
from firl.methods.f_irl import METRICS, MixtureLoss
from firl.methods.imitate import make_update
from firl.methods.maxent_irl import trajectory_loss
from firl.methods.signals import NoSignal

pytestmark = pytest.mark.usefixtures("compiled_quickly")

KINDS = [("firl", name) for name in [*DIVERGENCES, *METRICS]] + [("maxent", "fkl")]


@functools.cache
def make(method, divergence):
    """With two demonstrations near the wall, one of which ends early, and one that is not used."""
    config = dataclasses.replace(SMALL, method=method, divergence=divergence)
    first, second, third = staying(3)
    made = problem([first - 0.7, second[:5] - 0.7, third + 0.7], [False, True, False])
    return METHODS[method](made, config), made.simulator.practised


def hot(state):
    """With an agent that stays near uniform whatever the reward."""
    return eqx.tree_at(lambda s: s.agent.temperature.alpha, state, jnp.asarray(100.0, jnp.float32))


def arrays(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def kinds_of(tree):
    return [
        (a.shape, a.dtype, a.weak_type) for a in jax.tree.leaves(eqx.filter(tree, eqx.is_array))
    ]


@pytest.mark.parametrize(("method", "divergence"), KINDS)
def test_conformance(method, divergence):
    """Pure given the key, honest about its steps, moves what it should, stays finite."""
    built, _ = make(method, divergence)
    key, before_any = jr.key(1), Ledge.steps_taken
    state = built.init(jr.key(0))
    explored = Ledge.steps_taken - before_any
    assert int(state.env_steps) == explored >= 100, "random exploration counts"
    before = arrays((state.reward, state.agent.actor))  # the step donates its state's buffers
    kinds, structure = kinds_of(state), jax.tree.structure(state)
    after, info = built.step(key, state)
    assert int(after.env_steps) == Ledge.steps_taken - before_any >= explored + 100
    assert int(after.buffer.size) == int(after.env_steps)
    assert first_non_finite(eqx.filter(after, eqx.is_inexact_array)) is None
    for name, value in info.items():
        assert "/" in name
        assert jnp.shape(value) == ()
        assert jnp.isfinite(value)
    moved = arrays((after.reward, after.agent.actor))
    assert all((a != b).any() for a, b in zip(before, moved, strict=True)), "some weight is stuck"
    assert jax.tree.structure(after) == structure
    assert kinds_of(after) == kinds, "the next step would be compiled again"

    again, info_again = built.step(key, built.init(jr.key(0)))
    assert all((a == b).all() for a, b in zip(arrays(after), arrays(again), strict=True))
    assert {k: float(v) for k, v in info.items()} == {k: float(v) for k, v in info_again.items()}


@pytest.mark.parametrize(("method", "divergence"), KINDS)
def test_demonstrations_that_are_not_used_are_not_looked_at(method, divergence):
    """Not for units either: one demonstration means that there is no other."""
    config = dataclasses.replace(SMALL, method=method, divergence=divergence)
    first, second, third = staying(3)

    def learned(unused):
        made = problem([first - 0.7, second - 0.7, unused], [False, False, False])
        built = METHODS[method](made._replace(units=None), config)
        state, _ = built.step(jr.key(1), built.init(jr.key(0)))
        return arrays((state.reward, state.agent))

    with_one, with_another = learned(third + 0.7), learned(3.0 * third)
    assert all((a == b).all() for a, b in zip(with_one, with_another, strict=True))


@pytest.mark.parametrize(("method", "divergence"), KINDS)
def test_reward_rises_where_the_demonstrations_are(method, divergence):
    """A known answer: with visits everywhere and the expert near the wall, there it must pay.

    Turning the sign of any loss, or the ratio upside down, fails this.
    """
    built, _ = make(method, divergence)
    start = hot(built.init(jr.key(0)))
    state, info = built.step(jr.key(1), start)
    near, away = jnp.array([-0.7]), jnp.array([0.7])

    def preference(reward):
        return float(reward(near) - reward(away))

    assert preference(state.reward) > preference(start.reward) + 0.5
    if method == "firl":
        assert float(info["signal/expert_mean"]) > float(info["signal/agent_mean"]) + 0.1


# --- what the reward is learned from -----------------------------------------------------------


def rewards_of(reward, visited):
    return jax.vmap(jax.vmap(reward))(jnp.asarray(visited))


def seen(visited, length, terminated):
    """s_1 … s_T of an episode whose terminal state counts four times, stretched to T again."""
    end = min(length + 4, HORIZON) if terminated else HORIZON
    return visited[np.floor(np.linspace(0, end, HORIZON, endpoint=False)).astype(int)]


def test_the_window_holds_the_last_episodes_padded_where_they_ended():
    built, practised = make("maxent", "fkl")
    state = hot(built.init(jr.key(0)))
    assert int(state.num_recent) == 0, "nobody is to be told from what random actions did"
    del practised[:]
    for i in range(3):
        state, _ = built.step(jr.key(i), state)
        newest_first = [
            seen(np.asarray(part.visited[n]), int(part.lengths[n]), bool(part.terminated[n]))
            for part in practised[::-1]
            for n in range(part.num)[::-1]
        ]
        held = min(len(newest_first), 20)
        assert int(state.num_recent) == held
        np.testing.assert_array_equal(state.recent[:held], newest_first[:held])
        assert (held < 20) == (i == 0), "it should have been tried on a window that is not full"
    ended = np.asarray(state.recent)[..., 0] > EDGE
    assert ended[:, -2:].all(axis=1).any(), "none stayed where it ended"


def test_both_sides_are_matched_at_all_times_until_the_horizon():
    built, _ = make("maxent", "fkl")
    start = hot(built.init(jr.key(0)))
    state, info = built.step(jr.key(0), start)
    # The window fills up with what there is, and a batch as large as the window is all of it.
    drawn = state.recent[jnp.arange(20) % int(state.num_recent)]
    np.testing.assert_allclose(
        info["reward/agent_mean"], rewards_of(start.reward, drawn).mean(), rtol=1e-4
    )
    first, second, _ = staying(3)
    stayed = np.concatenate([second[1:5], np.repeat(second[4:5], HORIZON - 4, axis=0)])
    both = np.stack([first[1:], seen(stayed, 4, True)]) - np.float32(0.7)
    np.testing.assert_allclose(
        info["reward/expert_mean"], rewards_of(start.reward, both).mean(), rtol=1e-4
    )


def test_each_step_draws_a_batch_from_the_window():
    shapes = []

    def loss(agent, agent_rewards, expert, expert_rewards):
        shapes.append([x.shape for x in (agent, agent_rewards, expert, expert_rewards)])
        return trajectory_loss(agent, agent_rewards, expert, expert_rewards)

    imitation = dataclasses.replace(SMALL.imitation, batch=7)
    built, _ = make("maxent", "fkl")
    state = built.init(jr.key(0))
    update = make_update(SMALL.reward, imitation, loss)
    visited, expert = jnp.zeros((20, HORIZON, 1)), jnp.zeros((2, HORIZON, 1))
    signal = NoSignal().fit(jr.key(0), (), expert[0], visited[0])[1]
    update.lower(jr.key(0), state.reward, state.optimiser, signal, visited, expert, jnp.zeros(()))
    assert shapes[0] == [(7, HORIZON)] * 2 + [(2, HORIZON)] * 2


def test_the_agent_learns_from_an_average_of_rewards():
    built, _ = make("maxent", "fkl")
    state = built.init(jr.key(0))
    before = arrays(state.taught)
    state, _ = built.step(jr.key(0), state)
    for old, new, taught in zip(before, arrays(state.reward), arrays(state.taught), strict=True):
        assert (new != old).any()
        np.testing.assert_allclose(taught, 0.75 * old + 0.25 * new, atol=1e-6)
    # Two rewards that cannot be mistaken for each other
    paying = eqx.tree_at(
        lambda s: (s.taught.layers[-1], s.reward.layers[-1]),
        state,
        replace_fn=lambda layer: jax.tree.map(jnp.zeros_like, layer),
    )
    paying = eqx.tree_at(lambda s: s.taught.layers[-1].bias, paying, jnp.ones(1))
    _, info = built.step(jr.key(1), paying)
    assert float(info["sac/reward"]) == pytest.approx(10 * np.tanh(0.1))


@pytest.mark.parametrize("standardise", [False, True])
def test_the_gradient_is_the_covariance_under_half_agent_half_expert(standardise, getkey):
    divergence, alpha = DIVERGENCES["rkl"], 0.5
    agent, expert = jr.normal(getkey(), (5, 3)), 1.0 + jr.normal(getkey(), (2, 3))
    loss = MixtureLoss(divergence.h, alpha, standardise)
    gradients = jax.jit(jax.grad(loss, (1, 3)))(agent, jnp.zeros((5, 3)), expert, jnp.zeros((2, 3)))

    h = np.asarray(divergence.h(jnp.concatenate([agent, expert])), np.float64)
    weights = np.array([1 / 10] * 5 + [1 / 4] * 2)
    total = h.sum(axis=1)
    expected = weights * (total - weights @ total) / (alpha * 3)
    if standardise:
        spread = np.sqrt(weights @ (h**2).mean(axis=1) - (weights @ h.mean(axis=1)) ** 2)
        expected = expected / (spread * 3 / alpha)
    np.testing.assert_allclose(
        np.concatenate(gradients), np.repeat(expected[:, None], 3, axis=1), rtol=1e-4, atol=1e-6
    )


# --- termination -------------------------------------------------------------------------------


@functools.cache
def towards_leaving():
    """The reward's gradient gets episodes of its own."""
    config = dataclasses.replace(
        SMALL,
        practice=dataclasses.replace(SMALL.practice, random_steps=200, steps=200),
        imitation=dataclasses.replace(SMALL.imitation, average=0.0, rollouts=6),
        reward=dataclasses.replace(SMALL.reward, learning_rate=3e-3),
    )
    return METHODS["firl"](problem(leaving(2), True), config)


@pytest.mark.parametrize("offset", [-3.0, 3.0])
def test_an_expert_that_leaves_is_followed_whatever_a_state_pays(offset):
    """A constant in the reward changes no preference as long as an absorbing state goes on paying.

    If it did not, positive rewards would be a reason to stay alive, and negative ones to die.
    """
    built = towards_leaving()
    state = built.init(jr.key(0))
    for name in ("reward", "taught"):
        state = eqx.tree_at(
            lambda s, name=name: getattr(s, name).layers[-1].bias,
            state,
            jnp.full(1, offset, jnp.float32),
        )
    before = Ledge.steps_taken - int(state.env_steps)
    for i in range(6):
        taught = state.taught
        state, info = built.step(jr.key(i), state)
        assert int(state.num_recent) == min(6 * (i + 1), 20), "six at a time, not all"
    assert int(state.env_steps) == Ledge.steps_taken - before
    assert int(state.env_steps) - int(state.buffer.size) >= 6 * 6 * 2, "SAC learned from them too"
    assert float(info["agent/length"]) < 4.5, "by then it leaves about as fast as the expert"
    value = state.agent.critics(jnp.array([[0.9]]), jnp.array([[1.0]])).mean()
    assert value == pytest.approx(float(taught(jnp.array([1.4]))) / (1 - 0.9), rel=0.3)


# --- what is refused ---------------------------------------------------------------------------


def test_demonstrations_of_something_else_are_refused():
    fits, config = problem(leaving(), True), dataclasses.replace(SMALL, imitation=ImitationConfig())
    wide = fits._replace(expert=from_arrays([np.zeros((HORIZON + 1, 2))]))
    cut = fits._replace(expert=from_arrays([np.zeros((4, 1))]))
    long = fits._replace(expert=from_arrays([np.zeros((HORIZON + 2, 1))]))
    few = dataclasses.replace(config, imitation=ImitationConfig(demonstrations=2))
    misspelt = dataclasses.replace(config, divergence="helinger")
    for bad, settings, message in (
        (wide, config, "2 coordinates, but those of the environment have 1"),
        (cut, config, "stops after 3 of 10 steps and did not terminate"),
        (long, config, "11 steps, more than the horizon of 10"),
        (fits, few, "2 demonstrations were asked for, but it holds 1"),
        (fits, misspelt, "did you mean 'hellinger'"),
    ):
        with pytest.raises(FirlError, match=message):
            METHODS["firl"](bad, settings)


def test_the_agent_comes_to_rest_with_the_budget():
    first, second = staying(2)
    made = problem([first - 0.7, second - 0.7], [False, False])
    config = dataclasses.replace(
        SMALL, method="firl", sac=dataclasses.replace(SMALL.sac, anneal_to=0.0)
    )
    built = METHODS["firl"](made, config)
    state = built.init(jax.random.key(0))
    spent = eqx.tree_at(lambda s: s.env_steps, state, jnp.asarray(config.env_steps, jnp.int32))
    before = arrays(spent.agent.actor)
    after, _ = built.step(jax.random.key(1), spent)
    assert all((a == b).all() for a, b in zip(before, arrays(after.agent.actor), strict=True))
