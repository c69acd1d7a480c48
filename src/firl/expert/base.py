"""What it takes to say where an expert would be."""

import abc
from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

Vector = Sequence[float | int] | np.ndarray | Array
"""What a user may write for d numbers."""


class AbstractDensity(eqx.Module):
    """ρ_E, the density of states to be matched, as somebody writes it down (paper §5.1).

    States come in batches, [n, d]. A density with −inf somewhere says "never"; no NaN, no +inf.
    """

    @property
    @abc.abstractmethod
    def dim(self) -> int:
        """d, the number of coordinates of a state."""

    @property
    @abc.abstractmethod
    def normalised(self) -> bool:
        """Whether it integrates to one. Reverse KL does without; the other divergences do not."""

    @abc.abstractmethod
    def log_prob(self, states: Float[Array, "n d"]) -> Float[Array, "n"]:
        """Log-density at each state, in nats; up to a constant where not `normalised`."""

    @abc.abstractmethod
    def sample(self, key: PRNGKeyArray, num: int) -> Float[Array, "num d"]:
        """Independent draws; a `FirlError` that says what to do where there is no sampler."""
