"""A run is a directory that explains itself.

    config.json             the complete configuration
    run.json                versions, git revision, command, sizes of the networks' inputs
    metrics.jsonl           one line per iteration
    events.out.tfevents.*   the same for TensorBoard
    checkpoint.safetensors  the whole state, replaced atomically
    summary.json            how it ended: one row of results/runs.jsonl
    picture.png             what was learned
    frames.png              the policy at work, where `firl plot` could render it

Created whole or not at all, never overwritten, locked while a process writes it.
"""

import fcntl
import json
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from firl.checkpoint import write_atomically
from firl.config import TrainConfig, as_json, flatten, from_json
from firl.errors import FirlError
from firl.problems import Problem
from firl.types import Columns

LIBRARIES = ("firl", "jax", "jaxlib", "equinox", "optax", "numpy", "scipy", "gymnasium", "mujoco")
"""Whose versions a run records; those of the first three must agree for a bitwise resume."""


class RunDir:
    """Paths of a run, and the few ways of reading and writing them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.json"
        self.about = path / "run.json"
        self.metrics = path / "metrics.jsonl"
        self.checkpoint = path / "checkpoint.safetensors"
        self.summary = path / "summary.json"
        self.picture = path / "picture.png"
        self.frames = path / "frames.png"
        self._lock: int | None = None

    def create(self, config: TrainConfig, about: dict[str, Any]) -> None:
        """Make a new run, or refuse: nothing is ever overwritten."""
        if self.path.is_file():
            raise FirlError(f"--out {self.path} is a file: name a directory that does not exist.")
        if self.config.exists():
            raise FirlError(
                f"--out {self.path} already holds a run: add --resume to go on with it, or name "
                "another directory."
            )
        if self.path.exists() and any(
            not child.name.startswith(".") and child != self.about for child in self.path.iterdir()
        ):
            raise FirlError(
                f"--out {self.path} is not empty: name a directory that does not exist."
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self.lock()
            write_atomically(self.about, to_json(about))
            # Last, because its presence is what makes the directory a run.
            write_atomically(self.config, to_json(as_json(config)))
        except OSError as error:
            raise FirlError(
                f"--out {self.path} cannot be written ({error.strerror}): name another directory."
            ) from error

    def lock(self) -> None:
        """Hold the run for this process; the lock ends with the process, however it ends."""
        self._lock = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FirlError(
                f"{self.path} is being written by another process: wait for it, or name another "
                "directory."
            ) from None

    def release(self) -> None:
        """Let other processes write the run."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def read_config(self) -> TrainConfig:
        """The configuration of an existing run."""
        return from_json(self._read(self.config))

    def read_about(self) -> dict[str, Any]:
        """Versions and sizes of an existing run."""
        return self._read(self.about)

    def read_summary(self) -> dict[str, Any] | None:
        """How the run ended, None while it has not."""
        return self._read(self.summary) if self.summary.exists() else None

    def _read(self, path: Path) -> dict[str, Any]:
        if not path.exists():
            raise FirlError(f"{self.path} is not a run of firl: it has no {path.name}.")
        try:
            content = json.loads(path.read_text())
        except (ValueError, OSError) as error:
            raise FirlError(f"{path} cannot be read ({error}): restore it from a copy.") from error
        if not isinstance(content, dict):
            raise FirlError(f"{path} is not what firl writes: restore it from a copy.")
        return content

    def check_resumable(self, config: TrainConfig) -> None:
        """Refuse to go on with another configuration or other library versions."""
        old, new = flatten(self.read_config()), flatten(config)
        for name, value in new.items():
            if old[name] != value:
                option = name.replace("_", "-")
                raise FirlError(
                    f"--resume {self.path}: the run has --{option} {old[name]}, but {value} was "
                    "asked for; leave the option as it was, or start a new run."
                )
        written, here = self.read_about().get("versions", {}), versions()
        for library in LIBRARIES[:3]:
            if written.get(library) != here[library]:
                raise FirlError(
                    f"--resume {self.path}: the run was made with {library} "
                    f"{written.get(library)}, but {here[library]} is installed, and a run goes on "
                    "bit for bit or not at all; install that version, or start a new run."
                )

    def read_metrics(self) -> list[dict[str, Any]]:
        """All whole lines of the metrics; a line cut off by a kill is left out."""
        if not self.metrics.exists():
            return []
        lines = self.metrics.read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines]

    def rewind_metrics(self, iterations: int) -> None:
        """Forget what was logged after the checkpoint: it will be logged again."""
        kept = [row for row in self.read_metrics() if row["iteration"] < iterations]
        write_atomically(self.metrics, b"".join(to_json(row, indent=None) for row in kept))


def to_json(value: Any, indent: int | None = 2) -> bytes:
    """JSON with a final newline; NaN and Inf, which are not JSON, are refused."""
    return (json.dumps(value, indent=indent, allow_nan=False) + "\n").encode()


def versions() -> dict[str, str]:
    """Of the libraries that decide what a run computes."""
    found = {"python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = "not installed"
    return found


def git_revision() -> str | None:
    """The revision of the source that runs, with a + if it was changed; None outside of git."""
    here = Path(__file__).resolve().parent

    def git(*words: str) -> str:
        command = ["git", "-C", str(here), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    try:
        # Only our own repository counts: an installed copy may lie inside somebody else's.
        if Path(git("rev-parse", "--show-toplevel"), "src", "firl") != here:
            return None
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def describe_run(problem: Problem, config: TrainConfig) -> dict[str, Any]:
    """What `run.json` says."""
    simulator, state = problem.simulator, problem.state_map
    scaling = problem.scaling(config)
    return {
        "command": [os.path.basename(sys.argv[0]), *sys.argv[1:]],
        "revision": git_revision(),
        "versions": versions(),
        "obs_dim": simulator.obs_dim,
        "act_dim": simulator.act_dim,
        "state_columns": state.indices if isinstance(state, Columns) else None,
        "state_centre": scaling.centre,
        "state_scale": scaling.scale,
        "action_low": simulator.action_bounds[0],
        "action_high": simulator.action_bounds[1],
    }
