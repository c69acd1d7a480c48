"""`firl COMMAND …`: picks the command and turns bad input into one sentence and exit code 2."""

import sys

from firl.errors import FirlError, LearningDiverged, unknown

COMMANDS = {
    "train": "learn a reward and a policy for a task",
    "evaluate": "score a run's policy against its target",
    "plot": "draw a run, or compare several",
    "export": "write a run's reward and policy for use without firl",
    "tasks": "list what there is to learn",
}

_USAGE = "\n".join(
    [
        "firl: learn a reward from what an expert visits.",
        "",
        "usage: firl COMMAND …       firl COMMAND --help explains a command",
        "",
        *(f"  {name:<10} {summary}" for name, summary in COMMANDS.items()),
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
    # Imported on demand: --help must answer before JAX could be imported.
    if command == "train":
        from firl.cli.train import train

        return train(words)
    if command == "tasks":
        from firl.cli.tasks import tasks

        return tasks(words)
    if command in COMMANDS:
        from firl.cli.runs import RUN_COMMANDS

        return RUN_COMMANDS[command](words)
    raise unknown("command", command, COMMANDS)
