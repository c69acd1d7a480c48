"""What is measured, and how: all contenders in turn, again and again, so that noise hits all."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

ENVIRONMENT = "Hopper-v5"
"""Small, fast to step, and in everybody's benchmarks."""

BLOCK = 50
"""Steps and updates in one go; SBX profits from such blocks as we do."""

WARM_UP = 1000
"""Random steps with which every buffer starts."""


_UNMEASURED = 5
"""Runs before the first that counts, in which everything gets compiled."""


@dataclass(frozen=True)
class Setting:
    """Sizes of one comparison."""

    hidden: int
    batch_size: int
    obs_dim: int = 11
    """Hopper's."""
    act_dim: int = 3
    """Hopper's."""


SETTINGS = tuple(Setting(hidden, batch) for hidden in (64, 256) for batch in (100, 256))


@dataclass(frozen=True)
class Contender:
    """Something that can be run in blocks."""

    run: Callable[[], int]
    """One block, finished when it returns how many updates (or steps and updates) it was."""


def interleave(contenders: Mapping[str, Contender], repetitions: int) -> dict[str, float]:
    """Median microseconds for each update, of `repetitions` rounds in which all run once."""
    for contender in contenders.values():
        for _ in range(_UNMEASURED):
            contender.run()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repetitions):
        for name, contender in contenders.items():
            start = time.perf_counter()
            done = contender.run()
            seconds[name].append((time.perf_counter() - start) / done)
    return {name: 1e6 * statistics.median(times) for name, times in seconds.items()}
