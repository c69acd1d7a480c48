"""Demonstrations hold what was recorded, and refuse what nobody could have recorded."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import firl
from firl import Demonstrations, FirlError, from_arrays

LENGTHS = (4, 1, 3)
TERMINATED = (False, True, True)


def tables(width: int, more: int = 0) -> list[np.ndarray]:
    """A table for each episode, `more` rows longer than it has steps, no two numbers the same."""
    rng = np.random.default_rng(width + more)
    return [rng.normal(size=(length + more, width)) for length in LENGTHS]


@pytest.fixture
def demos() -> Demonstrations:
    return from_arrays(
        tables(3, more=1),
        actions=tables(2),
        rewards=[table[:, 0] for table in tables(1)],
        terminated=TERMINATED,
        env_id="Hopper-v5",
        provenance={"seed": 3},
    )


def test_they_are_what_was_given(demos: Demonstrations) -> None:
    assert (demos.num, demos.obs_dim, demos.act_dim) == (3, 3, 2)
    assert demos.lengths.tolist() == list(LENGTHS)
    assert demos.terminated.tolist() == list(TERMINATED)
    assert (demos.env_id, demos.provenance) == ("Hopper-v5", {"seed": 3})
    for kept, given in (
        (demos.observations, tables(3, more=1)),
        (demos.actions, tables(2)),
        (demos.rewards, [table[:, 0] for table in tables(1)]),
    ):
        for ours, theirs in zip(kept, given, strict=True):
            np.testing.assert_array_equal(ours, theirs.astype(np.float32))
    np.testing.assert_allclose(demos.returns, [table.sum() for table in tables(1)], rtol=1e-6)


def test_observations_are_enough() -> None:
    bare = from_arrays(tables(3, more=1))
    assert (bare.actions, bare.rewards, bare.returns, bare.act_dim) == (None, None, None, None)
    assert (bare.env_id, bare.provenance) == (None, {})
    assert not bare.terminated.any()


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int64, np.uint8, bool])
def test_any_numbers_come_in_and_float32_comes_out(dtype: Any) -> None:
    values = np.arange(12).reshape(4, 3).astype(dtype)
    for given in (values, values.tolist(), jnp.asarray(np.asarray(values, np.float32))):
        kept = from_arrays([given]).observations[0]
        assert kept.dtype == np.float32
        np.testing.assert_array_equal(kept, np.asarray(values, np.float32))


def test_one_array_with_an_axis_of_episodes() -> None:
    array = np.random.default_rng(0).normal(size=(5, 4, 2))
    demos = from_arrays(array, actions=np.zeros((5, 3, 1)), rewards=np.ones((5, 3)))
    assert demos.lengths.tolist() == [3] * 5
    np.testing.assert_array_equal(demos.observations[4], array[4].astype(np.float32))
    assert demos.returns.tolist() == [3.0] * 5


@pytest.mark.parametrize("said", [True, np.True_, [True] * 3, np.ones(3, bool), np.ones(3, int)])
def test_terminated_is_one_word_or_one_each(said: Any) -> None:
    assert from_arrays(tables(3, more=1), terminated=said).terminated.tolist() == [True] * 3


def test_a_terminal_state_is_absorbing(demos: Demonstrations) -> None:
    states = demos.visited(4)
    assert states.shape == (3, 4, 3)
    np.testing.assert_array_equal(states[0], demos.observations[0][1:])
    np.testing.assert_array_equal(states[1], np.tile(demos.observations[1][1], (4, 1)))
    np.testing.assert_array_equal(states[2, :3], demos.observations[2][1:])
    np.testing.assert_array_equal(states[2, 3], demos.observations[2][3])
    np.testing.assert_array_equal(demos.select([1]).visited(6)[0, 5], demos.observations[1][1])


def test_nobody_knows_where_an_episode_went_that_did_not_terminate() -> None:
    demos = from_arrays(tables(3, more=1), terminated=[False, True, False])
    says = (
        "^demonstrations: episode 2 stops after 3 of 4 steps and did not terminate.*horizon of 3, "
        r"the shortest such episode, and cut\(3\)"
    )
    with pytest.raises(FirlError, match=says):
        demos.visited(4)
    assert demos.cut(3).visited(3).shape == (3, 3, 3)


def test_an_episode_longer_than_the_horizon_is_not_cut_in_silence(demos: Demonstrations) -> None:
    says = r"episode 0 has 4 steps, more than the horizon of 2.*horizon of 4.*cut\(2\)"
    with pytest.raises(FirlError, match=says):
        demos.visited(2)


def test_what_is_cut_has_not_terminated(demos: Demonstrations) -> None:
    cut = demos.cut(2)
    assert cut.lengths.tolist() == [2, 1, 2]
    assert cut.terminated.tolist() == [False, True, False]
    assert demos.cut(3).terminated.tolist() == list(TERMINATED)
    for episode in range(3):
        for ours, whole, more in (
            (cut.observations, demos.observations, 1),
            (cut.actions, demos.actions, 0),
            (cut.rewards, demos.rewards, 0),
        ):
            np.testing.assert_array_equal(ours[episode], whole[episode][: 2 + more])
    assert (cut.env_id, cut.provenance, cut.source) == (demos.env_id, {"seed": 3}, demos.source)
    assert from_arrays(tables(3, more=1)).cut(2).actions is None


def test_selected_episodes_keep_their_company(demos: Demonstrations) -> None:
    chosen = demos.select(np.array([2, 0]))
    assert chosen.lengths.tolist() == [3, 4]
    assert chosen.terminated.tolist() == [True, False]
    np.testing.assert_array_equal(chosen.observations[0], demos.observations[2])
    np.testing.assert_array_equal(chosen.actions[1], demos.actions[0])
    np.testing.assert_array_equal(chosen.returns, demos.returns[[2, 0]])
    assert chosen.env_id == "Hopper-v5"
    bare = from_arrays(tables(3, more=1)).select([1])
    assert (bare.num, bare.actions, bare.rewards) == (1, None, None)


def test_the_first_are_the_first_of_the_file(demos: Demonstrations) -> None:
    assert demos.first(2).lengths.tolist() == [4, 1]
    assert demos.first(3).num == 3


def test_one_step_is_an_episode() -> None:
    demos = from_arrays([[[0.0], [1.0]]], actions=[[[2.0]]], rewards=[[3.0]], terminated=True)
    assert demos.lengths.tolist() == [1]
    assert demos.visited(3).tolist() == [[[1.0]] * 3]
    assert demos.cut(1).terminated.tolist() == [True]


def test_replace_checks_again(demos: Demonstrations) -> None:
    other = dataclasses.replace(demos, env_id="Ant-v5")
    assert (other.env_id, demos.env_id) == ("Ant-v5", "Hopper-v5")
    assert other.lengths.tolist() == list(LENGTHS)
    with pytest.raises(FirlError, match="actions of 1 episodes, but observations of 3"):
        dataclasses.replace(demos, actions=tables(2)[:1])


def test_nothing_can_be_written_to(demos: Demonstrations) -> None:
    given = np.zeros((3, 2), np.float32)
    kept = from_arrays([given])
    given[:] = 7
    assert not kept.observations[0].any()
    for array in (demos.observations[0], demos.actions[0], demos.rewards[0], demos.terminated):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        demos.env_id = "Ant-v5"
    demos.visited(4)[:] = 0  # a copy of its own
    assert demos.visited(4).all()


def test_they_fit_the_environment_they_are_of(demos: Demonstrations) -> None:
    demos.check_against(3)
    demos.check_against(3, 2, "Hopper-v5")
    from_arrays(tables(3, more=1)).check_against(3, 7, "Ant-v5")
    dataclasses.replace(demos, env_id=None).check_against(3, 2, "Ant-v5")


UNFIT: dict[str, tuple[tuple[Any, ...], str]] = {
    "environment": ((3, 2, "Ant-v5"), "demonstrations of Hopper-v5, not of Ant-v5: learn in"),
    "observations": ((5, 2, "Hopper-v5"), "have 3 coordinates, but those of Hopper-v5 have 5"),
    "positions": ((5, 2, "Hopper-v5"), "exclude_current_positions_from_observation"),
    "no environment": ((5,), "have 3 coordinates, but those of the environment have 5"),
    "actions": ((3, 4, "Hopper-v5"), "actions have 2 coordinates, but those of Hopper-v5 have 4"),
}


@pytest.mark.parametrize("kind", UNFIT)
def test_another_environment_is_refused(kind: str, demos: Demonstrations) -> None:
    against, says = UNFIT[kind]
    with pytest.raises(FirlError, match=says) as caught:
        demos.check_against(*against)
    assert "\n" not in str(caught.value)


def test_an_ants_contact_forces_are_named() -> None:
    with pytest.raises(FirlError, match="Ant-v5, 105 with contact forces and 27 without"):
        from_arrays(np.zeros((1, 3, 27))).check_against(105, env_id="Ant-v5")


def holding(value: float, table: int = 1, row: int = 1, column: int = 2) -> list[np.ndarray]:
    """Observations with one wrong number in them."""
    made = tables(3, more=1)
    made[table][row, column] = value
    return made


def narrower(table: int) -> list[np.ndarray]:
    """Observations that lack a coordinate in one episode."""
    made = tables(3, more=1)
    made[table] = made[table][:, :2]
    return made


OBS = tables(3, more=1)

BAD: dict[str, tuple[Callable[[], object], str]] = {
    "NaN": (lambda: from_arrays(holding(np.nan)), "episode 1 has nan in its observations, at row"),
    "its place": (lambda: from_arrays(holding(np.nan, 2, 3, 0)), "episode 2.*row 3, column 0"),
    "infinity": (lambda: from_arrays(holding(-np.inf)), "episode 1 has -inf.*row 1, column 2"),
    "too large": (lambda: from_arrays(holding(1e39)), r"has 1e\+39 \(too large for float32\)"),
    "NaN action": (
        lambda: from_arrays(OBS, actions=[table * np.nan for table in tables(2)]),
        "episode 0 has nan in its actions, at row 0, column 0",
    ),
    "NaN reward": (
        lambda: from_arrays(OBS, rewards=[[0, 0, np.nan, 0], [0], [0, 0, 0]]),
        "episode 0 has nan in its rewards, at row 2:",
    ),
    "missing coordinate": (
        lambda: from_arrays(narrower(1)),
        "episode 1 has observations of 2 coordinates, but episode 0 has 3",
    ),
    "extra coordinate": (
        lambda: from_arrays(narrower(0)),
        "episode 1 has observations of 3 coordinates, but episode 0 has 2",
    ),
    "action widths": (
        lambda: from_arrays(OBS, actions=[np.zeros((4, 2)), np.zeros((1, 1)), np.zeros((3, 2))]),
        "episode 1 has actions of 1 coordinates, but episode 0 has 2",
    ),
    "ragged rows": (lambda: from_arrays([[[1.0, 2.0], [3.0]]]), "whose rows differ in length"),
    "words": (lambda: from_arrays([[["a"], ["b"]]]), "type <U1, but only numbers"),
    "complex": (lambda: from_arrays([np.zeros((2, 1), complex)]), "type complex128"),
    "one episode bare": (lambda: from_arrays(OBS[0]), r"shape \[3\], but they must be \[L \+ 1, o"),
    "pictures": (lambda: from_arrays(np.zeros((1, 2, 4, 4))), r"shape \[2, 4, 4\]"),
    "no coordinates": (lambda: from_arrays(np.zeros((1, 3, 0))), r"shape \[3, 0\]"),
    "no episodes": (lambda: from_arrays([]), "there are no episodes"),
    "no step": (lambda: from_arrays([OBS[0], OBS[1][:1]]), "episode 1 has no step"),
    "one observation too few": (
        lambda: from_arrays([OBS[0][:4]], actions=tables(2)[:1]),
        "episode 0 has 4 actions and as many observations, one observation too few",
    ),
    "one action too few": (
        lambda: from_arrays([OBS[0]], actions=[tables(2)[0][:3]]),
        "episode 0 has 3 actions for 5 observations, but must have 4",
    ),
    "one reward too many": (
        lambda: from_arrays([OBS[2]], rewards=[np.zeros(4)]),
        "episode 0 has 4 rewards and as many observations",
    ),
    "rewards in columns": (lambda: from_arrays(OBS, rewards=tables(1)), r"shape \[4, 1\].*\[L\]"),
    "actions missing": (lambda: from_arrays(OBS, actions=tables(2)[:2]), "actions of 2 episodes"),
    "terminated missing": (lambda: from_arrays(OBS, terminated=[True]), "once for each of 3"),
    "terminated twice": (lambda: from_arrays(OBS, terminated=[2, 0, 0]), "must say true or false"),
    "terminated ragged": (lambda: from_arrays(OBS, terminated=[[1], [1, 0], []]), "must say true"),
    "terminated by step": (lambda: from_arrays(OBS, terminated=np.zeros((3, 4))), r"\[3, 4\]"),
    "provenance": (lambda: from_arrays(OBS, provenance={"env": object()}), "written as JSON"),
    "NaN provenance": (lambda: from_arrays(OBS, provenance={"x": np.nan}), "written as JSON"),
    "no horizon": (lambda: from_arrays(OBS).visited(0), "horizon must be a whole number"),
    "no cut": (lambda: from_arrays(OBS).cut(0), "horizon must be a whole number, 1 or more, got 0"),
    "yes for a number": (lambda: from_arrays(OBS).first(True), "whole number"),
    "too many": (lambda: from_arrays(OBS).first(4), "4 demonstrations were asked for, but it hold"),
    "no such episode": (lambda: from_arrays(OBS).select([3]), "no episode 3: there are 3"),
    "from behind": (lambda: from_arrays(OBS).select([-1]), "no episode -1"),
    "nothing selected": (lambda: from_arrays(OBS).select([]), "no episode was selected"),
    "a mask": (lambda: from_arrays(OBS).select([True, False, True]), "numpy.flatnonzero"),
    "NumPy's mask": (lambda: from_arrays(OBS).select(np.ones(3, bool)), "numpy.flatnonzero"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_refused_in_one_sentence(kind: str) -> None:
    make, says = BAD[kind]
    with pytest.raises(FirlError, match=says) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_they_are_at_hand() -> None:
    assert {"Demonstrations", "from_arrays", "read_demonstrations"} <= set(firl.__all__)
    assert isinstance(firl.from_arrays(OBS), firl.Demonstrations)
    assert callable(firl.read_demonstrations)
