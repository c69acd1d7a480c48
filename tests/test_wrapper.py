"""An environment that pays a learned reward: what it pays, and what it does where episodes end."""

import runpy
import sys
from pathlib import Path

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box
from gymnasium.utils.env_checker import check_env

import firl
from firl.config import RewardConfig, SACConfig, TrainConfig
from firl.envs.point_mass import PointMassEnv
from firl.errors import FirlError
from firl.expert import regions

EXAMPLE = Path(__file__).parents[1] / "examples" / "train_with_sb3.py"
POINT_MASS = "firl.envs:firl/PointMass-v0"


def config(task, **sac):
    return TrainConfig(
        task=task, reward=RewardConfig(hidden=(8,)), sac=SACConfig(hidden=(8, 8), **sac)
    )


class Drop(gymnasium.Env):
    """Falls from 3 to 0, a step at a time, and terminates there; pays its height."""

    observation_space = Box(0.0, 3.0, (2,), np.float32)
    action_space = Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, limit=4):
        self.limit = limit

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._observe(), {"steps": 0}

    def step(self, action):
        self.steps += 1
        fallen, late = self.steps == 3, self.steps == self.limit
        return self._observe(), 3.0 - self.steps, fallen, late, {"steps": self.steps}

    def _observe(self):
        return np.array([3.0 - self.steps, 0.5], np.float32)


def drop(state, env=Drop, dim=1):
    return firl.problem(
        env,
        density=lambda states: -states[:, 0],
        state=state,
        arena=regions.Box([-4.0] * dim, [4.0] * dim),
        horizon=4,
    )


def paid(env):
    """Rewards, endings and infos of one episode."""
    env.reset(seed=0)
    steps = []
    while not steps or not (steps[-1][2] or steps[-1][3]):
        steps.append(env.step(np.zeros(env.action_space.shape, np.float32)))
    return [step[1] for step in steps], steps


@pytest.mark.parametrize("discount", [None, 0.5, 0.0])
def test_a_terminal_state_is_paid_for_ever(discount, untrained):
    run = untrained(config("drop", discount=0.9), drop(state=(0,)))
    rewards, steps = paid(firl.RewardWrapper(Drop(), run, discount=discount))
    expected = firl.load(run).reward(np.array([[2.0], [1.0], [0.0]])).copy()
    gamma = 0.9 if discount is None else discount
    expected[-1] = sum(gamma**k * expected[-1] for k in range(1000))
    np.testing.assert_allclose(rewards, expected, rtol=1e-4)
    assert [step[2] for step in steps] == [False, False, True]
    assert [step[4]["true_reward"] for step in steps] == [2.0, 1.0, 0.0]
    assert [step[4]["steps"] for step in steps] == [1, 2, 3]


def test_a_time_limit_pays_like_any_step(untrained):
    run = untrained(config("drop"), drop(state=(0,)))
    rewards, steps = paid(firl.RewardWrapper(Drop(limit=2), run))
    np.testing.assert_allclose(rewards, firl.load(run).reward(np.array([[2.0], [1.0]])), rtol=1e-6)
    assert steps[-1][3]


def test_its_value_is_the_one_that_firl_learns_with(untrained):
    from firl.sac.losses import final_value

    run = untrained(config("drop", discount=0.9), drop(state=(0,)))
    learned = firl.load(run)
    rewards, _ = paid(firl.RewardWrapper(Drop(), learned))
    reward = jnp.asarray(learned.reward(np.array([[0.0]])))
    final = final_value(reward, reward, 0.9)
    assert rewards[-1] == pytest.approx(float(final[0]), rel=1e-5)


def test_states_by_columns_or_by_a_function(untrained):
    def height(obs):
        return obs[..., :1] ** 2

    function = untrained(config("drop"), drop(state=height), name="function")
    rewards, _ = paid(firl.RewardWrapper(Drop(), str(function), state=height, discount=0.0))
    expected = firl.load(function).reward(np.array([[4.0], [1.0], [0.0]]))
    np.testing.assert_allclose(rewards, expected, rtol=1e-6)
    swapped = untrained(config("drop"), drop(state=(1, 0), dim=2), name="swapped")
    rewards, _ = paid(firl.RewardWrapper(Drop(), swapped, discount=0.0))
    expected = firl.load(swapped).reward(np.array([[0.5, 2.0], [0.5, 1.0], [0.5, 0.0]]))
    np.testing.assert_allclose(rewards, expected, rtol=1e-6)
    # In another environment the states may be elsewhere.
    wider = gymnasium.wrappers.TransformObservation(
        Drop(), lambda obs: np.append(7.0, obs), Box(-9.0, 9.0, (3,), np.float64)
    )
    rewards, _ = paid(firl.RewardWrapper(wider, swapped, state=(2, 1), discount=0.0))
    np.testing.assert_allclose(rewards, expected, rtol=1e-6)


def test_what_does_not_fit_is_refused(untrained):
    function = untrained(config("drop"), drop(state=lambda obs: obs[..., :1]), name="function")
    with pytest.raises(FirlError, match="pass state=, the one that it was trained with"):
        firl.RewardWrapper(Drop(), function)
    with pytest.raises(FirlError, match=r"of 1 coordinates, but state= makes .* shape \(2,\)"):
        firl.RewardWrapper(Drop(), function, state=lambda obs: obs)
    with pytest.raises(FirlError, match="column 2, but observations have columns 0 to 1"):
        firl.RewardWrapper(Drop(), function, state=(2,))
    columns = untrained(config("drop"), drop(state=(0,)), name="columns")
    with pytest.raises(FirlError, match="trained on observations of 2 coordinates, but the env"):
        firl.RewardWrapper(gymnasium.make("Pendulum-v1"), columns)
    with pytest.raises(FirlError, match="discount is 1"):
        firl.RewardWrapper(Drop(), columns, discount=1.0)
    expert = untrained(TrainConfig(task="drop", method="true-reward"), drop(state=(0,)), name="e")
    with pytest.raises(FirlError, match="has no reward of its own"):
        firl.RewardWrapper(Drop(), expert)


@pytest.mark.filterwarnings("ignore:.*different from the unwrapped version")
@pytest.mark.filterwarnings("ignore:.*The reward is a|.*not able to test alternative render")
def test_gymnasium_finds_nothing_wrong(untrained):
    run = untrained(config("pointmass-gaussian"))
    check_env(firl.RewardWrapper(PointMassEnv(), run), skip_render_check=True)
    fall = untrained(config("drop"), drop(state=(0,)), name="drop")
    check_env(firl.RewardWrapper(Drop(), fall), skip_render_check=True)


def test_stable_baselines_trains_on_it(untrained):
    sb3 = pytest.importorskip("stable_baselines3")

    run = untrained(config("pointmass-gaussian"))
    env = firl.RewardWrapper(gymnasium.make(POINT_MASS), run)
    agent = sb3.SAC("MlpPolicy", env, policy_kwargs={"net_arch": [8]}, learning_starts=100, seed=0)
    agent.learn(200)
    batch = agent.replay_buffer.sample(50)
    expected = firl.load(run).reward(batch.next_observations.numpy())
    np.testing.assert_allclose(batch.rewards.numpy()[:, 0], expected, atol=1e-5)


def test_the_example_runs(untrained, monkeypatch, capsys):
    assert len(EXAMPLE.read_text().splitlines()) <= 40
    pytest.importorskip("stable_baselines3")
    run = untrained(config("pointmass-gaussian"))
    monkeypatch.setattr(sys, "argv", [EXAMPLE.name, str(run), POINT_MASS, "200"])
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    assert "learned reward" in capsys.readouterr().out
