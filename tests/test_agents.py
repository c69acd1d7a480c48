"""`firl expert` and `firl retrain`, from the command line, on trainings of an instant."""

import dataclasses

import jax
import numpy as np
import pytest
from ledge import HORIZON, SMALL, LedgeSimulator
from safetensors.numpy import load_file

from firl import tasks
from firl.checkpoint import load_about
from firl.cli import main
from firl.config import EvaluationConfig, ImitationConfig
from firl.expert.read import read_demonstrations
from firl.expert.record import record
from firl.learned import load
from firl.rundir import RunDir
from firl.tasks import Task

pytestmark = pytest.mark.usefixtures("compiled_quickly")


def tiny(config):
    return dataclasses.replace(
        config,
        env_steps=300,
        practice=dataclasses.replace(SMALL.practice, steps=50),
        imitation=ImitationConfig(window=5, batch=5),
        classifier=SMALL.classifier,
        reward=SMALL.reward,
        sac=dataclasses.replace(SMALL.sac, learn_temperature=True),
        evaluation=EvaluationConfig(every=2, episodes=4),
    )


def task(env_id, **options):
    return Task("a ledge", lambda: LedgeSimulator(**options), tiny, tiny, env_id=env_id)


@pytest.fixture(scope="module", autouse=True)
def ledges(compiled_quickly):
    """Two tasks of the same states, in which the same action goes differently far."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(tasks.TASKS, "ledge", task("Ledge-v0"))
        patch.setitem(tasks.TASKS, "steep-ledge", task("SteepLedge-v0", push=0.4))
        yield


EXPERT = (
    *("expert", "ledge", "--episodes", "12", "--seed", "3", "--env-steps", "300"),
    *("--practice.random-steps", "100", "--practice.steps", "50", "--practice.updates", "25"),
    *("--sac.temperature", "5"),
)
"""So hot that its episodes differ in length."""


@pytest.fixture(scope="module")
def expert(tmp_path_factory, ledges):
    out = tmp_path_factory.mktemp("expert") / "run"
    assert main([*EXPERT, "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def imitator(tmp_path_factory, expert):
    out = tmp_path_factory.mktemp("imitator") / "run"
    words = ["train", "ledge", "--demos", str(expert / "demonstrations.npz"), "--out", str(out)]
    assert main(words) == 0
    return out


@pytest.fixture(scope="module")
def retrained(imitator):
    assert main(["retrain", str(imitator), "--env-steps", "250"]) == 0
    return imitator.with_name("run-retrained-s0")


def contents(run):
    return {
        path.name: path.read_bytes()
        for path in run.iterdir()
        if path.suffix in (".npz", ".jsonl", ".safetensors") or path.name == "config.json"
    }


def rows_of(run):
    return RunDir(run).read_metrics()


def test_an_expert_leaves_a_run_and_its_demonstrations(expert):
    names = {child.name for child in expert.iterdir() if not child.name.startswith(("events", "."))}
    assert names == {
        *("config.json", "run.json", "metrics.jsonl", "checkpoint.safetensors"),
        *("summary.json", "picture.png", "demonstrations.npz"),
    }
    config = RunDir(expert).read_config()
    assert config.method == "true-reward"
    assert config.seed == 3
    assert (config.sac.temperature, config.sac.learn_temperature) == (5.0, False), "as the paper's"
    assert RunDir(expert).read_summary()["method"] == "true-reward"
    assert all(row["sac/reward"] == 1.0 for row in rows_of(expert)), "what the ledge pays"


def test_recorded_episodes_are_steps_of_the_environment(expert):
    demos = read_demonstrations(expert / "demonstrations.npz")
    assert (demos.num, demos.obs_dim, demos.act_dim, demos.env_id) == (12, 1, 1, "Ledge-v0")
    demos.check_against(1, 1, "Ledge-v0")
    assert demos.visited(HORIZON).shape == (12, HORIZON, 1)
    for obs, actions, ended in zip(
        demos.observations, demos.actions, demos.terminated, strict=True
    ):
        moved = np.maximum(obs[:-1] + 0.25 * actions, -1.0)
        np.testing.assert_allclose(obs[1:], moved, atol=1e-5)
        assert ended == (obs[-1] > 1.0)
        assert ended or len(actions) == HORIZON
    np.testing.assert_array_equal(demos.returns, demos.lengths)
    about = demos.provenance
    assert about["training steps"] == rows_of(expert)[-1]["env_steps"]
    assert about["training steps"] == load_about(RunDir(expert).checkpoint)["env_steps"]
    assert about["return"]["mean"] == pytest.approx(demos.returns.mean(), abs=0.01)
    assert about["return"]["min"] == demos.returns.min()
    assert about["command"].startswith("firl expert ledge ")


def test_recorded_episodes_are_of_the_stochastic_policy(expert):
    demos, actor = record(expert, 60), load(expert).actor
    obs = np.concatenate([obs[:-1] for obs in demos.observations])
    actions = np.concatenate(demos.actions) / 2.0
    means, log_stds = jax.vmap(actor.distribution)(obs)
    noise = (np.arctanh(np.clip(actions, -1 + 1e-6, 1 - 1e-6)) - means) / np.exp(log_stds)
    assert len(noise) > 300
    assert abs(noise.mean()) < 0.2
    assert 0.85 < noise.std() < 1.15


def test_no_episode_is_picked(expert):
    """However many are recorded, they are the same ones in the same order."""
    on_disk = read_demonstrations(expert / "demonstrations.npz")
    assert np.ptp(on_disk.lengths) > 0, "there should have been something to pick from"
    for num in (3, 12):
        again = record(expert, num)
        for ours, theirs in zip(again.observations, on_disk.observations, strict=False):
            np.testing.assert_array_equal(ours, theirs)


def test_a_finished_expert_records_the_same_episodes_again(expert):
    before = contents(expert)
    (expert / "demonstrations.npz").unlink()
    assert main([*EXPERT, "--out", str(expert), "--resume"]) == 0
    assert contents(expert) == before


def test_retraining_uses_the_reward_as_it_is(imitator, retrained):
    config, source = RunDir(retrained).read_config(), RunDir(imitator).read_config()
    assert config.method == "learned-reward"
    assert config.learned_reward == imitator
    assert config.env_steps == 250
    assert (config.sac, config.reward, config.practice) == (
        source.sac,
        source.reward,
        source.practice,
    )
    states = np.linspace(-1, 1.5, 101, dtype=np.float32)[:, None]
    rewards = load(imitator).reward(states)
    np.testing.assert_array_equal(load(retrained).reward(states), rewards)
    assert np.ptp(rewards) > 0
    for row in rows_of(retrained):
        assert rewards.min() <= row["sac/reward"] <= rewards.max()
        assert row["sac/reward"] != 1.0, "which is what a step truly pays"


def test_retraining_starts_from_scratch_and_counts_its_own_steps(retrained):
    rows = rows_of(retrained)
    assert 150 <= rows[0]["env_steps"] < 150 + 2 * HORIZON
    assert rows[-2]["env_steps"] < 250 <= rows[-1]["env_steps"]
    count = load_file(RunDir(retrained).checkpoint)["agent/critic_optimiser/count"]
    assert count == sum(row["sac/updates"] for row in rows)


def test_retraining_is_scored_by_the_true_reward(imitator, expert, retrained):
    scored = [row for row in rows_of(retrained) if "eval/return" in row]
    assert scored[-1]["iteration"] == rows_of(retrained)[-1]["iteration"]
    for row in scored:
        assert row["eval/return"] == row["eval/length"], "a step truly pays 1"
    summary = RunDir(retrained).read_summary()
    returns = read_demonstrations(expert / "demonstrations.npz").returns
    assert summary["expert_return"] == pytest.approx(returns.mean())
    assert summary["demos"] is None, "it saw none"


def test_retraining_elsewhere(imitator, monkeypatch):
    monkeypatch.chdir(imitator)
    assert main(["retrain", ".", "--env", "steep-ledge", "--seed", "7"]) == 0
    out = imitator.with_name("run-retrained-s7")
    config = RunDir(out).read_config()
    assert config.task == "steep-ledge"
    states = np.linspace(-1, 1.5, 11, dtype=np.float32)[:, None]
    np.testing.assert_array_equal(load(out).reward(states), load(imitator).reward(states))
    steps = record(out, 1)
    moved = np.maximum(steps.observations[0][:-1] + 0.4 * steps.actions[0], -1.0)
    np.testing.assert_allclose(steps.observations[0][1:], moved, atol=1e-5)
    assert RunDir(out).read_summary()["expert_return"] is None, "another place, another return"


def test_a_finished_retraining_stays_as_it_is(imitator, retrained):
    before = contents(retrained)
    assert main(["retrain", str(imitator), "--env-steps", "250", "--resume"]) == 0
    assert contents(retrained) == before


def test_a_budget_that_exploration_overshoots_still_learns(tmp_path):
    """Its episodes are whole, so that how many steps it takes is not known before."""
    out = tmp_path / "run"
    words = [*EXPERT, "--env-steps", "102", "--practice.random-steps", "101"]
    assert main([*words, "--out", str(out)]) == 0
    assert len(rows_of(out)) == 1


@pytest.mark.slow
def test_an_expert_of_a_task_that_is_there(tmp_path):
    out = tmp_path / "run"
    words = ["expert", "hopper", "--env-steps", "150", "--practice.random-steps", "100"]
    small = ["--sac.hidden", "8", "8", "--practice.steps", "50", "--evaluation.episodes", "1"]
    assert main([*words, *small, "--episodes", "2", "--out", str(out)]) == 0
    demos = read_demonstrations(out / "demonstrations.npz")
    demos.check_against(11, 3, "Hopper-v5")
    assert demos.terminated.all(), "it falls over at once"
    assert demos.visited(1000).shape == (2, 1000, 11)
    assert all(np.abs(actions).max() <= 1 for actions in demos.actions)


BAD = {
    "no task": (["expert"], "firl expert needs a task"),
    "options before the task": (["expert", "--seed", "1"], "firl expert needs a task"),
    "unknown task": (["expert", "hoper"], "did you mean 'hopper'?"),
    "no episodes": (["expert", "ledge", "--episodes", "0"], "--episodes is 0"),
    "unknown option": (["expert", "ledge", "--episode", "3"], "did you mean --episodes?"),
    "another method": (["expert", "ledge", "--method", "maxent"], "--method maxent"),
    "used up": (["expert", "ledge", "--env-steps", "5000"], "5000 random steps use up"),
    "no run": (["retrain"], "firl retrain needs a run's directory"),
    "options before the run": (["retrain", "--seed", "1"], "firl retrain needs a run's directory"),
    "missing run": (["retrain", "nowhere"], "nowhere is not a run of firl"),
    "unknown environment": (["retrain", "RUN", "--env", "steep"], "did you mean 'steep-ledge'?"),
    "other states": (["retrain", "RUN", "--env", "hopper"], "states of 1 coordinate"),
    "no value": (["retrain", "RUN", "--env"], "--env"),
    "retrain towards": (["retrain", "RUN", "--method", "firl"], "--method firl"),
    "other reward": (["retrain", "RUN", "--reward.activation", "relu"], "--reward"),
    "nothing learned": (["retrain", "EXPERT"], "has no reward of its own"),
    "unreadable": (["train", "ledge", "--demos", "none.npz"], "no demonstrations at 'none.npz'"),
    "other place": (["train", "steep-ledge", "--demos", "DEMOS"], "of Ledge-v0, not of SteepLedge"),
    "other dimension": (["train", "pointmass-uniform", "--demos", "DEMOS"], "have 1 coordinates"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_one_sentence(kind, imitator, expert, tmp_path, monkeypatch, capsys):
    places = {"RUN": imitator, "EXPERT": expert, "DEMOS": expert / "demonstrations.npz"}
    words, part = BAD[kind]
    monkeypatch.chdir(tmp_path)
    beside = [sorted(run.parent.iterdir()) for run in (imitator, expert)]
    capsys.readouterr()
    assert main([str(places.get(word, word)) for word in words]) == 2
    complaint = capsys.readouterr().err
    assert part in complaint
    assert complaint.startswith("firl: ")
    assert complaint.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
    assert [sorted(run.parent.iterdir()) for run in (imitator, expert)] == beside
