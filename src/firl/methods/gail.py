"""GAIL (Ho & Ermon 2016): imitate by deceiving a discriminator, min_π max_D of

    E_{ρ_E}[log D] + E_{ρ_θ}[log(1 − D)] − α H(π),

which at the optimal D is the Jensen-Shannon divergence between the marginals. The agent is paid
−log(1 − D), which is never negative, or log D, which is never positive: as absorbing states go on
paying, neither is a reason to live or to die. At convergence D is ½ everywhere and both are
constant: no reward is recovered.
"""

from typing import Any

import jax
from jaxtyping import Array, Float

from firl.config import TrainConfig
from firl.methods.base import Method
from firl.methods.logit import Pay, by_logit
from firl.problems import Problem


def positive(logit: Float[Array, "n"]) -> Float[Array, "n"]:
    """−log(1 − D)."""
    return jax.nn.softplus(logit)


def negative(logit: Float[Array, "n"]) -> Float[Array, "n"]:
    """log D."""
    return -jax.nn.softplus(-logit)


PAYS: dict[str, Pay] = {"positive": positive, "negative": negative}


def gail(problem: Problem, config: TrainConfig) -> Method[Any]:
    """GAIL from the problem's demonstrations, or towards its density."""
    pay = PAYS[config.adversarial.pays]
    return by_logit(problem, config, pay)
