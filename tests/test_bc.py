"""Behaviour cloning on actions that are a known function of what is seen."""

import dataclasses

import jax
import numpy as np
import pytest

from firl.config import CloningConfig, SACConfig, TrainConfig
from firl.envs.point_mass import PointMass
from firl.errors import FirlError
from firl.expert.demonstrations import from_arrays
from firl.methods.bc import bc
from firl.problems import Problem
from firl.rollout import JaxSimulator
from firl.types import Columns

CONFIG = TrainConfig(
    task="custom",
    method="bc",
    sac=SACConfig(hidden=(32, 32)),
    cloning=CloningConfig(learning_rate=3e-3, steps=50, patience=5, most_steps=1500),
)


def act(obs):
    return 0.6 * np.sin(obs)


def problem(with_actions=True):
    rng = np.random.default_rng(0)
    obs = rng.uniform(0.0, 4.0, (10, 61, 2))
    noise = 0.05 * rng.standard_normal((10, 60, 2))
    actions = act(obs[:, :-1]) + noise if with_actions else None
    return Problem(
        simulator=JaxSimulator(PointMass(size=4.0, horizon=60)),
        state_map=Columns((0, 1)),
        expert=from_arrays(obs, actions=actions),
        arena=None,
    )


def train(config=CONFIG):
    config = dataclasses.replace(
        config, imitation=dataclasses.replace(config.imitation, demonstrations=10)
    )
    method = bc(problem(), config)
    state, held_out = method.init(jax.random.key(0)), []
    while not method.finished(state):
        state, info = method.step(jax.random.key(len(held_out)), state)
        held_out.append(float(info["bc/held_out"]))
    return state, held_out


def test_it_does_what_it_was_shown():
    state, _ = train()
    assert int(state.env_steps) == 0
    obs = np.random.default_rng(1).uniform(0.2, 3.8, (200, 2)).astype(np.float32)
    mean, _ = state.agent.actor.distributions(jax.numpy.asarray(obs))
    assert np.abs(np.tanh(mean) - act(obs)).mean() < 0.06


def test_it_stops_where_held_out_actions_get_no_likelier_and_keeps_the_best():
    state, held_out = train()
    assert len(held_out) <= 1500 // 50
    assert float(state.best) == max(held_out)
    late = len(held_out) - 1 - int(np.argmax(held_out))
    assert late == int(state.stale)
    assert late == 5 or len(held_out) == 1500 // 50


def test_it_needs_actions():
    with pytest.raises(FirlError, match="needs the expert's actions"):
        bc(problem(with_actions=False), CONFIG)


def test_too_few_steps_to_hold_any_out():
    few = dataclasses.replace(CONFIG.cloning, stretch=100)
    with pytest.raises(FirlError, match=r"lower --cloning\.stretch"):
        bc(problem(), dataclasses.replace(CONFIG, cloning=few))
