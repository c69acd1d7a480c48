"""The log-ratio of a density that is known and one that is estimated (paper §5.1)."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from firl.expert.base import AbstractDensity
from firl.log_ratio.base import AbstractLogRatio
from firl.log_ratio.kde import KernelDensity


class DensityLogRatio(AbstractLogRatio):
    """log ρ_E(s) − log ρ̂_agent(s). Call it outside `jit` where the expert is a user's callable."""

    expert: AbstractDensity
    agent: KernelDensity
    limit: float = eqx.field(static=True, default=80.0)
    """Largest magnitude. The agent's estimate has a floor, an expert that says "never" (−inf)
    has none; ±80 is where every divergence is still finite in single precision (e⁸⁰ = 6·10³⁴)."""

    def __call__(self, states: Float[Array, "n d"]) -> Float[Array, "n"]:
        """At any states. One that the agent's estimate is fitted to counts itself there."""
        return self._limited(self.expert.log_prob(states) - self.agent.log_prob(states))

    def at_agent_points(self) -> Float[Array, "m"]:
        """At the states that the agent's estimate is fitted to, each estimated from the others.

        This is what the gradient needs: h_f is averaged over the agent's own rollouts.
        """
        own = self.agent.log_prob_at_points()
        return self._limited(self.expert.log_prob(self.agent.points) - own)

    def _limited(self, log_ratio: Float[Array, "n"]) -> Float[Array, "n"]:
        """Within ±limit; NaN stays NaN and stops the run."""
        return jnp.clip(log_ratio, -self.limit, self.limit)
