"""What is reported over seeds, and along a curve. Seeds are the first axis."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.stats import trim_mean

from firl.types import FirlError

PAPER_WINDOW = 120
"""Evaluations over which the curves of the paper's Figures 2 and 6 are smoothed."""


def mean(values: Float[np.ndarray, "seeds *points"]) -> Float[np.ndarray, "*points"]:
    """Over seeds."""
    return np.asarray(np.mean(values, axis=0))


def interquartile_mean(values: Float[np.ndarray, "seeds *points"]) -> Float[np.ndarray, "*points"]:
    """Mean of the middle half of the seeds (Agarwal et al. 2021); below four seeds, of all."""
    return np.asarray(trim_mean(values, 0.25, axis=0))


def bootstrap_interval(
    values: Float[np.ndarray, "seeds *points"],
    statistic: Callable[[np.ndarray], np.ndarray] = mean,
    *,
    confidence: float = 0.95,
    num_resamples: int = 2000,
    seed: int = 0,
) -> tuple[Float[np.ndarray, "*points"], Float[np.ndarray, "*points"]]:
    """Percentile interval of a statistic over seeds, low and high.

    The seed is fixed so that a figure is the same each time that it is drawn. With three seeds
    there are ten different resamples: such an interval is the range of the seeds, not a 95 %.
    """
    if not 0 < confidence < 1:
        raise FirlError(f"A confidence level must lie between 0 and 1, got {confidence}.")
    rng = np.random.default_rng(seed)
    num = values.shape[0]
    resampled = np.stack(
        [statistic(values[rng.integers(num, size=num)]) for _ in range(num_resamples)]
    )
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail], axis=0)
    return low, high


def moving_average(
    values: Float[np.ndarray, "*seeds points"], window: int = PAPER_WINDOW
) -> Float[np.ndarray, "*seeds points"]:
    """Mean of the last `window` evaluations, of all there are so far where there are fewer."""
    if window < 1:
        raise FirlError(f"A smoothing window must hold at least one evaluation, got {window}.")
    total = np.cumsum(values, axis=-1, dtype=np.float64)
    before = np.concatenate([np.zeros_like(total[..., :window]), total[..., :-window]], axis=-1)
    counts = np.minimum(np.arange(1, values.shape[-1] + 1), window)
    return np.asarray((total - before[..., : values.shape[-1]]) / counts)
