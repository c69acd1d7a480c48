"""How a training goes: a live line on a terminal, a plain one now and then elsewhere."""

import time
from types import TracebackType
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.table import Table

from firl.config import GIVEN_REWARD, TrainConfig

if TYPE_CHECKING:
    from firl.api import Run

_PLAIN_EVERY_SECONDS = 10.0


class Progress:
    """Iteration, divergences, environment steps, time left."""

    def __init__(self, config: TrainConfig) -> None:
        self._config = config
        self._console = Console()
        self._live = Live(console=self._console, refresh_per_second=4, transient=True)
        self._scores: dict[str, float] = {}
        self._started: tuple[float, int] | None = None
        self._printed = -_PLAIN_EVERY_SECONDS

    def __enter__(self) -> "Progress":
        target = self._config.picture or self._config.demos or self._config.task
        towards = "on" if self._config.method in GIVEN_REWARD else "towards"
        self._console.print(f"{_title(self._config)} {towards} {target}: compiling …")
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.stop()

    def show(self, row: dict[str, Any]) -> None:
        """Show one iteration's metrics."""
        now = time.monotonic()
        self._scores |= {n: v for n, v in row.items() if n.startswith("eval/")}
        if self._started is None:
            # The first iteration compiles, so that the rate is measured from its end.
            self._started = (now, row["env_steps"])
        cells = self._cells(row, now)
        if self._console.is_terminal:
            table = Table(box=None, pad_edge=False)
            for name in cells:
                table.add_column(name, justify="right")
            table.add_row(*cells.values())
            self._live.update(table)
        elif now - self._printed >= _PLAIN_EVERY_SECONDS:
            self._printed = now
            self._console.print("  ".join(f"{name} {value}" for name, value in cells.items()))

    def _cells(self, row: dict[str, Any], now: float) -> dict[str, str]:
        budget = self._config.env_steps
        cells = {
            "iteration": f"{row['iteration'] + 1}",
            "env steps": f"{row['env_steps']:,} / {budget:,}",
        }
        for name in ("forward_kl", "reverse_kl", "return"):
            if f"eval/{name}" in self._scores:
                digits = 0 if name == "return" else 3
                cells[name.replace("_", " ")] = f"{self._scores[f'eval/{name}']:.{digits}f}"
        assert self._started is not None
        began, first = self._started
        if row["env_steps"] > first:
            rate = (row["env_steps"] - first) / (now - began)
            left = max(0.0, (budget - row["env_steps"]) / rate)
            cells["left"] = f"{int(left) // 60}:{int(left) % 60:02d}"
        return cells

    def summarise(self, run: "Run") -> None:
        """Say how it ended and what was written."""
        summary = run.summary
        scores = [
            f"{name.replace('_kl', ' KL')} {summary[name]:.3f} nats"
            for name in ("forward_kl", "reverse_kl")
            if summary[name] is not None
        ]
        if summary["return"] is not None:
            scores.append(f"return {summary['return']:.0f}")
        if summary["ratio"] is not None:
            scores.append(f"{summary['ratio']:.2f} of the expert's")
        self._console.print(
            f"done in {summary['wall_seconds']:.0f} s and {summary['env_steps']:,} environment "
            f"steps: {', '.join(scores)} (last 10 % of training)"
        )
        self._console.print(f"picture  {run.path / 'picture.png'}", soft_wrap=True)
        self._console.print(f"run      {run.path}", soft_wrap=True)


def _title(config: TrainConfig) -> str:
    if config.method == "firl":
        return f"f-IRL ({config.divergence})"
    return config.method
