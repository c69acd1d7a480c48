"""MaxEntIRL: descend the forward KL between trajectory laws (appendix C.1, eq. for densities).

E_{ρ_E}[∇r] − E_{ρ_θ}[∇r] with the expert's term by importance sampling from the agent's states,
so that a density is enough. The paper's T/α in front is a scale that Adam takes out; kept at 1.
"""

import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Float

from firl.config import TrainConfig
from firl.errors import FirlError
from firl.methods.alternate import AlternatingState, alternate
from firl.methods.base import Method, Problem
from firl.methods.signals import KnownDensitySignal


def importance_sampled_loss(
    signal: Float[Array, "n T"], rewards: Float[Array, "n T"]
) -> Float[Array, ""]:
    """E_{ρ_θ}[r] − E_{ρ_θ}[(ρ_E/ρ̂_θ) r]: falls where the expert is and the agent is not."""
    return jnp.mean((1.0 - jnp.exp(stop_gradient(signal))) * rewards)


def maxent(problem: Problem, config: TrainConfig) -> Method[AlternatingState]:
    """MaxEntIRL towards the problem's density."""
    if not problem.expert.normalised:
        raise FirlError(
            "--method maxent needs a normalised density, and this one is known up to a constant "
            "only: take --method firl --divergence rkl, or normalise it with "
            "firl.expert.normalise_on."
        )
    return alternate(
        problem, config, KnownDensitySignal(problem.expert, config.ratio), importance_sampled_loss
    )
