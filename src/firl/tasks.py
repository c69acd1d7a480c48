"""What there is to learn, and each task's settings: the default ones and the paper's.

Nothing heavy is imported until a task's problem is made: the command line lists tasks at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firl.config import (
    ClassifierConfig,
    CollectConfig,
    EvaluationConfig,
    ImitationConfig,
    PracticeConfig,
    RatioConfig,
    RewardConfig,
    SACConfig,
    TrainConfig,
)
from firl.errors import FirlError, unknown

if TYPE_CHECKING:
    from firl.expert.base import AbstractDensity
    from firl.expert.demonstrations import Demonstrations
    from firl.expert.regions import AbstractRegion
    from firl.problems import Problem
    from firl.types import Simulator

Settings = Callable[[TrainConfig], TrainConfig]


@dataclass(frozen=True)
class Task:
    """One line of `firl tasks`, and all that it stands for."""

    summary: str
    simulator: Callable[[], Simulator]
    default: Settings
    """What works best."""
    paper: Settings
    """Appendix C.1, C.2 and C.3."""
    state_columns: tuple[int, ...] | None = None
    """Which of the observation's coordinates are matched; all of them where not given."""
    arena: Callable[[], AbstractRegion] | None = None
    """The states that can be reached, where that is known."""
    density: Callable[[], AbstractDensity] | None = None
    """Where the agent should spend its time, within the arena."""
    env_id: str | None = None
    """Which environment demonstrations must come from."""


def configure(task: str, preset: str = "default") -> TrainConfig:
    """The settings of a task; a misspelt name is answered with the nearest right one."""
    if task not in TASKS:
        raise unknown("task", task, TASKS)
    settings = {"default": TASKS[task].default, "paper": TASKS[task].paper}
    if preset not in settings:
        raise unknown("preset", preset, settings)
    return settings[preset](TrainConfig(task=task, preset=preset))  # type: ignore[arg-type]


def make_problem(config: TrainConfig) -> Problem:
    """The task's environment and target, ready to learn from."""
    from firl.expert.picture import Picture
    from firl.expert.read import read_demonstrations
    from firl.expert.regions import Box
    from firl.expert.truncated import Truncated
    from firl.problems import Problem
    from firl.types import Columns

    if config.task not in TASKS:
        raise unknown("task", config.task, TASKS)
    task = TASKS[config.task]
    simulator = task.simulator()
    arena = None if task.arena is None else task.arena()
    expert: AbstractDensity | Demonstrations | None
    expert = None if task.density is None else task.density()
    if demos := config.demos or own_demonstrations(config.task):
        expert = read_demonstrations(str(demos))
        expert.check_against(simulator.obs_dim, simulator.act_dim, task.env_id)
    if config.picture is not None:
        if arena is None:
            raise FirlError(
                f"--picture draws on a plane, which {config.task} has not: take a task that has a "
                "density."
            )
        expert = Truncated(Picture(config.picture, Box(*arena.bounds())), arena)
    columns = task.state_columns or tuple(range(simulator.obs_dim))
    made = Problem(simulator, Columns(columns), expert, arena)
    if config.learned_reward is not None:
        from firl.learned import adopt

        made = adopt(made, config.learned_reward)
    return made


def own_demonstrations(task: str) -> Path | None:
    """Those that ship with firl, where a task has some."""
    path = Path(__file__).parent / "expert" / "data" / f"{task}.npz"
    return path if path.exists() else None


def _point_mass(size: float) -> Callable[[], Simulator]:
    def make() -> Simulator:
        from firl.envs.point_mass import PointMass
        from firl.rollout import JaxSimulator

        return JaxSimulator(PointMass(size=size))

    return make


def _reacher() -> Simulator:
    from firl.rollout import make_simulator

    return make_simulator("firl/ReacherTrace-v0")


def _square(size: float) -> Callable[[], AbstractRegion]:
    def make() -> AbstractRegion:
        from firl.expert.regions import Box

        return Box((0.0, 0.0), (size, size))

    return make


def _disc() -> AbstractRegion:
    from firl.expert.regions import Disc
    from firl.expert.targets import REACH

    return Disc((0.0, 0.0), REACH)


def _target(name: str) -> Callable[[], AbstractDensity]:
    def make() -> AbstractDensity:
        from firl.expert import targets

        density: AbstractDensity = getattr(targets, name)()
        return density

    return make


def _mujoco(env_id: str, **options: Any) -> Callable[[], Simulator]:
    def make() -> Simulator:
        import gymnasium

        from firl.rollout import make_simulator

        return make_simulator(lambda: gymnasium.make(env_id, disable_env_checker=True, **options))

    return make


def _density_defaults(bandwidth: float) -> Settings:
    def settings(config: TrainConfig) -> TrainConfig:
        return replace(
            config,
            env_steps=100_000,
            ratio=RatioConfig(bandwidth=bandwidth),
            reward=RewardConfig(learning_rate=3e-3, gradient_steps=5),
            # γ = 0.95 looks as far ahead as an episode is long; 0.99 makes values three times
            # larger and learns no better (docs/reproduction.md).
            sac=replace(_density_sac(), discount=0.95),
            evaluation=EvaluationConfig(every=10, episodes=1000),
        )

    return settings


def _density_paper(bandwidth: float) -> Settings:
    """800 iterations of 10 SAC episodes and 1000 roll-outs, all of which count here."""

    def settings(config: TrainConfig) -> TrainConfig:
        return replace(
            config,
            env_steps=30 * (5 + 800 * (10 + 1000)),
            collect=CollectConfig(
                random_episodes=5,
                sac_episodes=10,
                rollouts=1000,
                window=1,
                learn_from_rollouts=False,
                updates=300,
            ),
            ratio=RatioConfig(bandwidth=bandwidth, self_normalise=False),
            reward=RewardConfig(
                hidden=(64, 64),
                activation="relu",
                normalise=False,
                bound=10.0,
                soft_bound=False,
                learning_rate=1e-3,
                anneal_to=1.0,
                gradient_steps=2,
            ),
            sac=_density_sac(),
            evaluation=EvaluationConfig(every=1, episodes=1000),
        )

    return settings


def _density_sac() -> SACConfig:
    return SACConfig(
        hidden=(64, 64), learning_rate=3e-3, batch_size=256, temperature=1.0, buffer_size=12_000
    )


def _locomotion_paper(env_steps: int, reward_hidden: int = 64) -> Settings:
    """Appendix C.2, and the reference code where the paper is silent (docs/reproduction.md).

    `env_steps` is the reference code's count, of SAC's five episodes per iteration; the ten more
    that the gradient is estimated from take twice as many, and count here.
    """

    def settings(config: TrainConfig) -> TrainConfig:
        return replace(
            config,
            env_steps=3 * env_steps,
            practice=PracticeConfig(random_steps=1_000, steps=5_000),
            imitation=ImitationConfig(
                rollouts=10, window=10, batch=10, tail=1_000, standardise=False, slope_penalty=0.0
            ),
            classifier=ClassifierConfig(
                learning_rate=3e-4, batch_size=800, steps=1200, gradient_penalty=0.0
            ),
            reward=RewardConfig(
                hidden=(reward_hidden, reward_hidden),
                activation="relu",
                normalise=False,
                bound=10.0,
                soft_bound=False,
                learning_rate=1e-4,
                anneal_to=1.0,
                weight_decay=1e-3,
                gradient_steps=1,
            ),
            sac=SACConfig(hidden=(256, 256), learning_rate=1e-3, batch_size=100, temperature=0.2),
            evaluation=EvaluationConfig(every=1, episodes=20),
        )

    return settings


def _locomotion(env_steps: int, *, slope: float) -> Settings:
    """What works best on the tasks of section 5.2; the evidence is in docs/reproduction.md."""

    def settings(config: TrainConfig) -> TrainConfig:
        return replace(
            config,
            divergence="js",
            env_steps=env_steps,
            checkpoint_every=50,
            practice=PracticeConfig(random_steps=3_000),
            imitation=ImitationConfig(window=30, batch=10, tail=100, slope=slope),
            reward=RewardConfig(learning_rate=1e-3, gradient_steps=10),
            sac=SACConfig(
                hidden=(256, 256), learning_rate=1e-3, batch_size=256, learn_temperature=True
            ),
            evaluation=EvaluationConfig(every=10, episodes=5),
        )

    return settings


def _hopping(env_steps: int) -> Settings:
    """What did best on Hopper: two updates per step, a flatter reward, a constant temperature."""

    def settings(config: TrainConfig) -> TrainConfig:
        config = _locomotion(env_steps, slope=0.4)(config)
        return replace(
            config,
            practice=replace(config.practice, updates=100),
            imitation=replace(config.imitation, tail=1_000),
            sac=replace(config.sac, batch_size=100, learn_temperature=False),
        )

    return settings


TASKS: dict[str, Task] = {
    "pointmass-gaussian": Task(
        "4×4 point mass towards a Gaussian in its middle (Figure 6)",
        _point_mass(4.0),
        _density_defaults(0.2),
        _density_paper(0.2),
        (0, 1),
        _square(4.0),
        _target("point_mass_gaussian"),
    ),
    "pointmass-uniform": Task(
        "6×6 point mass that should be everywhere equally often (Figure 4)",
        _point_mass(6.0),
        _density_defaults(0.2),
        _density_paper(0.2),
        (0, 1),
        _square(6.0),
        _target("point_mass_uniform"),
    ),
    "reacher-gaussian": Task(
        "Reacher whose fingertip should stay around one goal (Figure 2a)",
        _reacher,
        _density_defaults(0.02),
        _density_paper(0.02),
        (0, 1),
        _disc,
        _target("reacher_gaussian"),
    ),
    "reacher-mixture": Task(
        "Reacher whose fingertip should share its time between two goals (Figure 2b)",
        _reacher,
        _density_defaults(0.02),
        _density_paper(0.02),
        (0, 1),
        _disc,
        _target("reacher_mixture"),
    ),
    "hopper": Task(
        "Hopper-v5",
        _mujoco("Hopper-v5"),
        _hopping(300_000),
        _locomotion_paper(1_000_000),
        env_id="Hopper-v5",
    ),
    "walker2d": Task(
        "Walker2d-v5",
        _mujoco("Walker2d-v5"),
        _locomotion(750_000, slope=5.0),
        _locomotion_paper(7_500_000),
        env_id="Walker2d-v5",
    ),
    "halfcheetah": Task(
        "HalfCheetah-v5",
        _mujoco("HalfCheetah-v5"),
        _locomotion(1_000_000, slope=1.0),
        _locomotion_paper(3_000_000),
        env_id="HalfCheetah-v5",
    ),
    "ant": Task(
        "Ant-v5 without contact forces, 27 coordinates",
        _mujoco("Ant-v5", include_cfrc_ext_in_observation=False),
        _locomotion(1_000_000, slope=3.0),
        _locomotion_paper(3_000_000, reward_hidden=128),
        env_id="Ant-v5",
    ),
    "humanoid": Task(
        "Humanoid-v5 without inertias and forces, 45 coordinates",
        _mujoco(
            "Humanoid-v5",
            include_cinert_in_observation=False,
            include_cvel_in_observation=False,
            include_qfrc_actuator_in_observation=False,
            include_cfrc_ext_in_observation=False,
        ),
        _locomotion(1_000_000, slope=3.0),
        _locomotion_paper(3_000_000, reward_hidden=128),
        env_id="Humanoid-v5",
    ),
}
