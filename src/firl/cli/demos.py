"""`firl demos FILE`: what demonstrations hold, and a copy of them in another format."""

import re
from dataclasses import dataclass
from pathlib import Path

from firl.cli.options import parse
from firl.errors import FirlError


@dataclass(frozen=True)
class DemosCommand:
    """Say what demonstrations hold and what is odd about them."""

    to: Path | None = None
    """Write them again, to a name.npz, or to a Minari dataset's directory (a name without an
    ending). Never overwritten."""


def demos(words: list[str]) -> int:
    """`firl demos FILE`."""
    first = next((i for i, word in enumerate(words) if word.startswith("-")), len(words))
    files, options = words[:first], words[first:]
    if len(files) != 1 and not {"--help", "-h"} & set(options):
        raise FirlError(
            f"firl demos takes one file before its options, as in firl demos expert.npz, but was "
            f"given {len(files) or 'none'}."
        )
    command = parse(DemosCommand(), options, "firl demos FILE")
    if command.to is not None:
        _check_free(command.to)
    from firl.expert.read import read_demonstrations
    from firl.expert.write import write_minari, write_npz

    demonstrations = read_demonstrations(files[0])
    lines = demonstrations.report()
    if command.to is not None:
        write = write_npz if command.to.suffix.lower() == ".npz" else write_minari
        write(demonstrations, command.to)
        lines.append(str(command.to))
    print("\n".join(lines))
    return 0


def _check_free(out: Path) -> None:
    named = out.suffix.lower() in ("", ".npz") or re.search(r"-v\d+$", out.name)
    if not named or str(out).startswith("minari:"):
        raise FirlError(
            f"--to {out}: firl writes an .npz or a Minari dataset's directory: give the name the "
            "ending .npz, or none."
        )
    if out.exists():
        raise FirlError(f"--to {out}: there is something already: name what is not there.")
