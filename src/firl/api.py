"""firl from Python: state a problem, train on it, load what was learned as NumPy functions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np

from firl import run as driver
from firl.config import TrainConfig
from firl.errors import FirlError, LearningDiverged
from firl.expert.base import AbstractDensity
from firl.expert.callable import CallableDensity
from firl.expert.regions import AbstractRegion
from firl.expert.truncated import normalise_on
from firl.problems import Problem
from firl.rollout import make_simulator
from firl.rundir import RunDir
from firl.summary import finish
from firl.tasks import configure, make_problem
from firl.types import StateMap, columns_of


@dataclass(frozen=True)
class Run:
    """A finished training."""

    path: Path
    summary: dict[str, Any]
    """How it ended: one row of results/runs.jsonl."""


def problem(
    env: str | Callable[[], gymnasium.Env[Any, Any]],
    density: AbstractDensity | Callable[[np.ndarray], object],
    *,
    state: Sequence[int] | StateMap | None = None,
    arena: AbstractRegion | None = None,
    horizon: int | None = None,
) -> Problem:
    """Your own environment, and where its state should spend its time.

    `env` is a Gymnasium id or a function that makes the environment. `density` is one of
    firl.expert's, or a function from states [n, d] to log-densities [n] (NumPy); a function may
    be right up to a constant, and needs the `arena`, a Box around all states that can be reached,
    on which it is normalised in up to three dimensions. `state` picks what of the observation is
    matched: columns, or a JAX function along the last axis; all of it by default. `horizon` is
    the environment's own time limit by default.
    """
    simulator = make_simulator(env, horizon)
    if not isinstance(density, AbstractDensity):
        if arena is None:
            raise FirlError(
                "A density given as a function needs the arena it lives on: pass arena=Box(low, "
                "high) around all states that can be reached."
            )
        density = CallableDensity(density, arena)
        if arena.dim <= 3:
            density = normalise_on(density, arena)
    if state is None:
        state = range(simulator.obs_dim)
    state_map = state if callable(state) else columns_of(state, simulator.obs_dim)
    made = Problem(simulator, state_map, density, arena)
    shape = jax.eval_shape(
        state_map, jax.ShapeDtypeStruct((1, simulator.obs_dim), np.float32)
    ).shape
    if shape != (1, density.dim):
        raise FirlError(
            f"The density takes states of {density.dim} coordinates, but the environment's "
            f"matched state has shape {shape[1:]}: choose its columns with state=(…)."
        )
    return made


def train(
    what: str | TrainConfig | Problem,
    config: TrainConfig | None = None,
    *,
    out: str | Path,
    resume: bool = False,
    on_row: Callable[[dict[str, Any]], None] = lambda row: None,
) -> Run:
    """Train on a task (by name or configuration), or on a problem of your own.

    `on_row` sees each iteration's metrics. With `resume`, a run that was killed goes on.
    """
    if isinstance(what, Problem):
        problem, config = what, config or TrainConfig(task="custom")
    else:
        if config is not None:
            raise FirlError("A configuration goes with a problem; a task has its own.")
        config = what if isinstance(what, TrainConfig) else configure(what)
        problem = make_problem(config)
    run = RunDir(Path(out))
    try:
        for row in driver.train(problem, config, Path(out), resume):
            on_row(row)
    except LearningDiverged:
        finish(run, problem, status="failed")
        raise
    return Run(run.path, finish(run, problem, status="done"))
