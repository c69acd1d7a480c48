"""A log-density up to a constant, as a JAX function."""

from collections.abc import Callable

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from firl.expert.base import AbstractDensity
from firl.types import FirlError


class Energy(AbstractDensity):
    """Enough for reverse KL, whose gradient a constant does not change (paper Table 1)."""

    function: Callable[[Array], Array] = eqx.field(static=True)
    """From states [n, d] to [n], traceable. `CallableDensity` takes what is not."""
    num_coordinates: int = eqx.field(static=True)

    @property
    def dim(self) -> int:
        """d."""
        return self.num_coordinates

    @property
    def normalised(self) -> bool:
        """No: `normalise_on` makes one that is."""
        return False

    def log_prob(self, states: Float[Array, "n d"]) -> Float[Array, "n"]:
        """What the function says."""
        values = self.function(states)
        if jnp.shape(values) != states.shape[:1]:
            raise FirlError(
                f"An Energy's function must map states of shape {states.shape} to shape "
                f"{states.shape[:1]}, one log-density per state, got {jnp.shape(values)}."
            )
        return values

    def sample(self, key: PRNGKeyArray, num: int) -> Float[Array, "num d"]:
        """Refused: an energy knows nothing of its normaliser."""
        raise FirlError(
            "An Energy cannot be sampled: apply normalise_on(energy, region) and sample that."
        )
