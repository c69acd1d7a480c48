"""MaxEntIRL as it began (Ziebart et al. 2008; causally, Ziebart et al. 2010): linear and exact.

r(s) = φ(s)·w on a process of a few states. Of all policies whose mean features are the expert's it
finds the one of greatest entropy, by soft value iteration; its dual

    J(w) = E[V_0(s_0)] − (T/α) w·E_E[φ],     ∇J = (T/α) (E_w[φ] − E_E[φ])

is convex. With deterministic dynamics and one start state that is maximum likelihood of the
trajectories, and the forward KL between trajectory laws that the neural version descends.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.optimize import minimize

from firl.errors import FirlError
from firl.tabular import TabularMDP, soft_value_iteration


def dual(
    weights: Float[Array, "k"],
    mdp: TabularMDP,
    features: Float[Array, "S k"],
    expert: Float[Array, "k"],
) -> Float[Array, ""]:
    """J(w), of which the minimum is sought."""
    value, _ = soft_value_iteration(mdp, features @ weights)
    return mdp.initial @ value - mdp.horizon / mdp.temperature * (weights @ expert)


def maxent_irl(
    mdp: TabularMDP,
    features: Float[Array, "S k"],
    expert: Float[Array, "k"],
    *,
    tolerance: float = 1e-6,
) -> Float[np.ndarray, "k"]:
    """w, from the expert's mean features over s_1 … s_T. Use it under `jax.enable_x64`."""
    slope = jax.jit(jax.value_and_grad(lambda w: dual(w, mdp, features, expert)))

    def objective(weights: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = slope(jnp.asarray(weights))
        return float(value), np.asarray(gradient, np.float64)

    start = np.zeros(features.shape[1])
    found = minimize(objective, start, jac=True, method="BFGS", options={"gtol": tolerance / 10})
    missed = float(np.abs(found.jac).max()) * mdp.temperature / mdp.horizon
    if not missed <= tolerance:
        raise FirlError(
            f"The expert's mean features are missed by {missed:.1e}: no policy of this process has "
            "them, or none but a deterministic one: check that they are means over s_1 … s_T."
        )
    return np.asarray(found.x)
