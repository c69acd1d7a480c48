"""Demonstrations of what a run has learned: how experts come about."""

from pathlib import Path

import jax
import numpy as np

from firl.checkpoint import load_about
from firl.expert.demonstrations import Demonstrations
from firl.learned import load
from firl.rundir import RunDir
from firl.tasks import TASKS, make_problem


def record(path: Path, episodes: int) -> Demonstrations:
    """Fresh episodes of a run's stochastic policy, all of them, whatever they return."""
    learned, about = load(path), RunDir(path).read_about()
    config = learned.config
    # Its own stream: no episode of training or evaluation comes back.
    key = jax.random.fold_in(jax.random.key(config.seed), _RECORD)
    made = make_problem(config).simulator.rollout(key, learned.stochastic_policy, episodes)
    low, high = np.asarray(about["action_low"]), np.asarray(about["action_high"])
    actions = low + (np.asarray(made.actions, np.float64) + 1) / 2 * (high - low)
    lengths = np.asarray(made.lengths).tolist()
    trained = load_about(RunDir(path).checkpoint)["env_steps"]
    returns = np.asarray(made.returns, np.float64)
    return Demonstrations(
        [obs[: length + 1] for obs, length in zip(np.asarray(made.obs), lengths, strict=True)],
        [row[:length] for row, length in zip(actions, lengths, strict=True)],
        [row[:length] for row, length in zip(np.asarray(made.rewards), lengths, strict=True)],
        np.asarray(made.terminated),
        TASKS[config.task].env_id,
        {
            "agent": f"SAC on the true reward, stochastic policy, seed {config.seed}",
            "training steps": trained,
            "command": f"firl expert {config.task} --env-steps {config.env_steps} "
            f"--seed {config.seed}",
            "revision": about["revision"],
            "versions": about["versions"],
            "return": {
                "mean": round(float(returns.mean()), 2),
                "std": round(float(returns.std()), 2),
                "min": round(float(returns.min()), 2),
                "max": round(float(returns.max()), 2),
            },
        },
    )


_RECORD = 4
"""The stream of keys after those of `run.py`."""
