"""The floor: the matrix products that no SAC update can do without, and nothing else."""

from collections import Counter

import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float

from firl.bench.setting import Contender, Setting

_REPEATS = 50
"""Updates in one call, so that calling costs nothing."""

Pairs = list[tuple[Float[Array, "m k"], Float[Array, "k n"]]]


def products(setting: Setting) -> Counter[tuple[int, int, int]]:
    """How many products [m, k] × [k, n] one update takes, with two hidden layers.

    Forward: the actor at s and s′; both critics at (s, a) and (s, π(s)), both targets at
    (s′, π(s′)). Backward: weights and hidden units of both critics and of the actor; through the
    critics to the action. What one column makes (a critic's output, its gradient) is left out: it
    is no product of matrices.
    """
    b, h, o, a = setting.batch_size, setting.hidden, setting.obs_dim, setting.act_dim
    count: Counter[tuple[int, int, int]] = Counter()
    for inputs, outputs, passes in ((o, 2 * a, 2), (o + a, 0, 6)):  # forward
        count[b, inputs, h] += passes
        count[b, h, h] += passes
        if outputs:
            count[b, h, outputs] += passes
    for inputs, nets in (
        (o + a, 2),
        (o, 1),
    ):  # weights of critics and actor, and their hidden units
        count[h, b, h] += nets
        count[b, h, h] += nets
        count[inputs, b, h] += nets
    count[h, b, 2 * a] += 1  # the actor's last layer
    count[b, 2 * a, h] += 1
    count[b, h, h] += 2  # through both critics
    count[b, h, a] += 2
    return count


def flops(setting: Setting) -> int:
    """Floating-point operations of these products."""
    return sum(2 * m * k * n * times for (m, k, n), times in products(setting).items())


def bare_products(setting: Setting, precision: str) -> Contender:
    """These products with operands at hand; hidden × hidden ones in `precision`."""
    key = jr.key(0)
    pairs: Pairs = []
    for (m, k, n), times in sorted(products(setting).items()):
        inner = {m, k, n} <= {setting.batch_size, setting.hidden}
        dtype = jnp.dtype(precision) if inner else jnp.dtype("float32")
        for _ in range(times):
            key, k_left, k_right = jr.split(key, 3)
            left, right = jr.normal(k_left, (m, k)), jr.normal(k_right, (k, n))
            pairs.append((left.astype(dtype), right.astype(dtype)))

    def once(_: Array, carry: tuple[Pairs, Float[Array, ""]]) -> tuple[Pairs, Float[Array, ""]]:
        # barriers: operands might change and results might be used, as far as XLA can see
        pairs, total = jax.lax.optimization_barrier(carry)
        results = jax.lax.optimization_barrier(
            [jnp.matmul(*pair, preferred_element_type=jnp.float32) for pair in pairs]
        )
        return pairs, total + sum(result[0, 0] for result in results)

    repeated = jax.jit(lambda carry: jax.lax.fori_loop(0, _REPEATS, once, carry)[1])
    carry = (pairs, jnp.zeros(()))

    def run() -> int:
        jax.block_until_ready(repeated(carry))
        return _REPEATS

    return Contender(run)
