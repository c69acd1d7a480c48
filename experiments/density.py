"""Figures 2 and 6: KL curves of f-IRL and MaxEntIRL towards written densities.

python -m experiments.density run [--cores 0,1] [--only TEXT]     every missing run, resumable
python -m experiments.density draw                                the figures and the table
"""

import argparse
import itertools
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import NamedTuple

from experiments import draw_density, store
from firl.rundir import RunDir

_COLLECTING = Lock()
"""results/runs.jsonl is read, changed and written back."""

SCRATCH = Path(__file__).resolve().parent.parent / "runs" / "experiments"
SEEDS = (0, 1, 2)
METHODS = (
    ("firl", "fkl"),
    ("firl", "rkl"),
    ("firl", "js"),
    ("maxent", None),
)
TASKS = ("pointmass-gaussian", "reacher-gaussian", "reacher-mixture")


class Cell(NamedTuple):
    """One run of a figure."""

    experiment: str
    task: str
    method: str
    divergence: str | None
    seed: int
    options: tuple[str, ...]

    @property
    def name(self) -> str:
        """Its name in results/."""
        return store.run_id(self._asdict())

    @property
    def command(self) -> list[str]:
        """What reruns it."""
        divergence = ["--divergence", self.divergence] if self.divergence else []
        return [
            *("train", self.task, "--method", self.method, *divergence),
            *("--seed", str(self.seed), *self.options),
        ]


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


def run_cell(cell: Cell, core: int) -> None:
    """Train one run on one core, going on where it was stopped; keep what it leaves behind."""
    out = SCRATCH / cell.name
    SCRATCH.mkdir(parents=True, exist_ok=True)
    words = [sys.executable, "-m", "firl", *cell.command, "--out", str(out), "--resume"]
    with open(SCRATCH / f"{cell.name}.log", "a") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
        os.sched_setaffinity(process.pid, {core})
        code = process.wait()
    if code == 2:
        raise SystemExit(f"{' '.join(words)} failed: see {SCRATCH / cell.name}.log")
    with _COLLECTING:
        row = store.collect(RunDir(out), cell.experiment)
    print(f"{cell.name}: {row['status']}, forward KL {row['forward_kl']}", flush=True)


def run(cores: list[int], only: str) -> None:
    """Every run that results/ does not have yet."""
    have = {store.run_id(row) for row in store.rows()}
    missing = [cell for cell in cells() if cell.name not in have and only in cell.name]
    print(f"{len(missing)} runs to go", flush=True)
    free: SimpleQueue[int] = SimpleQueue()
    for core in cores:
        free.put(core)

    def work(cell: Cell) -> None:
        core = free.get()
        try:
            run_cell(cell, core)
        finally:
            free.put(core)

    with ThreadPoolExecutor(len(cores)) as pool:
        list(pool.map(work, missing))


def main() -> None:
    """Run or draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("run", "draw"))
    parser.add_argument("--cores", default="0,1")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if options.what == "run":
        run([int(core) for core in options.cores.split(",")], options.only)
    else:
        draw_density.draw()


if __name__ == "__main__":
    main()
