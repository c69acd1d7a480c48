"""The reward r_θ(s): a small network of the state, bounded, and its use on transitions."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from firl.config import RewardConfig
from firl.types import StateMap, Transition

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {"relu": jax.nn.relu, "tanh": jnp.tanh}


class SoftBound(eqx.Module):
    """b·tanh(x/b): close to x while small, and its gradient never dies."""

    limit: float = eqx.field(static=True)

    def __call__(self, x: Float[Array, ""]) -> Float[Array, ""]:
        """Bound x."""
        return self.limit * jnp.tanh(x / self.limit)


class HardBound(eqx.Module):
    """The paper's clamp to ± b (appendix C.1); outside it no gradient flows."""

    limit: float = eqx.field(static=True)

    def __call__(self, x: Float[Array, ""]) -> Float[Array, ""]:
        """Bound x."""
        return jnp.clip(x, -self.limit, self.limit)


class Scaling(eqx.Module):
    """(s − centre) / scale: states as numbers around one, whatever their units. Not trained."""

    centre: tuple[float, ...] = eqx.field(static=True)
    scale: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, state: Float[Array, "d"]) -> Float[Array, "d"]:
        """Scale one state."""
        return (state - jnp.array(self.centre)) / jnp.array(self.scale)


class RewardNet(eqx.Module):
    """A bounded multi-layer perceptron of the matched state."""

    scaling: Scaling
    layers: list[eqx.nn.Linear]
    activation: Callable[[Array], Array] = eqx.field(static=True)
    bound: SoftBound | HardBound

    def __call__(self, state: Float[Array, "d"]) -> Float[Array, ""]:
        """The reward of one state."""
        x = self.scaling(state)
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.bound(self.layers[-1](x)[0])


def make_reward(key: PRNGKeyArray, scaling: Scaling, config: RewardConfig) -> RewardNet:
    """A fresh reward network of states as `scaling` makes them."""
    sizes = (len(scaling.centre), *config.hidden, 1)
    keys = jax.random.split(key, len(sizes) - 1)
    layers = [
        eqx.nn.Linear(fan_in, fan_out, key=k)
        for fan_in, fan_out, k in zip(sizes[:-1], sizes[1:], keys, strict=True)
    ]
    bound = SoftBound(config.bound) if config.soft_bound else HardBound(config.bound)
    return RewardNet(scaling, layers, ACTIVATIONS[config.activation], bound)


class StateReward(eqx.Module):
    """r(s, a, s′) = r_θ(s′), relabelled whenever a batch is drawn."""

    net: RewardNet
    state_map: StateMap

    def __call__(self, batch: Transition) -> Float[Array, "batch"]:
        """Reward each transition by the state it leads to."""
        return jax.vmap(self.net)(self.state_map(batch.next_obs))

    def absorbed(self, batch: Transition, rewards: Float[Array, "batch"]) -> Float[Array, "batch"]:
        """The same again: it is the same state."""
        del batch
        return rewards
