"""Several runs compared: KL curves with intervals over seeds, and what each method learned."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes

from firl.plotting.style import COLOURS, figure

LABELS = {
    "fkl": "f-IRL (FKL)",
    "rkl": "f-IRL (RKL)",
    "js": "f-IRL (JS)",
    "maxent": "MaxEntIRL",
}
"""How the paper writes the methods; others go by their own names."""


class Curve(NamedTuple):
    """One run's metric over its environment steps."""

    label: str
    env_steps: Float[np.ndarray, "m"]
    values: Float[np.ndarray, "m"]


def label_of(method: str, divergence: str | None) -> str:
    """A run's name in a legend."""
    name = divergence if method == "firl" and divergence else method
    return LABELS.get(name, f"f-IRL ({name})" if method == "firl" else name)


def curve_of(label: str, rows: list[dict[str, Any]], metric: str) -> Curve:
    """The evaluations of one run."""
    kept = [row for row in rows if metric in row]
    return Curve(
        label,
        np.asarray([row["env_steps"] for row in kept], float),
        np.asarray([row[metric] for row in kept], float),
    )


def draw_curves(axes: Axes, curves: Sequence[Curve]) -> None:
    """Mean over runs of the same label, and ± one standard deviation where there are several."""
    grouped: dict[str, list[Curve]] = defaultdict(list)
    for curve in curves:
        grouped[curve.label].append(curve)
    for (label, runs), colour in zip(grouped.items(), COLOURS * 3, strict=False):
        end = min(run.env_steps[-1] for run in runs)
        steps = np.linspace(max(run.env_steps[0] for run in runs), end, 400)
        lines = np.stack([np.interp(steps, run.env_steps, run.values) for run in runs])
        mean = lines.mean(0)
        axes.plot(steps, mean, label=label, color=colour, linewidth=1.4)
        if len(runs) > 1:
            deviation = lines.std(0, ddof=1)
            axes.fill_between(
                steps, mean - deviation, mean + deviation, color=colour, alpha=0.18, linewidth=0
            )
    axes.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
    axes.xaxis.set_major_formatter(lambda steps, _: f"{steps / 1000:g}k")
    axes.set_xlabel("environment steps")


def draw_comparison(runs: Sequence[tuple[str, list[dict[str, Any]]]], path: Path) -> None:
    """Forward and reverse KL of labelled runs, side by side."""
    with figure(8.0, 3.2, path) as drawn:
        left, right = drawn.subplots(1, 2)
        for axes, name, title in (
            (left, "eval/forward_kl", "forward KL (nats)"),
            (right, "eval/reverse_kl", "reverse KL (nats)"),
        ):
            draw_curves(axes, [curve_of(label, rows, name) for label, rows in runs])
            axes.set_title(title)
        right.legend()
