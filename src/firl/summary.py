"""How a run ended: its row of results/runs.jsonl, and its picture."""

from typing import Any

import numpy as np

from firl.checkpoint import write_atomically
from firl.config import as_json
from firl.methods.base import Problem
from firl.rundir import RunDir, to_json

Row = dict[str, Any]


def finish(run: RunDir, problem: Problem, status: str) -> Row:
    """Write picture.png, for a run that went through, and then summary.json."""
    from firl.plotting.picture import draw_run  # which needs the API, which needs this

    if status == "done":
        draw_run(run, problem)
    row = summarise(run, status)
    write_atomically(run.summary, to_json(row))
    return row


def summarise(run: RunDir, status: str) -> Row:
    """The run as one row; divergences are means over the last 10 % of training."""
    config, about, rows = run.read_config(), run.read_about(), run.read_metrics()
    last = rows[-1] if rows else {}
    return {
        "experiment": None,
        "task": config.task,
        "method": config.method,
        "divergence": config.divergence if config.method == "firl" else None,
        "demos": None,
        "seed": config.seed,
        "status": status,
        "return": None,
        "expert_return": None,
        "ratio": None,
        "best_ratio": None,
        "final_ratio": None,
        "forward_kl": last_tenth(rows, "eval/forward_kl"),
        "reverse_kl": last_tenth(rows, "eval/reverse_kl"),
        "env_steps": last.get("env_steps", 0),
        "eval_env_steps": last.get("eval_env_steps", 0),
        "gradient_steps": len(rows) * config.collect.updates,
        "wall_seconds": last.get("time/seconds", 0.0),
        "revision": about["revision"],
        "config": as_json(config),
    }


def last_tenth(rows: list[Row], name: str) -> float | None:
    """The mean of a metric over the evaluations in the last 10 % of the environment steps."""
    if not rows:
        return None
    begin = 0.9 * rows[-1]["env_steps"]
    values = [row[name] for row in rows if name in row and row["env_steps"] >= begin]
    return float(np.mean(values)) if values else None
