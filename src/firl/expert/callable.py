"""A user's own log-density, any Python callable on NumPy arrays."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from firl.expert.base import AbstractDensity
from firl.expert.regions import AbstractRegion
from firl.types import FirlError

_NUM_PROBES = 10_000
"""Enough that a density with a support of a thousandth of the region is found (1 − e⁻¹⁰)."""


class CallableDensity(AbstractDensity):
    """Wraps a function from states [n, d] to log-densities [n], NumPy in and NumPy out.

    It runs on the host, batch by batch: call it outside `jit` (the `Energy` of a JAX function
    has no such limit). What it returns is checked at every call, at first on points all over the
    region that can be reached, so that a mistake shows before anything is trained.
    """

    function: Callable[[np.ndarray], object] = eqx.field(static=True)
    region: AbstractRegion
    """Where states can be; outside of it the function is never checked."""
    is_normalised: bool = eqx.field(static=True)

    def __init__(
        self,
        function: Callable[[np.ndarray], object],
        region: AbstractRegion,
        *,
        normalised: bool = False,
    ) -> None:
        """`normalised` is the user's word that the density integrates to one."""
        self.function, self.region, self.is_normalised = function, region, normalised
        probes = region.sample(jax.random.key(0), _NUM_PROBES)
        if not np.any(np.isfinite(self.log_prob(probes))):
            raise FirlError(
                f"The density function is −inf at all of {_NUM_PROBES} points of the region that "
                "can be reached: check its units and where it is centred."
            )

    @property
    def dim(self) -> int:
        """d."""
        return self.region.dim

    @property
    def normalised(self) -> bool:
        """What the user said."""
        return self.is_normalised

    def log_prob(self, states: Float[Array, "n d"]) -> Float[Array, "n"]:
        """Ask the user's function (in double precision, NumPy's habit) and check its answer."""
        batch = np.asarray(states, dtype=np.float64)
        try:
            values = np.asarray(self.function(batch), dtype=np.float64)
        except Exception as error:  # whatever a user's code may raise
            raise FirlError(
                f"The density function failed on states of shape {batch.shape}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if values.shape != batch.shape[:1]:
            raise FirlError(
                f"The density function must map states of shape {batch.shape} to shape "
                f"{batch.shape[:1]}, one log-density per state, got {values.shape}."
            )
        wrong = np.isnan(values) | (values == np.inf)
        if np.any(wrong):
            first = int(np.argmax(wrong))
            raise FirlError(
                f"The density function returned {values[first]} for the state "
                f"{batch[first].tolist()}: return a finite log-density, or −inf where it is zero."
            )
        return jnp.asarray(values, dtype=states.dtype)

    def sample(self, key: PRNGKeyArray, num: int) -> Float[Array, "num d"]:
        """Refused: a function can be evaluated, not sampled."""
        raise FirlError(
            "A density given as a function cannot be sampled: apply "
            "normalise_on(density, region) and sample that."
        )
