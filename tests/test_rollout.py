"""Roll-outs on tiny environments whose every step is known."""

import functools

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from firl.envs.point_mass import PointMass
from firl.errors import FirlError, LearningDiverged
from firl.rollout import (
    GymSimulator,
    JaxSimulator,
    UniformPolicy,
    all_transitions,
    make_simulator,
    simulate,
    transitions,
)

UNIT = Box(-1.0, 1.0, (1,), np.float32)
LINE = Box(-np.inf, np.inf, (2,), np.float64)


class Counter(gymnasium.Env):
    """Observes (steps so far, random start); ends and breaks where it is told to."""

    observation_space, action_space = LINE, UNIT
    steps_taken = 0

    def __init__(self, ends=(), truncates=None, breaks=None, broken=np.nan):
        """Episodes terminate after ends[⌊start·len(ends)⌋] steps."""
        self.ends, self.truncates, self.breaks, self.broken = ends, truncates, breaks, broken
        self.actions = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.start = 0, self.np_random.uniform()
        return np.array([0.0, self.start]), {}

    def step(self, action):
        Counter.steps_taken += 1
        self.actions.append(action)
        self.t += 1
        count = self.broken if self.t == self.breaks else self.t
        end = self.ends[int(self.start * len(self.ends))] if self.ends else None
        return np.array([count, self.start]), 0.0, self.t == end, self.t == self.truncates, {}


class Drift(gymnasium.Env):
    """A random walk pushed by the action: its randomness goes on during the episode."""

    observation_space, action_space = LINE, UNIT

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x = self.np_random.normal(size=2)
        return self.x, {}

    def step(self, action):
        self.x = self.x + self.np_random.normal(size=2) + action
        return self.x, 0.0, False, False, {}


def vector_of_counters(mode, num_envs, max_episode_steps=None, **kwargs):
    make = functools.partial(Counter, **kwargs)
    return SyncVectorEnv([make] * num_envs, autoreset_mode=mode)


ENDS = (1, 3, 4, 6)
for mode in AutoresetMode:
    gymnasium.register(
        id=f"FirlTest/Counter{mode.name.title().replace('_', '')}-v0",
        entry_point=Counter,
        vector_entry_point=functools.partial(vector_of_counters, mode),
        kwargs={"ends": ENDS},
    )
gymnasium.register(id="FirlTest/Limited-v0", entry_point=Counter, max_episode_steps=5)


class Integrator(eqx.Module):
    """Its state is a position and a velocity, of which the position is observed."""

    obs_dim, act_dim, horizon = 1, 1, 5

    def reset(self, key):
        return jr.normal(key, (1,)), jnp.zeros(1)

    def observe(self, state):
        return state[0]

    def step(self, state, action):
        position, velocity = state
        return position + velocity + action, velocity + action


class Linear(eqx.Module):
    """A deterministic policy with a weight, so that there is something to vmap over."""

    weight: jax.Array

    def __call__(self, key, obs):
        return jnp.tanh(self.weight @ obs)


class Constant(eqx.Module):
    """Always the same action."""

    action: tuple[float, ...] = eqx.field(static=True)

    def __call__(self, key, obs):
        return jnp.array(self.action)


class Tracing(eqx.Module):
    """A uniform policy that notes when it is traced, and over how many arguments."""

    traces: list = eqx.field(static=True)
    weight: jax.Array

    def __call__(self, key, obs):
        self.traces.append(obs.shape)
        return UniformPolicy(1)(key, obs) * self.weight

    def __hash__(self):
        return id(self.traces)


def assert_same(left, right):
    """Bit for bit."""
    jax.tree.map(np.testing.assert_array_equal, left, right)


# --- dynamics in JAX ---------------------------------------------------------------------------


def test_jax_rollouts_are_whole_episodes_of_the_dynamics(getkey):
    simulator = JaxSimulator(PointMass())
    assert (simulator.obs_dim, simulator.act_dim, simulator.horizon) == (2, 2, 30)
    episodes = simulator.rollout(getkey(), UniformPolicy(2), 7)
    assert episodes.obs.shape == (7, 31, 2)
    assert episodes.actions.shape == (7, 30, 2)
    assert episodes.env_steps == 7 * 30
    assert not episodes.terminated.any()
    np.testing.assert_array_equal(episodes.obs[:, 0], 0)
    moved = np.clip(episodes.obs[:, :-1] + episodes.actions, 0, 4)
    np.testing.assert_array_equal(episodes.obs[:, 1:], moved)


def test_jax_rollouts_observe_the_state(getkey):
    episodes = JaxSimulator(Integrator()).rollout(getkey(), UniformPolicy(1), 6)
    pushes = np.cumsum(episodes.actions, axis=1)
    np.testing.assert_allclose(np.diff(episodes.obs, axis=1), pushes, atol=1e-5)
    assert len(np.unique(episodes.obs[:, 0])) == 6


def test_jax_rollouts_draw_fresh_actions_for_every_episode_and_step(getkey):
    actions = JaxSimulator(PointMass()).rollout(getkey(), UniformPolicy(2), 20).actions
    assert len(np.unique(actions)) > 0.99 * actions.size


def test_jax_rollouts_are_a_function_of_the_key(getkey):
    simulator, key = JaxSimulator(PointMass()), getkey()
    first = simulator.rollout(key, UniformPolicy(2), 3)
    other = simulator.rollout(getkey(), UniformPolicy(2), 3)
    assert_same(simulator.rollout(key, UniformPolicy(2), 3), first)
    assert (other.actions != first.actions).all()


def test_jax_rollouts_are_compiled_once():
    traces = []
    simulator = JaxSimulator(Integrator())
    for i in range(3):
        simulator.rollout(jr.key(i), Tracing(traces, jnp.asarray(i / 3)), 4)
    assert traces == [(1,)]


def test_simulate_runs_inside_jit_and_over_a_leading_axis_of_agents(getkey):
    weights, keys = jr.normal(getkey(), (3, 2, 2)), jr.split(getkey(), 3)

    @jax.jit
    def many(keys, weights):
        return jax.vmap(lambda k, w: simulate(PointMass(), k, Linear(w), 4))(keys, weights)

    together = many(keys, weights)
    assert together.obs.shape == (3, 4, 31, 2)
    for i in range(3):
        alone = JaxSimulator(PointMass()).rollout(keys[i], Linear(weights[i]), 4)
        np.testing.assert_allclose(together.obs[i], alone.obs, atol=1e-4)


# --- Gymnasium environments --------------------------------------------------------------------


@pytest.mark.parametrize(
    "env",
    ["firl/PointMass-v0", lambda: gymnasium.make("firl/PointMass-v0")],
    ids=["vector", "list"],
)
def test_gym_and_jax_simulate_the_point_mass_identically(env, getkey):
    key, policy = getkey(), UniformPolicy(2)
    expected = JaxSimulator(PointMass()).rollout(key, policy, 6)
    assert_same(GymSimulator(env).rollout(key, policy, 6), expected)


@pytest.mark.parametrize("env", [Drift, "firl/ReacherTrace-v0"])
def test_gym_rollouts_are_a_function_of_key_policy_and_num(env, getkey):
    key, policy = getkey(), UniformPolicy(2 if isinstance(env, str) else 1)
    horizon = 30 if isinstance(env, str) else 8
    fresh = GymSimulator(env, horizon).rollout(key, policy, 5)
    used = GymSimulator(env, horizon)
    for num in (3, 5):
        used.rollout(getkey(), policy, num)
    assert_same(used.rollout(key, policy, 5), fresh)
    assert (used.rollout(getkey(), policy, 5).obs != fresh.obs).any(axis=(1, 2)).all()
    assert len(np.unique(fresh.obs[:, 0, 0])) == 5


def test_gym_rollouts_do_not_depend_on_how_many_environments_there_are(getkey):
    key, policy = getkey(), UniformPolicy(1)
    all_at_once = GymSimulator(Drift, 8).rollout(key, policy, 7)
    for num_envs in (1, 3):
        assert_same(GymSimulator(Drift, 8, num_envs).rollout(key, policy, 7), all_at_once)


def test_vectors_are_stepped_in_batches_of_the_requested_size(getkey):
    key, policy = getkey(), UniformPolicy(2)
    simulator = GymSimulator("firl/ReacherTrace-v0", num_envs=4)
    episodes = simulator.rollout(key, policy, 10)
    assert episodes.obs.shape == (10, 31, 8)
    assert len(np.unique(episodes.obs[:, 0], axis=0)) == 10
    simulator.close()


def test_the_policy_is_compiled_once_for_all_steps_rollouts_and_remainders():
    traces = []
    simulator = GymSimulator(Drift, 6, num_envs=4)
    for i in range(3):
        simulator.rollout(jr.key(i), Tracing(traces, jnp.asarray(i / 3)), 10)
    assert traces == [(2,)]


EARLY = {
    "list": lambda: Counter(ends=ENDS),
    "next step": "FirlTest/CounterNextStep-v0",
    "same step": "FirlTest/CounterSameStep-v0",
    "disabled": "FirlTest/CounterDisabled-v0",
}


@pytest.mark.parametrize("env", EARLY.values(), ids=EARLY.keys())
def test_episodes_that_terminate_early_stay_where_they_ended(env, getkey):
    episodes = GymSimulator(env, horizon=6).rollout(getkey(), UniformPolicy(1), 24)
    starts = np.asarray(episodes.obs[:, 0, 1], np.float64)
    lengths = np.array(ENDS)[(starts * 4).astype(int)]
    assert set(lengths) == set(ENDS)
    np.testing.assert_array_equal(episodes.lengths, lengths)
    assert episodes.terminated.all()
    counts = np.minimum(np.arange(7), lengths[:, None])
    np.testing.assert_array_equal(episodes.obs[:, :, 0], counts)
    np.testing.assert_array_equal(episodes.obs[:, :, 1], np.repeat(episodes.obs[:, :1, 1], 7, 1))
    padded = np.arange(6) >= lengths[:, None]
    np.testing.assert_array_equal(np.asarray(episodes.actions)[..., 0] == 0, padded)


def test_only_real_steps_are_taken_and_counted(getkey):
    Counter.steps_taken = 0
    simulator = GymSimulator(lambda: Counter(ends=ENDS), horizon=50, num_envs=4)
    episodes = simulator.rollout(getkey(), UniformPolicy(1), 10)
    assert Counter.steps_taken == episodes.env_steps < 10 * 7
    np.testing.assert_array_equal(episodes.obs[:, -1, 0], episodes.lengths)


def test_termination_at_the_horizon_is_termination_and_truncation_is_not(getkey):
    policy = UniformPolicy(1)
    ended = GymSimulator(lambda: Counter(ends=(5,)), 5).rollout(getkey(), policy, 2)
    truncated = GymSimulator(lambda: Counter(truncates=5), 5).rollout(getkey(), policy, 2)
    both = GymSimulator(lambda: Counter(ends=(3,), truncates=3), 5).rollout(getkey(), policy, 2)
    limited = GymSimulator("FirlTest/Limited-v0").rollout(getkey(), policy, 2)
    assert ended.terminated.all()
    assert both.terminated.all()
    assert not truncated.terminated.any()
    assert not limited.terminated.any()
    np.testing.assert_array_equal([e.lengths[0] for e in (ended, truncated, both)], [5, 5, 3])


def test_the_time_limit_is_the_horizon_unless_a_shorter_one_is_asked_for(getkey):
    assert GymSimulator("FirlTest/Limited-v0").horizon == 5
    assert GymSimulator("firl/ReacherTrace-v0").horizon == 30
    assert GymSimulator(lambda: gymnasium.make("firl/ReacherTrace-v0", horizon=9)).horizon == 9
    shorter = GymSimulator("FirlTest/Limited-v0", horizon=2)
    assert shorter.rollout(getkey(), UniformPolicy(1), 1).obs.shape == (1, 3, 2)


def test_actions_are_mapped_to_the_environments_bounds(getkey):
    env = Counter(ends=(3,))
    env.action_space = Box(np.array([-2.0, 1.0]), np.array([6.0, 2.0]), dtype=np.float64)
    simulator = GymSimulator(lambda: env, horizon=3, num_envs=1)
    for action, expected in [((-1, -1), (-2, 1)), ((1, 1), (6, 2)), ((0, 0.5), (2, 1.75))]:
        episodes = simulator.rollout(getkey(), Constant(tuple(map(float, action))), 1)
        np.testing.assert_array_equal(env.actions[-1], expected)
        assert env.actions[-1].dtype == np.float64
        np.testing.assert_array_equal(episodes.actions[0, 0], action)


def test_make_simulator_takes_the_fast_way_where_there_is_one():
    small = make_simulator("firl/PointMass-v0")
    large = make_simulator(lambda: gymnasium.make("firl/PointMass-v0", size=6.0), horizon=12)
    assert isinstance(small, JaxSimulator)
    assert isinstance(large, JaxSimulator)
    assert (small.dynamics.size, small.horizon) == (4.0, 30)
    assert (large.dynamics.size, large.horizon) == (6.0, 12)
    assert isinstance(make_simulator("firl/ReacherTrace-v0"), GymSimulator)
    env = gymnasium.make("firl/PointMass-v0")
    doubled = gymnasium.wrappers.TransformObservation(env, lambda obs: 2 * obs, None)
    assert isinstance(make_simulator(lambda: doubled), GymSimulator)


# --- bad environments and policies -------------------------------------------------------------


def with_spaces(observations=LINE, actions=UNIT):
    env = Counter()
    env.observation_space, env.action_space = observations, actions
    return lambda: env


BAD_ENVS = {
    "discrete actions": (with_spaces(actions=Discrete(3)), 5, "Discrete.*continuous"),
    "dictionary observations": (with_spaces(Dict(a=LINE)), 5, "Dict.*FlattenObservation"),
    "pictures": (with_spaces(Box(0, 1, (3, 3))), 5, "1-D Box.*FlattenObservation"),
    "unbounded actions": (with_spaces(actions=LINE), 5, "no bounds"),
    "action matrices": (with_spaces(actions=Box(0, 1, (2, 2))), 5, "vectors of floats"),
    "integer actions": (with_spaces(actions=Box(0, 9, (2,), np.int64)), 5, "vectors of floats"),
    "no horizon": (Counter, None, "Counter has no time limit"),
    "empty horizon": (Counter, 0, "horizon is 0"),
    "horizon after the limit": ("FirlTest/Limited-v0", 6, "after 5 steps.*horizon of 6"),
    "horizon after our limit": ("firl/ReacherTrace-v0", 31, "after 30 steps.*horizon of 31"),
    "point mass's limit": ("firl/PointMass-v0", 31, "after 30 steps.*horizon of 31"),
    "misspelt id": ("firl/PointMas-v0", None, "did you mean 'firl/PointMass-v0'"),
    "unknown version": ("firl/PointMass-v7", None, "did you mean 'firl/PointMass-v0'"),
    "unknown namespace": ("frl/PointMass-v0", None, "did you mean 'firl/PointMass-v0'"),
    "unlike anything": ("zzzzzzzz", None, "no environment 'zzzzzzzz'"),
    "not an id": ("point mass!", None, "no environment 'point mass!'"),
    "missing module": ("no_such_module:Env-v0", None, "'no_such_module', which is not installed"),
}


@pytest.mark.parametrize(("env", "horizon", "message"), BAD_ENVS.values(), ids=BAD_ENVS.keys())
def test_environments_that_cannot_be_learned_in_are_refused(env, horizon, message):
    with pytest.raises(FirlError, match=message) as caught:
        make_simulator(env, horizon)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("broken", [np.nan, np.inf, 1e39])
def test_observations_that_are_not_finite_are_refused_with_episode_and_step(broken, getkey):
    made = []

    def make():
        made.append(Counter(breaks=4 if len(made) == 2 else None, broken=broken))
        return made[-1]

    simulator = GymSimulator(make, horizon=6, num_envs=5)
    with pytest.raises(FirlError, match=r"Counter emitted .*number 0.*step 4 of episode 2"):
        simulator.rollout(getkey(), UniformPolicy(1), 5)


def test_a_time_limit_before_the_horizon_is_refused_when_it_happens(getkey):
    simulator = GymSimulator(lambda: Counter(truncates=3), horizon=5)
    with pytest.raises(FirlError, match=r"truncated episode 0 after 3 steps.*horizon of 5"):
        simulator.rollout(getkey(), UniformPolicy(1), 2)


def test_actions_outside_their_bounds_are_refused(getkey):
    simulator = GymSimulator(Counter, horizon=5)
    with pytest.raises(ValueError, match="step 0 of episode 0"):
        simulator.rollout(getkey(), Constant((1.1,)), 2)
    with pytest.raises(LearningDiverged, match="step 0 of episode 0"):
        simulator.rollout(getkey(), Constant((float("nan"),)), 2)


def practise(env, action=0.5, horizon=5):
    policy = Constant((action,))
    simulator = GymSimulator(lambda: env, horizon=horizon)
    return simulator.practise(jr.key(0), policy, 7, 4, lambda chunk: policy)


@pytest.mark.parametrize(
    ("env", "action", "error", "message"),
    [
        (Counter(breaks=4), 0.5, FirlError, "emitted nan as number 0.*step 4 of episode 0"),
        (Counter(breaks=4, broken=1e39), 0.5, FirlError, "emitted inf .*step 4 of episode 0"),
        (Counter(truncates=3), 0.5, FirlError, r"truncated episode 0 after 3 steps.*horizon of 5"),
        (Counter(), 1.1, ValueError, "step 0 of episode 0.*outside"),
        (Counter(), float("nan"), LearningDiverged, "step 0 of episode 0.*no number"),
    ],
)
def test_practice_refuses_the_same(env, action, error, message):
    with pytest.raises(error, match=message):
        practise(env, action)


def test_what_is_large_and_finite_is_nothing_to_refuse():
    episodes = practise(Counter(breaks=4, broken=3e38))  # whose square is not finite
    assert episodes.obs[0, 4, 0] == np.float32(3e38)


def test_practice_runs_the_episodes_that_a_rollout_does():
    """Same environment, same actions, and what is random of it set by the same kind of seed."""
    simulator = GymSimulator(lambda: Counter(ends=(3, 9)), horizon=5)
    policy = Constant((0.5,))
    practised = simulator.practise(jr.key(0), policy, 60, 7, lambda chunk: policy)
    rolled = simulator.rollout(jr.key(0), policy, practised.num)
    for episodes in (practised, rolled):
        assert set(episodes.lengths.tolist()) == {3, 5}
    # The seeds are others, so episodes are compared that start in the same half.
    for length in (3, 5):
        ours, theirs = (
            np.asarray(each.obs[each.lengths == length][0, :, 0]) for each in (practised, rolled)
        )
        np.testing.assert_array_equal(ours, theirs)
        ended = [each.terminated[each.lengths == length] for each in (practised, rolled)]
        assert all((np.asarray(each) == (length == 3)).all() for each in ended)


# --- transitions and exploration ---------------------------------------------------------------


def test_transitions_are_the_real_steps_and_only_the_last_one_terminates(getkey):
    simulator = GymSimulator(lambda: Counter(ends=(2, 9)), horizon=4)
    episodes = simulator.rollout(getkey(), UniformPolicy(1), 12)
    assert set(np.asarray(episodes.lengths)) == {2, 4}
    flat = transitions(episodes)
    assert flat.obs.shape[0] == episodes.env_steps
    row = 0
    for i in range(12):
        length = int(episodes.lengths[i])
        for t in range(length):
            np.testing.assert_array_equal(flat.obs[row], episodes.obs[i, t])
            np.testing.assert_array_equal(flat.next_obs[row], episodes.obs[i, t + 1])
            np.testing.assert_array_equal(flat.action[row], episodes.actions[i, t])
            assert flat.terminated[row] == (length == 2 and t == 1)
            row += 1
    assert row == flat.obs.shape[0]


def test_transitions_of_full_episodes_have_one_shape_and_may_be_compiled(getkey):
    episodes = JaxSimulator(PointMass()).rollout(getkey(), UniformPolicy(2), 5)
    flat = transitions(episodes)
    assert flat.obs.shape == (150, 2)
    assert not flat.terminated.any()
    assert_same(jax.jit(all_transitions)(episodes), flat)
    np.testing.assert_array_equal(flat.next_obs.reshape(5, 30, 2), episodes.visited)


def test_termination_at_the_horizon_reaches_the_transitions(getkey):
    episodes = GymSimulator(lambda: Counter(ends=(3,)), 3).rollout(getkey(), UniformPolicy(1), 2)
    flat = transitions(episodes)
    np.testing.assert_array_equal(flat.terminated, [False, False, True] * 2)


def test_the_uniform_policy_is_uniform(getkey):
    draw = jax.vmap(UniformPolicy(3), in_axes=(0, None))
    actions = np.asarray(draw(jr.split(getkey(), 20_000), jnp.zeros(2)))
    assert actions.shape == (20_000, 3)
    assert np.abs(actions).max() <= 1
    counts = [np.histogram(column, 10, (-1, 1))[0] for column in actions.T]
    np.testing.assert_allclose(counts, 2000, rtol=0.1)
    assert np.abs(np.corrcoef(actions.T) - np.eye(3)).max() < 0.03
