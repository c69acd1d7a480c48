"""MaxEntIRL: descend the forward KL between trajectory laws (appendix C.1, eq. for densities).

E_{ρ_E}[∇r] − E_{ρ_θ}[∇r], the expert's term by importance sampling from the agent's states so
that a density is enough. The paper's T/α in front is a scale, which Adam takes out: left at 1.

Its weights ρ_E/ρ̂_θ average to one only where the agent already covers the expert. Before, they
average to nearly nothing, and all that is left is to push the reward down wherever the agent is,
until it meets its bound. Weights that are divided by their own mean do not have that failure.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Float

from firl.config import TrainConfig
from firl.expert.demonstrations import Demonstrations
from firl.methods.alternate import alternate
from firl.methods.base import Method
from firl.methods.imitate import imitate
from firl.methods.signals import NoSignal, importance_signal
from firl.problems import Problem


def plain_loss(signal: Float[Array, "n T"], rewards: Float[Array, "n T"]) -> Float[Array, ""]:
    """E_{ρ_θ}[r] − E_{ρ_θ}[(ρ_E/ρ̂_θ) r], as the paper has it."""
    return jnp.mean((1.0 - jnp.exp(stop_gradient(signal))) * rewards)


def self_normalised_loss(
    signal: Float[Array, "n T"], rewards: Float[Array, "n T"]
) -> Float[Array, ""]:
    """The same with weights that sum to one: a constant in r or in log ρ_E changes nothing."""
    weights = jax.nn.softmax(stop_gradient(signal).ravel())
    return jnp.mean(rewards) - jnp.sum(weights * rewards.ravel())


def trajectory_loss(
    agent: Float[Array, "n T"],
    agent_rewards: Float[Array, "n T"],
    expert: Float[Array, "m T"],
    expert_rewards: Float[Array, "m T"],
) -> Float[Array, ""]:
    """E_{ρ_θ}[r] − E_{ρ_E}[r] from samples of both; no ratio is needed."""
    del agent, expert
    return jnp.mean(agent_rewards) - jnp.mean(expert_rewards)


def maxent(problem: Problem, config: TrainConfig) -> Method[Any]:
    """MaxEntIRL towards the problem's demonstrations or density."""
    if isinstance(problem.expert, Demonstrations):
        return imitate(problem, config, NoSignal(), trajectory_loss)
    loss = self_normalised_loss if config.ratio.self_normalise else plain_loss
    return alternate(problem, config, importance_signal(problem, config), loss)
