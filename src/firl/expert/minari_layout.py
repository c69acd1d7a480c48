"""Where a Minari dataset (0.5 and later) keeps what, for the reader and the writer."""

import os
from pathlib import Path

DATA = "data"
"""The directory in a dataset's own that holds the two files below."""
MAIN = "main_data.hdf5"
"""Groups `episode_0` …, with observations, actions, rewards, terminations and truncations."""
METADATA = "metadata.json"
"""Spaces and the environment's specification, as JSON within JSON."""
OURS = "firl"
"""The key that is ours among the metadata; Minari passes over it."""
VERSION = "0.5.0"
"""The version of Minari whose layout this is; every later one reads it."""


def datasets_root() -> Path:
    """Where Minari keeps the datasets of this machine."""
    root = os.environ.get("MINARI_DATASETS_PATH")
    return Path(root) if root else Path.home() / ".minari" / "datasets"
