"""Figures 2 and 6: KL curves of f-IRL and MaxEntIRL towards written densities.

python -m experiments.density run [--cores 0,1] [--only TEXT]     every missing run, resumable
python -m experiments.density draw                                the figures and the table
"""

import itertools

from experiments import draw_density
from experiments.runner import Cell, main

SEEDS = (0, 1, 2)
METHODS = (
    ("firl", "fkl"),
    ("firl", "rkl"),
    ("firl", "js"),
    ("maxent", None),
)
TASKS = ("pointmass-gaussian", "reacher-gaussian", "reacher-mixture")


def cells() -> list[Cell]:
    """All runs of the two figures, seed by seed, so that an unfinished set is a whole one."""
    figures = [
        Cell("density", task, method, divergence, seed, ())
        for seed, task, (method, divergence) in itertools.product(SEEDS, TASKS, METHODS)
    ]
    # Where the expert cannot be matched, MaxEntIRL runs to its bound (docs/reproduction.md).
    bounded = [
        Cell("density-bound-3", task, "maxent", None, seed, ("--reward.bound", "3"))
        for seed, task in itertools.product(SEEDS, TASKS)
    ]
    return figures + bounded


if __name__ == "__main__":
    main(cells(), draw_density.draw, __doc__)
