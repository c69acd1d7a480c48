"""A block of updates is compiled once for each shape, and consumes the agent it is given."""

import jax
import jax.numpy as jnp
import jax.random as jr
import pytest

from firl.config import SACConfig
from firl.sac import Agent, ReplayBuffer, improve
from firl.types import Transition

CONFIG = SACConfig(hidden=(4,), batch_size=8, buffer_size=32)


class CountingReward:
    """Python runs it only while JAX traces."""

    def __init__(self) -> None:
        self.traces = 0

    def __call__(self, batch: Transition):
        self.traces += 1
        return batch.next_obs[:, 0]

    def absorbed(self, batch, rewards):
        return rewards


def transitions(key, num: int) -> Transition:
    obs = jr.normal(key, (num, 3))
    return Transition(obs, jnp.tanh(obs[:, :2]), obs, jnp.zeros(num, dtype=jnp.bool_))


def test_one_trace_per_shape(getkey):
    reward = CountingReward()
    agent = Agent.create(getkey(), 3, 2, CONFIG)
    buffer = ReplayBuffer.create(CONFIG.buffer_size, 3, 2)
    for _ in range(4):  # other keys, agents and contents, the same shapes
        buffer = buffer.insert(transitions(getkey(), 20))
        agent, _ = improve(getkey(), agent, buffer, reward, num_updates=3, config=CONFIG)
    assert reward.traces == 1
    agent, _ = improve(getkey(), agent, buffer, reward, num_updates=4, config=CONFIG)
    improve(getkey(), agent, buffer, reward, num_updates=4, config=CONFIG)
    assert reward.traces == 2


@pytest.mark.parametrize("num", [2, 101])
def test_every_block_runs_as_many_updates_as_asked(getkey, num):
    # 101 is two groups that are drawn together, and one update more
    agent = Agent.create(getkey(), 3, 2, CONFIG)
    buffer = ReplayBuffer.create(CONFIG.buffer_size, 3, 2).insert(transitions(getkey(), 20))
    agent, _ = improve(getkey(), agent, buffer, CountingReward(), num_updates=num, config=CONFIG)
    assert int(agent.critic_optimiser.count) == num
    assert int(agent.actor_optimiser.count) == num


def test_the_agent_is_donated_and_the_buffer_is_not(getkey):
    agent = Agent.create(getkey(), 3, 2, CONFIG)
    buffer = ReplayBuffer.create(CONFIG.buffer_size, 3, 2).insert(transitions(getkey(), 20))
    improve(getkey(), agent, buffer, CountingReward(), num_updates=2, config=CONFIG)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(agent.critics))
    assert not buffer.rows.is_deleted()
