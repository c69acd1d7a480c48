"""Methods that pay what a discriminator says: what they promise, and known answers."""

import dataclasses
import functools
import re
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from ledge import SMALL, Ledge, actions_of, leaving, problem, staying

from firl.config import AdversarialConfig
from firl.errors import FirlError
from firl.evaluation import first_non_finite
from firl.methods import METHODS
from firl.methods.adversarial import Steps, demonstrated
from firl.methods.airl import ShapedDiscriminator
from firl.methods.f_max import forward_kl, reverse_kl
from firl.methods.gail import PAYS, negative, positive
from firl.methods.logit import LogitDiscriminator
from firl.sac.agent import Agent
from firl.types import Transition

pytestmark = pytest.mark.usefixtures("compiled_quickly")

KINDS = {
    "gail": ("gail", {}),
    "gail, never positive": ("gail", {"pays": "negative"}),
    "gail of actions": ("gail", {"actions": True}),
    "f-max-rkl": ("f-max-rkl", {"scale": 0.2}),
    "f-max-rkl of actions": ("f-max-rkl", {"actions": True}),
    "fairl": ("fairl", {}),
    "airl": ("airl", {}),
}
PAY = {"f-max-rkl": reverse_kl, "fairl": forward_kl}


def setting(kind, unused=0.7):
    """Two demonstrations near the wall, one of which ends early, and one that is not used."""
    method, options = KINDS[kind]
    config = dataclasses.replace(SMALL, method=method, adversarial=AdversarialConfig(**options))
    first, second, third = staying(3)
    episodes = [first - 0.7, second[:5] - 0.7, third + unused]
    return problem(episodes, [False, True, False], actions_of(episodes)), config


@functools.cache
def make(kind):
    made, config = setting(kind)
    return METHODS[config.method](made, config), made.simulator


def discriminator(kind):
    made, config = setting(kind)
    if config.method == "airl":
        return ShapedDiscriminator(made.state_map, made.scaling(config), config)
    pay = PAY.get(config.method) or PAYS[config.adversarial.pays]
    return LogitDiscriminator.create(made, config, pay)


def arrays(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def same(left, right):
    return all((a == b).all() for a, b in zip(arrays(left), arrays(right), strict=True))


def hot(state, alpha=100.0):
    """With an agent that stays near uniform whatever it is paid."""
    return eqx.tree_at(lambda s: s.agent.temperature.alpha, state, jnp.asarray(alpha, jnp.float32))


def going(*at, action=0.0) -> Transition:
    """Steps to these places, from a bit to the left."""
    to = jnp.asarray(at)[:, None]
    stays = jnp.zeros(len(at), bool)
    return Transition(to - 0.01, jnp.full((len(at), 1), action), to, stays)


@functools.cache
def documented():
    """The method of docs/add-a-method.md, as it stands there."""
    page = Path(__file__).resolve().parent.parent / "docs" / "add-a-method.md"
    names: dict = {}
    exec(
        compile(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)[0], page, "exec"),
        names,
    )
    made, config = setting("gail")
    return names["nearest"](made, config), names


@pytest.mark.parametrize("kind", [*KINDS, "documented"])
def test_conformance(kind):
    """Pure given the key, honest about its steps, moves what it should, stays finite."""
    built, _ = documented() if kind == "documented" else make(kind)
    before_any = Ledge.steps_taken
    state = built.init(jr.key(0))
    assert int(state.env_steps) == Ledge.steps_taken - before_any >= 100
    before = arrays((state.discriminator, state.agent.actor))
    structure = jax.tree.structure(state)
    after, info = built.step(jr.key(1), state)
    assert int(after.env_steps) == Ledge.steps_taken - before_any >= 200
    assert int(after.buffer.size) == int(after.env_steps)
    assert first_non_finite(eqx.filter(after, eqx.is_inexact_array)) is None
    assert all("/" in name and jnp.isfinite(value) for name, value in info.items())
    moved = arrays((after.discriminator, after.agent.actor))
    if kind == "documented":  # which has nothing to fit
        before, moved = before[1:], moved[1:]
    assert all((a != b).any() for a, b in zip(before, moved, strict=True)), "some weight is stuck"
    assert jax.tree.structure(after) == structure
    again, info_again = built.step(jr.key(1), built.init(jr.key(0)))
    assert same(after, again)
    assert {k: float(v) for k, v in info.items()} == {k: float(v) for k, v in info_again.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_it_pays_to_be_where_the_expert_is(kind):
    """A known answer: with visits everywhere and the expert near the wall, there it must pay."""
    built, _ = make(kind)
    # α is what AIRL's f is divided by: f can only be as large as that.
    state = hot(built.init(jr.key(0)), 2.0 if kind == "airl" else 100.0)
    for i in range(2):
        state, info = built.step(jr.key(i), state)
    at_wall, away = discriminator(kind).reward(state.discriminator)(going(-0.7, 0.7))
    if kind == "fairl":
        # −u log u is what it pays: nothing where the expert never is, less where it is too often.
        assert at_wall < -0.1 < -0.01 < away <= np.exp(-1) + 1e-6
    else:
        assert at_wall > away + 0.1
    assert float(info["signal/expert_mean"]) > float(info["signal/agent_mean"]) + 0.1


@pytest.mark.parametrize("kind", ["gail of actions", "airl"])
def test_demonstrations_that_are_not_used_are_not_looked_at(kind):
    def learned(unused):
        made, config = setting(kind, unused)
        built = METHODS[config.method](made._replace(units=None), config)
        state, _ = built.step(jr.key(1), built.init(jr.key(0)))
        return state.discriminator, state.agent

    assert same(learned(0.7), learned(0.9))


@pytest.mark.parametrize("kind", ["gail", "gail, never positive", "airl"])
@pytest.mark.parametrize("expert", ["leaves", "stays"])
def test_whether_to_live_is_up_to_the_expert(kind, expert):
    """Rewards of one sign are no reason to live or to die, as absorbing states go on paying."""
    method, options = KINDS[kind]
    config = dataclasses.replace(
        SMALL,
        method=method,
        adversarial=AdversarialConfig(**options),
        practice=dataclasses.replace(SMALL.practice, random_steps=200, steps=200, updates=40),
        sac=dataclasses.replace(SMALL.sac, temperature=0.05),
    )
    episodes = leaving(2) if expert == "leaves" else staying(2)
    made = problem(episodes, expert == "leaves", actions_of(episodes))
    built = METHODS[method](made, config)
    state = built.init(jr.key(0))
    for i in range(8):
        state, info = built.step(jr.key(i), state)
    length = float(info["agent/length"])
    assert length < 5 if expert == "leaves" else length > 9


def test_the_documented_method_pays_where_the_expert_is():
    built, names = documented()
    state = built.init(jr.key(0))
    made, config = setting("gail")
    pays = names["NearestReward"](state.discriminator, made.scaling(config), made.state_map)
    at_wall, away = pays(going(-0.7, 0.3))
    assert at_wall > -0.15
    np.testing.assert_allclose(away, -1.9, atol=0.1)  # 0.95 away, in units of 0.5


def test_only_a_reward_that_is_one_is_recovered():
    for kind in KINDS:
        built, _ = make(kind)
        reward = built.init(jr.key(0)).reward
        assert (reward is not None) == (kind == "airl")


@pytest.mark.parametrize(("method", "needs"), [("airl", True), ("gail", False)])
def test_actions_are_asked_for_where_they_are_needed(method, needs):
    config = dataclasses.replace(SMALL, method=method)
    made = problem(staying(2), [False, False])
    if needs:
        with pytest.raises(FirlError, match="--method airl needs the expert's actions"):
            METHODS[method](made, config)
    else:
        METHODS[method](made, config)


def test_rewards_are_those_of_the_papers():
    logits = jnp.linspace(-5.0, 5.0, 11)
    d = np.asarray(jax.nn.sigmoid(logits), np.float64)
    np.testing.assert_allclose(positive(logits), -np.log(1 - d), rtol=1e-5)
    np.testing.assert_allclose(negative(logits), np.log(d), rtol=1e-5)
    np.testing.assert_allclose(reverse_kl(logits), np.log(d) - np.log(1 - d), atol=1e-5)
    u = d / (1 - d)
    np.testing.assert_allclose(forward_kl(logits), np.maximum(-u * np.log(u), -10), atol=1e-4)


@pytest.mark.parametrize("kind", ["gail", "gail of actions", "airl"])
def test_an_absorbing_state_pays_what_staying_in_it_does(kind):
    built = discriminator(kind)
    pays = built.reward(built.init(jr.key(0)))
    batch = going(1.2, 1.4, action=0.5)
    nothing = jnp.zeros_like(batch.action)
    stay = Transition(batch.next_obs, nothing, batch.next_obs, batch.terminated)
    np.testing.assert_allclose(pays.absorbed(batch, pays(batch)), pays(stay), atol=1e-6)


def test_demonstrated_steps_go_on_until_the_horizon():
    episodes = [staying(1)[0], leaving(1)[0]]
    made = problem(episodes, [False, True], actions_of(episodes))
    steps = demonstrated(made, 2, tail=100)
    np.testing.assert_allclose(steps.obs[:10], episodes[0][:-1])
    np.testing.assert_allclose(steps.next_obs[:10], episodes[0][1:])
    # Actions are in [−1, 1], where the environment's are in [−2, 2].
    np.testing.assert_allclose(steps.action[:10], actions_of(episodes)[0] / 2, atol=1e-6)
    np.testing.assert_allclose(steps.next_obs[10:, 0], [0.5, 1.0] + [1.5] * 8)
    np.testing.assert_allclose(steps.obs[10:, 0], [0.0, 0.5, 1.0] + [1.5] * 7)
    np.testing.assert_allclose(steps.action[13:], 0.0)


def test_airl_s_discriminator_finds_the_expert_s_log_density():
    """Its optimum, f/α = log π_E(a|s), where the step is the action: s′ = s + a from s = 0.

    The agent's density is far from uniform; without its logarithm f would be log π_E − log π.
    """
    made, config = setting("airl")
    alpha, spread = 0.5, 0.15
    config = dataclasses.replace(
        config,
        sac=dataclasses.replace(config.sac, temperature=alpha),
        classifier=dataclasses.replace(config.classifier, steps=3000, batch_size=512),
        imitation=dataclasses.replace(config.imitation, slope_penalty=0.0),
        reward=dataclasses.replace(config.reward, hidden=(32, 32), learning_rate=3e-3),
    )
    built = ShapedDiscriminator(made.state_map, made.scaling(config), config)
    agent = Agent.create(jr.key(0), 1, 1, config.sac)
    last = agent.actor.net
    agent = eqx.tree_at(
        lambda a: (a.actor.net.weights[-1], a.actor.net.biases[-1]),
        agent,
        (jnp.zeros_like(last.weights[-1]), jnp.array([-0.2, -1.0])),
    )
    start = jnp.zeros((20_000, 1))
    acted, _ = jax.vmap(agent.actor.sample)(jr.split(jr.key(1), 20_000), start)
    ours = Steps(start, acted, start + acted)
    expert = 0.3 + spread * jr.normal(jr.key(2), (20_000, 1))
    theirs = Steps(start, expert, start + expert)
    carry, _ = built.fit(jr.key(3), built.init(jr.key(4)), theirs, ours, agent)
    to = jnp.array([0.1, 0.2, 0.3, 0.4, 0.5])
    f = built.reward(carry)(Transition(jnp.zeros((5, 1)), to[:, None], to[:, None], to < 0))
    log_density = -0.5 * ((to - 0.3) / spread) ** 2 - np.log(spread * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(f / alpha, log_density, atol=0.25)
