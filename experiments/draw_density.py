"""Draws figures 2 and 6 and their table from results/ alone."""

from pathlib import Path

import numpy as np

from experiments import store
from firl.metrics.intervals import bootstrap_interval
from firl.plotting.curves import curve_of, draw_curves, label_of
from firl.plotting.style import figure, heat_map
from firl.tasks import configure, make_problem

DOCS = Path(__file__).resolve().parent.parent / "docs"
FIGURES = DOCS / "figures"
REPRODUCTION = DOCS / "reproduction.md"


def draw() -> None:
    """All figures and the table."""
    FIGURES.mkdir(parents=True, exist_ok=True)
    _curves_and_rewards("density", "pointmass-gaussian", FIGURES / "figure-6.png")
    _curves_and_rewards("density", "reacher-gaussian", FIGURES / "figure-2a.png")
    _curves_and_rewards("density", "reacher-mixture", FIGURES / "figure-2b.png")
    store.fill(REPRODUCTION, "density", _table())


def _curves_and_rewards(experiment: str, task: str, path: Path) -> None:
    """KL curves of all methods, over the target and what each method's first seed learned."""
    rows = [row for row in store.rows(experiment) if row["task"] == task]
    if not rows:
        return
    labelled = [(label_of(row["method"], row["divergence"]), row) for row in rows]
    order = ["f-IRL (FKL)", "f-IRL (RKL)", "f-IRL (JS)", "MaxEntIRL"]
    labelled.sort(key=lambda pair: (order.index(pair[0]), pair[1]["seed"]))
    first = {label: row for label, row in reversed(labelled)}
    problem = make_problem(configure(task))
    arena = problem.arena
    assert arena is not None
    with figure(11.0, 5.6, path) as drawn:
        upper, lower = drawn.subfigures(2, 1, height_ratios=(1.25, 1))
        left, right = upper.subplots(1, 2)
        for axes, metric, title in (
            (left, "eval/forward_kl", "forward KL (nats)"),
            (right, "eval/reverse_kl", "reverse KL (nats)"),
        ):
            runs = [curve_of(label, store.curves(row), metric) for label, row in labelled]
            draw_curves(axes, runs)
            axes.set_title(title)
        right.legend()
        panels = lower.subplots(1, 1 + len(first))
        heat_map(
            panels[0],
            arena,
            lambda points: np.exp(np.asarray(problem.expert.log_prob(points))),
            colours="viridis",
        )
        panels[0].set_title("target density")
        for axes, label in zip(panels[1:], [o for o in order if o in first], strict=True):
            heat_map(axes, arena, store.reward(first[label]), colours="inferno")
            axes.set_title(f"reward, {label}")


def _table() -> str:
    """Mean over the last 10 % of training and over seeds, with a 95 % bootstrap interval."""
    lines = [
        "| experiment | task | method | seeds | forward KL | reverse KL | env steps |",
        "|---|---|---|---|---|---|---|",
    ]
    groups: dict[tuple[str, str, str], list[dict]] = {}
    for row in [*store.rows("density"), *store.rows("density-bound-3")]:
        key = (row["experiment"], row["task"], label_of(row["method"], row["divergence"]))
        groups.setdefault(key, []).append(row)
    for (experiment, task, label), rows in sorted(groups.items()):
        failed = sum(row["status"] == "failed" for row in rows)
        seeds = f"{len(rows)}" + (f" ({failed} failed)" if failed else "")
        cells = [_interval([row[name] for row in rows]) for name in ("forward_kl", "reverse_kl")]
        steps = f"{max(row['env_steps'] for row in rows):,}"
        lines.append(
            f"| {experiment} | {task} | {label} | {seeds} | {cells[0]} | {cells[1]} | {steps} |"
        )
    return "\n".join(lines) + "\n"


def _interval(values: list[float | None]) -> str:
    known = np.asarray([value for value in values if value is not None])
    if len(known) < 2:
        return f"{known.mean():.3f}" if len(known) else "–"
    low, high = bootstrap_interval(known)
    return f"{known.mean():.3f} [{low:.3f}, {high:.3f}]"
