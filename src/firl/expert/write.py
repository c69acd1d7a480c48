"""Demonstrations onto disk: compactly for ourselves, or as everybody's Minari dataset."""

import io
import json
import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from firl.checkpoint import write_atomically
from firl.errors import FirlError
from firl.expert.demonstrations import Demonstrations
from firl.expert.minari_layout import DATA, MAIN, METADATA, OURS, VERSION


def write_npz(demos: Demonstrations, path: str | os.PathLike[str]) -> None:
    """One compressed .npz, padded with zeros: the same bytes for the same demonstrations."""
    path = Path(path)
    if path.suffix.lower() != ".npz":
        raise FirlError(f"{path}: demonstrations are written as .npz: give the name that ending.")
    arrays: dict[str, Any] = {
        "observations": _padded(demos.observations),
        "lengths": demos.lengths.astype(np.int64),
        "terminated": demos.terminated,
        "provenance": np.array(json.dumps(demos.provenance, sort_keys=True)),
    }
    if demos.actions is not None:
        arrays["actions"] = _padded(demos.actions)
    if demos.rewards is not None:
        arrays["rewards"] = _padded(demos.rewards)
    if demos.env_id is not None:
        arrays["env_id"] = np.array(demos.env_id)
    data = io.BytesIO()
    np.savez_compressed(data, **arrays)
    _write(path, data.getvalue())


def write_minari(
    demos: Demonstrations,
    path: str | os.PathLike[str],
    action_bounds: tuple[list[float], list[float]] | None = None,
) -> None:
    """A Minari dataset's directory, made and never overwritten, for `MinariDataset(path/"data")`.

    Put into Minari's own directory, its name is the dataset's id. Without `action_bounds`, lowest
    and highest, actions are said to have none.
    """
    import h5py

    path = Path(path)
    if demos.actions is None or demos.rewards is None:
        raise FirlError(
            f"{demos.source}: a Minari dataset has actions and rewards, which these demonstrations "
            "do not: write them as .npz."
        )
    if path.exists():
        raise FirlError(f"{path}: there is something already: name a directory that is not there.")
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        for number, length in enumerate(demos.lengths.tolist()):
            group = file.create_group(f"episode_{number}")
            group.attrs["id"], group.attrs["total_steps"] = number, length
            last = np.arange(length) == length - 1
            group["observations"] = demos.observations[number]
            group["actions"] = demos.actions[number]
            group["rewards"] = demos.rewards[number].astype(np.float64)
            group["terminations"] = last & demos.terminated[number]
            group["truncations"] = last & ~demos.terminated[number]
            group.create_group("infos")
    act_dim = demos.actions[0].shape[1]
    low, high = action_bounds or ([-math.inf] * act_dim, [math.inf] * act_dim)
    metadata = {
        "total_episodes": demos.num,
        "total_steps": int(demos.lengths.sum()),
        "data_format": "hdf5",
        "observation_space": _box([-math.inf] * demos.obs_dim, [math.inf] * demos.obs_dim),
        "action_space": _box(low, high),
        "dataset_id": _dataset_id(path.name),
        "minari_version": VERSION,
        "dataset_size": round(len(content.getvalue()) / 1e6, 1),
        OURS: {"env_id": demos.env_id, "provenance": demos.provenance},
    }
    if (spec := _env_spec(demos.env_id)) is not None:
        metadata["env_spec"] = spec
    try:
        (path / DATA).mkdir(parents=True)
    except OSError as error:
        raise FirlError(f"{path}: cannot be written ({error}): name another place.") from error
    _write(path / DATA / MAIN, content.getvalue())
    _write(path / DATA / METADATA, json.dumps(metadata).encode())


def _padded(arrays: tuple[np.ndarray, ...]) -> np.ndarray:
    """Zeros behind what is shorter."""
    longest = max(map(len, arrays))
    padded = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), np.float32)
    for row, array in zip(padded, arrays, strict=True):
        row[: len(array)] = array
    return padded


def _box(low: list[float], high: list[float]) -> str:
    """A space of vectors, as Minari spells it."""
    return json.dumps(
        {"type": "Box", "dtype": "float32", "shape": [len(low)], "low": low, "high": high}
    )


def _dataset_id(name: str) -> str:
    """The directory's name if it can be an id (`name-v0`), or what of it can."""
    clean = re.sub(r"[^-_\w]", "-", name)
    return clean if re.fullmatch(r"[-_\w]+-v\d+", clean) else f"{clean}-v0"


def _env_spec(env_id: str | None) -> str | None:
    """What Minari makes the environment again from, where Gymnasium knows it."""
    import gymnasium

    if env_id not in gymnasium.registry:
        return None
    try:
        spec: str = gymnasium.registry[env_id].to_json()
    except (TypeError, ValueError):  # made by a function, or from what is no JSON
        return None
    return spec


def _write(path: Path, data: bytes) -> None:
    try:
        write_atomically(path, data)
    except OSError as error:
        raise FirlError(f"{path}: cannot be written ({error}): name another place.") from error
