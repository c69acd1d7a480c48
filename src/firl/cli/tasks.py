"""`firl tasks`: what there is to learn, a line each."""

from firl.errors import FirlError
from firl.tasks import TASKS


def tasks(words: list[str]) -> int:
    """Run the command."""
    if words and words[0] not in ("-h", "--help"):
        raise FirlError(f"firl tasks takes no arguments, but was given {words[0]!r}.")
    width = max(map(len, TASKS))
    for name, task in TASKS.items():
        print(f"{name:<{width}}  {task.summary}")
    return 0
