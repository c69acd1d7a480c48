"""f-MAX (Ghasemipour et al. 2019): the policy that minimises an f-divergence between marginals.

The agent is paid h(log ρ_E − log ρ_θ), the discriminator's logit in place of the log-ratio:

    f-MAX-RKL   reverse KL   r = log ρ_E − log ρ_θ             (the "AIRL" of that paper)
    FAIRL       forward KL   r = −(ρ_E/ρ_θ) (log ρ_E − log ρ_θ)

times a scale c, which is 1/α by another name. Nothing of it is left as a reward once the two agree.
"""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from firl.config import TrainConfig
from firl.methods.base import Method
from firl.methods.logit import by_logit
from firl.problems import Problem

_LOWEST = -10.0
"""FAIRL's reward falls faster than exponentially where the agent is too rarely."""


def reverse_kl(logit: Float[Array, "n"]) -> Float[Array, "n"]:
    """The log-ratio."""
    return logit


def forward_kl(logit: Float[Array, "n"]) -> Float[Array, "n"]:
    """−u log u at the ratio u, not below −10."""
    return jnp.maximum(-jnp.exp(logit) * logit, _LOWEST)


def f_max_rkl(problem: Problem, config: TrainConfig) -> Method[Any]:
    """f-MAX-RKL from the problem's demonstrations, or towards its density."""
    return by_logit(problem, config, reverse_kl)


def fairl(problem: Problem, config: TrainConfig) -> Method[Any]:
    """FAIRL from the problem's demonstrations, or towards its density."""
    return by_logit(problem, config, forward_kl)
