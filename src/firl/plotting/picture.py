"""A run in one picture: target density, visited states, learned reward, both KL curves."""

import jax
import jax.numpy as jnp
import numpy as np

from firl.evaluation import visited_states
from firl.methods.base import Problem
from firl.plotting.style import figure, heat_map, show_image
from firl.rundir import RunDir

_EPISODES = 1000
"""As many as the paper evaluates."""
_BINS = 60
"""Of the histogram of visited states, per side: about ten states in each bin on average."""


def draw_run(run: RunDir, problem: Problem) -> None:
    """Write the run's picture.png."""
    from firl.api import load

    arena = problem.arena
    if arena is None or problem.state_dim != 2:
        return
    learned = load(run.path)
    states, _ = visited_states(
        problem, learned.stochastic_policy, jax.random.key(learned.config.seed), _EPISODES
    )
    low, high = np.asarray(arena.bounds())
    counts, *_ = np.histogram2d(
        states[:, 1], states[:, 0], bins=_BINS, range=[(low[1], high[1]), (low[0], high[0])]
    )
    visited = counts / counts.sum() / np.prod((high - low) / _BINS)

    with figure(13.0, 3.0, run.picture) as drawn:
        target_axes, visited_axes, reward_axes, curve_axes = drawn.subplots(
            1, 4, width_ratios=(1, 1, 1, 1.15)
        )
        image = heat_map(
            target_axes,
            arena,
            lambda points: np.exp(np.asarray(problem.expert.log_prob(jnp.asarray(points)))),
            colours="viridis",
        )
        target_axes.set_title("target density")
        show_image(visited_axes, arena, visited, colours="viridis", highest=image.get_clim()[1])
        visited_axes.set_title("visited states")
        heat_map(reward_axes, arena, learned.reward, colours="inferno")
        reward_axes.set_title("learned reward")
        rows = [row for row in run.read_metrics() if "eval/forward_kl" in row]
        steps = [row["env_steps"] for row in rows]
        for name, label in (("forward_kl", "forward"), ("reverse_kl", "reverse")):
            curve_axes.plot(steps, [row[f"eval/{name}"] for row in rows], label=label)
        curve_axes.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
        curve_axes.set(title="KL to the target (nats)", xlabel="environment steps")
        curve_axes.legend()
