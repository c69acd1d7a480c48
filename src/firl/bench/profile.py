"""Where the time of a training goes: `python -m firl.bench.profile TASK`.

Every part is waited for before the clock goes on, so that nothing hides behind anything else.
"""

import argparse
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import jax

from firl import run
from firl.checkpoint import save_tree
from firl.config import TrainConfig
from firl.evaluation import make_evaluation
from firl.log_ratio import classifier
from firl.methods import alternate, imitate
from firl.methods.signals import KnownDensitySignal
from firl.metrics.knn import knn_entropy, knn_kl
from firl.problems import Problem
from firl.sac.replay import ReplayBuffer
from firl.sac.update import improve
from firl.tasks import configure, make_problem

_COMPILING = 2
"""Iterations before the clock starts."""


class Stopwatch:
    """Seconds and calls of named parts; a part within another one is taken off the outer one's."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: dict[str, int] = defaultdict(int)
        self._within: list[str] = []

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Everything in here."""
        outer = self._within[-1] if self._within else None
        name = name if outer is None else f"{outer}: {name}"
        self._within.append(name)
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self._within.pop()
            self.calls[name] += 1
            self.seconds[name] += spent
            if outer is not None:
                self.seconds[outer] -= spent

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, every call of which is a part."""

        def call(*args: Any, **kwargs: Any) -> Any:
            with self.part(name):
                return jax.block_until_ready(function(*args, **kwargs))

        return call


def profile(problem: Problem, config: TrainConfig, iterations: int) -> tuple[Stopwatch, float, int]:
    """Train for so many iterations; the parts, the seconds, and the environment steps of them."""
    watch = Stopwatch()
    simulator = problem.simulator

    def made(name: str, make: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: watch.timed(name, make(*args))

    def method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        timed = watch.timed(name, function)
        return lambda self, *args: timed(self, *args)  # a plain function binds to its object

    patches = [
        patch.object(simulator, "rollout", watch.timed("roll-outs", simulator.rollout)),
        patch.object(simulator, "practise", watch.timed("acting", simulator.practise)),
        patch.object(ReplayBuffer, "insert", method("replay buffer", ReplayBuffer.insert)),
        patch("firl.methods.alternate.improve", watch.timed("SAC updates", improve)),
        patch("firl.methods.practice.improve", watch.timed("SAC updates", improve)),
        patch.object(KnownDensitySignal, "fit", method("log-ratio", KnownDensitySignal.fit)),
        patch.object(classifier, "fit", watch.timed("log-ratio", classifier.fit)),
        *(
            patch.object(module, "make_update", made("reward's steps", module.make_update))
            for module in (alternate, imitate)
        ),
        patch("firl.run.make_evaluation", made("evaluation", make_evaluation)),
        patch("firl.evaluation.knn_kl", watch.timed("nearest neighbours", knn_kl)),
        patch("firl.evaluation.knn_entropy", watch.timed("nearest neighbours", knn_entropy)),
        patch("firl.run.save_tree", watch.timed("checkpoints", save_tree)),
    ]
    with ExitStack() as stack, tempfile.TemporaryDirectory() as directory:
        for each in patches:
            stack.enter_context(each)
        rows = run.train(problem, config, Path(directory) / "run", resume=False)
        for _ in range(_COMPILING):
            first = next(rows)
        watch.seconds.clear()
        watch.calls.clear()
        start = time.perf_counter()
        for _ in range(iterations):
            last = next(rows)
        total = time.perf_counter() - start
    return watch, total, last["env_steps"] - first["env_steps"]


def table(watch: Stopwatch, total: float, env_steps: int, title: str) -> str:
    """Markdown, the longest part first."""
    lines = [
        f"{title}: {total:.1f} s, {env_steps:,} environment steps of training.",
        "",
        "| part | calls | seconds | share |",
        "| --- | ---: | ---: | ---: |",
    ]
    parts = sorted(watch.seconds.items(), key=lambda item: -item[1])
    for name, seconds in [*parts, ("everything else", total - sum(watch.seconds.values()))]:
        calls = watch.calls.get(name, "")
        lines.append(f"| {name} | {calls} | {seconds:.2f} | {seconds / total:.0%} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """`python -m firl.bench.profile`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task")
    parser.add_argument("--preset", default="default")
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--core", type=int, help="pin to this one")
    parser.add_argument("--out", type=Path, default=Path("results/bench"))
    options = parser.parse_args()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    config = replace(configure(options.task, options.preset), env_steps=10**9)
    watch, total, env_steps = profile(make_problem(config), config, options.iterations)
    cores = len(os.sched_getaffinity(0))
    title = (
        f"{options.iterations} iterations of {options.task} ({options.preset} preset) on "
        f"{cores} core{'s' if cores > 1 else ''}"
    )
    text = table(watch, total, env_steps, title)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / f"profile-{options.task}-{options.preset}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
