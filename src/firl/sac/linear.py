"""Matrix products, laid out so that the fast kernels take all three that a layer needs.

A layer y = x W needs y = x·W, dx = dy·Wᵀ and dW = xᵀ·dy. XLA's CPU library multiplies only
where the left factor is contracted along its rows, which the third is not. Left to itself it runs
at three quarters of the speed in float32, and what was meant for bfloat16 is computed in float32.
So the left factor is transposed in memory first. XLA must not fold that transpose back into the
product, which is what the layout constraints are for.
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
    if x.shape[1] <= gradient.shape[1]:  # transpose whichever is narrower
        to_weight = _dot(_transposed(x).astype(dtype), gradient.astype(dtype), 0)
    elif gradient.shape[1] > 1:
        rows = _dot(_transposed(gradient).astype(dtype), x.astype(dtype), 0)
        to_weight = with_layout_constraint(rows, Layout((0, 1))).T
    else:  # a column is a row already
        to_weight = _dot(gradient.reshape(1, -1).astype(dtype), x.astype(dtype), 0).reshape(-1, 1)
    return _dot(gradient.astype(dtype), weight.astype(dtype), 1), to_weight


def _dot(left: Float[Array, "m k"], right: Float[Array, "..."], axis: int) -> Float[Array, "m n"]:
    return jax.lax.dot_general(
        left, right, (((1,), (axis,)), ((), ())), preferred_element_type=jnp.float32
    )


def _transposed(x: Float[Array, "m n"]) -> Float[Array, "n m"]:
    transposed: Array = with_layout_constraint(x.T, Layout((0, 1)))
    return transposed


product.defvjp(_forward, _backward)
