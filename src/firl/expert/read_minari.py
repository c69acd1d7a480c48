"""Demonstrations from a Minari dataset's directory, by its own two files.

Without the `minari` package: where a dataset leaves its spaces out, that makes the environment that
the dataset names, a program of the file's choosing, and it refuses datasets newer than itself.
Here the file is only data, and h5py is all it takes.
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from firl.errors import FirlError
from firl.expert.demonstrations import Demonstrations
from firl.expert.minari_layout import DATA, MAIN, METADATA, OURS, datasets_root

_KEPT = (
    "dataset_id",
    "minari_version",
    "algorithm_name",
    "author",
    "code_permalink",
    "description",
    "requirements",
)
"""What provenance takes over."""


def local_dataset(name: str) -> Path:
    """The directory of a dataset on this machine, by its id."""
    path = datasets_root() / name
    if not name or not path.is_dir():
        raise FirlError(
            f"minari:{name}: Minari has no such dataset at {path}: fetch it first with minari "
            f"download {name or 'ID'}, or name a directory."
        )
    return path


def read_minari(path: Path) -> Demonstrations:
    """Read the dataset in `path`, or in its `data`, with all of its episodes."""
    data = path / DATA if (path / DATA).is_dir() else path
    metadata = _metadata(path, data)
    _check_spaces(path, metadata)
    episodes = _episodes(path, data / MAIN, metadata)
    spec = _json(path, metadata.get("env_spec", "{}"), "env_spec")
    ours = metadata.get(OURS)
    ours = ours if isinstance(ours, dict) else {}
    provenance = {key: metadata[key] for key in _KEPT if key in metadata}
    if spec.get("kwargs"):
        provenance["environment options"] = spec["kwargs"]
    return Demonstrations(
        [episode["observations"] for episode in episodes],
        actions=[episode["actions"] for episode in episodes],
        rewards=[episode["rewards"] for episode in episodes],
        terminated=[
            _terminated(path, number, episode["terminations"], episode["rewards"].size)
            for number, episode in enumerate(episodes)
        ],
        env_id=ours.get("env_id", spec.get("id")),
        provenance=ours.get("provenance", provenance),
        source=str(path),
    )


def _metadata(path: Path, data: Path) -> dict[str, Any]:
    try:
        metadata = _json(path, (data / METADATA).read_text(encoding="utf-8"), METADATA)
    except FileNotFoundError as error:
        old = " (Minari before 0.5 wrote none: fetch the dataset again)"
        raise FirlError(
            f"{path}: it is a directory, but no Minari dataset, which has {DATA}/{METADATA}"
            f"{old if (data / MAIN).exists() else ''}: name one, or an .npz, .npy or .csv."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise FirlError(
            f"{path}: its {METADATA} cannot be read ({error}): restore it from a copy."
        ) from error
    stored = metadata.get("data_format", "hdf5")
    if stored != "hdf5":
        raise FirlError(
            f"{path}: it is stored as {stored}, but firl reads Minari datasets in hdf5: write it "
            "again with data_format='hdf5'."
        )
    return metadata


def _json(path: Path, text: Any, what: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        raise FirlError(f"{path}: its {what} is damaged (not JSON): restore it from a copy.")
    return parsed


def _check_spaces(path: Path, metadata: Mapping[str, Any]) -> None:
    """Refuse by what the dataset says of itself: the data only show symptoms."""
    for what in ("observation", "action"):
        if f"{what}_space" not in metadata:
            continue
        space = _json(path, metadata[f"{what}_space"], f"{what}_space")
        kind, shape = space.get("type"), space.get("shape")
        if kind == "Box" and isinstance(shape, list) and len(shape) == 1:
            continue
        said = f"a Box of shape {shape}" if kind == "Box" else f"of type {kind}"
        raise FirlError(
            f"{path}: its {what} space is {said}, but firl needs vectors (a 1-D Box): "
            + (
                "record it in an environment wrapped in gymnasium.wrappers.FlattenObservation."
                if what == "observation"
                else "choose a dataset with continuous actions."
            )
        )


def _episodes(path: Path, main: Path, metadata: Mapping[str, Any]) -> list[dict[str, np.ndarray]]:
    """The arrays of every episode, in the order of their numbers (HDF5 sorts 10 before 2)."""
    import h5py  # a quarter of a second to import, and only datasets in HDF5 need it

    if not main.is_file():
        raise FirlError(f"{path}: there is no {MAIN} in it: restore the dataset from a copy.")
    try:
        with h5py.File(main, "r") as file:
            found = {key for key in file if re.fullmatch(r"episode_\d+", key)}
            total = metadata.get("total_episodes", len(found))
            if not found or not isinstance(total, int):
                raise FirlError(f"{path}: there are no episodes in it: record at least one.")
            missing = [key for key in map("episode_{}".format, range(total)) if key not in found]
            if missing or len(found) > total:
                raise FirlError(
                    f"{path}: {METADATA} promises {total} episodes, but {MAIN} holds {len(found)}"
                    + (f" and no {missing[0]}" if missing else "")
                    + ": it was not written to its end, so fetch or record it again."
                )
            return [_episode(path, number, file[f"episode_{number}"]) for number in range(total)]
    except FirlError:
        raise
    except Exception as error:  # damaged files fail in a dozen ways
        raise FirlError(
            f"{path}: its {MAIN} is empty, damaged or not HDF5: fetch or record it again."
        ) from error


def _episode(path: Path, number: int, group: Any) -> dict[str, np.ndarray]:
    arrays = {}
    for name in ("observations", "actions", "rewards", "terminations"):
        if name not in group:
            raise FirlError(
                f"{path}: episode {number} has no {name}, which every Minari dataset has: fetch or "
                "record it again."
            )
        if not hasattr(group[name], "dtype"):
            raise FirlError(
                f"{path}: episode {number} has {name} in parts ({', '.join(group[name])}), but "
                "firl needs vectors: record it in a flattened environment."
            )
        arrays[name] = np.asarray(group[name])
    return arrays


def _terminated(path: Path, number: int, terminations: np.ndarray, steps: int) -> bool:
    """Whether the environment ended it, at its end and not before."""
    if terminations.shape != (steps,):
        raise FirlError(
            f"{path}: episode {number} has terminations of shape {list(terminations.shape)} for "
            f"{steps} steps: fetch or record it again."
        )
    ends = np.flatnonzero(terminations)
    if ends.size and ends[0] != len(terminations) - 1:
        raise FirlError(
            f"{path}: episode {number} terminated in step {ends[0] + 1} of {len(terminations)} and "
            "yet goes on: split it there, or leave it out."
        )
    return bool(ends.size)
