"""What an episode must be like, and one sentence for each way in which it is not.

Every sentence begins with the file and the episode's number, counted from 0.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32

from firl.errors import FirlError

_SHAPES = {
    ("observations", 2): "[L + 1, o], a row for each of s_0 … s_L",
    ("actions", 2): "[L, a], a row for each step",
    ("rewards", 1): "[L], one number for each step",
}


def numbers(
    source: str, what: str, episode: int, values: Any, rank: int
) -> Float32[np.ndarray, "..."]:
    """One episode's array as float32: a read-only copy, every number of it finite."""
    where = f"{source}: episode {episode}"
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise FirlError(
            f"{where} has {what} whose rows differ in length: give every row as many numbers."
        ) from error
    if array.dtype.kind not in "fiub":
        raise FirlError(
            f"{where} has {what} of type {array.dtype}, but only numbers can be matched: save them "
            "as an array of floats."
        )
    if array.ndim != rank or 0 in array.shape[1:]:
        raise FirlError(
            f"{where} has {what} of shape {list(array.shape)}, but they must be "
            f"{_SHAPES[what, rank]}: reshape or flatten them."
        )
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused below
        kept = np.array(array, dtype=np.float32)
    wrong = np.argwhere(~np.isfinite(kept))
    if wrong.size:
        place = ", ".join(
            f"{axis} {index}" for axis, index in zip(("row", "column"), wrong[0], strict=False)
        )
        value = array[tuple(wrong[0])]
        why = " (too large for float32)" if np.isfinite(value) else ""
        raise FirlError(
            f"{where} has {value}{why} in its {what}, at {place}: repair it or leave the episode "
            "out."
        )
    kept.setflags(write=False)
    return kept


def check_episodes(source: str, observations: Sequence[Float32[np.ndarray, "_ _"]]) -> None:
    """At least one episode, each with a step, all with the same coordinates."""
    if not observations:
        raise FirlError(f"{source}: there are no episodes, but at least one is needed.")
    for episode, obs in enumerate(observations):
        if len(obs) < 2:
            raise FirlError(
                f"{source}: episode {episode} has no step ({len(obs)} observations), but what is "
                "matched is s_1 … s_L: leave it out."
            )
    _check_widths(source, "observations", observations)


def check_steps(
    source: str,
    what: str,
    arrays: Sequence[Float32[np.ndarray, "_ *row"]],
    observations: Sequence[Float32[np.ndarray, "_ o"]],
) -> None:
    """L actions or rewards lie between L + 1 observations."""
    if len(arrays) != len(observations):
        raise FirlError(
            f"{source}: there are {what} of {len(arrays)} episodes, but observations of "
            f"{len(observations)}: give both for every episode, or no {what} at all."
        )
    for episode, (array, obs) in enumerate(zip(arrays, observations, strict=True)):
        if len(array) == len(obs):
            raise FirlError(
                f"{source}: episode {episode} has {len(array)} {what} and as many observations, "
                f"one observation too few: {len(array)} steps lead from s_0 to s_{len(array)}, so "
                "record what reset emitted and what the last step emitted, or leave the episode "
                "out."
            )
        if len(array) != len(obs) - 1:
            raise FirlError(
                f"{source}: episode {episode} has {len(array)} {what} for {len(obs)} observations, "
                f"but must have {len(obs) - 1}, one for each step between them: record both "
                "together, or leave the episode out."
            )
    if arrays[0].ndim == 2:
        _check_widths(source, what, arrays)


def _check_widths(source: str, what: str, tables: Sequence[Float32[np.ndarray, "_ _"]]) -> None:
    expected = tables[0].shape[1]
    for episode, table in enumerate(tables):
        if table.shape[1] != expected:
            raise FirlError(
                f"{source}: episode {episode} has {what} of {table.shape[1]} coordinates, but "
                f"episode 0 has {expected}: record every episode with the same ones."
            )


def flags(source: str, terminated: Any, num: int) -> Bool[np.ndarray, "n"]:
    """Whether each episode terminated; nobody having said so means that none did."""
    if terminated is None:
        terminated = np.zeros(num, dtype=bool)
    try:
        array = np.asarray(terminated)
    except ValueError:  # rows of different lengths
        array = np.asarray(None)
    if array.shape != (num,) or not (
        array.dtype.kind == "b" or (array.dtype.kind in "iu" and np.isin(array, (0, 1)).all())
    ):
        raise FirlError(
            f"{source}: terminated must say true or false once for each of {num} episodes (did the "
            f"environment end it?), but is {array.dtype} of shape {list(array.shape)}."
        )
    kept = np.array(array, dtype=bool)
    kept.setflags(write=False)
    return kept


def check_provenance(source: str, provenance: dict[str, Any]) -> dict[str, Any]:
    """A copy, through JSON."""
    try:
        copy: dict[str, Any] = json.loads(json.dumps(provenance, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise FirlError(
            f"{source}: the provenance cannot be written as JSON ({error}): use strings, finite "
            "numbers, lists and dicts of them."
        ) from error
    return copy
