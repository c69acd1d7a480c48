"""What a user can do wrong, and what learning can do wrong. Nothing heavy imported."""

import difflib
from collections.abc import Iterable


class FirlError(Exception):
    """Bad input: one sentence that says what was wrong, where, and what to do. Exit code 2."""


class LearningDiverged(Exception):
    """NaN or Inf in learning: where, in what, and the last good checkpoint. Exit code 1."""


def unknown(kind: str, name: str, known: Iterable[str]) -> FirlError:
    """The error for a name that does not exist, with the nearest one that does."""
    known = sorted(known)
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
    return FirlError(f"There is no {kind} {name!r}: {hint}")
