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
    task, words = take_task(words, "train")
    config = configure(task, value_of("--preset", words) or "default")
    command = parse(TrainCommand(config), words, "firl train TASK")
    run_training(command.config, command.out or default_out(command.config), command.resume)
    return 0


def run_training(config: TrainConfig, out: Path, resume: bool) -> None:
    """Train with a display of how it goes."""
    # Everything so far answers at once; from here on JAX is needed.
    from firl.api import train as train_run
    from firl.cli.progress import Progress

    with Progress(config) as progress:
        run = train_run(config, out=out, resume=resume, on_row=progress.show)
    progress.summarise(run)


def default_out(config: TrainConfig) -> Path:
    """Where a run goes when nobody says where."""
    method = config.method if config.method != "firl" else f"firl-{config.divergence}"
    return Path("runs") / f"{config.task}-{method}-s{config.seed}"


def take_task(words: list[str], command: str) -> tuple[str, list[str]]:
    """The task, which comes first, and the options."""
    if words and not words[0].startswith("-"):
        return words[0], words[1:]
    if "--help" in words or "-h" in words:
        return next(iter(TASKS)), words
    raise FirlError(f"firl {command} needs a task: {', '.join(TASKS)}.")


def value_of(option: str, words: list[str]) -> str | None:
    """What an option is given, before all of them are parsed."""
    for position, word in enumerate(words):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option and position + 1 < len(words):
            return words[position + 1]
    return None
