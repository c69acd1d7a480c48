"""Commands that train SAC on a reward that is given: `firl expert` and `firl retrain`."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from firl.cli.options import parse
from firl.cli.train import run_training, take_task, value_of
from firl.config import PracticeConfig, TrainConfig
from firl.errors import FirlError
from firl.tasks import configure


@dataclass(frozen=True)
class ExpertCommand:
    """Train SAC on the environment's own reward, then record episodes of its stochastic policy.

    The episodes are fresh ones of the last policy. None is picked, by return or otherwise.
    """

    config: Annotated[TrainConfig, tyro.conf.arg(name="")]
    episodes: int = 16
    """How many to record, in RUN/demonstrations.npz."""
    out: Path | None = None
    """The run's directory; made, never overwritten. [runs/TASK-expert-SEED]"""
    resume: bool = False
    """Go on with the run in that directory where it was killed, bit for bit."""


@dataclass(frozen=True)
class RetrainCommand:
    """Train SAC from scratch on the reward that a run learned, and score it by the true one."""

    config: Annotated[TrainConfig, tyro.conf.arg(name="")]
    env: str | None = None
    """The task to train in, if not the run's own: other dynamics, the same states."""
    out: Path | None = None
    """The new run's directory; made, never overwritten. [RUN-retrained-SEED]"""
    resume: bool = False
    """Go on with the run in that directory where it was killed, bit for bit."""


def expert(words: list[str]) -> int:
    """`firl expert TASK`."""
    task, words = take_task(words, "expert")
    config = dataclasses.replace(expert_config(task), method="true-reward")
    command = parse(ExpertCommand(config), words, "firl expert TASK")
    _keep_method(command.config, config, "expert")
    if command.episodes < 1:
        raise FirlError(f"--episodes is {command.episodes}, but must be positive.")
    out = command.out or Path("runs") / f"{task}-expert-s{command.config.seed}"
    run_training(command.config, out, command.resume)

    from firl.expert.record import record
    from firl.expert.write import write_npz

    demonstrations = record(out, command.episodes)
    path = out / "demonstrations.npz"
    write_npz(demonstrations, path)
    print("\n".join(demonstrations.report()))
    print(f"demonstrations  {path}")
    return 0


def expert_config(task: str) -> TrainConfig:
    """The task's own settings, but for what the paper's experts were trained with (C.2)."""
    config = configure(task)
    sac = dataclasses.replace(
        config.sac, learning_rate=1e-3, batch_size=100, learn_temperature=False, temperature=0.2
    )
    practice = PracticeConfig(random_steps=5_000)
    return dataclasses.replace(config, sac=sac, practice=practice, env_steps=1_000_000)


def retrain(words: list[str]) -> int:
    """`firl retrain RUN`."""
    if not words or (words[0].startswith("-") and not {"--help", "-h"} & set(words)):
        raise FirlError("firl retrain needs a run's directory, as in firl retrain runs/first.")
    if words[0].startswith("-"):
        parse(RetrainCommand(configure("hopper")), words, "firl retrain RUN")
    from firl.rundir import RunDir

    path, words = Path(words[0]), words[1:]
    source = RunDir(path).read_config()
    task = value_of("--env", words) or source.task
    config = dataclasses.replace(
        configure(task),
        method="learned-reward",
        learned_reward=path,
        reward=source.reward,
        sac=source.sac,
        practice=source.practice,
        demos=source.demos if task == source.task else None,
        env_steps=source.env_steps,
    )
    command = parse(RetrainCommand(config), words, "firl retrain RUN")
    _keep_method(command.config, config, "retrain")
    named = path if path.name else path.resolve()  # which `.` is not
    out = command.out or named.with_name(f"{named.name}-retrained-s{command.config.seed}")
    run_training(command.config, out, command.resume)
    return 0


def _keep_method(config: TrainConfig, own: TrainConfig, command: str) -> None:
    if config.method != own.method:
        raise FirlError(
            f"--method {config.method} is not what firl {command} does, which is {own.method}: "
            "leave it out, or use firl train."
        )
