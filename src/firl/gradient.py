"""Theorem 4.1: ∇L_f(θ) = 1/(αT) · cov_τ(Σ_t h_f(ρ_E/ρ_θ)(s_t), Σ_t ∇r_θ(s_t)).

Each function here is a scalar whose gradient in the reward's parameters is that covariance: h
is held constant, and the covariance is linear in the rewards. The scalar itself is not L_f.

How the trajectories enter is the only difference: a sample of the agent's (`covariance_loss`),
all of them with their probabilities (`exact_covariance_loss`), or Eq. 6's half agent, half
expert (`mixture_loss`).

Where unbiasedness stops: ÷(N − 1) makes the estimate unbiased for a *given* function h. When h
comes from a density or a classifier fitted to the same trajectories, h and the trajectories are
dependent and the estimate inherits the fit's error; no divisor repairs that.
"""

import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Float

from firl.errors import FirlError


def covariance_loss(
    h: Float[Array, "n T"], rewards: Float[Array, "n T"], *, temperature: float = 1.0, ddof: int = 1
) -> Float[Array, ""]:
    """Theorem 4.1 over n trajectories of the agent, s_1 … s_T of each.

    `ddof` 1 divides by n − 1, which is unbiased for a given h; 0 divides by n, which is the
    plug-in value, smaller by (n − 1)/n.
    """
    num = h.shape[0]
    _check_enough(num, ddof, "agent")
    (h,), scale = _standardised(h)
    return scale * _covariance(h, rewards, jnp.full(num, 1 / (num - ddof), h.dtype)) / temperature


def exact_covariance_loss(
    h: Float[Array, "n T"],
    rewards: Float[Array, "n T"],
    weights: Float[Array, "n"],
    *,
    temperature: float = 1.0,
) -> Float[Array, ""]:
    """Theorem 4.1 over all n trajectories that there are, given their probabilities."""
    (h,), scale = _standardised(h)
    return scale * _covariance(h, rewards, weights) / temperature


def mixture_loss(
    h_agent: Float[Array, "n T"],
    rewards_agent: Float[Array, "n T"],
    h_expert: Float[Array, "m T"],
    rewards_expert: Float[Array, "m T"],
    *,
    temperature: float = 1.0,
    agent_ddof: int = 1,
    expert_ddof: int = 0,
) -> Float[Array, ""]:
    """Eq. 6: the same covariance under ½ agent + ½ expert, whatever the two counts are.

    By the law of total covariance, for a trajectory's sums H = Σ_t h and R = Σ_t r,

        cov_½½(H, R) = ½ cov_agent + ½ cov_expert + ¼ (ΔH)(ΔR),   Δ = mean_agent − mean_expert.

    A side that is sampled (ddof 1) has an unbiased cov of its own, and the sampling noise of its
    mean, which adds cov/n to the last product, is taken off again: ½ − 1/(4n) in place of ½. A
    side that is given completely (ddof 0) needs neither. The paper's expert law is uniform over
    the demonstrations: 0 when all of them are passed, 1 when they were resampled. Dividing the
    pooled covariance by n + m − 1 instead would be biased by the last term.

    Eq. 6 itself is a biased gradient of L_f away from convergence, where both are zero.
    """
    num_agent, num_expert = h_agent.shape[0], h_expert.shape[0]
    _check_enough(num_agent, agent_ddof, "agent")
    _check_enough(num_expert, expert_ddof, "expert")
    (h_agent, h_expert), scale = _standardised(h_agent, h_expert)

    def within(h: Float[Array, "k T"], rewards: Float[Array, "k T"], ddof: int) -> Float[Array, ""]:
        num = h.shape[0]
        weight = (1 / 2 - ddof / (4 * num)) / (num - ddof)
        return _covariance(h, rewards, jnp.full(num, weight, h.dtype))

    between = (jnp.mean(h_agent) - jnp.mean(h_expert)) * (
        jnp.mean(jnp.sum(rewards_agent, axis=1)) - jnp.mean(jnp.sum(rewards_expert, axis=1))
    )
    covariance = (
        within(h_agent, rewards_agent, agent_ddof)
        + within(h_expert, rewards_expert, expert_ddof)
        + between / 4
    )
    return scale * covariance / temperature


def _standardised(
    *h: Float[Array, "_ T"],
) -> tuple[tuple[Float[Array, "_ T"], ...], Float[Array, ""]]:
    """Constant h, free of a common offset, and the common scale that was divided out.

    Scale, so that nothing overflows on the way that does not overflow in the end: a power of two,
    which divides without rounding, and one whose reciprocal is still a normal number, as XLA may
    multiply by it. Offset, before summing over T, because only differences of h count and large
    sums would round them.
    """
    everything = stop_gradient(jnp.concatenate(h))
    _, exponent = jnp.frexp(jnp.max(jnp.abs(everything)))
    scale = jnp.ldexp(jnp.ones((), everything.dtype), jnp.maximum(exponent - 2, 0))
    offset = jnp.mean(everything / scale)
    return tuple(stop_gradient(part) / scale - offset for part in h), scale


def _covariance(
    h: Float[Array, "n T"], rewards: Float[Array, "n T"], weights: Float[Array, "n"]
) -> Float[Array, ""]:
    """1/T · Σ_i w_i (H_i − H̄)(R_i − R̄), centred first: E[HR] − E[H]E[R] would cancel."""
    h_mean, reward_sum = jnp.mean(h, axis=1), jnp.sum(rewards, axis=1)
    share = weights / jnp.sum(weights)
    h_centred = h_mean - jnp.sum(share * h_mean)
    return jnp.sum(weights * h_centred * (reward_sum - jnp.sum(share * reward_sum)))


def _check_enough(num: int, ddof: int, whose: str) -> None:
    if num <= ddof:
        raise FirlError(
            f"The covariance over {num} {whose} trajectories with ddof={ddof} divides by zero: "
            "pass more trajectories, or ddof=0."
        )
