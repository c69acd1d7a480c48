"""A run directory is created whole or not at all, and never overwritten."""

import json
from dataclasses import replace

import pytest

from firl.config import TrainConfig, as_json, flatten, from_json
from firl.errors import FirlError
from firl.rundir import RunDir, describe_run, to_json
from firl.tasks import make_problem

CONFIG = TrainConfig(task="pointmass-gaussian")


@pytest.fixture
def run(tmp_path):
    run = RunDir(tmp_path / "run")
    run.create(CONFIG, describe_run(make_problem(CONFIG), CONFIG))
    run.release()
    return run


def test_config_roundtrip():
    config = replace(CONFIG, seed=5, sac=replace(CONFIG.sac, hidden=(8, 8, 8)))
    assert from_json(json.loads(to_json(as_json(config)))) == config


def test_config_of_another_version_is_refused():
    plain = as_json(CONFIG)
    plain["sac"]["momentum"] = 0.9
    with pytest.raises(FirlError, match=r"config\.sac has other fields.*'momentum'"):
        from_json(plain)


def test_a_run_explains_itself(run):
    assert run.read_config() == CONFIG
    about = run.read_about()
    assert about["versions"]["jax"]
    assert about["obs_dim"] == 2
    assert run.read_summary() is None


def test_a_run_is_not_overwritten(run):
    with pytest.raises(FirlError, match="already holds a run: add --resume"):
        RunDir(run.path).create(CONFIG, {})


def test_a_foreign_directory_is_not_written_to(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(FirlError, match="is not empty"):
        RunDir(tmp_path).create(CONFIG, {})
    assert [child.name for child in tmp_path.iterdir()] == ["thesis.tex"]


def test_two_processes_do_not_write_one_run(run):
    first, second = RunDir(run.path), RunDir(run.path)
    first.lock()
    with pytest.raises(FirlError, match="being written by another process"):
        second.lock()
    first.release()
    second.lock()
    second.release()


@pytest.mark.parametrize(
    ("change", "option"),
    [
        ({"seed": 1}, "--seed 0, but 1"),
        ({"divergence": "js"}, "--divergence fkl, but js"),
        ({"sac": replace(CONFIG.sac, hidden=(8,))}, r"--sac.hidden \[64, 64\], but \[8\]"),
    ],
)
def test_resume_with_another_config_is_refused(run, change, option):
    with pytest.raises(FirlError, match=option):
        run.check_resumable(replace(CONFIG, **change))


def test_resume_with_another_jax_is_refused(run):
    about = run.read_about()
    about["versions"]["jax"] = "0.1.2"
    run.about.write_bytes(to_json(about))
    with pytest.raises(FirlError, match=r"made with jax 0\.1\.2"):
        run.check_resumable(CONFIG)


def test_metrics_survive_a_cut_line_and_rewind(run):
    rows = [{"iteration": i, "loss": i / 3} for i in range(5)]
    whole = b"".join(to_json(row, indent=None) for row in rows)
    run.metrics.write_bytes(whole + b'{"iteration": 5, "lo')
    assert run.read_metrics() == rows
    run.rewind_metrics(3)
    assert run.read_metrics() == rows[:3]


def test_flat_names_are_the_options():
    assert flatten(CONFIG)["collect.rollouts"] == CONFIG.collect.rollouts
