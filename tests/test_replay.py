"""The circular buffer: what it holds after any sequence of insertions, and what it draws."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest

from firl.sac import ReplayBuffer
from firl.types import Transition


def numbered(start: int, num: int) -> Transition:
    """Transitions that carry their own number in every field."""
    number = jnp.arange(start, start + num, dtype=jnp.float32)[:, None]
    return Transition(
        obs=number * jnp.ones((1, 3)),
        action=-number * jnp.ones((1, 2)),
        next_obs=number + 0.5 * jnp.ones((1, 3)),
        terminated=(number[:, 0].astype(jnp.int32) % 3) == 0,
    )


@pytest.mark.parametrize(
    "chunks", [[3], [3, 4], [7], [7, 1], [5, 5, 5], [20], [2, 20], [6, 7, 8, 3], [1] * 16]
)
def test_the_last_transitions_are_kept_whatever_the_chunks(chunks):
    capacity, start = 7, 0
    buffer = ReplayBuffer.create(capacity, 3, 2)
    expected = np.full(capacity, -1)
    for num in chunks:
        buffer = buffer.insert(numbered(start, num))
        for number in range(start, start + num):
            expected[number % capacity] = number
        start += num
        filled = min(start, capacity)
        assert (int(buffer.size), int(buffer.position)) == (filled, start % capacity)
        np.testing.assert_array_equal(buffer.rows[:filled, 0], expected[:filled])


def test_a_drawn_transition_is_an_inserted_one(getkey):
    inserted = numbered(0, 10)
    buffer = ReplayBuffer.create(10, 3, 2).insert(inserted)
    drawn = buffer.sample(getkey(), 64)
    which = drawn.obs[:, 0].astype(jnp.int32)
    jax.tree.map(lambda d, i: np.testing.assert_array_equal(d, i[which]), drawn, inserted)


def test_draws_are_uniform_over_what_is_filled(getkey):
    buffer = ReplayBuffer.create(50, 3, 2).insert(numbered(0, 8))
    num = 40_000
    counts = np.bincount(buffer.sample(getkey(), num).obs[:, 0].astype(int), minlength=50)
    assert counts[8:].sum() == 0
    # χ² with 7 degrees of freedom exceeds 24.3 once in a thousand draws
    assert ((counts[:8] - num / 8) ** 2 / (num / 8)).sum() < 24.3


def test_insertion_donates_the_old_buffer():
    buffer = ReplayBuffer.create(5, 3, 2)
    buffer.insert(numbered(0, 2))
    assert buffer.rows.is_deleted()


def test_buffers_vmap(getkey):
    buffers = jax.vmap(lambda _: ReplayBuffer.create(4, 3, 2))(jnp.arange(2))
    chunks = jax.vmap(lambda start: jax.tree.map(lambda x: x + start, numbered(0, 3).obs))(
        jnp.asarray([0.0, 100.0])
    )
    transitions = Transition(
        chunks, jnp.zeros((2, 3, 2)), chunks, jnp.zeros((2, 3), dtype=jnp.bool_)
    )
    buffers = jax.vmap(ReplayBuffer.insert)(buffers, transitions)
    drawn = jax.vmap(lambda k, b: b.sample(k, 16))(jr.split(getkey()), buffers)
    assert (drawn.obs[0] < 3).all()
    assert (drawn.obs[1] >= 100).all()
