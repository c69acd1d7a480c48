"""AIRL (Fu et al. 2018): a discriminator in which a reward of states is told from its shaping.

    f(s, s′) = r(s′) + γ h(s′) − h(s),     D(s, a, s′) = e^{f/α} / (e^{f/α} + π(a|s))

minimises the cross-entropy, and the agent is paid f under its entropy's weight α (1 in their
paper). At the optimum f/α is log π*, the soft advantage, and with deterministic dynamics r is the
expert's reward up to a constant (their Theorem 5.1). Log π of the expert's actions is asked, so it
needs them. In an absorbing state nothing is chosen: log π is 0 there.

Both networks' slopes are held as f-IRL's reward's is; their paper leaves the discriminator alone,
and with one demonstration it separates the two sides perfectly.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
from jaxtyping import Array, Float, PRNGKeyArray

from firl.config import TrainConfig
from firl.methods.adversarial import Steps, adversarial
from firl.methods.base import Info, Method
from firl.methods.imitate import slope_excess
from firl.problems import Problem
from firl.reward import RewardNet, Scaling, make_reward
from firl.sac.adam import Adam
from firl.sac.agent import Agent
from firl.types import StateMap, Transition


class Networks(NamedTuple):
    """r and h."""

    reward: RewardNet
    shaping: RewardNet


class Fit(NamedTuple):
    """What one fit hands on to the next."""

    networks: Networks
    optimiser: Adam


class ShapedReward(eqx.Module):
    """f(s, s′)."""

    networks: Networks
    state_map: StateMap
    discount: float = eqx.field(static=True)

    def __call__(self, batch: Transition | Steps) -> Float[Array, "batch"]:
        """Reward each transition."""
        state, after = self.state_map(batch.obs), self.state_map(batch.next_obs)
        reward, shaping = (jax.vmap(net) for net in self.networks)
        return reward(after) + self.discount * shaping(after) - shaping(state)

    def absorbed(self, batch: Transition, rewards: Float[Array, "batch"]) -> Float[Array, "batch"]:
        """f(s′, s′)."""
        del rewards
        return self(Steps(batch.next_obs, batch.action, batch.next_obs))


class ShapedDiscriminator(eqx.Module):
    """AIRL's."""

    state_map: StateMap
    scaling: Scaling
    config: TrainConfig = eqx.field(static=True)
    needs_actions: bool = eqx.field(static=True, default=True)

    def init(self, key: PRNGKeyArray) -> Fit:
        """Nothing fitted yet."""

        @eqx.filter_jit
        def start(key: PRNGKeyArray) -> Fit:
            k_reward, k_shaping = jr.split(key)
            networks = Networks(
                make_reward(k_reward, self.scaling, self.config.reward),
                make_reward(k_shaping, self.scaling, self.config.reward),
            )
            return Fit(networks, Adam.create(eqx.filter(networks, eqx.is_inexact_array)))

        started: Fit = start(key)
        return started

    def reward(self, carry: Fit) -> ShapedReward:
        """What it pays."""
        return ShapedReward(carry.networks, self.state_map, self.config.sac.discount)

    def recovered(self, carry: Fit) -> RewardNet:
        """r, without its shaping."""
        return carry.networks.reward

    def fit(
        self, key: PRNGKeyArray, carry: Fit, expert: Steps, steps: Steps, agent: Agent
    ) -> tuple[Fit, Info]:
        """Go on from where the last fit stopped."""
        fitted: tuple[Fit, Info] = _fit(key, carry, self, expert, steps, agent)
        return fitted


@eqx.filter_jit
def _fit(
    key: PRNGKeyArray,
    before: Fit,
    discriminator: ShapedDiscriminator,
    expert: Steps,
    steps: Steps,
    agent: Agent,
) -> tuple[Fit, Info]:
    config = discriminator.config
    params, static = eqx.partition(before.networks, eqx.is_inexact_array)

    def draw(key: PRNGKeyArray, steps: Steps) -> Steps:
        at = jr.randint(key, (config.classifier.batch_size,), 0, steps.obs.shape[0])
        drawn: Steps = jax.tree.map(lambda x: x[at], steps)
        return drawn

    def loss_of(params: Networks, key: PRNGKeyArray) -> tuple[Float[Array, ""], Info]:
        networks: Networks = eqx.combine(params, static)
        pays = ShapedReward(networks, discriminator.state_map, config.sac.discount)
        k_expert, k_agent, k_reward, k_shaping = jr.split(key, 4)
        real, fake = draw(k_expert, expert), draw(k_agent, steps)
        at_real, at_fake = (
            pays(each) / agent.temperature.value - _log_policy(agent, each) for each in (real, fake)
        )
        cross_entropy = 0.5 * (
            jnp.mean(jax.nn.softplus(-at_real)) + jnp.mean(jax.nn.softplus(at_fake))
        )
        ours, theirs = (discriminator.state_map(each.next_obs)[None] for each in (fake, real))
        imitation = config.imitation
        excess = sum(
            (
                slope_excess(k, net, ours, theirs, imitation.slope)
                for k, net in zip((k_reward, k_shaping), networks, strict=True)
            ),
            start=jnp.zeros(()),
        )
        return cross_entropy + imitation.slope_penalty * excess, {
            "ratio/cross_entropy": cross_entropy,
            "reward/slope_excess": excess,
            "signal/expert_mean": jnp.mean(at_real),
            "signal/agent_mean": jnp.mean(at_fake),
        }

    def one(carry: tuple[Networks, Adam], key: PRNGKeyArray) -> tuple[tuple[Networks, Adam], Info]:
        params, optimiser = carry
        gradient, info = jax.grad(loss_of, has_aux=True)(params, key)
        params, optimiser = optimiser.descend(params, gradient, config.reward.learning_rate)
        return (params, optimiser), info

    keys = jr.split(key, config.classifier.steps)
    (params, optimiser), infos = jax.lax.scan(one, (params, before.optimiser), keys)
    last = {name: jnp.mean(values[-20:]) for name, values in infos.items()}
    return Fit(eqx.combine(params, static), optimiser), last


def _log_policy(agent: Agent, steps: Steps) -> Float[Array, "n"]:
    """log π(a|s) of the agent's current policy."""
    absorbing = jnp.all(steps.obs == steps.next_obs, axis=-1)
    log_probs = jax.vmap(agent.actor.log_prob)(steps.obs, steps.action)
    return jnp.where(absorbing, 0.0, log_probs)


def airl(problem: Problem, config: TrainConfig) -> Method[Any]:
    """AIRL from the problem's demonstrations."""
    scaling = problem.scaling(config)
    return adversarial(problem, config, ShapedDiscriminator(problem.state_map, scaling, config))
