"""ONNX models of a run against the run itself, and the page about what to do with a reward."""

import json
import re
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import firl
from firl.cli import main
from firl.config import RewardConfig, SACConfig, TrainConfig
from firl.expert.regions import Box

REWARDS = {
    "tanh, soft": RewardConfig(hidden=(8, 8), bound=0.1),
    "relu, hard": RewardConfig(hidden=(8,), activation="relu", bound=0.1, soft_bound=False),
    "linear": RewardConfig(hidden=()),
}
"""A bound that untrained rewards reach."""


def config(task="pointmass-gaussian", reward=REWARDS["tanh, soft"]):
    return TrainConfig(task=task, reward=reward, sac=SACConfig(hidden=(8, 8)))


@pytest.mark.parametrize("kind", REWARDS)
def test_onnx_models_say_what_the_run_says(kind, untrained, tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    run = untrained(config(reward=REWARDS[kind]))
    assert main(["export", str(run), "--out", str(tmp_path / "out"), "--onnx"]) == 0
    learned = firl.load(run)
    rng = np.random.default_rng(0)
    states = rng.uniform(-4, 8, (50, 2)).astype(np.float32)
    rewards = learned.reward(states)
    if kind != "linear":
        assert (np.abs(rewards) > 0.09).any(), "the bound must matter"
    for name in ("reward", "policy"):
        onnx.checker.check_model(str(tmp_path / "out" / f"{name}.onnx"), full_check=True)
    reward, policy = (
        ReferenceEvaluator(str(tmp_path / "out" / f"{name}.onnx")) for name in ("reward", "policy")
    )
    (got,) = reward.run(None, {"states": states})
    assert got.dtype == np.float32
    np.testing.assert_allclose(got, rewards, atol=1e-5)
    (mode,) = policy.run(None, {"obs": states, "noise": np.zeros((50, 2), np.float32)})
    np.testing.assert_allclose(mode, learned.policy(states, seed=None), atol=1e-5)
    noise = rng.standard_normal((50, 2)).astype(np.float32)
    (noisy,) = policy.run(None, {"obs": states, "noise": noise})
    np.testing.assert_allclose(noisy, learned.actor.on_host()(states, noise), atol=1e-5)


def test_onnx_actions_are_in_the_environments_bounds(untrained, tmp_path):
    pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    run = untrained(config("upright"), pendulum(state=(0,)))
    assert main(["export", str(run), "--onnx"]) == 0
    obs = np.random.default_rng(0).normal(0, 10, (50, 3)).astype(np.float32)
    policy = ReferenceEvaluator(str(run / "export" / "policy.onnx"))
    (torques,) = policy.run(None, {"obs": obs, "noise": np.zeros((50, 1), np.float32)})
    assert np.abs(torques).max() > 1, "Pendulum's torques go to 2"
    np.testing.assert_allclose(torques, firl.load(run).policy(obs, seed=None), atol=1e-5)


def test_onnx_that_is_not_there_writes_nothing(untrained, tmp_path, monkeypatch, capsys):
    run = untrained(config())
    monkeypatch.setitem(sys.modules, "onnx", None)
    monkeypatch.delitem(sys.modules, "firl.onnx_models", raising=False)
    assert main(["export", str(run), "--onnx"]) == 2
    complaint = capsys.readouterr().err
    assert complaint == (
        "firl: --onnx needs the package onnx, which is not installed: pip install onnx.\n"
    )
    assert not (run / "export").exists()
    assert main(["export", str(run)]) == 0
    assert {path.name for path in (run / "export").iterdir()} == {
        *("about.json", "arrays.safetensors", "load.py")
    }


def pendulum(state):
    columns = 1 if callable(state) else len(state)
    return firl.problem(
        "Pendulum-v1",
        density=lambda states: -(states[:, 0] ** 2),
        state=state,
        arena=Box([-4.0] * columns, [4.0] * columns),
    )


def angle(obs):
    return jnp.arctan2(obs[..., 1], obs[..., 0])[..., None]


def test_columns_of_the_state_go_with_the_run(untrained):
    reacher = untrained(config("reacher-gaussian"), name="reacher")
    assert exported_columns(reacher) == [0, 1]
    chosen = untrained(config("upright"), pendulum(state=(2, 0)), name="chosen")
    assert exported_columns(chosen) == [2, 0]
    # A name says nothing: the problem is the user's own.
    function = untrained(config("pointmass-gaussian"), pendulum(state=angle), name="function")
    assert exported_columns(function) is None
    # A run from before they were recorded.
    about = json.loads((reacher / "run.json").read_text())
    del about["state_columns"]
    (reacher / "run.json").write_text(json.dumps(about))
    assert firl.load(reacher).state_columns == (0, 1)


def exported_columns(run):
    assert main(["export", str(run)]) == 0
    columns = json.loads((run / "export" / "about.json").read_text())["state_columns"]
    assert firl.load(run).state_columns == (None if columns is None else tuple(columns))
    return columns


PAGE = Path(__file__).parents[1] / "docs" / "use-a-reward.md"
SHORTER = (
    "--env-steps 100 --practice.random-steps 60 --practice.steps 60 --practice.updates 5 "
    "--evaluation.episodes 5 --evaluation.expert-samples 100"
)


def test_the_page_runs(untrained, tmp_path, monkeypatch):
    """Every block of docs/use-a-reward.md, one after the other as a reader would, only shorter."""
    untrained(config(), name="runs/mine")
    pytest.importorskip("onnx")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "load", raising=False)
    names: dict = {}
    blocks = re.findall(r"```(python|sh)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(blocks) >= 5
    for language, block in blocks:
        if language == "python":
            exec(compile(block, str(PAGE), "exec"), names)
            continue
        for line in block.splitlines():
            program, command, *words = line.split("#")[0].split()
            assert program == "firl"
            if command == "retrain":
                words += SHORTER.split()
            assert command == "train" or main([command, *words]) == 0
    assert names["rewards"].shape == (2,)
    assert Path("runs/again/summary.json").exists()
