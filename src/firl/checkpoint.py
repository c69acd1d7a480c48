"""The whole state of a training in one safetensors file, written atomically; nothing pickled.

Arrays are stored under their path in the pytree, everything else about them (functions, sizes)
comes from a template of the same configuration. A file that is truncated, foreign or of another
version is refused with a sentence.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from firl.errors import FirlError

FORMAT = "firl-checkpoint-1"
"""Raised whenever a file of the old layout could no longer be read correctly."""

Tree = TypeVar("Tree")


def save_tree(path: Path, tree: Any, about: Mapping[str, Any]) -> None:
    """Write a pytree's arrays and a JSON-able note about them, all or nothing."""
    arrays = {name: np.asarray(leaf) for name, leaf in _named_arrays(tree)}
    data = save(arrays, {"format": FORMAT, "about": json.dumps(dict(about), sort_keys=True)})
    write_atomically(path, data)


def load_about(path: Path) -> dict[str, Any]:
    """The note of a checkpoint, after checking that it is one."""
    try:
        with safe_open(str(path), framework="numpy") as file:
            metadata = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise FirlError(
            f"{path} is not a whole checkpoint (truncated, or not safetensors): restore it from a "
            "copy, or start a new run."
        ) from error
    if metadata.get("format") != FORMAT:
        raise FirlError(
            f"{path} is not a checkpoint of this version of firl (its format is "
            f"{metadata.get('format')!r}, not {FORMAT!r}): use the version that wrote it."
        )
    about: dict[str, Any] = json.loads(metadata["about"])
    return about


def load_tree(path: Path, template: Tree) -> tuple[Tree, dict[str, Any]]:
    """The pytree that was saved, in the shape of `template`, and its note."""
    about = load_about(path)
    with safe_open(str(path), framework="numpy") as file:
        odd = set(file.keys()) ^ {name for name, _ in _named_arrays(template)}
    if odd:
        raise _other_training(path, f"it differs in {sorted(odd)[0]!r}")
    return _fill(path, "", template), about


def load_part(path: Path, part: str, template: Tree) -> Tree:
    """One field of what was saved, in the shape of `template`."""
    load_about(path)
    return _fill(path, f"{part}/", template)


def has_part(path: Path, part: str) -> bool:
    """Whether anything of this field was saved."""
    load_about(path)
    with safe_open(str(path), framework="numpy") as file:
        return any(name.startswith(f"{part}/") for name in file.keys())  # noqa: SIM118


def _fill(path: Path, prefix: str, template: Tree) -> Tree:
    leaves = []
    with safe_open(str(path), framework="numpy") as file:
        stored = set(file.keys())
        for name, leaf in _named_arrays(template):
            if prefix + name not in stored:
                raise _other_training(path, f"it has no {prefix + name!r}")
            array = file.get_tensor(prefix + name)
            if array.shape != leaf.shape or array.dtype != leaf.dtype:
                raise _other_training(
                    path,
                    f"{prefix + name!r} is {array.dtype}{list(array.shape)} in it, and should be "
                    f"{leaf.dtype}{list(leaf.shape)}",
                )
            leaves.append(jnp.asarray(array))
    arrays, rest = eqx.partition(template, eqx.is_array)
    filled: Tree = eqx.combine(jax.tree.unflatten(jax.tree.structure(arrays), leaves), rest)
    return filled


def _other_training(path: Path, how: str) -> FirlError:
    return FirlError(
        f"{path} belongs to another kind of training ({how}): use it with the configuration that "
        "wrote it."
    )


def _named_arrays(tree: Any) -> list[tuple[str, jax.Array]]:
    arrays = eqx.filter(tree, eqx.is_array)
    return [
        (jax.tree_util.keystr(path, simple=True, separator="/"), leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(arrays)
    ]


def write_atomically(path: Path, data: bytes) -> None:
    """Readers see the old file or the new one, whenever the writer is killed."""
    temporary = path.with_name(f".{path.name}.partial")
    with open(temporary, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
