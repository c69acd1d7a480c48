"""results/: one row per finished or failed run, its curves and its reward beside it.

results/runs.jsonl                    rows, the ground truth of every table and figure
results/curves/ID.jsonl.gz            the run's metrics
results/rewards/ID.safetensors        the reward network, where it was learned
"""

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

import firl
from firl.checkpoint import load_part, save_tree, write_atomically
from firl.config import RewardConfig
from firl.reward import make_reward
from firl.rundir import RunDir, to_json
from firl.tasks import configure, make_problem

RESULTS = Path(__file__).resolve().parent.parent / "results"
_TIMELESS = ("iteration", "env_steps")
_SHAPES = ("hidden", "activation", "normalise", "bound", "soft_bound")


def run_id(row: dict[str, Any]) -> str:
    """A run's name in results/."""
    method = row["method"] if row["divergence"] is None else f"{row['method']}-{row['divergence']}"
    return f"{row['experiment']}-{row['task']}-{method}-s{row['seed']}"


def rows(experiment: str | None = None) -> list[dict[str, Any]]:
    """All rows, or one experiment's."""
    path = RESULTS / "runs.jsonl"
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [row for row in found if experiment in (None, row["experiment"])]


def curves(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The evaluations of a run."""
    path = RESULTS / "curves" / f"{run_id(row)}.jsonl.gz"
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def reward(row: dict[str, Any]) -> Callable[[np.ndarray], np.ndarray]:
    """The reward that a run learned, on NumPy arrays."""
    # Only what shapes the network: rows outlive the options that firl had when they were written.
    kept = {name: row["config"]["reward"][name] for name in _SHAPES}
    config = RewardConfig(**kept | {"hidden": tuple(kept["hidden"])})
    task = configure(row["task"])
    scaling = make_problem(task).scaling(replace(task, reward=config))
    net = make_reward(jax.random.key(0), scaling, config)
    net = load_part(_reward_path(row), "reward", net)
    return lambda states: np.asarray(jax.vmap(net)(states))


def _reward_path(row: dict[str, Any]) -> Path:
    return RESULTS / "rewards" / f"{run_id(row)}.safetensors"


def collect(run: RunDir, experiment: str) -> dict[str, Any]:
    """Copy what a finished run leaves behind into results/, replacing an older row of its name."""
    summary = run.read_summary()
    assert summary is not None, f"{run.path} has not ended"
    row = summary | {"experiment": experiment}
    name = run_id(row)
    (RESULTS / "curves").mkdir(parents=True, exist_ok=True)
    (RESULTS / "rewards").mkdir(parents=True, exist_ok=True)
    kept = [
        {k: v for k, v in line.items() if k in _TIMELESS or k.startswith(("eval", "time"))}
        for line in run.read_metrics()
        if any(k.startswith("eval/") for k in line)
    ]
    text = b"".join(to_json(line, indent=None) for line in kept)
    # mtime=0: the same results are the same bytes.
    write_atomically(RESULTS / "curves" / f"{name}.jsonl.gz", gzip.compress(text, mtime=0))
    if run.checkpoint.exists():
        save_tree(_reward_path(row), {"reward": firl.load(run.path).reward_net}, {})
    others = [other for other in rows() if run_id(other) != name]
    merged = sorted([*others, row], key=run_id)
    write_atomically(
        RESULTS / "runs.jsonl", b"".join(to_json(line, indent=None) for line in merged)
    )
    return row


def fill(page: Path, name: str, text: str) -> None:
    """Put a table between the two marks of its name on a page."""
    begin, end = f"<!-- {name}: written by make figures -->", f"<!-- /{name} -->"
    before, rest = page.read_text().split(begin)
    _, after = rest.split(end)
    page.write_text(f"{before}{begin}\n\n{text}\n{end}{after}")
