"""Frames of the policy where an environment can be rendered, and one sentence where it cannot."""

import gymnasium
import numpy as np
import pytest
from matplotlib.image import imread
from painted import Painted

import firl
from firl.config import EvaluationConfig, RewardConfig, SACConfig, TrainConfig
from firl.errors import FirlError
from firl.expert import regions
from firl.plotting import frames
from firl.plotting.frames import draw_frames
from firl.rundir import RunDir

HORIZON = 20


@pytest.fixture
def draw(untrained, monkeypatch):
    """Registers an environment, and draws the frames of a run in it."""
    names = []

    def run_in(entry_point, **options):
        gymnasium.register(f"test/Painted{len(names)}-v0", entry_point, kwargs=options)
        names.append(f"test/Painted{len(names)}-v0")
        problem = firl.problem(
            names[-1],
            density=lambda states: -states[:, 0],
            arena=regions.Box([-1.0], [1.0]),
            horizon=HORIZON,
        )
        run = RunDir(untrained(config("painted"), problem, name=f"run{len(names)}"))
        draw_frames(run, problem)
        return run

    monkeypatch.setenv("MUJOCO_GL", "egl")  # one backend is enough to fail with
    yield run_in
    for name in names:
        del gymnasium.registry[name]


@pytest.fixture
def shown(monkeypatch):
    """What becomes part of the strip."""
    seen = {}
    render = frames._render

    def watched(spec, actions, steps):
        seen.update(actions=actions, steps=steps, frames=render(spec, actions, steps))
        return seen["frames"]

    monkeypatch.setattr(frames, "_render", watched)
    return seen


def config(task):
    return TrainConfig(
        task=task,
        reward=RewardConfig(hidden=(8,)),
        sac=SACConfig(hidden=(8, 8)),
        evaluation=EvaluationConfig(episodes=5),
    )


@pytest.mark.parametrize(("length", "last"), [(14, 14), (50, HORIZON), (3, 3)])
def test_frames_are_spread_over_the_episode_that_the_policy_acts(length, last, draw, shown):
    run = draw("painted:Painted", length=length)
    np.testing.assert_array_equal(shown["frames"][:, 0, 0, 0], 10 * shown["steps"])
    assert (shown["steps"][0], shown["steps"][-1]) == (0, last)
    assert len(shown["steps"]) == min(8, last + 1)
    # What was rendered is what the policy did: the same start, the same actions.
    env, learned = Painted(), firl.load(run.path)
    obs, _ = env.reset(seed=0)
    where = [obs]
    for t, action in enumerate(shown["actions"]):
        np.testing.assert_array_equal(action, learned.policy(obs[None], seed=t)[0])
        obs = env.step(action)[0]
        where.append(obs)
    expected = [int(100 * (1 + where[step][0])) for step in shown["steps"]]
    assert shown["frames"][:, 0, 0, 1].tolist() == expected
    height, width, _ = imread(run.frames).shape
    assert width > 2 * height


TROUBLE = {
    "raise": r"could not be rendered here \(egl: RuntimeError: no paint\)\.",
    "crash": r"could not be rendered here \(egl: it ended with code -6\)\.",
    "hang": r"could not be rendered here \(egl: no answer within 5 s\)\.",
}


@pytest.mark.parametrize("trouble", TROUBLE)
def test_trouble_with_rendering_is_one_sentence(trouble, draw, monkeypatch):
    monkeypatch.setattr(frames, "_TIMEOUT", 5.0 if trouble == "hang" else 60.0)
    with pytest.raises(FirlError, match=TROUBLE[trouble]):
        draw("painted:Painted", trouble=trouble)


def test_an_environment_without_pictures_is_one_sentence(draw, untrained):
    with pytest.raises(FirlError, match="has no render mode 'rgb_array'"):
        draw("painted:Blind")
    with pytest.raises(FirlError, match="register it by a string"):
        draw(Painted)
    problem = firl.problem(
        Painted,
        density=lambda states: -states[:, 0],
        arena=regions.Box([-1.0], [1.0]),
        horizon=HORIZON,
    )
    run = RunDir(untrained(config("painted"), problem, name="nameless"))
    with pytest.raises(FirlError, match="Painted cannot be rendered, as Gymnasium has no id"):
        draw_frames(run, problem)


def test_every_backend_is_tried_before_giving_up(untrained, monkeypatch):
    monkeypatch.delenv("MUJOCO_GL", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    tried = []

    def fails(folder, backend):
        tried.append(backend)
        return "no display"

    monkeypatch.setattr(frames, "_try", fails)
    run, problem = reacher(untrained)
    with pytest.raises(
        FirlError, match=r"\(egl: no display; osmesa: no display; glfw: no display\)"
    ):
        draw_frames(run, problem)
    assert tried == ["egl", "osmesa", "glfw"]
    assert not run.frames.exists()


def reacher(untrained):
    from firl.tasks import make_problem

    return RunDir(untrained(config("reacher-gaussian"))), make_problem(config("reacher-gaussian"))


def test_mujoco_is_rendered_where_there_is_opengl(untrained, shown):
    run, problem = reacher(untrained)
    try:
        draw_frames(run, problem)
    except FirlError as reason:
        pytest.skip(str(reason))
    assert run.frames.exists()
    for frame in shown["frames"]:
        assert (np.median(frame, axis=(0, 1)) == 255).all(), "white around the arm"
        assert np.ptp(frame, axis=(0, 1)).min() > 50, "the arm"
    assert (shown["frames"][0] != shown["frames"][-1]).any()
