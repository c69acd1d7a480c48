"""Demonstrations from .npz and .npy. Object arrays are pickles, and are refused."""

import difflib
import json
from pathlib import Path
from typing import Any

import numpy as np

from firl.errors import FirlError
from firl.expert.demonstrations import Demonstrations

KEYS = ("observations", "lengths", "actions", "rewards", "terminated", "env_id", "provenance")
"""What an .npz of the padded layout may hold; only the first is needed."""


def read_numpy(path: Path) -> Demonstrations:
    """The padded layout (`KEYS`), or a single array of observations under any name or none."""
    arrays = _load(path)
    if "observations" not in arrays:
        if len(arrays) == 1:
            return _states(path, next(iter(arrays.values())))
        raise FirlError(
            f"{path}: there is no array 'observations' in it, but {_names(arrays)}: save it with "
            "numpy.savez(path, observations=…)."
        )
    for name in arrays:
        if name not in KEYS:
            near = difflib.get_close_matches(name, KEYS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"leave it out, of {', '.join(KEYS)}."
            raise FirlError(f"{path}: firl knows no array {name!r} beside the observations: {hint}")
    return _padded(path, arrays)


def _states(path: Path, array: np.ndarray) -> Demonstrations:
    """Nothing but observations: one episode, [L + 1, o], or several of equal length."""
    if array.ndim not in (2, 3):
        raise FirlError(
            f"{path}: the array has shape {list(array.shape)}, but must be [N, L + 1, o], or "
            "[L + 1, o] for one episode: reshape it."
        )
    return Demonstrations(array if array.ndim == 3 else array[None], source=str(path))


def _padded(path: Path, arrays: dict[str, np.ndarray]) -> Demonstrations:
    """Episodes of lengths L ≤ L_max in arrays for L_max steps; what lies beyond is not looked at.

    A file of one episode may leave the axis of episodes out, in all of its arrays.
    """
    per_episode = ("observations", "lengths", "actions", "rewards", "terminated")
    data = {name: arrays[name] for name in per_episode if name in arrays}
    if data["observations"].ndim == 2:
        data = {name: array[None] for name, array in data.items()}
    observations = data["observations"]
    if observations.ndim != 3:
        raise FirlError(
            f"{path}: its observations have shape {list(observations.shape)}, but must have "
            "[N, L + 1, o], or [L + 1, o] for one episode: reshape or flatten them."
        )
    num, most = len(observations), observations.shape[1] - 1
    for name, array in data.items():
        if array.ndim == 0 or len(array) != num:
            raise FirlError(
                f"{path}: its {name} have shape {list(array.shape)}, but the observations are of "
                f"{num} episodes: the first axis of both must be that of episodes."
            )
        if name in ("actions", "rewards") and (array.ndim < 2 or array.shape[1] != most):
            raise FirlError(
                f"{path}: its {name} have shape {list(array.shape)}, but {most + 1} observations "
                f"in each of {num} episodes need {[num, most]} of them, one for each step between."
            )
    lengths = _lengths(path, data["lengths"], num, most) if "lengths" in data else [most] * num

    def steps(name: str) -> list[np.ndarray] | None:
        if name not in data:
            return None
        return [row[:length] for row, length in zip(data[name], lengths, strict=True)]

    return Demonstrations(
        [row[: length + 1] for row, length in zip(observations, lengths, strict=True)],
        actions=steps("actions"),
        rewards=steps("rewards"),
        terminated=data.get("terminated"),
        env_id=_text(path, "env_id", arrays),
        provenance=_provenance(path, arrays),
        source=str(path),
    )


def _lengths(path: Path, lengths: np.ndarray, num: int, most: int) -> list[int]:
    if lengths.shape != (num,) or lengths.dtype.kind not in "iu":
        raise FirlError(
            f"{path}: lengths must be {num} whole numbers, one for each episode, but is "
            f"{lengths.dtype} of shape {list(lengths.shape)}."
        )
    for episode, length in enumerate(lengths.tolist()):
        if not 1 <= length <= most:
            raise FirlError(
                f"{path}: episode {episode} is said to have {length} steps, but the observations "
                f"are of {most} (lengths count steps, one less than observations): give it 1 to "
                f"{most}, or leave the episode out."
            )
    whole: list[int] = lengths.tolist()
    return whole


def _text(path: Path, name: str, arrays: dict[str, np.ndarray]) -> str | None:
    if name not in arrays:
        return None
    array = arrays[name]
    if array.ndim != 0 or array.dtype.kind != "U":
        raise FirlError(
            f"{path}: {name} must be one string, but is {array.dtype} of shape "
            f"{list(array.shape)}: save it as numpy.array('…')."
        )
    return str(array)


def _provenance(path: Path, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    text = _text(path, "provenance", arrays)
    try:
        provenance = json.loads(text or "{}")
    except ValueError as error:
        raise FirlError(
            f"{path}: its provenance is not JSON ({error}): save it with json.dumps."
        ) from error
    if not isinstance(provenance, dict):
        raise FirlError(f"{path}: its provenance must be a JSON object, {{…}}: save a dict.")
    return provenance


def _load(path: Path) -> dict[str, np.ndarray]:
    """Every array by its name; an .npy has one without a name."""
    arrays: dict[str, np.ndarray]
    try:
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            one = isinstance(loaded, np.ndarray)
            arrays = {"": loaded} if one else {name: loaded[name] for name in loaded.files}
    except OSError:
        raise
    except Exception as error:  # damaged archives and headers fail in a dozen ways
        if "Object arrays" in str(error):  # text and noise NumPy calls pickled data
            raise FirlError(
                f"{path}: it holds pickled objects, which can run any program when they are read, "
                "so firl never does: save plain arrays of numbers (episodes of different lengths: "
                "padded, with their lengths, or one by one in a CSV)."
            ) from error
        raise FirlError(
            f"{path}: it is empty, damaged or no {path.suffix} at all: save it again with NumPy."
        ) from error
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # another file in the archive comes out as bytes
            raise FirlError(f"{path}: {name!r} in it is no array: save it with numpy.savez.")
    if not arrays:
        raise FirlError(f"{path}: there are no arrays in it: save it with numpy.savez.")
    return arrays


def _names(arrays: dict[str, np.ndarray]) -> str:
    return ", ".join(map(repr, arrays))
