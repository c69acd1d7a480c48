"""Runs cells of a figure or a table, some at a time, one core each, resumable."""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import NamedTuple

from experiments import store
from firl.rundir import RunDir

_COLLECTING = Lock()
"""results/runs.jsonl is read, changed and written back."""

SCRATCH = Path(__file__).resolve().parent.parent / "runs" / "experiments"


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
    score = {name: row[name] for name in ("forward_kl", "ratio") if row[name] is not None}
    print(cell.name, row["status"], score, flush=True)


def run(cells: list[Cell], cores: list[int], only: str) -> None:
    """Every run that results/ does not have yet."""
    have = {store.run_id(row) for row in store.rows()}
    missing = [cell for cell in cells if cell.name not in have and only in cell.name]
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


def main(cells: list[Cell], draw: Callable[[], None], doc: str | None) -> None:
    """`run` or `draw`."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "draw"))
    parser.add_argument("--cores", default="0,1")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if options.what == "run":
        run(cells, [int(core) for core in options.cores.split(",")], options.only)
    else:
        draw()
