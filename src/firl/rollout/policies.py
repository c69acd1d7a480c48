"""How to act before anything is learned."""

import equinox as eqx
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, Float32, PRNGKeyArray


class UniformPolicy(eqx.Module):
    """Any action in [−1, 1]^a, whatever is observed: what exploration starts from."""

    act_dim: int = eqx.field(static=True)

    def __call__(self, key: PRNGKeyArray, obs: Float[Array, "o"]) -> Float32[Array, "a"]:
        """Draw an action."""
        del obs
        return jr.uniform(key, (self.act_dim,), jnp.float32, -1.0, 1.0)
