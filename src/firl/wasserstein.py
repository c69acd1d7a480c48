"""Wasserstein-1 as an integral probability metric: a small network trained to be 1-Lipschitz."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, PRNGKeyArray

from firl.ipm import AbstractCritic, AbstractIPM, CriticInfo

Layers = tuple[eqx.nn.Linear, ...]


class LipschitzCritic(AbstractCritic):
    """A ReLU network in units of the samples' spread, times that spread: slopes stay slopes."""

    layers: Layers
    origin: Float[Array, "d"]
    scale: Float[Array, ""]

    def __call__(self, states: Float[Array, "*batch d"]) -> Float[Array, "*batch"]:
        """D at each state."""
        flat = states.reshape(-1, states.shape[-1])
        return jax.vmap(self._one)(flat).reshape(states.shape[:-1])

    def slopes(self, states: Float[Array, "n d"]) -> Float[Array, "n"]:
        """‖∇D‖, which should not exceed 1."""
        slopes: Float[Array, "n"] = jnp.linalg.norm(jax.vmap(jax.grad(self._one))(states), axis=1)
        return slopes

    def _one(self, state: Float[Array, "d"]) -> Float[Array, ""]:
        x = (state - self.origin) / self.scale
        for layer in self.layers[:-1]:
            x = jax.nn.relu(layer(x))
        return self.scale * self.layers[-1](x)[0]


class Wasserstein(AbstractIPM):
    """Wasserstein-1: how far, on average, the agent's states would have to be carried.

    Trained as WGAN-GP is (Gulrajani et al., 2017), but only slopes above 1 are penalised: a
    1-Lipschitz function may be flat, and a penalty on that leaves nothing to learn where the two
    samples lie on each other. The steps anneal, so that the critic ends at rest. A fit starts
    from the last one's network.
    """

    hidden: tuple[int, ...] = (64, 64)
    """Units in each hidden layer."""
    learning_rate: float = 3e-3
    """RMSProp's first step size, annealed to zero within a fit."""
    gradient_penalty: float = 100.0
    """λ. The slope settles at 1 + W₁/(2λ·spread), so the distance is over by √d/λ at most."""
    num_steps: int = 500
    """Training steps of each fit."""
    batch_size: int = 256
    """States of each side in a step."""

    def init(self, key: PRNGKeyArray, dim: int) -> Layers:
        """A fresh network."""
        sizes = (dim, *self.hidden, 1)
        return tuple(
            eqx.nn.Linear(fan_in, fan_out, key=k)
            for fan_in, fan_out, k in zip(
                sizes[:-1], sizes[1:], jax.random.split(key, len(sizes) - 1), strict=True
            )
        )

    @eqx.filter_jit
    def fit(
        self,
        key: PRNGKeyArray,
        warm: Layers,
        expert: Float[Array, "m d"],
        agent: Float[Array, "n d"],
    ) -> tuple[Layers, LipschitzCritic, CriticInfo]:
        """Train on batches of both samples, in one compiled scan."""
        origin, scale = _frame(expert, agent)
        optimiser = optax.scale_by_rms()

        def loss(layers: Layers, key: PRNGKeyArray) -> Float[Array, ""]:
            critic = LipschitzCritic(layers, origin, scale)
            k_expert, k_agent, k_mix = jax.random.split(key, 3)
            real = jax.random.choice(k_expert, expert, (self.batch_size,))
            fake = jax.random.choice(k_agent, agent, (self.batch_size,))
            mix = jax.random.uniform(k_mix, (self.batch_size, 1), expert.dtype)
            excess = jax.nn.relu(critic.slopes(mix * real + (1 - mix) * fake) - 1)
            gain = jnp.mean(critic(real)) - jnp.mean(critic(fake))
            return self.gradient_penalty * jnp.mean(excess**2) - gain / scale

        def one(
            carry: tuple[Layers, optax.OptState], inputs: tuple[PRNGKeyArray, Float[Array, ""]]
        ) -> tuple[tuple[Layers, optax.OptState], None]:
            (layers, state), (key, step_size) = carry, inputs
            updates, state = optimiser.update(jax.grad(loss)(layers, key), state)
            updates = jax.tree.map(lambda update: -step_size * update, updates)
            return (optax.apply_updates(layers, updates), state), None

        annealed = jnp.linspace(self.learning_rate, 0.0, self.num_steps)
        inputs = (jax.random.split(key, self.num_steps), annealed)
        (layers, _), _ = jax.lax.scan(one, (warm, optimiser.init(warm)), inputs)
        critic = LipschitzCritic(layers, origin, scale)
        return layers, critic, CriticInfo(jnp.mean(critic(expert)) - jnp.mean(critic(agent)))


def _frame(
    *samples: Float[Array, "_ d"],
) -> tuple[Float[Array, "d"], Float[Array, ""]]:
    """Mean and root-mean-square spread per coordinate of all states, 1 if they coincide."""
    states = jnp.concatenate(samples)
    origin = jnp.mean(states, axis=0)
    spread = jnp.sqrt(jnp.mean(jnp.square(states - origin[None])))
    return origin, jnp.where(spread > 0, spread, 1.0)
