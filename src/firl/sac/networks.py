"""The actor, a Gaussian through tanh, and the twin critics: plain ReLU networks."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from firl.sac.linear import product
from firl.types import HostAct

LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0
"""Spinning Up's bounds: wide enough for any policy, narrow enough for float32."""

_ACTION_LIMIT = 1.0 - 1e-6
"""In float32 tanh reaches ±1, where its inverse is infinite: log_prob goes no further than this."""


class MLP(eqx.Module):
    """Linear layers with ReLU between them, on a batch. Weights are [in, out]."""

    weights: tuple[Float[Array, "... _ _"], ...]
    biases: tuple[Float[Array, "... _"], ...]
    dtype: np.dtype = eqx.field(static=True)
    """What the factors of hidden × hidden products are rounded to; all else is float32."""

    @classmethod
    def create(cls, key: PRNGKeyArray, sizes: tuple[int, ...], dtype: np.dtype) -> "MLP":
        """Weights and biases uniform within ±1/√in, as PyTorch has it and all our baselines."""
        weights, biases = [], []
        keys = jr.split(key, len(sizes) - 1)
        for k, num_in, num_out in zip(keys, sizes[:-1], sizes[1:], strict=True):
            k_weight, k_bias = jr.split(k)
            bound = num_in**-0.5
            weights.append(jr.uniform(k_weight, (num_in, num_out), minval=-bound, maxval=bound))
            biases.append(jr.uniform(k_bias, (num_out,), minval=-bound, maxval=bound))
        return cls(tuple(weights), tuple(biases), dtype)

    def __call__(self, x: Float[Array, "batch in"]) -> Float[Array, "batch out"]:
        """A batch of inputs."""
        last = len(self.weights) - 1
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            dtype = self.dtype if 0 < i < last else np.dtype(np.float32)
            x = product(x, weight, dtype) + bias[None]
            if i < last:
                x = jax.nn.relu(x)
        return x


class Actor(eqx.Module):
    """a = tanh(u), u ~ N(μ(s), σ(s)²): a stochastic policy."""

    net: MLP

    @classmethod
    def create(
        cls,
        key: PRNGKeyArray,
        obs_dim: int,
        act_dim: int,
        hidden: tuple[int, ...],
        dtype: np.dtype,
    ) -> "Actor":
        """A fresh actor."""
        return cls(MLP.create(key, (obs_dim, *hidden, 2 * act_dim), dtype))

    def distribution(self, obs: Float[Array, "o"]) -> tuple[Float[Array, "a"], Float[Array, "a"]]:
        """μ and log σ, before tanh."""
        mean, log_std = jnp.split(self.net(obs[None])[0], 2)
        return mean, jnp.clip(log_std, LOG_STD_MIN, LOG_STD_MAX)

    def distributions(
        self, obs: Float[Array, "b o"]
    ) -> tuple[Float[Array, "b a"], Float[Array, "b a"]]:
        """μ and log σ of a batch, before tanh."""
        mean, log_std = jnp.split(self.net(obs), 2, axis=-1)
        return mean, jnp.clip(log_std, LOG_STD_MIN, LOG_STD_MAX)

    def __call__(self, key: PRNGKeyArray, obs: Float[Array, "o"]) -> Float[Array, "a"]:
        """Sample an action."""
        return self.sample(key, obs)[0]

    def on_host(self) -> HostAct:
        """The same in NumPy."""
        from firl.sac.host_actor import HostActor

        return HostActor(self)

    def sample(
        self, key: PRNGKeyArray, obs: Float[Array, "o"]
    ) -> tuple[Float[Array, "a"], Float[Array, ""]]:
        """An action and its log-density."""
        mean, log_std = self.distribution(obs)
        return squashed_gaussian(mean, log_std, jr.normal(key, mean.shape))

    def log_prob(self, obs: Float[Array, "o"], action: Float[Array, "a"]) -> Float[Array, ""]:
        """log π(a|s) of an action in [−1, 1], held 1e-6 away from the bounds."""
        mean, log_std = self.distribution(obs)
        pre_tanh = jnp.arctanh(jnp.clip(action, -_ACTION_LIMIT, _ACTION_LIMIT))
        noise = (pre_tanh - mean) * jnp.exp(-log_std)
        return jnp.sum(_log_density(pre_tanh, log_std, noise))


class ModePolicy(eqx.Module):
    """a = tanh(μ(s)): the actor without its noise."""

    actor: Actor

    def __call__(self, key: PRNGKeyArray, obs: Float[Array, "o"]) -> Float[Array, "a"]:
        """Ignore the key."""
        del key
        return jnp.tanh(self.actor.distribution(obs)[0])


class Critics(eqx.Module):
    """Q₁ and Q₂, which differ by their initialisation: their minimum is less optimistic."""

    nets: tuple[MLP, MLP]
    """Apart rather than stacked: single products run faster than batches of two."""

    @classmethod
    def create(
        cls,
        key: PRNGKeyArray,
        obs_dim: int,
        act_dim: int,
        hidden: tuple[int, ...],
        dtype: np.dtype,
    ) -> "Critics":
        """A fresh pair."""
        sizes = (obs_dim + act_dim, *hidden, 1)
        k_first, k_second = jr.split(key)
        return cls((MLP.create(k_first, sizes, dtype), MLP.create(k_second, sizes, dtype)))

    def __call__(
        self, obs: Float[Array, "b o"], action: Float[Array, "b a"]
    ) -> Float[Array, "2 b"]:
        """Both values of each pair."""
        pairs = jnp.concatenate([obs, action], axis=-1)
        return jnp.stack([net(pairs)[:, 0] for net in self.nets])


def squashed_gaussian(
    mean: Float[Array, "a"], log_std: Float[Array, "a"], noise: Float[Array, "a"]
) -> tuple[Float[Array, "a"], Float[Array, ""]]:
    """tanh(μ + σε) and its log-density."""
    pre_tanh = mean + jnp.exp(log_std) * noise
    return jnp.tanh(pre_tanh), jnp.sum(_log_density(pre_tanh, log_std, noise))


def _log_density(
    pre_tanh: Float[Array, "a"], log_std: Float[Array, "a"], noise: Float[Array, "a"]
) -> Float[Array, "a"]:
    gaussian = -0.5 * noise**2 - log_std - 0.5 * jnp.log(2.0 * jnp.pi)
    # log(1 − tanh²u) = 2(log 2 − u − softplus(−2u)) loses nothing where tanh u rounds to ±1
    return gaussian - 2.0 * (jnp.log(2.0) - pre_tanh - jax.nn.softplus(-2.0 * pre_tanh))
