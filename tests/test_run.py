"""The driver and the Python interface, on trainings of seconds."""

import json
from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from tensorboardX.proto.event_pb2 import Event
from tensorboardX.record_writer import masked_crc32c

import firl
from firl.cli import main
from firl.config import (
    CollectConfig,
    EvaluationConfig,
    RatioConfig,
    RewardConfig,
    SACConfig,
    TrainConfig,
)
from firl.errors import FirlError, LearningDiverged
from firl.rundir import RunDir
from firl.tasks import TASKS, configure

TINY = TrainConfig(
    task="pointmass-gaussian",
    env_steps=1500,
    checkpoint_every=2,
    collect=CollectConfig(random_episodes=1, rollouts=10, updates=5),
    reward=RewardConfig(hidden=(8,)),
    ratio=RatioConfig(bandwidth=0.2),
    sac=SACConfig(hidden=(8, 8), batch_size=16, buffer_size=500, temperature=1.0),
    evaluation=EvaluationConfig(every=3, episodes=10, expert_samples=100),
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "tiny"
    rows = []
    run = firl.train(TINY, out=out, on_row=rows.append)
    return run, rows


def test_a_run_leaves_what_it_promises(finished):
    run, rows = finished
    names = {child.name for child in run.path.iterdir() if not child.name.startswith("events")}
    assert names - {".lock"} == {
        *("config.json", "run.json", "metrics.jsonl", "checkpoint.safetensors"),
        *("summary.json", "picture.png"),
    }
    assert RunDir(run.path).read_metrics() == rows
    assert any(child.name.startswith("events.out.tfevents") for child in run.path.iterdir())


def test_every_step_counts_and_evaluation_apart(finished):
    run, rows = finished
    assert [row["env_steps"] for row in rows] == [30 + 300 * (i + 1) for i in range(5)]
    evaluated = [row["iteration"] for row in rows if "eval/forward_kl" in row]
    assert evaluated == [0, 3, 4], "every third, and the last"
    assert rows[-1]["eval_env_steps"] == 3 * 10 * 30
    assert run.summary["env_steps"] == rows[-1]["env_steps"]
    assert run.summary["gradient_steps"] == 5 * 5
    assert run.summary["forward_kl"] == rows[-1]["eval/forward_kl"]


def test_tensorboard_holds_the_same_numbers(finished):
    run, rows = finished
    (path,) = run.path.glob("events.out.tfevents*")
    data, at, seen = path.read_bytes(), 0, {}
    while at < len(data):
        length = int.from_bytes(data[at : at + 8], "little")
        assert int.from_bytes(data[at + 8 : at + 12], "little") == masked_crc32c(data[at : at + 8])
        event = Event.FromString(data[at + 12 : at + 12 + length])
        for value in event.summary.value:
            seen[event.step, value.tag] = value.simple_value
        at += 12 + length + 4
    for row in rows:
        assert seen[row["env_steps"], "reward/loss"] == pytest.approx(row["reward/loss"])


def test_load_gives_numpy_functions(finished):
    learned = firl.load(finished[0].path)
    states = np.random.default_rng(0).uniform(0, 4, (5, 2))
    rewards = learned.reward(states)
    assert isinstance(rewards, np.ndarray)
    assert rewards.shape == (5,)
    assert np.ptp(rewards) > 0
    actions = learned.policy(states)
    assert actions.shape == (5, 2)
    assert np.abs(actions).max() <= 1
    assert (learned.policy(states, seed=1) != actions).all()
    assert (learned.policy(states, seed=None) == learned.policy(states, seed=None)).all()


def test_finished_run_is_not_trained_again(finished):
    run, _ = finished
    again = []
    assert firl.train(TINY, out=run.path, resume=True, on_row=again.append).summary == run.summary
    assert again == []


def test_seed_decides_everything(finished, tmp_path):
    rows = []
    firl.train(TINY, out=tmp_path / "same", on_row=rows.append)
    assert timeless(rows) == timeless(finished[1])
    other = []
    firl.train(replace(TINY, seed=1), out=tmp_path / "other", on_row=other.append)
    assert timeless(other) != timeless(finished[1])


def timeless(rows):
    return [{k: v for k, v in row.items() if not k.startswith("time/")} for row in rows]


def test_divergence_of_learning_stops_the_run(tmp_path, capsys):
    wild = replace(TINY, sac=replace(TINY.sac, learning_rate=1e30))
    with pytest.raises(LearningDiverged, match=r"Iteration \d+: .* is not finite; .*checkpoint"):
        firl.train(wild, out=tmp_path / "run")
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["status"] == "failed"
    for row in RunDir(tmp_path / "run").read_metrics():
        assert all(np.isfinite(v) for v in row.values())


def test_resume_after_damage(tmp_path, capsys):
    out = tmp_path / "run"
    firl.train(TINY, out=out)
    checkpoint = out / "checkpoint.safetensors"
    whole = checkpoint.read_bytes()
    checkpoint.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(FirlError, match="not a whole checkpoint"):
        firl.train(TINY, out=out, resume=True)
    with pytest.raises(FirlError, match="not a whole checkpoint"):
        firl.load(out)
    checkpoint.write_bytes(whole)
    with pytest.raises(FirlError, match="--seed 0, but 7"):
        firl.train(replace(TINY, seed=7), out=out, resume=True)
    with pytest.raises(FirlError, match="already holds a run"):
        firl.train(TINY, out=out)
    (out / "config.json").write_text("{")
    with pytest.raises(FirlError, match=r"config\.json cannot be read"):
        firl.load(out)


def test_commands_on_a_run(finished, tmp_path, capsys):
    run, _ = finished
    assert main(["evaluate", str(run.path), "--episodes", "10", "--expert-samples", "100"]) == 0
    assert "forward kl" in capsys.readouterr().out
    assert main(["plot", str(run.path)]) == 0
    picture, frames = capsys.readouterr().out.splitlines()
    assert picture.endswith("picture.png")
    assert frames.startswith("no frames: The environment cannot be rendered")
    assert not RunDir(run.path).frames.exists()
    assert main(["plot", str(run.path), str(run.path), "--out", str(tmp_path / "two.png")]) == 0
    assert (tmp_path / "two.png").stat().st_size > 10_000
    assert (
        main(["plot", str(run.path), str(run.path), "--out", str(tmp_path / "no" / "x.png")]) == 2
    )
    assert "is not a directory" in capsys.readouterr().err


def test_export_needs_numpy_alone(finished, tmp_path, capsys):
    import runpy

    run, _ = finished
    assert main(["export", str(run.path), "--out", str(tmp_path / "export")]) == 0
    exported = runpy.run_path(str(tmp_path / "export" / "load.py"))
    states = np.random.default_rng(0).uniform(0, 4, (50, 2)).astype(np.float32)
    learned = firl.load(run.path)
    np.testing.assert_allclose(exported["reward"](states), learned.reward(states), rtol=1e-4)
    mode = learned.policy(states, seed=None)
    np.testing.assert_allclose(exported["policy"](states), mode, rtol=1e-4, atol=1e-5)
    noisy = exported["policy"](states, np.random.default_rng(0))
    assert 0 < np.abs(noisy - mode).mean() < 2
    assert main(["export", str(run.path), "--out", str(tmp_path / "export")]) == 2
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize("task", [name for name, task in TASKS.items() if task.density])
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_every_preset_trains(task, preset, tmp_path):
    """Each task's own settings, with everything that takes time made small."""
    config = configure(task, preset)
    small = replace(
        config,
        env_steps=30 * 5 + 1,
        collect=replace(config.collect, rollouts=10, updates=3),
        evaluation=replace(config.evaluation, episodes=10, expert_samples=100),
    )
    run = firl.train(small, out=tmp_path / "run")
    assert run.summary["status"] == "done"
    assert np.isfinite(run.summary["forward_kl"])


class Moved(Exception):
    pass


def test_a_bug_keeps_its_traceback(monkeypatch, tmp_path):
    import firl.methods

    def broken(problem, config):
        raise Moved

    monkeypatch.setitem(firl.methods.METHODS, "firl", broken)
    with pytest.raises(Moved):
        main(["train", "pointmass-gaussian", "--out", str(tmp_path / "run")])


def test_unnormalised_function_in_many_dimensions_needs_reverse_kl():
    from firl.expert.regions import Box

    with pytest.raises(FirlError, match="needs the arena"):
        firl.problem("Pendulum-v1", density=lambda s: -(s[:, 0] ** 2))
    with pytest.raises(FirlError, match="2 coordinates, but the environment's matched state"):
        firl.problem(
            "Pendulum-v1",
            density=lambda s: -(s[:, 0] ** 2),
            arena=Box([-1.0, -1.0], [1.0, 1.0]),
        )
    with pytest.raises(FirlError, match="state has column 3"):
        firl.problem(
            "Pendulum-v1", density=lambda s: -(s[:, 0] ** 2), arena=Box([-1.0], [1.0]), state=(3,)
        )
    made = firl.problem(
        "Pendulum-v1", density=lambda s: -(s[:, 0] ** 2), arena=Box([-1.0], [1.0]), state=(0,)
    )
    assert made.expert.normalised
    assert made.state_map(jnp.zeros((4, 3))).shape == (4, 1)
