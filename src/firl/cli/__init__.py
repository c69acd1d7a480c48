"""`firl COMMAND …`: picks the command and turns bad input into one sentence and exit code 2."""

import sys
from collections.abc import Callable
from importlib import import_module

from firl.errors import FirlError, LearningDiverged, unknown

COMMANDS = {
    "train": ("firl.cli.train", "learn a reward and a policy for a task"),
    "evaluate": ("firl.cli.runs", "score a run's policy"),
    "plot": ("firl.cli.runs", "draw a run, or compare several"),
    "export": ("firl.cli.runs", "write a run's reward and policy for use without firl"),
    "retrain": ("firl.cli.agents", "train from scratch on the reward that a run learned"),
    "expert": ("firl.cli.agents", "train on a task's own reward and record demonstrations"),
    "demos": ("firl.cli.demos", "say what demonstrations hold, or write them in another format"),
    "tasks": ("firl.cli.tasks", "list what there is to learn"),
}
"""Where each is, imported on demand: --help must answer before JAX could be imported."""

_USAGE = "\n".join(
    [
        "firl: learn a reward from what an expert visits.",
        "",
        "usage: firl COMMAND …       firl COMMAND --help explains a command",
        "",
        *(f"  {name:<10} {summary}" for name, (_, summary) in COMMANDS.items()),
        "",
        "First steps: firl train pointmass-gaussian",
    ]
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code is 2 for bad input and 1 where learning diverged."""
    words = sys.argv[1:] if arguments is None else arguments
    if not words or words[0] in ("-h", "--help"):
        print(_USAGE)
        return 0 if words else 2
    try:
        return _dispatch(words[0], words[1:])
    except FirlError as error:
        print(f"firl: {error}", file=sys.stderr)
        return 2
    except LearningDiverged as error:
        print(f"firl: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("firl: interrupted; --resume goes on from the last checkpoint.", file=sys.stderr)
        return 130


def _dispatch(command: str, words: list[str]) -> int:
    if command not in COMMANDS:
        raise unknown("command", command, COMMANDS)
    run: Callable[[list[str]], int] = getattr(import_module(COMMANDS[command][0]), command)
    return run(words)
