"""A training that is killed at any instant goes on as if nothing had happened, bit for bit."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest
from safetensors.numpy import load_file

TRAIN = (
    *("train", "pointmass-gaussian", "--env-steps", "6000", "--checkpoint-every", "3"),
    *("--collect.rollouts", "5", "--collect.updates", "20", "--sac.hidden", "8", "8"),
    *("--sac.batch-size", "32", "--sac.buffer-size", "2000", "--reward.hidden", "8"),
    *("--evaluation.every", "7", "--evaluation.episodes", "20"),
    *("--evaluation.expert-samples", "200"),
)
"""40 iterations, whose buffer runs over: everything that a state holds is in use."""


def start(out):
    words = [sys.executable, "-m", "firl", *TRAIN, "--out", str(out), "--resume"]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def outcome(out):
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    timeless = [{k: v for k, v in row.items() if not k.startswith("time/")} for row in rows]
    summary = json.loads((out / "summary.json").read_text())
    del summary["wall_seconds"], summary["revision"]
    return timeless, load_file(out / "checkpoint.safetensors"), summary


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed") / "run"
    began = time.monotonic()
    process = start(out)
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()
    return outcome(out), time.monotonic() - began


def kill_and_resume(out, undisturbed, kills, seed):
    (rows, arrays, summary), seconds = undisturbed
    rng = random.Random(seed)
    killed = 0
    while killed < kills:
        process = start(out)
        try:
            _, errors = process.communicate(timeout=rng.uniform(0.0, seconds))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
            killed += 1
        else:
            # It got to the end: this training is over, its successor is killed instead.
            assert process.returncode == 0, errors.decode()
            break
    process = start(out)
    _, errors = process.communicate()
    assert process.returncode == 0, errors.decode()
    again_rows, again_arrays, again_summary = outcome(out)
    assert again_rows == rows
    assert again_summary == summary
    assert again_arrays.keys() == arrays.keys()
    for name, array in arrays.items():
        assert again_arrays[name].tobytes() == array.tobytes(), name
    return killed


def test_killed_training_resumes_bit_for_bit(tmp_path, undisturbed):
    assert kill_and_resume(tmp_path / "run", undisturbed, kills=3, seed=0) > 0


@pytest.mark.slow
def test_killed_twenty_times(tmp_path, undisturbed):
    killed = series = 0
    while killed < 20:
        killed += kill_and_resume(tmp_path / f"run{series}", undisturbed, kills=7, seed=series)
        series += 1


def test_undisturbed_training_learned_something(undisturbed):
    rows, arrays, summary = undisturbed[0]
    assert summary["status"] == "done"
    assert rows[-1]["env_steps"] == summary["env_steps"] == 150 + len(rows) * 150
    assert arrays["buffer/size"] == 2000
    assert rows[0]["reward/agent_mean"] != rows[-1]["reward/agent_mean"]
