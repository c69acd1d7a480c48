"""How a run ended: its row of results/runs.jsonl, and its picture."""

from typing import Any

import numpy as np

from firl.checkpoint import write_atomically
from firl.config import GIVEN_REWARD, as_json
from firl.expert.demonstrations import Demonstrations
from firl.problems import Problem
from firl.rundir import RunDir, to_json

Row = dict[str, Any]


def finish(run: RunDir, problem: Problem, status: str) -> Row:
    """Write picture.png, for a run that went through, and then summary.json."""
    from firl.plotting.picture import draw_run  # which needs the API, which needs this

    if status == "done":
        draw_run(run, problem)
    row = summarise(run, problem, status)
    write_atomically(run.summary, to_json(row))
    return row


def summarise(run: RunDir, problem: Problem, status: str) -> Row:
    """The run as one row; scores are means over the last 10 % of training.

    An expert's return is the mean over all episodes of its file, however few of them were used.
    """
    config, about, rows = run.read_config(), run.read_about(), run.read_metrics()
    last = rows[-1] if rows else {}
    returns = [row["eval/return"] for row in rows if "eval/return" in row]
    expert, used = problem.expert, None
    expert_return = None
    if isinstance(expert, Demonstrations):
        expert_return = None if expert.returns is None else float(expert.returns.mean())
        used = None if config.method in GIVEN_REWARD else config.imitation.demonstrations

    def ratio(value: float | None) -> float | None:
        return None if value is None or not expert_return else value / expert_return

    score = last_tenth(rows, "eval/return")
    return {
        "experiment": None,
        "task": config.task,
        "method": config.method,
        "divergence": config.divergence if config.method == "firl" else None,
        "demos": used,
        "seed": config.seed,
        "status": status,
        "return": score,
        "expert_return": expert_return,
        "ratio": ratio(score),
        "best_ratio": ratio(max(returns, default=None)),
        "final_ratio": ratio(returns[-1] if returns else None),
        "forward_kl": last_tenth(rows, "eval/forward_kl"),
        "reverse_kl": last_tenth(rows, "eval/reverse_kl"),
        "env_steps": last.get("env_steps", 0),
        "eval_env_steps": last.get("eval_env_steps", 0),
        "gradient_steps": round(sum(row["sac/updates"] for row in rows)),
        "wall_seconds": last.get("time/seconds", 0.0),
        "revision": about["revision"],
        "config": as_json(config),
    }


def last_tenth(rows: list[Row], name: str) -> float | None:
    """The mean of a metric over the evaluations in the last 10 % of the environment steps.

    Of a method that takes none, which keeps its best policy as it goes, it is the last one.
    """
    if not rows:
        return None
    if not rows[-1]["env_steps"]:
        return rows[-1].get(name)
    begin = 0.9 * rows[-1]["env_steps"]
    values = [row[name] for row in rows if name in row and row["env_steps"] >= begin]
    return float(np.mean(values)) if values else None
