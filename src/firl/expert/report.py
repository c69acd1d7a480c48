"""What demonstrations hold and what is odd about them, in lines for a person to read."""

import json
from collections import defaultdict
from textwrap import shorten

import numpy as np

from firl.expert.demonstrations import Demonstrations

_STRAIGHT = 1e-3
"""How far from a straight line, as a share of its range, a clock may stray: one that adds up its
steps in single precision does, a little."""

_WIDEST = 100
"""Characters of one entry of the provenance; a list of returns has more."""

_FEWEST = 4
"""Observations it takes before a straight line says anything."""


def describe(demos: Demonstrations) -> list[str]:
    """A line for each fact, its name first; what deserves a second look comes last."""
    lengths, returns = demos.lengths, demos.returns
    facts = [
        ("episodes", f"{demos.num}, of which {np.sum(demos.terminated)} terminated"),
        ("steps", f"min {lengths.min()}, median {np.median(lengths):g}, max {lengths.max()}"),
        ("observations", f"{demos.obs_dim} coordinates"),
        ("actions", "not recorded" if demos.act_dim is None else f"{demos.act_dim} coordinates"),
        ("true return", "not recorded"),
        ("environment", demos.env_id or "not recorded"),
    ]
    if returns is not None:
        facts[4] = (
            "true return",
            f"{returns.mean():.2f} ± {returns.std():.2f}, min {returns.min():.2f}, max "
            f"{returns.max():.2f} (reported, never learned from)",
        )
    for key in sorted(demos.provenance):
        value = json.dumps(demos.provenance[key], ensure_ascii=False)
        facts.append((f"  {key}", shorten(value, _WIDEST, placeholder=" …")))
    for first, *copies in duplicates(demos):
        facts.append(("duplicates", f"{_listed(copies)} the same as episode {first}"))
    if constant := constant_coordinates(demos):
        facts.append(("constant", f"{_coordinates(constant)}: the same everywhere, tells nothing"))
    if clocks := clock_coordinates(demos):
        facts.append(
            (
                "clock",
                f"{_coordinates(clocks)}: linear in time in every episode, and matching it makes "
                "the agent reproduce the timetable: choose columns without it",
            )
        )
    width = max(len(name) for name, _ in facts)
    return [f"{name:<{width}}  {fact}" for name, fact in facts]


def duplicates(demos: Demonstrations) -> list[list[int]]:
    """Groups of episodes with the very same observations."""
    groups = defaultdict(list)
    for episode, obs in enumerate(demos.observations):
        groups[obs.shape, obs.tobytes()].append(episode)
    return [group for group in groups.values() if len(group) > 1]


def constant_coordinates(demos: Demonstrations) -> list[int]:
    """Coordinates that have one value in all that is matched, s_1 … s_L of every episode."""
    states = np.concatenate([obs[1:] for obs in demos.observations])
    return [int(column) for column in np.flatnonzero((states == states[0]).all(axis=0))]


def clock_coordinates(demos: Demonstrations) -> list[int]:
    """Coordinates that are a line in t, not a level one, in every episode: time in disguise.

    Episodes of a few steps are no evidence, either way.
    """
    clock = np.ones(demos.obs_dim, dtype=bool)
    evidence = [obs for obs in demos.observations if len(obs) >= _FEWEST]
    for obs in evidence:
        values = obs.astype(np.float64)
        time = np.linspace(-1, 1, len(values))
        centred = values - values.mean(axis=0)
        slope = time @ centred / (time @ time)
        astray = np.abs(centred - time[:, None] * slope).max(axis=0)
        reach = np.ptp(values, axis=0)
        clock &= (reach > 0) & (astray <= _STRAIGHT * reach)
    return [int(column) for column in np.flatnonzero(clock)] if evidence else []


def _listed(episodes: list[int]) -> str:
    """`episode 3 is`, `episodes 3, 4, 5 are`."""
    names = ", ".join(map(str, episodes))
    return f"episode {names} is" if len(episodes) == 1 else f"episodes {names} are"


def _coordinates(numbers: list[int]) -> str:
    """`coordinate 2`, `coordinates 2, 5–9`: contact forces alone would fill the screen."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][1] + 1:
            groups[-1][1] = number
        else:
            groups.append([number, number])
    listed = ", ".join(str(low) if low == high else f"{low}–{high}" for low, high in groups)
    return f"coordinate{'s' if len(numbers) > 1 else ''} {listed}"
