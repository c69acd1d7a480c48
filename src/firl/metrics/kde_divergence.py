"""Divergences from the log-ratio that training has anyway: cheap curves, biased by its smoothing.

Each is an expectation under the mixture ½ρ_E + ½ρ_agent of a function of l = log ρ_E − log
ρ_agent, or under one of the two; the bounded ones are bounded sample by sample.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from firl.log_ratio.density import DensityLogRatio


class Divergences(eqx.Module):
    """In nats where a log is involved."""

    forward_kl: Float[Array, ""]
    """KL(ρ_E‖ρ_agent) = E_E l."""
    reverse_kl: Float[Array, ""]
    """KL(ρ_agent‖ρ_E) = −E_agent l."""
    jensen_shannon: Float[Array, ""]
    """Half of KL(ρ_E‖mixture) + KL(ρ_agent‖mixture), at most log 2. The paper's generator
    (Table 2) is twice this."""
    total_variation: Float[Array, ""]
    """½∫|ρ_E − ρ_agent| = E_mixture |tanh l/2|, at most 1."""
    squared_hellinger: Float[Array, ""]
    """1 − ∫√(ρ_E ρ_agent) = 1 − E_mixture sech l/2, at most 1."""


def divergences_from_log_ratios(
    at_expert: Float[Array, "n"], at_agent: Float[Array, "m"]
) -> Divergences:
    """From log-ratios at samples of the expert and at samples of the agent."""

    def half_of_each(values: jax.Array, others: jax.Array) -> jax.Array:
        return 0.5 * (jnp.mean(values) + jnp.mean(others))

    return Divergences(
        forward_kl=jnp.mean(at_expert),
        reverse_kl=-jnp.mean(at_agent),
        jensen_shannon=jnp.log(2.0)
        + half_of_each(jax.nn.log_sigmoid(at_expert), jax.nn.log_sigmoid(-at_agent)),
        total_variation=half_of_each(
            jnp.abs(jnp.tanh(at_expert / 2)), jnp.abs(jnp.tanh(at_agent / 2))
        ),
        squared_hellinger=1 - half_of_each(1 / jnp.cosh(at_expert / 2), 1 / jnp.cosh(at_agent / 2)),
    )


def kde_divergences(log_ratio: DensityLogRatio, expert_samples: Float[Array, "n d"]) -> Divergences:
    """From the fitted log-ratio; the agent's samples are those that its estimate is fitted to."""
    return divergences_from_log_ratios(log_ratio(expert_samples), log_ratio.at_agent_points())
