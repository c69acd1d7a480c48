"""Table 3 and Figure 3: imitation of one demonstration, every environment step counted.

python -m experiments.imitation run [--cores 0,1] [--only TEXT]     every missing run, resumable
python -m experiments.imitation draw                                the figure and the table
"""

import itertools

from experiments import draw_imitation
from experiments.runner import Cell, main

SEEDS = (0, 1, 2)
BUDGETS = {"hopper": 300_000, "walker2d": 750_000, "halfcheetah": 1_000_000, "ant": 1_000_000}
"""Environment steps, the targets' own."""


def cells() -> list[Cell]:
    """Seed by seed, so that an unfinished set is a whole one."""
    return [
        Cell("imitation", task, "firl", "js", seed, ("--env-steps", str(BUDGETS[task])))
        for seed, task in itertools.product(SEEDS, BUDGETS)
    ]


if __name__ == "__main__":
    main(cells(), draw_imitation.draw, __doc__)
