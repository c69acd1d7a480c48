"""Adam (Kingma & Ba 2015, Algorithm 1) over any pytree of arrays."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8
"""The paper's own values, which every implementation of SAC keeps."""


def annealed(
    learning_rate: float, anneal_to: float, share_done: float | Float[Array, ""]
) -> Float[Array, ""]:
    """The step size when this share of the budget is spent: it falls linearly to `anneal_to`."""
    return jnp.asarray(learning_rate * (1.0 - (1.0 - anneal_to) * share_done), jnp.float32)


class Adam(eqx.Module):
    """Running moments of a gradient, and how many gradients they have seen."""

    first: PyTree[Array]
    second: PyTree[Array]
    count: Int[Array, ""]

    @classmethod
    def create(cls, parameters: PyTree[Array]) -> "Adam":
        """Nothing seen yet."""
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        return cls(zeros, jax.tree.map(jnp.copy, zeros), jnp.zeros((), jnp.int32))

    def descend(
        self,
        parameters: PyTree[Array],
        gradient: PyTree[Array],
        learning_rate: float | Float[Array, ""],
    ) -> tuple[PyTree[Array], "Adam"]:
        """One step down the gradient."""
        count = self.count + 1
        seen = count.astype(jnp.float32)
        first = jax.tree.map(lambda m, g: _BETA1 * m + (1 - _BETA1) * g, self.first, gradient)
        second = jax.tree.map(lambda v, g: _BETA2 * v + (1 - _BETA2) * g**2, self.second, gradient)
        rate = learning_rate / (1 - _BETA1**seen)
        scale = 1 / (1 - _BETA2**seen)
        moved = jax.tree.map(
            lambda p, m, v: p - rate * m / (jnp.sqrt(v * scale) + _EPSILON),
            parameters,
            first,
            second,
        )
        return moved, type(self)(first, second, count)
