"""Matrix products, laid out so that the fast kernels take all three that a layer needs.

A layer y = x W needs y = x·W, dx = dy·Wᵀ and dW = xᵀ·dy. XLA's CPU library multiplies only
where the left factor is contracted along its rows, which the third is not: left to itself it runs
at three quarters of the speed, and with factors in bfloat16 it is not even run in bfloat16.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental.layout import Layout, with_layout_constraint
from jaxtyping import Array, Float

Saved = tuple[Float[Array, "batch in"], Float[Array, "in out"]]


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def product(
    x: Float[Array, "batch in"], weight: Float[Array, "in out"], dtype: np.dtype
) -> Float[Array, "batch out"]:
    """x @ W with the factors rounded to `dtype` and the sums in float32, and so its gradients."""
    return _dot(x.astype(dtype), weight.astype(dtype), 0)


def _forward(
    x: Float[Array, "batch in"], weight: Float[Array, "in out"], dtype: np.dtype
) -> tuple[Float[Array, "batch out"], Saved]:
    return product(x, weight, dtype), (x, weight)


def _backward(
    dtype: np.dtype, saved: Saved, gradient: Float[Array, "batch out"]
) -> tuple[Float[Array, "batch in"], Float[Array, "in out"]]:
    x, weight = saved
    if gradient.shape[1] == 1:  # no product of matrices; fused into one, its sum would be slow
        to_weight = jnp.sum(jax.lax.optimization_barrier(x * gradient), axis=0)[:, None]
    elif x.shape[1] <= gradient.shape[1]:  # transpose whichever is narrower
        to_weight = _dot(_transposed(x).astype(dtype), gradient.astype(dtype), 0)
    else:
        to_weight = _transposed(_dot(_transposed(gradient).astype(dtype), x.astype(dtype), 0))
    return _dot(gradient.astype(dtype), weight.astype(dtype), 1), to_weight


def _dot(left: Float[Array, "m k"], right: Float[Array, "..."], axis: int) -> Float[Array, "m n"]:
    return jax.lax.dot_general(
        left, right, (((1,), (axis,)), ((), ())), preferred_element_type=jnp.float32
    )


def _transposed(x: Float[Array, "m n"]) -> Float[Array, "n m"]:
    """xᵀ in memory: without the constraint XLA folds the transpose back into the product."""
    transposed: Array = jax.lax.optimization_barrier(with_layout_constraint(x.T, Layout((0, 1))))
    return transposed


product.defvjp(_forward, _backward)
