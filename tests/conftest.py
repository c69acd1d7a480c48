"""Strict JAX for all tests: no silent promotion of ranks or dtypes."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import pytest
from jaxtyping import PRNGKeyArray

from firl.checkpoint import save_tree
from firl.config import TrainConfig
from firl.problems import Problem
from firl.reward import make_reward
from firl.rundir import RunDir, describe_run
from firl.sac.agent import Agent
from firl.tasks import make_problem

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture
def getkey() -> Callable[[], PRNGKeyArray]:
    """A fresh key at each call, the same sequence in each test."""
    counter = itertools.count()
    return lambda: jax.random.key(next(counter))


@pytest.fixture
def untrained(tmp_path: Path) -> Callable[..., Path]:
    """A run as its first checkpoint would leave it, with networks that have learned nothing."""

    def make(config: TrainConfig, problem: Problem | None = None, name: str = "run") -> Path:
        problem = problem or make_problem(config)
        run = RunDir(tmp_path / name)
        run.create(config, describe_run(problem, config))
        run.release()
        k_agent, k_reward = jax.random.split(jax.random.key(config.seed))
        simulator, scaling = problem.simulator, problem.scaling(config)
        agent = Agent.create(k_agent, simulator.obs_dim, simulator.act_dim, config.sac)
        none = config.method in ("bc", "true-reward")
        reward = None if none else make_reward(k_reward, scaling, config.reward)
        save_tree(run.checkpoint, {"agent": agent, "reward": reward}, {})
        return run.path

    return make


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """What one module had compiled the next has no use for.

    Each function takes mappings of memory, of which a process may have 65 530: beyond that the
    compiler crashes.
    """
    yield
    jax.clear_caches()


@pytest.fixture(scope="module")
def compiled_quickly() -> Iterator[None]:
    """For what runs for an instant, after compiling for seconds."""
    jax.config.update("jax_disable_most_optimizations", True)
    yield
    jax.config.update("jax_disable_most_optimizations", False)
