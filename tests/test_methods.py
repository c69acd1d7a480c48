"""One suite over every method and divergence: what they all promise."""

import dataclasses
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from firl.config import (
    AdversarialConfig,
    CollectConfig,
    RatioConfig,
    RewardConfig,
    SACConfig,
    TrainConfig,
)
from firl.divergences import DIVERGENCES
from firl.envs.point_mass import PointMass
from firl.errors import FirlError
from firl.evaluation import first_non_finite, visited_states
from firl.expert.base import AbstractDensity
from firl.expert.densities import Gaussian
from firl.expert.regions import Box
from firl.expert.truncated import Truncated
from firl.log_ratio import GaussianKernel, KernelDensity
from firl.methods import METHODS
from firl.methods.base import Method
from firl.methods.f_irl import METRICS
from firl.methods.logit import weighted_cross_entropy
from firl.methods.maxent_irl import plain_loss, self_normalised_loss
from firl.methods.smm import MatchingReward
from firl.problems import Problem
from firl.reward import SoftBound
from firl.rollout import JaxSimulator
from firl.types import Columns, Transition

ARENA = Box((0.0, 0.0), (4.0, 4.0))
KINDS = [
    *(("firl", name) for name in [*DIVERGENCES, *METRICS]),
    *((name, "fkl") for name in ("maxent", "gail", "f-max-rkl", "fairl", "smm")),
]
WITH_REWARD = [kind for kind in KINDS if kind[0] != "smm"]
SMALL = TrainConfig(
    task="custom",
    collect=CollectConfig(random_episodes=2, rollouts=8, updates=10),
    ratio=RatioConfig(bandwidth=0.3),
    reward=RewardConfig(hidden=(16,), learning_rate=1e-2),
    sac=SACConfig(hidden=(16, 16), batch_size=32, buffer_size=1000, temperature=1.0),
)


def problem(mean=(3.0, 3.0), std=0.5, horizon=10) -> Problem:
    return Problem(
        simulator=JaxSimulator(PointMass(size=4.0, horizon=horizon)),
        state_map=Columns((0, 1)),
        expert=Truncated(Gaussian(mean, std), ARENA),
        arena=ARENA,
    )


def make(method, divergence, config=SMALL, of=None) -> Method:
    config = dataclasses.replace(config, method=method, divergence=divergence)
    return METHODS[method](problem() if of is None else of, config)


def arrays(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


@pytest.mark.parametrize(("method", "divergence"), KINDS)
def test_conformance(method, divergence):
    """Pure given the key, honest about its steps, moves what it should, stays finite."""
    # Wide enough that the agent is too often in some places and too rarely in others: total
    # variation has no gradient where it is everywhere too often.
    built = make(method, divergence, of=problem(mean=(1.0, 1.0), std=1.0))
    key = jax.random.key(1)
    state = built.init(jax.random.key(0))
    # SMM's first density is of roll-outs, too.
    explored = 2 * 10 + 8 * 10 * (method == "smm")
    assert int(state.env_steps) == explored, "random exploration counts"
    before = arrays((state.reward, state.agent.actor))  # the step donates its state's buffers
    after, info = built.step(key, state)
    assert int(after.env_steps) == explored + 8 * 10, "roll-outs count"
    assert first_non_finite(eqx.filter(after, eqx.is_inexact_array)) is None
    for name, value in info.items():
        assert "/" in name
        assert jnp.shape(value) == ()
    moved = arrays((after.reward, after.agent.actor))
    assert all((a != b).any() for a, b in zip(before, moved, strict=True)), "some weight is stuck"
    assert jax.tree.structure(after) == jax.tree.structure(built.init(jax.random.key(0)))

    again, info_again = built.step(key, built.init(jax.random.key(0)))
    assert all((a == b).all() for a, b in zip(arrays(after), arrays(again), strict=True))
    assert {k: float(v) for k, v in info.items()} == {k: float(v) for k, v in info_again.items()}


@pytest.mark.parametrize(("method", "divergence"), WITH_REWARD)
def test_reward_rises_where_the_expert_is(method, divergence):
    """A known answer: with uniform visits and the expert in one corner, that corner must pay.

    Turning the sign of any loss, or the ratio upside down, fails this.
    """
    config = dataclasses.replace(
        SMALL,
        collect=CollectConfig(random_episodes=2, rollouts=200, updates=1),
        reward=RewardConfig(hidden=(16,), learning_rate=1e-2, gradient_steps=30),
        # So hot that the agent stays near uniform whatever the reward.
        sac=dataclasses.replace(SMALL.sac, temperature=100.0),
    )
    built = make(method, divergence, config)
    state, _ = built.step(jax.random.key(1), built.init(jax.random.key(0)))
    corner, away = jnp.array([3.0, 3.0]), jnp.array([0.5, 0.5])
    assert float(state.reward(corner)) > float(state.reward(away)) + 0.05


def test_rollouts_serve_sac_only_where_asked():
    for learn in (True, False):
        collect = CollectConfig(
            random_episodes=2, sac_episodes=1, rollouts=8, updates=1, learn_from_rollouts=learn
        )
        built = make("firl", "fkl", dataclasses.replace(SMALL, collect=collect))
        state, _ = built.step(jax.random.key(1), built.init(jax.random.key(0)))
        assert int(state.env_steps) == (2 + 1 + 8) * 10
        assert int(state.buffer.size) == (2 + 1 + 8 * learn) * 10


def test_window_pools_the_last_iterations():
    collect = dataclasses.replace(SMALL.collect, window=3)
    built = make("firl", "fkl", dataclasses.replace(SMALL, collect=collect))
    state = built.init(jax.random.key(0))
    for i in range(4):
        state, _ = built.step(jax.random.key(i), state)
        assert int(state.window_filled) == min(i + 1, 2)
    assert np.ptp(np.asarray(state.window), axis=(1, 2, 3)).min() > 0, "a slot was never filled"
    assert (state.window[0] != state.window[1]).any()


class Energy(AbstractDensity):
    """Known up to a constant."""

    @property
    def dim(self):
        return 2

    @property
    def normalised(self):
        return False

    def log_prob(self, states):
        return -jnp.sum((states - 3.0) ** 2, axis=1)

    def sample(self, key, num):
        raise FirlError("It cannot be sampled.")


@pytest.mark.parametrize(("method", "divergence"), KINDS)
def test_energy_is_enough_for_reverse_kl_alone(method, divergence):
    energy = problem()._replace(expert=Energy())
    if divergence == "rkl" or method != "firl":
        built = make(method, divergence, of=energy)
        built.step(jax.random.key(1), built.init(jax.random.key(0)))
    else:
        with pytest.raises(FirlError, match=r"needs|sampled"):
            make(method, divergence, of=energy)


@pytest.mark.parametrize("method", ["maxent", "gail", "f-max-rkl", "fairl"])
def test_plain_importance_weights_need_a_normalised_density(method):
    plain = dataclasses.replace(SMALL, ratio=RatioConfig(bandwidth=0.3, self_normalise=False))
    make(method, "fkl", plain)
    with pytest.raises(FirlError, match="needs a normalised density"):
        make(method, "fkl", plain, of=problem()._replace(expert=Energy()))


def test_a_discriminator_s_optimum_is_the_log_ratio():
    signal = jnp.log(jnp.array([[0.5, 1.0], [0.5, 2.0]]))  # weights that average to one
    for self_normalise, shift in ((False, 0.0), (True, 9.0)):
        gradient = jax.grad(weighted_cross_entropy, 1)(signal - shift, signal, self_normalise)
        assert jnp.allclose(gradient, 0.0, atol=1e-6)
        too_high = jax.grad(weighted_cross_entropy, 1)(signal - shift, signal + 1, self_normalise)
        assert (too_high > 0.01).all()


@pytest.mark.parametrize(("pays", "sign"), [("positive", 1), ("negative", -1)])
def test_what_gail_pays_has_one_sign(pays, sign):
    adversarial = AdversarialConfig(pays=pays, scale=3.0)
    built = make("gail", "fkl", dataclasses.replace(SMALL, adversarial=adversarial))
    _, info = built.step(jax.random.key(1), built.init(jax.random.key(0)))
    assert float(info["sac/reward"]) == pytest.approx(sign * 3 * np.log(2), rel=0.5)


def test_a_density_is_one_of_states_alone():
    adversarial = AdversarialConfig(actions=True)
    with pytest.raises(FirlError, match=r"--adversarial\.actions needs demonstrations"):
        make("gail", "fkl", dataclasses.replace(SMALL, adversarial=adversarial))


def test_importance_weights_are_paid_where_they_are_large():
    signal = jnp.log(jnp.array([[0.5, 1.0], [0.5, 2.0]]))
    for loss in (plain_loss, self_normalised_loss):
        gradient = jax.grad(functools.partial(loss, signal))(jnp.zeros((2, 2)))
        assert jnp.allclose(gradient.sum(), 0.0, atol=1e-6), "these weights average to one"
        assert jnp.allclose(gradient, (1 - jnp.exp(signal)) / 4, atol=1e-6)
    shifted = jax.grad(lambda r: self_normalised_loss(signal - 9.0, r))(jnp.zeros((2, 2)))
    assert jnp.allclose(shifted, (1 - jnp.exp(signal)) / 4, atol=1e-6)


def test_unknown_divergence_names_the_nearest():
    with pytest.raises(FirlError, match="did you mean 'hellinger'"):
        make("firl", "helinger")


def test_the_agent_comes_to_rest_with_the_budget():
    config = dataclasses.replace(SMALL, sac=dataclasses.replace(SMALL.sac, anneal_to=0.0))
    built = make("firl", "fkl", config)
    state = built.init(jax.random.key(0))
    spent = eqx.tree_at(lambda s: s.env_steps, state, jnp.asarray(config.env_steps, jnp.int32))
    before = arrays(spent.agent.actor)
    after, _ = built.step(jax.random.key(1), spent)
    assert all((a == b).all() for a, b in zip(before, arrays(after.agent.actor), strict=True))


# --- SMM ---------------------------------------------------------------------------------------


def test_smm_pays_where_the_expert_is_and_nobody_has_been():
    """A known answer: the sign of either logarithm turned, and this fails."""
    expert = Gaussian((3.0, 3.0), 0.5)
    visited = KernelDensity(jnp.array([[1.0, 1.0], [3.0, 3.0]]), 0.5, GaussianKernel())
    pays = MatchingReward(expert, visited, SoftBound(10.0), Columns((0, 1)))

    def at(*place):
        obs = jnp.array([place])
        batch = Transition(obs, jnp.zeros((1, 2)), obs, jnp.zeros(1, bool))
        assert jnp.array_equal(pays.absorbed(batch, pays(batch)), pays(batch))
        return float(pays(batch)[0])

    assert at(3.0, 3.0) > 0 > at(1.0, 1.0)
    assert at(3.0, 3.0) == pytest.approx(np.log(2), abs=2e-3), "half of the visits, all of ρ_E"
    assert -10.0 <= at(0.0, 0.0) < -9.0


def test_smm_keeps_a_fair_sample_of_all_rounds():
    collect = CollectConfig(random_episodes=2, rollouts=50, updates=1)
    config = dataclasses.replace(SMALL, collect=collect, env_steps=10**6)
    built = make("smm", "fkl", config)
    state = built.init(jax.random.key(0))
    assert len(state.policies) == 20
    # Mark what is old: nobody gets there.
    state = eqx.tree_at(lambda s: s.states, state, jnp.full_like(state.states, -5.0))
    first = arrays(state.past)
    for i in range(9):
        state, _ = built.step(jax.random.key(i), state)
    assert int(state.num_states) == 10 * 50 * 10
    assert int(state.rounds) == 10
    old = float(jnp.mean(state.states[:, 0] == -5.0))
    assert old == pytest.approx(0.1, abs=0.02), "the first of ten rounds"
    per_actor = len(first) // 20
    now = arrays(state.past)
    kept = [(first[i] == now[i]).all() for i in range(0, len(first), per_actor)]
    assert sum(kept) <= 7, "a tenth of the policies, two on average"


def test_scores_are_of_all_policies_alike():
    """Two policies that run to opposite corners: what is visited is half of each."""

    class Towards(eqx.Module):
        action: jax.Array

        def __call__(self, key, obs):
            return self.action

    policies = [Towards(jnp.ones(2)), Towards(-jnp.ones(2))]
    states, env_steps = visited_states(problem(), policies, jax.random.key(0), 6)
    assert env_steps == len(states) == 6 * 10
    assert (states[:, 0] > 0.5).mean() == 0.5
    assert (states[:, 0] == 0.0).mean() == 0.5
