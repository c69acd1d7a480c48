"""Many SAC updates in one jitted, donated loop."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from firl.sac.agent import Agent
from firl.sac.config import SACConfig
from firl.sac.losses import actor_loss, critic_loss, critic_target
from firl.sac.replay import ReplayBuffer
from firl.types import RewardFn


class SACInfo(eqx.Module):
    """Means over a block of updates."""

    critic_loss: Float[Array, ""]
    q: Float[Array, ""]
    actor_loss: Float[Array, ""]
    entropy: Float[Array, ""]
    temperature: Float[Array, ""]
    reward: Float[Array, ""]


def improve(
    key: PRNGKeyArray,
    agent: Agent,
    buffer: ReplayBuffer,
    reward: RewardFn,
    *,
    num_updates: int,
    config: SACConfig,
) -> tuple[Agent, SACInfo]:
    """Run `num_updates` updates on the buffer, under the reward as it is now. Donates `agent`."""
    return _improve((key, buffer, reward), agent, num_updates, config)


@eqx.filter_jit(donate="all-except-first")
def _improve(
    kept: tuple[PRNGKeyArray, ReplayBuffer, RewardFn],
    agent: Agent,
    num_updates: int,
    config: SACConfig,
) -> tuple[Agent, SACInfo]:
    key, buffer, reward = kept

    def step(agent: Agent, key: PRNGKeyArray) -> tuple[Agent, SACInfo]:
        return _update(key, agent, buffer, reward, config)

    agent, infos = jax.lax.scan(step, agent, jr.split(key, num_updates))
    return agent, jax.tree.map(jnp.mean, infos)


def _update(
    key: PRNGKeyArray, agent: Agent, buffer: ReplayBuffer, reward: RewardFn, config: SACConfig
) -> tuple[Agent, SACInfo]:
    k_batch, k_next, k_now = jr.split(key, 3)
    batch = buffer.sample(k_batch, config.batch_size)
    rewards = reward(batch)
    alpha = agent.temperature.value
    target = critic_target(
        agent.actor,
        agent.targets,
        batch,
        rewards,
        jr.normal(k_next, batch.action.shape),
        alpha,
        config.discount,
    )
    (critic_value, q), gradient = eqx.filter_value_and_grad(critic_loss, has_aux=True)(
        agent.critics, batch, target
    )
    critics, critic_optimiser = agent.critic_optimiser.descend(
        agent.critics, gradient, config.learning_rate
    )
    (actor_value, entropy), gradient = eqx.filter_value_and_grad(actor_loss, has_aux=True)(
        agent.actor, critics, batch.obs, jr.normal(k_now, batch.action.shape), alpha
    )
    actor, actor_optimiser = agent.actor_optimiser.descend(
        agent.actor, gradient, config.learning_rate
    )
    targets = jax.tree.map(
        lambda old, new: config.polyak * old + (1.0 - config.polyak) * new, agent.targets, critics
    )
    agent = Agent(
        actor,
        critics,
        targets,
        agent.temperature.update(entropy, config.learning_rate),
        actor_optimiser,
        critic_optimiser,
    )
    info = SACInfo(critic_value, q, actor_value, entropy, alpha, jnp.mean(rewards))
    return agent, info
