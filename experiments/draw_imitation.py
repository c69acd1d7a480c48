"""Draws Figure 3 and our Table 3 from results/ alone."""

from pathlib import Path
from typing import Any

import numpy as np

from experiments import store
from firl.metrics.intervals import bootstrap_interval
from firl.plotting.curves import curve_of, draw_curves, label_of
from firl.plotting.style import figure

DOCS = Path(__file__).resolve().parent.parent / "docs"


def draw() -> None:
    """The figure, and the table in docs/reproduction.md."""
    rows = store.rows("imitation")
    store.fill(DOCS / "reproduction.md", "imitation", _table(rows))
    tasks = sorted({row["task"] for row in rows})
    if not tasks:
        return
    path = DOCS / "figures" / "figure-3.png"
    with figure(4.2 * len(tasks), 3.2, path) as drawn:
        for axes, task in zip(np.ravel(drawn.subplots(1, len(tasks))), tasks, strict=True):
            of_task = [row for row in rows if row["task"] == task]
            runs = [
                curve_of(
                    label_of(row["method"], row["divergence"]), store.curves(row), "eval/return"
                )
                for row in of_task
            ]
            draw_curves(axes, runs)
            axes.axhline(of_task[0]["expert_return"], color="0.4", linestyle="--", label="expert")
            axes.set_title(f"{task}: true return")
            axes.legend()


def _table(rows: list[dict[str, Any]]) -> str:
    """Share of the expert's return: last 10 % of training, and each seed by itself."""
    lines = [
        "| task | method | env steps | share of the expert | each seed | worst evaluation after "
        "half of the budget |",
        "|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["task"], label_of(row["method"], row["divergence"])), []).append(row)
    for (task, label), group in sorted(groups.items()):
        ratios = np.asarray([row["ratio"] for row in group])
        interval = (
            " [{:.2f}, {:.2f}]".format(*bootstrap_interval(ratios)) if len(ratios) > 1 else ""
        )
        each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
        steps = max(row["env_steps"] for row in group)
        lines.append(
            f"| {task} | {label} | {steps:,} | {ratios.mean():.2f}{interval} | "
            f"{each} | {min(map(_worst, group)):.2f} |"
        )
    return "\n".join(lines) + "\n"


def _worst(row: dict[str, Any]) -> float:
    """A collapse shows here even where the end is good."""
    late = [
        line["eval/return"]
        for line in store.curves(row)
        if line["env_steps"] > row["env_steps"] / 2
    ]
    return float(min(late)) / float(row["expert_return"])
