"""The point mass by hand, the reacher against Gymnasium's own, vectors against singles."""

import subprocess
import sys

import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from gymnasium.error import InvalidAction, ResetNeeded
from gymnasium.utils.env_checker import check_env

import firl.envs
from firl.envs.point_mass import PointMass, PointMassEnv, PointMassVectorEnv
from firl.envs.reacher import ReacherTraceEnv, ReacherTraceVectorEnv, observe
from firl.errors import FirlError

IDS = ["firl/PointMass-v0", "firl/ReacherTrace-v0"]


def hard_torques(rng, num_steps, num):
    """Torques that drive many elbows into their limit, and differ from arm to arm."""
    bias = rng.uniform(-1, 1, (num, 2))
    noisy = bias + 0.3 * rng.normal(size=(num_steps, num, 2))
    return np.clip(noisy, -1, 1).astype(np.float32)


# --- both environments -------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", IDS)
def test_gymnasium_finds_nothing_to_complain_about(env_id):
    check_env(gymnasium.make(env_id).unwrapped, skip_render_check=True)


def test_ids_import_their_own_registration():
    program = f"import gymnasium; [gymnasium.make('firl.envs:' + i) for i in {IDS}]; print('made')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "made\n", done.stderr


@pytest.mark.parametrize("env_id", IDS)
@pytest.mark.parametrize(("kwargs", "horizon"), [({}, 30), ({"horizon": 7}, 7)])
def test_episodes_truncate_at_the_horizon_and_never_terminate(env_id, kwargs, horizon):
    env = gymnasium.make(env_id, **kwargs)
    env.reset(seed=0)
    steps = [env.step(env.action_space.sample()) for _ in range(horizon)]
    assert not any(terminated for _, _, terminated, _, _ in steps)
    assert [truncated for *_, truncated, _ in steps] == [False] * (horizon - 1) + [True]
    assert all(reward == 0.0 for _, reward, *_ in steps)


@pytest.mark.parametrize("env_id", IDS)
def test_vectors_truncate_together_and_start_again_at_the_next_step(env_id):
    vector = gymnasium.make_vec(env_id, num_envs=3, horizon=2)
    assert vector.metadata["autoreset_mode"] is gymnasium.vector.AutoresetMode.NEXT_STEP
    ones = np.ones((3, 2), np.float32)
    first, _ = vector.reset(seed=0)
    truncations = []
    for _ in range(2):
        obs, _, terminated, truncated, _ = vector.step(ones)
        assert not terminated.any()
        truncations.append(truncated.tolist())
    assert truncations == [[False] * 3, [True] * 3]
    again, _, _, truncated, _ = vector.step(ones)
    assert not truncated.any()
    assert np.abs(again - first).max() < np.abs(obs - first).max()
    vector.close()


@pytest.mark.parametrize("env_id", IDS)
def test_vectors_are_reproducible_from_their_seed(env_id):
    vector = gymnasium.make_vec(env_id, num_envs=5)
    actions = hard_torques(np.random.default_rng(0), 10, 5)
    runs = []
    for _ in range(2):
        obs = [vector.reset(seed=3)[0]] + [vector.step(a)[0] for a in actions]
        runs.append(np.stack(obs))
    np.testing.assert_array_equal(runs[0], runs[1])
    vector.close()


@pytest.mark.parametrize("env_id", IDS)
def test_bad_actions_and_steps_before_reset_are_refused(env_id):
    for env in (gymnasium.make(env_id).unwrapped, gymnasium.make_vec(env_id, num_envs=1)):
        shape = env.action_space.shape
        with pytest.raises(ResetNeeded):
            env.step(np.zeros(shape, np.float32))
        env.reset(seed=0)
        for bad in (np.full(shape, 1.01), np.full(shape, np.nan), np.zeros((*shape, 1))):
            with pytest.raises(InvalidAction):
                env.step(bad)
        env.close()


@pytest.mark.parametrize("env_id", IDS)
def test_empty_episodes_and_batches_are_refused(env_id):
    with pytest.raises(FirlError, match="horizon is 0"):
        gymnasium.make(env_id, horizon=0)
    with pytest.raises(FirlError, match="num_envs is 0"):
        gymnasium.make_vec(env_id, num_envs=0)


# --- point mass --------------------------------------------------------------------------------


def test_point_mass_follows_its_actions_until_a_wall_stops_it():
    env = PointMassEnv(size=1.5)
    start, _ = env.reset()
    actions = np.array([(1, 0.5), (1, 0.5), (-0.25, -1)], np.float32)
    path = [start] + [env.step(action)[0] for action in actions]
    expected = [[0, 0], [1, 0.5], [1.5, 1], [1.25, 0]]
    np.testing.assert_array_equal(np.stack(path), np.array(expected, np.float32))


def test_point_mass_is_one_function_for_numpy_jax_and_any_leading_axes():
    rng = np.random.default_rng(0)
    positions = rng.uniform(0, 4, (3, 5, 2)).astype(np.float32)
    actions = rng.uniform(-1, 1, (3, 5, 2)).astype(np.float32)
    dynamics = PointMass()
    plain = dynamics.step(positions, actions)
    compiled = jax.jit(dynamics.step)(positions, actions)
    mapped = jax.vmap(jax.vmap(dynamics.step))(jnp.asarray(positions), jnp.asarray(actions))
    assert plain.dtype == np.float32
    np.testing.assert_array_equal(plain, compiled)
    np.testing.assert_array_equal(plain, mapped)
    np.testing.assert_array_equal(plain, np.minimum(np.maximum(positions + actions, 0), 4))


def test_point_mass_vector_equals_singles():
    vector, single = PointMassVectorEnv(4, size=6.0), PointMassEnv(size=6.0)
    actions = hard_torques(np.random.default_rng(1), 30, 4)
    batch = np.stack([vector.reset()[0]] + [vector.step(a)[0] for a in actions])
    for i in range(4):
        alone = np.stack([single.reset()[0]] + [single.step(a)[0] for a in actions[:, i]])
        np.testing.assert_array_equal(batch[:, i], alone)
    assert batch.max() == 6.0


@pytest.mark.parametrize("size", [0.0, -1.0, float("nan"), float("inf")])
def test_point_mass_needs_a_room(size):
    with pytest.raises(FirlError, match="size is"):
        PointMass(size=size)


# --- reacher -----------------------------------------------------------------------------------


def test_reacher_moves_as_gymnasiums_reacher():
    ours, theirs = ReacherTraceEnv(), gymnasium.make("Reacher-v5").unwrapped
    torques = hard_torques(np.random.default_rng(2), 30, 40)
    furthest = 0.0
    for episode in range(torques.shape[1]):
        theirs.reset(seed=episode)
        ours.reset()
        ours.set_state(theirs.data.qpos[:2], theirs.data.qvel[:2])
        for torque in torques[:, episode]:
            obs, *_ = ours.step(torque)
            theirs.step(torque)
            expected = observe(theirs.data.qpos[:2], theirs.data.qvel[:2])
            np.testing.assert_allclose(obs, expected, atol=1e-6)
            furthest = max(furthest, abs(theirs.data.qpos[1]))
    assert furthest > 3.0, "no episode reached the elbow's limit"


def test_reacher_observes_what_mujoco_computes():
    model = mujoco.MjModel.from_xml_path(f"{firl.envs.__path__[0]}/assets/reacher_trace.xml")
    data = mujoco.MjData(model)
    rng = np.random.default_rng(3)
    for _ in range(20):
        data.qpos[:], data.qvel[:] = rng.uniform(-3, 3, 2), rng.uniform(-20, 20, 2)
        mujoco.mj_forward(model, data)
        jacobian = np.zeros((3, model.nv))
        tip = model.body("fingertip").id
        mujoco.mj_jacBody(model, data, jacobian, None, tip)
        x, y = data.xpos[tip][:2]
        cos, sin = np.cos(data.qpos), np.sin(data.qpos)
        velocity = (jacobian @ data.qvel)[:2]
        expected = np.array([x, y, *cos, *sin, *velocity])
        np.testing.assert_allclose(observe(data.qpos, data.qvel), expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("num_threads", [1, 2, 3])
def test_reacher_vector_equals_singles_on_any_number_of_threads(num_threads):
    num = 64
    vector, single = ReacherTraceVectorEnv(num, num_threads=num_threads), ReacherTraceEnv()
    rng = np.random.default_rng(4)
    angles, speeds = rng.uniform(-3, 3, (num, 2)), rng.uniform(-5, 5, (num, 2))
    torques = hard_torques(rng, 30, num)
    vector.reset()
    batch = [vector.set_state(angles, speeds)] + [vector.step(a)[0] for a in torques]
    batch = np.stack(batch)
    for i in range(num):
        single.reset()
        alone = [single.set_state(angles[i], speeds[i])]
        alone += [single.step(a)[0] for a in torques[:, i]]
        np.testing.assert_array_equal(batch[:, i], np.stack(alone))
    vector.close()


def test_reacher_starts_stretched_out_and_almost_still():
    vector = ReacherTraceVectorEnv(2000)
    obs, _ = vector.reset(seed=0)
    angles = np.arctan2(obs[:, 4:6], obs[:, 2:4])
    # fingertip speed across the arm, which points along x: 0.21 q̇₀ + 0.11 q̇₁
    across = obs[:, 7]
    assert np.abs(angles).max() <= 0.1 + 1e-6
    np.testing.assert_allclose(angles.std(axis=0), 0.1 / np.sqrt(3), rtol=0.05)
    expected = 0.005 / np.sqrt(3) * np.hypot(0.21, 0.11)
    np.testing.assert_allclose(across.std(), expected, rtol=0.05)
    vector.close()


def test_reacher_stays_within_its_observation_space_under_full_torques():
    vector = ReacherTraceVectorEnv(32, horizon=300)
    vector.reset(seed=0)
    rng = np.random.default_rng(5)
    for step in range(300):
        if step % 40 == 0:
            torques = np.sign(rng.uniform(-1, 1, (32, 2))).astype(np.float32)
        assert vector.observation_space.contains(vector.step(torques)[0])
    vector.close()


RENDER = """
import sys
try:
    from mujoco.egl import GLContext
    GLContext(8, 8).free()
except Exception:
    sys.exit(77)
import gymnasium, firl.envs
env = gymnasium.make("firl/ReacherTrace-v0", render_mode="rgb_array")
env.reset(seed=0)
before = env.render()
for _ in range(5):
    env.step(env.action_space.high)
after = env.render()
assert before.shape == (480, 480, 3), before.shape
assert before.std() > 1 and (before != after).any()
env.close()
"""


def test_reacher_can_be_seen():
    environment = {"MUJOCO_GL": "egl", "PYOPENGL_PLATFORM": "egl"}
    done = subprocess.run(
        [sys.executable, "-c", RENDER], capture_output=True, text=True, env=environment
    )
    if done.returncode == 77:
        pytest.skip("no OpenGL here")
    assert done.returncode == 0, done.stderr
