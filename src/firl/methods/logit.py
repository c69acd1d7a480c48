"""A discriminator that pays by its logit, whatever it makes of it.

At its optimum the logit is log ρ_E − log ρ_θ: of states s′, or of states and actions (s, a).
"""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.lax import stop_gradient
from jaxtyping import Array, Float, PRNGKeyArray

from firl.config import TrainConfig
from firl.errors import FirlError
from firl.expert.demonstrations import Demonstrations
from firl.log_ratio import classifier
from firl.methods.adversarial import Steps, adversarial
from firl.methods.alternate import alternate
from firl.methods.base import Info, Method, named
from firl.methods.imitate import Ask
from firl.methods.signals import importance_signal
from firl.problems import Problem
from firl.reward import RewardNet, Scaling
from firl.sac.agent import Agent
from firl.types import StateMap, Transition

Pay = Callable[[Float[Array, "n"]], Float[Array, "n"]]
"""From logits to rewards."""


class Seen(eqx.Module):
    """What of a step the discriminator gets to see."""

    state_map: StateMap
    actions: bool = eqx.field(static=True)

    def __call__(self, steps: Steps | Transition) -> Float[Array, "n k"]:
        """s′, or s and a."""
        if not self.actions:
            return self.state_map(steps.next_obs)
        return jnp.concatenate([self.state_map(steps.obs), steps.action], axis=-1)


class LogitReward(eqx.Module):
    """c · pay(logit)."""

    logit: Ask
    seen: Seen
    pay: Pay = eqx.field(static=True)
    scale: float = eqx.field(static=True)

    def __call__(self, batch: Transition) -> Float[Array, "batch"]:
        """Reward each transition."""
        return self.scale * self.pay(self.logit(self.seen(batch)))

    def absorbed(self, batch: Transition, rewards: Float[Array, "batch"]) -> Float[Array, "batch"]:
        """The same again for states; with actions, what an absorbing state pays for none."""
        if not self.seen.actions:
            return rewards
        stay = Transition(
            batch.next_obs, jnp.zeros_like(batch.action), batch.next_obs, batch.terminated
        )
        return self(stay)


def weighted_cross_entropy(
    signal: Float[Array, "n T"], logits: Float[Array, "n T"], self_normalise: bool
) -> Float[Array, ""]:
    """−E_{ρ_θ}[(ρ_E/ρ̂_θ) log D + log(1 − D)]: a density in place of samples (appendix C.1)."""
    weights = jnp.exp(stop_gradient(signal))
    if self_normalise:
        weights = weights / jnp.mean(weights)
    return jnp.mean(weights * jax.nn.softplus(-logits) + jax.nn.softplus(logits))


class Logits(eqx.Module):
    """A network of one state, asked at many."""

    net: RewardNet

    def __call__(self, states: Float[Array, "n d"]) -> Float[Array, "n"]:
        """The logit at each."""
        return jax.vmap(self.net)(states)


def by_logit(problem: Problem, config: TrainConfig, pay: Pay) -> Method[Any]:
    """SAC that is paid for the logit, from demonstrations or towards a density.

    Towards a density the discriminator is what others have as their reward's network.
    """
    if isinstance(problem.expert, Demonstrations):
        return adversarial(problem, config, LogitDiscriminator.create(problem, config, pay))
    if config.adversarial.actions:
        raise FirlError(
            "--adversarial.actions needs demonstrations: a density is one of states alone."
        )
    self_normalise = config.ratio.self_normalise

    def loss(signal: Float[Array, "n T"], rewards: Float[Array, "n T"]) -> Float[Array, ""]:
        return weighted_cross_entropy(signal, rewards, self_normalise)

    def pays(net: RewardNet, state_map: StateMap) -> LogitReward:
        return LogitReward(Logits(net), Seen(state_map, False), pay, config.adversarial.scale)

    return alternate(problem, config, importance_signal(problem, config), loss, pays)


class LogitDiscriminator(eqx.Module):
    """A classifier (Eq. 4), and what is paid for its logit."""

    seen: Seen
    scaling: Scaling
    pay: Pay = eqx.field(static=True)
    config: TrainConfig = eqx.field(static=True)

    @classmethod
    def create(cls, problem: Problem, config: TrainConfig, pay: Pay) -> "LogitDiscriminator":
        """For this problem."""
        scaling = problem.scaling(config)
        if config.adversarial.actions:
            act_dim = problem.simulator.act_dim
            scaling = Scaling(scaling.centre + (0.0,) * act_dim, scaling.scale + (1.0,) * act_dim)
        return cls(Seen(problem.state_map, config.adversarial.actions), scaling, pay, config)

    @property
    def needs_actions(self) -> bool:
        """Where it sees them."""
        return self.seen.actions

    def init(self, key: PRNGKeyArray) -> classifier.Fit:
        """Nothing fitted yet."""
        fit: classifier.Fit = eqx.filter_jit(classifier.start)(
            key, self.scaling, self.config.classifier
        )
        return fit

    def reward(self, carry: classifier.Fit) -> LogitReward:
        """What it pays."""
        return LogitReward(carry.classifier, self.seen, self.pay, self.config.adversarial.scale)

    def recovered(self, carry: classifier.Fit) -> None:
        """Nothing: where agent and expert agree, it says zero everywhere."""
        del carry

    def fit(
        self, key: PRNGKeyArray, carry: classifier.Fit, expert: Steps, steps: Steps, agent: Agent
    ) -> tuple[classifier.Fit, Info]:
        """Go on from where the last fit stopped."""
        del agent
        real, fake = self.seen(expert), self.seen(steps)
        carry, info = classifier.fit(key, carry, real, fake, self.config.classifier)
        logits = {
            "signal/expert_mean": jnp.mean(carry.classifier(real)),
            "signal/agent_mean": jnp.mean(carry.classifier(fake)),
        }
        return carry, named("ratio", info) | jax.tree.map(jnp.asarray, logits)
