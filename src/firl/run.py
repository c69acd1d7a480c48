"""The driver: steps a method, logs, evaluates, checkpoints; goes on where a killed run stopped.

Nothing here depends on the wall clock or on how often the run was interrupted: iteration i uses
the i-th key of the seed and nothing else, so a resumed run is the undisturbed run, bit for bit.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

from firl.checkpoint import load_about, load_tree, save_tree
from firl.config import TrainConfig
from firl.errors import LearningDiverged, unknown
from firl.evaluation import first_non_finite, make_evaluation
from firl.methods import METHODS
from firl.methods.base import Method, State
from firl.problems import Problem
from firl.rundir import RunDir, describe_run, to_json
from firl.tensorboard import Events

Row = dict[str, Any]

_INIT, _STEP, _EVALUATE, _EXPERT = range(4)
"""What a run draws keys for; streams never mix."""


def train(problem: Problem, config: TrainConfig, out: Path, resume: bool) -> Iterator[Row]:
    """Train into `out`, yielding each iteration's row of metrics once it is on disk."""
    if config.method not in METHODS:
        raise unknown("method", config.method, METHODS)
    method = METHODS[config.method](problem, config)  # refuses what it cannot do
    run = open_run(problem, config, out, resume)
    try:
        yield from _train(problem, config, method, run)
    finally:
        run.release()


def _train(
    problem: Problem, config: TrainConfig, method: Method[Any], run: RunDir
) -> Iterator[Row]:
    root = jax.random.key(config.seed)
    keys = [jax.random.fold_in(root, stream) for stream in range(4)]
    evaluate = make_evaluation(problem, config.evaluation, keys[_EXPERT])

    finished = method.finished or (lambda state: int(state.env_steps) >= config.env_steps)
    state = method.init(keys[_INIT])
    progress = {"iteration": 0, "env_steps": int(state.env_steps), "eval_env_steps": 0}
    seconds = 0.0
    if run.checkpoint.exists():
        state, about = load_tree(run.checkpoint, state)
        progress = {name: about[name] for name in progress}
        seconds = about["seconds"]
    run.rewind_metrics(progress["iteration"])

    started = time.monotonic() - seconds
    with open(run.metrics, "ab", buffering=0) as metrics, Events(run.path, progress) as events:
        # Once at least: exploration runs whole episodes, and may end beyond the budget.
        while not finished(state) or not progress["iteration"]:
            iteration = progress["iteration"]
            try:
                state, info = method.step(jax.random.fold_in(keys[_STEP], iteration), state)
            except LearningDiverged as error:  # of a policy whose actions are NaN
                raise _diverged(run, iteration, str(error)) from error
            row: Row = {"iteration": iteration, "env_steps": int(state.env_steps)}
            row |= {name: float(value) for name, value in info.items()}
            _check_finite(run, row, state)
            done = finished(state)
            eval_env_steps = progress["eval_env_steps"]
            if done or iteration % config.evaluation.every == 0:
                scores, steps = evaluate(
                    jax.random.fold_in(keys[_EVALUATE], iteration), state.policies
                )
                row |= scores
                eval_env_steps += steps
                _check_finite(run, row, state)
            row["eval_env_steps"] = eval_env_steps
            seconds = time.monotonic() - started
            row["time/seconds"] = round(seconds, 3)
            metrics.write(to_json(row, indent=None))
            events.write(row)
            progress = {
                "iteration": iteration + 1,
                "env_steps": row["env_steps"],
                "eval_env_steps": eval_env_steps,
            }
            if done or progress["iteration"] % config.checkpoint_every == 0:
                save_tree(run.checkpoint, state, progress | {"seconds": seconds})
            yield row


def open_run(problem: Problem, config: TrainConfig, out: Path, resume: bool) -> RunDir:
    """A new run, or with `resume` the one that is there if it can go on."""
    run = RunDir(out)
    if resume and run.config.exists():
        run.check_resumable(config)
        run.lock()
    else:
        run.create(config, describe_run(problem, config))
    return run


def _check_finite(run: RunDir, row: Row, state: State) -> None:
    """Stop at the first NaN or Inf in what was logged or learned."""
    odd = next((n for n, v in row.items() if isinstance(v, float) and not np.isfinite(v)), None)
    odd = odd or first_non_finite(eqx.filter((state.agent, state.reward), eqx.is_inexact_array))
    if odd is not None:
        raise _diverged(run, row["iteration"], f"{odd} is not finite")


def _diverged(run: RunDir, iteration: int, what: str) -> LearningDiverged:
    last = "there is no checkpoint before it"
    if run.checkpoint.exists():
        before = load_about(run.checkpoint)["iteration"]
        last = f"the last good checkpoint is {run.checkpoint}, of iteration {before}"
    return LearningDiverged(f"Iteration {iteration}: {what.rstrip('.')}; {last}.")
