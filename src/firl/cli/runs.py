"""Commands on runs that exist: evaluate, plot, export."""

from dataclasses import dataclass
from pathlib import Path

from firl.cli.options import parse
from firl.config import EvaluationConfig
from firl.errors import FirlError


@dataclass(frozen=True)
class EvaluateCommand:
    """Score a run's stochastic policy by fresh episodes: against its target, or by its return."""

    episodes: int | None = None
    """How many. [as many as the run's own evaluations]"""
    expert_samples: int = 10_000
    """Samples of the target to compare with."""
    seed: int = 0
    """Of the episodes."""


@dataclass(frozen=True)
class PlotCommand:
    """Draw one run's picture and frames of its policy, or several runs' curves in one figure."""

    out: Path = Path("comparison.png")
    """Where the comparison of several runs goes; one run's pictures stay in its directory."""


@dataclass(frozen=True)
class ExportCommand:
    """Write a run's reward and policy for use without firl."""

    out: Path | None = None
    """A directory; made, never overwritten. [RUN/export]"""
    onnx: bool = False
    """Write reward.onnx and policy.onnx as well, which needs the package onnx."""


def evaluate(words: list[str]) -> int:
    """`firl evaluate RUN`."""
    paths, options = _split(words, "evaluate")
    command = parse(EvaluateCommand(), options, "firl evaluate RUN")
    import jax

    from firl.evaluation import score
    from firl.learned import load
    from firl.tasks import make_problem

    for path in paths:
        learned = load(path)
        config = EvaluationConfig(
            episodes=command.episodes or learned.config.evaluation.episodes,
            expert_samples=command.expert_samples,
        )
        problem = make_problem(learned.config)
        scores, env_steps = score(
            problem, learned.stochastic_policy, config, jax.random.key(command.seed)
        )
        print(f"{path} ({env_steps:,} evaluation steps)")
        for name, value in scores.items():
            print(f"  {name.removeprefix('eval/').replace('_', ' '):<12} {value:.4f}")
    return 0


def plot(words: list[str]) -> int:
    """`firl plot RUN…`."""
    paths, options = _split(words, "plot")
    command = parse(PlotCommand(), options, "firl plot RUN…")
    from firl.plotting.curves import draw_comparison, label_of
    from firl.plotting.frames import draw_frames
    from firl.plotting.picture import draw_run
    from firl.rundir import RunDir
    from firl.tasks import make_problem

    if len(paths) == 1:
        run = RunDir(paths[0])
        problem = make_problem(run.read_config())
        draw_run(run, problem)
        print(run.picture)
        try:
            draw_frames(run, problem)
            print(run.frames)
        except FirlError as reason:
            print(f"no frames: {reason}")
        return 0
    runs = [RunDir(path) for path in paths]
    labelled = []
    for run in runs:
        config = run.read_config()
        labelled.append((label_of(config.method, config.divergence), run.read_metrics()))
    if not command.out.parent.is_dir():
        raise FirlError(f"--out {command.out}: {command.out.parent} is not a directory.")
    draw_comparison(labelled, command.out)
    print(command.out)
    return 0


def export(words: list[str]) -> int:
    """`firl export RUN`."""
    paths, options = _split(words, "export")
    command = parse(ExportCommand(), options, "firl export RUN")
    from firl.export import export_run

    if len(paths) > 1:
        raise FirlError(f"firl export takes one run, but was given {len(paths)}.")
    print(export_run(paths[0], command.out or paths[0] / "export", command.onnx))
    return 0


def _split(words: list[str], command: str) -> tuple[list[Path], list[str]]:
    """The runs that come first, and the options after them."""
    first = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
    paths, options = [Path(word) for word in words[:first]], words[first:]
    if not paths and not {"--help", "-h"} & set(options):
        raise FirlError(f"firl {command} needs a run's directory, as in firl {command} runs/first.")
    return paths, options
