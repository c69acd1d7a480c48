"""The exact oracle: everything the theorem speaks of, on Markov decision processes of a few states.

The trajectory law of section 3 is ρ_θ(τ) ∝ p(τ) exp(Σ_{t=1..T} r(s_t)/α). Here p(τ) is what
uniformly random actions do, so that in a deterministic process every action sequence counts the
same. The law is a Markov chain whose backward messages are soft values,

    V_T = 0,   V_t(s) = log Σ_s′ K(s, s′) exp(r(s′)/α + V_{t+1}(s′)),   K = mean over actions of P,

and it tilts everything that p leaves to chance: the actions, as a policy may, but also the start
state and the outcome of an action, as no policy can. MaxEnt RL maximises over policies only,

    V_t(s) = log mean_a exp(Σ_s′ P(s′|s, a) (r(s′)/α + V_{t+1}(s′))),

and visits the same states only where there is nothing else to tilt: one start state and
deterministic dynamics. `trajectory_law` is the one, `policy_law` the other.

Messages are in log space; the forward pass multiplies probabilities, because the logarithm of a
state that cannot be reached has no derivative. Everything differentiates in the rewards [S].
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from firl.divergences import AbstractDivergence, divergence_between
from firl.errors import FirlError
from firl.gradient import exact_covariance_loss


class TabularMDP(eqx.Module):
    """A finite Markov decision process with fixed horizon; the reward is a table beside it."""

    transition: Float[Array, "S A S"]
    """P(s′ | s, a)."""
    initial: Float[Array, "S"]
    """The law of s_0."""
    horizon: int = eqx.field(static=True)
    """T: s_1 … s_T are rewarded and matched."""
    temperature: float = eqx.field(static=True, default=1.0)
    """α."""

    @property
    def kernel(self) -> Float[Array, "S S"]:
        """K(s, s′), what a uniformly random action does."""
        return jnp.mean(self.transition, axis=1)


def deterministic(
    next_state: Int[Array, "S A"],
    initial: Float[Array, "S"],
    *,
    horizon: int,
    temperature: float = 1.0,
) -> TabularMDP:
    """The process in which action a in state s leads to `next_state[s, a]`."""
    transition = jax.nn.one_hot(next_state, next_state.shape[0], dtype=initial.dtype)
    return TabularMDP(transition, initial, horizon, temperature)


class Chain(eqx.Module):
    """A law of trajectories: a Markov chain over states whose steps depend on the time."""

    initial: Float[Array, "S"]
    """Of s_0."""
    steps: Float[Array, "T S S"]
    """Of s_{t+1} given s_t."""


def trajectory_law(mdp: TabularMDP, rewards: Float[Array, "S"]) -> Chain:
    """ρ_θ(τ), the theorem's."""

    def backward(
        value: Float[Array, "S"], _: None
    ) -> tuple[Float[Array, "S"], Float[Array, "S S"]]:
        gain = jnp.broadcast_to(rewards / mdp.temperature + value, mdp.kernel.shape)
        before = logsumexp(gain, axis=1, b=mdp.kernel)
        # Where K is 0 the exponent is of any size, and 0 · ∞ would be NaN.
        exponent = jnp.where(mdp.kernel > 0, gain - before[:, None], 0.0)
        return before, mdp.kernel * jnp.exp(exponent)

    value, steps = _backwards(backward, rewards, mdp.horizon)
    exponent = jnp.where(mdp.initial > 0, value - logsumexp(value, b=mdp.initial), 0.0)
    return Chain(mdp.initial * jnp.exp(exponent), steps)


def soft_value_iteration(
    mdp: TabularMDP, rewards: Float[Array, "S"]
) -> tuple[Float[Array, "S"], Float[Array, "T S A"]]:
    """V_0(s) and π_t(a | s) of MaxEnt RL, which depends on the time that is left."""

    def backward(
        value: Float[Array, "S"], _: None
    ) -> tuple[Float[Array, "S"], Float[Array, "S A"]]:
        gain = jnp.einsum("san,n->sa", mdp.transition, rewards / mdp.temperature + value)
        return logsumexp(gain, axis=1) - np.log(gain.shape[1]), jax.nn.softmax(gain, axis=1)

    return _backwards(backward, rewards, mdp.horizon)


def soft_optimal_policy(mdp: TabularMDP, rewards: Float[Array, "S"]) -> Float[Array, "T S A"]:
    """π_t(a | s) of MaxEnt RL."""
    return soft_value_iteration(mdp, rewards)[1]


def _backwards(
    step: Callable[[Array, None], tuple[Array, Array]], rewards: Float[Array, "S"], horizon: int
) -> tuple[Float[Array, "S"], Float[Array, "T S _"]]:
    """From V_T = 0 to V_0, and what each step gave, in the order of time."""
    value, given = jax.lax.scan(step, jnp.zeros_like(rewards), None, horizon, reverse=True)
    return value, given


def policy_law(mdp: TabularMDP, rewards: Float[Array, "S"]) -> Chain:
    """What the soft-optimal policy does, the start and the dynamics being what they are."""
    policy = soft_optimal_policy(mdp, rewards)
    return Chain(mdp.initial, jnp.einsum("tsa,san->tsn", policy, mdp.transition))


def marginal(chain: Chain) -> Float[Array, "S"]:
    """ρ(s), the average over t = 1 … T."""

    def forward(
        occupancy: Float[Array, "S"], step: Float[Array, "S S"]
    ) -> tuple[Float[Array, "S"], Float[Array, "S"]]:
        occupancy = occupancy @ step
        return occupancy, occupancy

    _, occupancies = jax.lax.scan(forward, chain.initial, chain.steps)
    return jnp.mean(occupancies, axis=0)


def sample(key: PRNGKeyArray, chain: Chain, num: int) -> Int[Array, "n T"]:
    """States s_1 … s_T of `num` trajectories."""
    k_start, k_steps = jax.random.split(key)
    start = jax.random.categorical(k_start, jnp.log(chain.initial), shape=(num,))

    def forward(
        state: Int[Array, "n"], inputs: tuple[PRNGKeyArray, Float[Array, "S S"]]
    ) -> tuple[Int[Array, "n"], Int[Array, "n"]]:
        k_step, step = inputs
        state = jax.random.categorical(k_step, jnp.log(step[state]))
        return state, state

    keys = jax.random.split(k_steps, chain.steps.shape[0])
    _, states = jax.lax.scan(forward, start, (keys, chain.steps))
    return states.T


def enumerate_trajectories(mdp: TabularMDP) -> tuple[Int[Array, "n T_plus_1"], Float[Array, "n"]]:
    """s_0 … s_T of every start and action sequence, and log p(τ): deterministic dynamics only."""
    transition, initial = np.asarray(mdp.transition), np.asarray(mdp.initial)
    if not np.array_equal(transition.max(axis=2), np.ones(transition.shape[:2])):
        raise FirlError(
            "Trajectories can be enumerated by their action sequences only where each action has "
            "one outcome, and this process has an action with several: use trajectory_law."
        )
    next_state = transition.argmax(axis=2)
    num_actions = next_state.shape[1]
    paths = np.flatnonzero(initial)[:, None]
    for _ in range(mdp.horizon):
        paths = np.concatenate(
            [np.repeat(paths, num_actions, axis=0), next_state[paths[:, -1]].reshape(-1, 1)], axis=1
        )
    log_base = np.log(initial[paths[:, 0]]) - mdp.horizon * np.log(num_actions)
    return jnp.asarray(paths), jnp.asarray(log_base)


def trajectory_weights(
    mdp: TabularMDP,
    rewards: Float[Array, "S"],
    trajectories: tuple[Int[Array, "n T_plus_1"], Float[Array, "n"]],
) -> Float[Array, "n"]:
    """ρ_θ(τ) of the enumerated trajectories."""
    paths, log_base = trajectories
    return jax.nn.softmax(log_base + jnp.sum(rewards[paths[:, 1:]], axis=1) / mdp.temperature)


def log_ratio(expert: Float[Array, "S"], agent: Float[Array, "S"]) -> Float[Array, "S"]:
    """log ρ_E − log ρ_θ; zero at states that neither visits."""
    neither = (expert == 0) & (agent == 0)
    return jnp.where(neither, 0.0, _log(expert) - jnp.where(neither, 0.0, _log(agent)))


def loss(
    divergence: AbstractDivergence,
    mdp: TabularMDP,
    expert: Float[Array, "S"],
    rewards: Float[Array, "S"],
) -> Float[Array, ""]:
    """L_f = D_f(ρ_E ‖ ρ_θ). Its automatic derivative is what the theorem has to equal."""
    agent = marginal(trajectory_law(mdp, rewards))
    return divergence_between(divergence, _log(expert), _log(agent))


def theorem_gradient(
    mdp: TabularMDP,
    h: Float[Array, "S"],
    reward_of: Callable[[PyTree[Array]], Float[Array, "S"]],
    parameters: PyTree[Array],
) -> PyTree[Array]:
    """Theorem 4.1 over all trajectories: h is h_f(ρ_E/ρ_θ), or −D for an integral metric."""
    trajectories = enumerate_trajectories(mdp)
    states = trajectories[0][:, 1:]
    weights = trajectory_weights(mdp, reward_of(parameters), trajectories)

    def surrogate(parameters: PyTree[Array]) -> Float[Array, ""]:
        rewards = reward_of(parameters)[states]
        return exact_covariance_loss(h[states], rewards, weights, temperature=mdp.temperature)

    return jax.grad(surrogate)(parameters)


def chain_critic(expert: Float[Array, "S"], agent: Float[Array, "S"]) -> Float[Array, "S"]:
    """The best 1-Lipschitz D between two laws on the integers: it climbs where the agent lags.

    E_E[D] − E_θ[D] = −Σ_s (D(s+1) − D(s)) (F_E(s) − F_θ(s)) in their distribution functions F,
    greatest, and equal to the Wasserstein-1 distance Σ_s |F_E − F_θ|, with these steps.
    """
    climbs = -jnp.sign(jnp.cumsum(expert - agent)[:-1])
    return jnp.concatenate([jnp.zeros_like(climbs[:1]), jnp.cumsum(climbs)])


def _log(probabilities: Float[Array, "S"]) -> Float[Array, "S"]:
    """Logarithm whose derivative at an unreachable state is 0 rather than NaN."""
    reachable = probabilities > 0
    return jnp.where(reachable, jnp.log(jnp.where(reachable, probabilities, 1.0)), -jnp.inf)
