"""Many SAC updates in one jitted, donated loop."""

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from firl.config import SACConfig
from firl.sac.adam import annealed
from firl.sac.agent import Agent
from firl.sac.losses import actor_loss, critic_loss, critic_target, final_value
from firl.sac.replay import ReplayBuffer
from firl.types import RewardFn, Transition

_DRAWN_AT_ONCE = 50
"""Updates whose batches are drawn and rewarded together: enough that drawing costs nothing, few
enough that what is drawn stays in the cache."""


class SACInfo(eqx.Module):
    """Means over a block of updates."""

    critic_loss: Float[Array, ""]
    q: Float[Array, ""]
    actor_loss: Float[Array, ""]
    entropy: Float[Array, ""]
    temperature: Float[Array, ""]
    reward: Float[Array, ""]


class Draw(eqx.Module):
    """All that chance and the reward bring to an update."""

    batch: Transition
    rewards: Float[Array, "*updates b"]
    final: Float[Array, "*updates b"]
    """What a transition would be worth that leads into an absorbing state."""
    noise: Float[Array, "*updates b a"]
    """Of the actions at s."""
    next_noise: Float[Array, "*updates b a"]
    """Of the actions at s′."""


def improve(
    key: PRNGKeyArray,
    agent: Agent,
    buffer: ReplayBuffer,
    reward: RewardFn,
    *,
    num_updates: int,
    config: SACConfig,
    share_done: float | Float[Array, ""] = 0.0,
) -> tuple[Agent, SACInfo]:
    """Run `num_updates` updates on the buffer, under the reward as it is now. Donates `agent`.

    `share_done` of the budget is spent.
    """
    kept = (key, buffer, reward, jnp.asarray(share_done, jnp.float32))
    improved: tuple[Agent, SACInfo] = _improve(kept, agent, num_updates, config)
    return improved


@eqx.filter_jit(donate="all-except-first")
def _improve(
    kept: tuple[PRNGKeyArray, ReplayBuffer, RewardFn, Float[Array, ""]],
    agent: Agent,
    num_updates: int,
    config: SACConfig,
) -> tuple[Agent, SACInfo]:
    key, buffer, reward, share_done = kept
    step_size = annealed(config.learning_rate, config.anneal_to, share_done)
    at_once = min(num_updates, _DRAWN_AT_ONCE)

    def group(i: Array, carry: tuple[Agent, SACInfo]) -> tuple[Agent, SACInfo]:
        draws = _draw(jr.fold_in(key, i), buffer, reward, at_once, config)

        def step(j: Array, carry: tuple[Agent, SACInfo]) -> tuple[Agent, SACInfo]:
            agent, total = carry
            draw: Draw = jax.tree.map(lambda x: x[j], draws)
            agent, info = _update(agent, draw, step_size, config)
            return agent, jax.tree.map(jnp.add, total, info)

        left = num_updates - i * at_once
        done: tuple[Agent, SACInfo] = jax.lax.fori_loop(0, jnp.minimum(at_once, left), step, carry)
        return done

    nothing = SACInfo(*[jnp.zeros(())] * 6)
    num_groups = -(-num_updates // at_once)
    agent, total = jax.lax.fori_loop(0, num_groups, group, (agent, nothing))
    return agent, jax.tree.map(lambda x: x / num_updates, total)


def _draw(
    key: PRNGKeyArray, buffer: ReplayBuffer, reward: RewardFn, num_updates: int, config: SACConfig
) -> Draw:
    """Independent batches for several updates, relabelled: the reward is the same for all."""
    k_batch, k_noise, k_next = jr.split(key, 3)
    batch = buffer.sample(k_batch, num_updates * config.batch_size)
    rewards, shape = reward(batch), batch.action.shape
    together = Draw(
        batch=batch,
        rewards=rewards,
        final=final_value(rewards, reward.absorbed(batch, rewards), config.discount),
        noise=jr.normal(k_noise, shape),
        next_noise=jr.normal(k_next, shape),
    )
    draws: Draw = jax.tree.map(
        lambda x: x.reshape(num_updates, config.batch_size, *x.shape[1:]), together
    )
    return draws


def _update(
    agent: Agent, draw: Draw, step_size: Float[Array, ""], config: SACConfig
) -> tuple[Agent, SACInfo]:
    """Critics, actor, temperature, targets, in this order (Haarnoja et al. 2018b, Algorithm 1)."""
    batch, rewards, alpha = draw.batch, draw.rewards, agent.temperature.value
    target = critic_target(
        agent.actor,
        agent.targets,
        batch,
        rewards,
        draw.final,
        draw.next_noise,
        alpha,
        config.discount,
    )
    (critic_value, q), gradient = eqx.filter_value_and_grad(critic_loss, has_aux=True)(
        agent.critics, batch, target
    )
    critics, critic_optimiser = agent.critic_optimiser.descend(agent.critics, gradient, step_size)
    (actor_value, entropy), gradient = eqx.filter_value_and_grad(actor_loss, has_aux=True)(
        agent.actor, critics, batch.obs, draw.noise, alpha
    )
    actor, actor_optimiser = agent.actor_optimiser.descend(agent.actor, gradient, step_size)
    targets = jax.tree.map(
        lambda old, new: config.polyak * old + (1.0 - config.polyak) * new, agent.targets, critics
    )
    temperature = agent.temperature.update(entropy, step_size)
    updated = Agent(actor, critics, targets, temperature, actor_optimiser, critic_optimiser)
    return updated, SACInfo(critic_value, q, actor_value, entropy, alpha, jnp.mean(rewards))
