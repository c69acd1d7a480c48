"""`firl train TASK`: train, show how it goes, end with what was written."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from firl.cli.options import parse
from firl.config import TrainConfig
from firl.errors import FirlError
from firl.tasks import TASKS, configure


@dataclass(frozen=True)
class TrainCommand:
    """Learn a reward and a policy; every default shown is this task's."""

    config: Annotated[TrainConfig, tyro.conf.arg(name="")]
    out: Path | None = None
    """The run's directory; made, never overwritten. [runs/TASK-METHOD-SEED]"""
    resume: bool = False
    """Go on with the run in that directory where it was killed, bit for bit."""


def train(words: list[str]) -> int:
    """Run the command."""
    task, words = _take_task(words)
    config = configure(task, _value_of("--preset", words) or "default")
    command = parse(TrainCommand(config), words, "firl train TASK")
    out = command.out or default_out(command.config)

    # Everything so far answers at once; from here on JAX is needed.
    from firl.api import train as train_run
    from firl.cli.progress import Progress

    with Progress(command.config) as progress:
        run = train_run(command.config, out=out, resume=command.resume, on_row=progress.show)
    progress.summarise(run)
    return 0


def default_out(config: TrainConfig) -> Path:
    """Where a run goes when nobody says where."""
    method = config.method if config.method != "firl" else f"firl-{config.divergence}"
    return Path("runs") / f"{config.task}-{method}-s{config.seed}"


def _take_task(words: list[str]) -> tuple[str, list[str]]:
    if words and not words[0].startswith("-"):
        return words[0], words[1:]
    if "--help" in words or "-h" in words:
        return next(iter(TASKS)), words
    raise FirlError(f"firl train needs a task: {', '.join(TASKS)}.")


def _value_of(option: str, words: list[str]) -> str | None:
    for position, word in enumerate(words):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option and position + 1 < len(words):
            return words[position + 1]
    return None
