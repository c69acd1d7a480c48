"""Choosing among many cells (pixels, cells of a grid) by their masses, exactly."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray, UInt32

_STEPS = 2**31
"""Probabilities in units of 2⁻³¹: a single-precision cumulative sum has steps of 6e-8, coarser
than one of a million cells. One bit of the 32 is left so that the total, 2³¹, can be written."""


class Cells(eqx.Module):
    """A distribution over cells as a cumulative sum in integers."""

    cumulative: UInt32[Array, "g"]

    def __init__(self, masses: Float[np.ndarray, "g"]) -> None:
        """`masses` are relative, not negative, and not all zero."""
        cumulative = np.cumsum(masses, dtype=np.float64)
        self.cumulative = jnp.asarray(np.rint(cumulative / cumulative[-1] * _STEPS), jnp.uint32)

    def sample(self, key: PRNGKeyArray, num: int) -> Int[Array, "num"]:
        """Indices of cells; those of mass zero are never drawn."""
        draws = jax.random.bits(key, (num,), jnp.uint32) >> 1
        return jnp.searchsorted(self.cumulative, draws, side="right")
