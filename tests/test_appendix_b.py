"""What the paper's appendix B says of other systems, exactly, on processes of a few states."""

from collections.abc import Iterator
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array
from test_tabular import agent_marginal, grid, random_graph, random_rewards, slippery

from firl.divergences import DIVERGENCES, divergence_between
from firl.errors import FirlError
from firl.methods.gail import negative, positive
from firl.tabular import (
    TabularMDP,
    enumerate_trajectories,
    log_ratio,
    marginal,
    policy_law,
    soft_optimal_policy,
    trajectory_weights,
)
from firl.tabular_maxent import dual, maxent_irl


@pytest.fixture(autouse=True)
def float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def visited(mdp: TabularMDP, rewards: Array) -> Array:
    return marginal(policy_law(mdp, rewards))


def difference(name: str, expert: Array, agent: Array) -> float:
    return float(divergence_between(DIVERGENCES[name], jnp.log(expert), jnp.log(agent)))


# MaxEntIRL, the tabular original


def test_maxent_irl_finds_the_reward_up_to_a_constant():
    mdp = grid(stay=True, horizon=4)
    truth = random_rewards(mdp)
    found = maxent_irl(mdp, jnp.eye(9), visited(mdp, truth))
    assert np.ptp(found) > 0.5
    assert np.ptp(found - truth) < 1e-3


@pytest.mark.parametrize("mdp", [random_graph, slippery, lambda: grid(stay=False, horizon=5)])
def test_maxent_irl_matches_the_expert_s_features(mdp):
    """Also where the expert's reward is not linear in them, and where actions go astray."""
    process = mdp()
    num = process.initial.shape[0]
    features = jnp.asarray(np.random.default_rng(5).normal(size=(num, 3)))
    expert = visited(process, random_rewards(process)) @ features
    weights = maxent_irl(process, features, expert)
    ours = visited(process, features @ weights)
    np.testing.assert_allclose(ours @ features, expert, atol=2e-6)
    nothing = visited(process, jnp.zeros(num)) @ features
    assert np.abs(nothing - expert).max() > 0.05, "there was something to be learned"


def test_its_gradient_is_the_difference_of_mean_features():
    mdp = slippery()
    features, weights = jnp.eye(7)[:, :4], random_rewards(mdp)[:4]
    expert = visited(mdp, random_rewards(mdp, seed=3)) @ features
    gradient = jax.grad(dual)(weights, mdp, features, expert)
    difference = visited(mdp, features @ weights) @ features - expert
    np.testing.assert_allclose(gradient, mdp.horizon / mdp.temperature * difference, atol=1e-10)


def test_its_dual_is_the_likelihood_of_trajectories():
    """With one start and deterministic dynamics: −E_E[log ρ_w(τ)], up to a constant."""
    mdp = random_graph()
    trajectories = enumerate_trajectories(mdp)
    seen = trajectories[0][:, 1:]
    expert = trajectory_weights(mdp, random_rewards(mdp, seed=3), trajectories)
    counts = jnp.einsum("n,nts->s", expert, jax.nn.one_hot(seen, 7)) / mdp.horizon

    def minus_likelihood(weights: Array) -> Array:
        return -expert @ jnp.log(trajectory_weights(mdp, weights, trajectories))

    values = [random_rewards(mdp, seed) for seed in (4, 5, 6)]
    gaps = [minus_likelihood(w) - dual(w, mdp, jnp.eye(7), counts) for w in values]
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-8)


def test_features_that_nobody_can_have_are_refused():
    mdp = random_graph()
    with pytest.raises(FirlError, match="mean features are missed by"):
        maxent_irl(mdp, jnp.eye(7), jnp.full(7, 1.0))


# AIRL


def airl_gradient(mdp: TabularMDP, rewards: Array, agent: Array, expert: Array) -> Array:
    """Σ_t E_E[(1 − D) ∇r(s′)] − E_π[D ∇r(s′)], D = e^{r(s′)} / (e^{r(s′)} + π(a|s)), α = 1."""

    def visits(policy: Array) -> Array:
        """P_t(s, a)."""
        steps = jnp.einsum("tsa,san->tsn", policy, mdp.transition)
        at, all_visits = mdp.initial, []
        for step, choice in zip(steps, policy, strict=True):
            all_visits.append(at[:, None] * choice)
            at = at @ step
        return jnp.stack(all_visits)

    def leads_to(weights: Array) -> Array:
        return jnp.einsum("tsa,san->n", weights, mdp.transition)

    f = jnp.einsum("san,n->sa", mdp.transition, rewards)
    d = jnp.exp(f)[None] / (jnp.exp(f)[None] + agent)
    return leads_to(visits(expert) * (1 - d)) - leads_to(visits(agent) * d)


def test_airl_s_gradient_is_not_maxent_irl_s():
    """Not even where the agent is soft-optimal for the reward, as both ask it to be."""
    mdp = replace(grid(stay=True, horizon=4), temperature=1.0)
    truth = random_rewards(mdp)
    expert = soft_optimal_policy(mdp, truth)
    rewards = jnp.zeros(9)
    agent = soft_optimal_policy(mdp, rewards)
    airl = airl_gradient(mdp, rewards, agent, expert)
    theirs, ours = visited(mdp, truth), visited(mdp, rewards)
    # The agent is uniform over five actions, so that D is 5/6 whatever the state.
    np.testing.assert_allclose(airl, mdp.horizon * (theirs / 6 - 5 * ours / 6), atol=1e-9)
    maxent = mdp.horizon * (theirs - ours)
    cosine = airl @ maxent / (jnp.linalg.norm(airl) * jnp.linalg.norm(maxent))
    assert cosine < 0.5


def test_airl_s_gradient_vanishes_where_d_is_one_half():
    """At the optimum that its derivation speaks of: agent = expert, and e^f = π."""
    mdp = replace(grid(stay=True, horizon=4), temperature=1.0)
    uniform = jnp.full((4, 9, 5), 0.2)
    rewards = jnp.full(9, np.log(0.2))
    np.testing.assert_allclose(airl_gradient(mdp, rewards, uniform, uniform), 0.0, atol=1e-12)
    expert = soft_optimal_policy(mdp, random_rewards(mdp))
    assert jnp.linalg.norm(airl_gradient(mdp, rewards, uniform, expert)) > 0.1


# GAIL


def test_gail_s_discriminator_descends_jensen_shannon():
    """At its optimum the objective is 2 JS − log 4."""
    mdp = grid(stay=True, horizon=4)
    expert, agent = agent_marginal(mdp, random_rewards(mdp)), agent_marginal(mdp, jnp.zeros(9))

    def objective(logit: Array) -> Array:
        return expert @ negative(logit) - agent @ positive(logit)

    best = log_ratio(expert, agent)
    np.testing.assert_allclose(jax.grad(objective)(best), 0.0, atol=1e-12)
    u = np.asarray(expert / agent)
    js = float(agent @ (u * np.log(u) - (1 + u) * np.log((1 + u) / 2))) / 2
    assert float(objective(best)) == pytest.approx(2 * js - np.log(4))


@pytest.mark.parametrize("pay", [positive, negative])
def test_what_gail_pays_says_nothing_at_convergence(pay):
    """Where f-IRL's reward says everything: retrained on either, one agent is the expert's."""
    mdp = grid(stay=True, horizon=4)
    truth = random_rewards(mdp)
    expert = agent_marginal(mdp, truth)
    converged = pay(log_ratio(expert, expert))
    np.testing.assert_allclose(converged, converged[0])
    assert abs(float(converged[0])) == pytest.approx(np.log(2))
    assert difference("fkl", expert, agent_marginal(mdp, converged)) > 0.2
    assert difference("fkl", expert, agent_marginal(mdp, truth + 3.0)) < 1e-12


# SMM


def fictitious_play(remember: bool) -> list[float]:
    """Reverse KL of what has been played to the target, round by round.

    Each round plays a (nearly) best response to log p* − log ρ, ρ being the last round's states,
    or those of all rounds.
    """
    mdp = replace(grid(stay=True, horizon=8), temperature=0.05)
    target = agent_marginal(replace(mdp, temperature=1.0), random_rewards(mdp) / 2)
    respond = jax.jit(lambda rewards: visited(mdp, rewards))
    rho, divergences = visited(mdp, jnp.zeros(9)), []
    for played in range(1, 200):
        response = respond(jnp.log(target) - jnp.log(rho + 1e-6))
        rho = rho + (response - rho) / (played + 1) if remember else response
        divergences.append(difference("rkl", target, rho + 1e-12))
    return divergences


def test_smm_needs_its_history():
    with_history, without = fictitious_play(True), fictitious_play(False)
    assert with_history[-1] < 0.005
    assert min(without[-20:]) > 0.1, "each answer overshoots the last one"
