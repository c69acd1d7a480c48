"""Acting and learning at the same time: who acts when, what is learned from, what is counted."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from ledge import HORIZON, Ledge, LedgeSimulator

from firl.config import PracticeConfig, SACConfig
from firl.envs.point_mass import PointMass
from firl.methods.practice import explore, practise
from firl.methods.reinforce import TrueReward
from firl.rollout import JaxSimulator, UniformPolicy, transitions
from firl.sac import Agent, ReplayBuffer
from firl.sac.replay import unpack

pytestmark = pytest.mark.usefixtures("compiled_quickly")

SAC = SACConfig(hidden=(8,), batch_size=8, buffer_size=500, discount=0.9)
PRACTICE = PracticeConfig(random_steps=65, steps=65, every=20, updates=3)
KINDS = ("gym", "jax")


def make(kind):
    return LedgeSimulator() if kind == "gym" else JaxSimulator(PointMass(4.0, HORIZON))


def empty(sim, capacity=SAC.buffer_size) -> ReplayBuffer:
    return ReplayBuffer.create(capacity, sim.obs_dim, sim.act_dim, keep_env_reward=True)


def practised(sim, config=PRACTICE, key=1):
    """A fresh agent's first iteration."""
    agent = Agent.create(jr.key(0), sim.obs_dim, sim.act_dim, SAC)
    return practise(jr.key(key), sim, agent, empty(sim), TrueReward(), config, SAC)


def stored(buffer):
    return unpack(buffer.rows[: int(buffer.size)], buffer.obs_dim, buffer.act_dim)


def assert_same(left, right):
    """Bit for bit."""
    jax.tree.map(np.testing.assert_array_equal, left, right)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("every", [20, 25, 7, 100])
def test_there_are_as_many_updates_as_whole_blocks_of_steps(kind, every):
    sim = make(kind)
    config = dataclasses.replace(PRACTICE, every=every)
    agent, buffer, episodes, info = practised(sim, config)
    blocks = max(1, episodes.env_steps // every)  # each iteration has to learn something
    assert int(agent.critic_optimiser.count) == int(info["sac/updates"]) == 3 * blocks
    assert int(buffer.size) == episodes.env_steps, "what is left over is stored all the same"


@pytest.mark.parametrize("kind", KINDS)
def test_all_steps_are_stored_once_in_their_order(kind):
    sim = make(kind)
    _, buffer, episodes, _ = practised(sim)
    assert_same(stored(buffer), transitions(episodes))
    buffer, episodes = explore(jr.key(0), sim, empty(sim), PRACTICE)
    assert_same(stored(buffer), transitions(episodes))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("every", [20, 100])
def test_episodes_are_whole_and_no_more_than_it_takes(kind, every):
    sim = make(kind)
    config = dataclasses.replace(PRACTICE, every=every)
    _, explored = explore(jr.key(0), sim, empty(sim), config)
    for episodes in (explored, practised(sim, config)[2]):
        assert (episodes.terminated | (episodes.lengths == sim.horizon)).all()
        assert episodes.env_steps >= 65
        assert episodes.env_steps - int(episodes.lengths[-1]) < 65
    if kind == "gym":
        assert explored.terminated.any(), "it should have been tried on episodes that end early"


def test_counts_are_those_of_the_simulator():
    sim = make("gym")
    for run in (
        lambda: explore(jr.key(0), sim, empty(sim), PRACTICE)[1],
        lambda: practised(sim)[2],
    ):
        before = Ledge.steps_taken
        assert run().env_steps == Ledge.steps_taken - before


@pytest.mark.parametrize("kind", KINDS)
def test_practice_is_a_function_of_its_key(kind):
    sim = make(kind)
    agent, *rest = practised(sim)
    sim.rollout(jr.key(9), UniformPolicy(sim.act_dim), 3)
    again, *rest_again = practised(sim)
    assert_same(
        eqx.filter((agent, rest), eqx.is_array), eqx.filter((again, rest_again), eqx.is_array)
    )
    *_, other, _ = practised(sim, key=2)
    assert (other.actions[0, 0] != rest[1].actions[0, 0]).all()
    _, explored = explore(jr.key(0), sim, empty(sim), PRACTICE)
    assert_same(explored, explore(jr.key(0), make(kind), empty(sim), PRACTICE)[1])
    assert (
        explore(jr.key(1), sim, empty(sim), PRACTICE)[1].actions[0] != explored.actions[0]
    ).all()


class Constant(eqx.Module):
    """Its action says who acted."""

    action: jax.Array

    def __call__(self, key, obs):
        return self.action


@pytest.mark.parametrize(("kind", "block", "rest"), [("gym", 7, [4, 1]), ("jax", 10, [])])
def test_who_has_learned_acts_from_then_on(kind, block, rest):
    sim = make(kind)
    chunks = []

    def policy():
        return Constant(jnp.full(sim.act_dim, -0.01 * len(chunks)))

    def learn(chunk):
        chunks.append(chunk)
        return policy()

    episodes = sim.practise(jr.key(0), policy(), 40, 7, learn)
    assert episodes.num == 4
    together = jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *chunks)
    assert_same(together, transitions(episodes))
    acting = np.arange(40) // block
    np.testing.assert_allclose(together.action[:, 0], -0.01 * acting, atol=1e-6)
    sizes = [len(chunk.obs) for chunk in chunks]
    assert sizes == [block] * (40 // block) + rest, "what remains comes in few sizes"


def test_exploration_may_be_left_out():
    sim = make("gym")
    buffer, episodes = explore(
        jr.key(0), sim, empty(sim), dataclasses.replace(PRACTICE, random_steps=0)
    )
    assert episodes is None
    assert int(buffer.size) == 0


def test_exploration_is_uniform():
    sim = make("jax")
    config = dataclasses.replace(PRACTICE, random_steps=2000)
    buffer, _ = explore(jr.key(0), sim, empty(sim, 2000), config)
    counts, _ = np.histogram(stored(buffer).action, 4, (-1, 1))
    np.testing.assert_allclose(counts, 1000, rtol=0.1)
