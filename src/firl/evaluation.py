"""Scores of an agent; the simulator steps that they take are counted apart.

Against a density by divergences of what is visited, elsewhere by the environment's own reward.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from firl.config import EvaluationConfig
from firl.errors import FirlError
from firl.expert.base import AbstractDensity
from firl.metrics.knn import knn_entropy, knn_kl
from firl.problems import Problem
from firl.types import Policy, Trajectories

Scores = dict[str, float]


def visited_states(
    problem: Problem, policies: Sequence[Policy], key: PRNGKeyArray, episodes: int
) -> tuple[Float[np.ndarray, "m d"], int]:
    """The matched states of fresh episodes, and the simulator steps they took."""
    parts = _rollouts(problem, policies, key, episodes)
    states = np.concatenate([np.asarray(problem.state_map(part.visited)) for part in parts])
    return states.reshape(-1, problem.state_dim), sum(part.env_steps for part in parts)


def _rollouts(
    problem: Problem, policies: Sequence[Policy], key: PRNGKeyArray, episodes: int
) -> list[Trajectories]:
    """Of each policy as many, and as many as were asked for at least."""
    keys = [key] if len(policies) == 1 else list(jax.random.split(key, len(policies)))
    each = -(-episodes // len(policies))
    return [
        problem.simulator.rollout(k, policy, each) for k, policy in zip(keys, policies, strict=True)
    ]


def score(
    problem: Problem, policy: Policy, config: EvaluationConfig, key: PRNGKeyArray
) -> tuple[Scores, int]:
    """Scores of fresh episodes, and the simulator steps they took."""
    k_expert, k_episodes = jax.random.split(key)
    return make_evaluation(problem, config, k_expert)(k_episodes, (policy,))


Evaluation = Callable[[PRNGKeyArray, Sequence[Policy]], tuple[Scores, int]]
"""From policies, all of which count alike, to scores and the simulator steps that they took."""


def make_evaluation(problem: Problem, config: EvaluationConfig, key: PRNGKeyArray) -> Evaluation:
    """What fits the problem's expert."""
    if isinstance(problem.expert, AbstractDensity):
        return _by_divergence(problem, problem.expert, config, key)
    return _by_return(problem, config)


def _by_return(problem: Problem, config: EvaluationConfig) -> Evaluation:
    """What the environment pays the policy in fresh episodes. Nothing is ever selected by it."""

    def evaluate(key: PRNGKeyArray, policies: Sequence[Policy]) -> tuple[Scores, int]:
        parts = _rollouts(problem, policies, key, config.episodes)
        returns = np.concatenate([np.asarray(part.returns, np.float64) for part in parts])
        return {
            "eval/return": float(returns.mean()),
            "eval/return_std": float(returns.std()),
            "eval/length": float(np.mean(np.concatenate([part.lengths for part in parts]))),
        }, sum(part.env_steps for part in parts)

    return evaluate


def _by_divergence(
    problem: Problem, density: AbstractDensity, config: EvaluationConfig, key: PRNGKeyArray
) -> Evaluation:
    """Forward and reverse KL by nearest neighbours, against one fixed draw from the expert.

    The paper's protocol (appendix C.1): M expert samples inside the space, 1000 trajectories of
    the agent, k = 3. An expert that cannot be sampled has no forward KL, and its reverse KL is
    E[log ρ_θ − log ρ_E] with log ρ_E as it is written, up to a constant where that is.
    """
    k = config.neighbours
    try:
        expert = np.asarray(density.sample(key, config.expert_samples))
    except FirlError:
        expert = None

    def evaluate(key: PRNGKeyArray, policies: Sequence[Policy]) -> tuple[Scores, int]:
        states, env_steps = visited_states(problem, policies, key, config.episodes)
        scores = {"eval/entropy": knn_entropy(states, k=k)}
        if expert is None:
            log_density = float(np.mean(np.asarray(density.log_prob(jnp.asarray(states)))))
            scores["eval/reverse_kl"] = -scores["eval/entropy"] - log_density
        else:
            scores["eval/forward_kl"] = knn_kl(expert, states, k=k)
            scores["eval/reverse_kl"] = knn_kl(states, expert, k=k)
        return scores, env_steps

    return evaluate


def first_non_finite(tree: object) -> str | None:
    """The path of the first array in a pytree that holds NaN or Inf."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        array = np.asarray(leaf)
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            return jax.tree_util.keystr(path, simple=True, separator="/")
    return None
