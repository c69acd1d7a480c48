"""Matrix products, laid out so that the fastest kernels take all three that a layer needs."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.experimental.layout import Layout, with_layout_constraint
from jaxtyping import Array, Float


@partial(jax.custom_vjp, nondiff_argnums=(2,))
def product(
    x: Float[Array, "batch in"], weight: Float[Array, "in out"], dtype: jnp.dtype
) -> Float[Array, "batch out"]:
    """x @ W, with factors rounded to `dtype` and sums in float32, in both directions."""
    return _forward(x, weight, dtype)[0]


def _forward(x, weight, dtype):
    x, weight = x.astype(dtype), weight.astype(dtype)
    return _dot(x, weight, 0), (x, weight)


def _backward(dtype, saved, gradient):
    x, weight = saved
    gradient = gradient.astype(dtype)
    # XLA's CPU library takes a product only when the left factor is contracted along its rows;
    # left to itself, XLA would fold the transpose into the product and fall back to slower code.
    columns = jax.lax.optimization_barrier(with_layout_constraint(x.T, Layout((0, 1))))
    return _dot(gradient, weight, 1), _dot(columns, gradient, 0)


def _dot(left, right, axis):
    return jax.lax.dot_general(
        left, right, (((1,), (axis,)), ((), ())), preferred_element_type=jnp.float32
    )


product.defvjp(_forward, _backward)
