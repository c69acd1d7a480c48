"""Demonstrations from a file, whatever its format. Nothing is unpickled, nothing downloaded."""

import os
from collections.abc import Callable
from pathlib import Path

from firl.errors import FirlError
from firl.expert.demonstrations import Demonstrations
from firl.expert.read_csv import read_csv
from firl.expert.read_minari import local_dataset, read_minari
from firl.expert.read_numpy import read_numpy

_READERS: dict[str, Callable[[Path], Demonstrations]] = {
    ".npz": read_numpy,
    ".npy": read_numpy,
    ".csv": read_csv,
}

_PICKLES = {".pkl", ".pickle", ".pt", ".pth", ".joblib"}

_KINDS = "a Minari dataset's directory, .npz, .npy or .csv"


def read_demonstrations(path: str | os.PathLike[str]) -> Demonstrations:
    """Read a Minari dataset's directory, an .npz, .npy or .csv (docs/demonstrations.md).

    `minari:ID` is the dataset of that id among those that Minari keeps on this machine.
    """
    if isinstance(path, str) and path.startswith("minari:"):
        return read_minari(local_dataset(path.removeprefix("minari:")))
    path = Path(path)
    try:
        return _read(path)
    except OSError as error:
        raise FirlError(f"{path}: it cannot be read ({error}): check it.") from error


def _read(path: Path) -> Demonstrations:
    if path.name == "main_data.hdf5":
        path = path.parent
    if not path.exists():
        raise FirlError(f"There are no demonstrations at '{path}': check the path.")
    if path.is_dir():
        return read_minari(path)
    ending = path.suffix.lower()
    if ending in _PICKLES:
        raise FirlError(
            f"{path}: {ending} files are pickles, which can run any program when they are opened, "
            "so firl never does: save the arrays with numpy.savez instead."
        )
    if ending not in _READERS:
        raise FirlError(
            f"{path}: firl does not read demonstrations from {ending or 'a file without an ending'}"
            f", but from {_KINDS}: save them as one of these."
        )
    return _READERS[ending](path)
