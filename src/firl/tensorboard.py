"""The metrics as TensorBoard events, beside metrics.jsonl, which stays the record."""

from pathlib import Path
from types import TracebackType
from typing import Any

from tensorboardX import SummaryWriter


class Events:
    """Writes each row's numbers at its environment step."""

    def __init__(self, path: Path, progress: dict[str, int]) -> None:
        # What a killed run wrote after its last checkpoint is purged: it is written again.
        self._writer = SummaryWriter(str(path), purge_step=progress["env_steps"] + 1)

    def __enter__(self) -> "Events":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._writer.close()

    def write(self, row: dict[str, Any]) -> None:
        """Log every number of the row."""
        for name, value in row.items():
            if name not in ("iteration", "env_steps"):
                self._writer.add_scalar(name, value, row["env_steps"])
