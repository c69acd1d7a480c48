"""A run in one picture.

Towards a density: target, visited states, learned reward, both KL curves. Towards demonstrations:
the return against the expert's, and the learned reward along an expert's and the agent's episode.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from firl.evaluation import visited_states
from firl.expert.base import AbstractDensity
from firl.expert.demonstrations import Demonstrations
from firl.expert.regions import AbstractRegion
from firl.learned import Learned, load
from firl.plotting.curves import curve_of, draw_curves
from firl.plotting.style import COLOURS, figure, heat_map, show_image
from firl.problems import Problem
from firl.rundir import RunDir

_EPISODES = 1000
"""As many as the paper evaluates, unless the run evaluates fewer."""
_BINS = 60
"""Of the histogram of visited states, per side: about ten states in each bin on average."""


def draw_run(run: RunDir, problem: Problem) -> None:
    """Write the run's picture.png; of a density in more than two coordinates, only the curves."""
    learned = load(run.path)
    if not isinstance(problem.expert, AbstractDensity):
        _draw_returns(run, problem, learned)
        return
    episodes = min(_EPISODES, learned.config.evaluation.episodes)
    key = jax.random.key(learned.config.seed)
    states, _ = visited_states(problem, [learned.stochastic_policy], key, episodes)
    panels = {1: _draw_line, 2: _draw_plane}.get(problem.state_dim)
    if problem.arena is None or panels is None:
        with figure(4.0, 3.0, run.picture) as drawn:
            _draw_kl(drawn.subplots(), run)
        return
    with figure(13.0, 3.0, run.picture) as drawn:
        _draw_kl(panels(drawn, problem, problem.arena, learned, states), run)


def _draw_plane(
    drawn: Figure,
    problem: Problem,
    arena: AbstractRegion,
    learned: Learned,
    states: Float[np.ndarray, "m 2"],
) -> Axes:
    """Heat-maps; target and visits on one scale. Returns the axes that are left."""
    rest: Axes
    target_axes, visited_axes, reward_axes, rest = drawn.subplots(
        1, 4, width_ratios=(1, 1, 1, 1.15)
    )
    image = heat_map(target_axes, arena, lambda x: _density(problem, x), colours="viridis")
    target_axes.set_title("target density")
    low, high = np.asarray(arena.bounds())
    counts, *_ = np.histogram2d(
        states[:, 1], states[:, 0], bins=_BINS, range=[(low[1], high[1]), (low[0], high[0])]
    )
    visited = counts / counts.sum() / np.prod((high - low) / _BINS)
    show_image(visited_axes, arena, visited, colours="viridis", highest=image.get_clim()[1])
    visited_axes.set_title("visited states")
    reward_axes.set_title("learned reward")
    if learned.has_reward:
        heat_map(reward_axes, arena, learned.reward, colours="inferno")
    else:
        _say_none(reward_axes)
    return rest


def _draw_line(
    drawn: Figure,
    problem: Problem,
    arena: AbstractRegion,
    learned: Learned,
    states: Float[np.ndarray, "m 1"],
) -> Axes:
    """The same of a single coordinate. Returns the axes that are left."""
    rest: Axes
    density_axes, reward_axes, rest = drawn.subplots(1, 3)
    (low,), (high,) = np.asarray(arena.bounds())
    x = np.linspace(low, high, 401, dtype=np.float32)[:, None]
    density_axes.hist(
        states[:, 0], bins=_BINS, range=(low, high), density=True, color="0.8", label="visited"
    )
    density_axes.plot(x, _density(problem, x), label="target")
    density_axes.set_title("densities")
    density_axes.legend()
    reward_axes.set_title("learned reward")
    if learned.has_reward:
        reward_axes.plot(x, learned.reward(x), color=COLOURS[1])
    else:
        _say_none(reward_axes)
    return rest


def _say_none(axes: Axes) -> None:
    axes.text(0.5, 0.5, "none", ha="center", va="center", transform=axes.transAxes)
    axes.set_axis_off()


def _density(problem: Problem, points: Float[np.ndarray, "m d"]) -> Float[np.ndarray, "m"]:
    return np.asarray(np.exp(problem.density.log_prob(jnp.asarray(points))))


def _draw_returns(run: RunDir, problem: Problem, learned: Learned) -> None:
    """Nobody learned from the return: it is only looked at."""
    expert = problem.expert if isinstance(problem.expert, Demonstrations) else None
    with figure(9.0, 3.0, run.picture) as drawn:
        return_axes, reward_axes = drawn.subplots(1, 2)
        draw_curves(return_axes, [curve_of("agent", run.read_metrics(), "eval/return")])
        if expert is not None and expert.returns is not None:
            mean = float(expert.returns.mean())
            return_axes.axhline(mean, color="0.4", linestyle="--", label="expert")
        return_axes.set_title("true return, stochastic policy")
        return_axes.legend()
        reward_axes.set_title("learned reward along an episode")
        if not learned.has_reward:
            _say_none(reward_axes)
            return
        key = jax.random.key(learned.config.seed)
        agent = problem.simulator.rollout(key, learned.stochastic_policy, 1)
        paths = {"agent": agent.visited[0, : int(agent.lengths[0])]}
        if expert is not None:
            paths["expert"] = jnp.asarray(expert.observations[0][1:])
        for label, visited in paths.items():
            rewards = learned.reward(np.asarray(problem.state_map(visited)))
            reward_axes.plot(1 + np.arange(len(rewards)), rewards, label=label, linewidth=0.8)
        reward_axes.set_xlabel("step")
        reward_axes.legend()


def _draw_kl(axes: Axes, run: RunDir) -> None:
    rows = run.read_metrics()
    for name, label in (("forward_kl", "forward"), ("reverse_kl", "reverse")):
        known = [(row["env_steps"], row[f"eval/{name}"]) for row in rows if f"eval/{name}" in row]
        if known:
            axes.plot(*zip(*known, strict=True), label=label)
    axes.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
    axes.set(title="KL to the target (nats)", xlabel="environment steps")
    axes.legend()
