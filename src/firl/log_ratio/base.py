"""What every way of comparing expert and agent answers."""

import abc

import equinox as eqx
from jaxtyping import Array, Float


class AbstractLogRatio(eqx.Module):
    """A fitted estimate of log ρ_E − log ρ_agent, the only thing a divergence needs (Table 2)."""

    @abc.abstractmethod
    def __call__(self, states: Float[Array, "n d"]) -> Float[Array, "n"]:
        """log ρ_E(s) − log ρ_agent(s) at each state."""
