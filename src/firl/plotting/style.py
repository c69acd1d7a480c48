"""One look for every figure, and heat-maps over an arena."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import matplotlib as mpl
import numpy as np
from cycler import cycler
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from firl.expert.regions import AbstractRegion

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's palette, which colour-blind readers can tell apart."""

_LOOK: Any = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=COLOURS),
    "legend.frameon": False,
    "figure.constrained_layout.use": True,
    "savefig.dpi": 200,
}


@contextmanager
def figure(width: float, height: float, path: Path) -> Iterator[Figure]:
    """A figure in our look, written to `path` whole or not at all. Needs no screen."""
    with mpl.rc_context(_LOOK):
        drawn = Figure(figsize=(width, height))
        yield drawn
        temporary = path.with_name(f".{path.stem}.partial{path.suffix}")
        drawn.savefig(temporary)
        temporary.replace(path)


def heat_map(
    axes: Axes,
    arena: AbstractRegion,
    values_at: Callable[[Float[np.ndarray, "m 2"]], Float[np.ndarray, "m"]],
    *,
    colours: str,
    highest: float | None = None,
    resolution: int = 160,
) -> AxesImage:
    """A function of the plane over an arena; white where the arena is not."""
    (left, bottom), (right, top) = np.asarray(arena.bounds())
    x = np.linspace(left, right, 2 * resolution + 1)[1::2]
    y = np.linspace(bottom, top, 2 * resolution + 1)[1::2]
    points = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2).astype(np.float32)
    values = np.where(
        np.asarray(arena.contains(jnp.asarray(points))), np.asarray(values_at(points)), np.nan
    )
    return show_image(axes, arena, values.reshape(len(y), len(x)), colours=colours, highest=highest)


def show_image(
    axes: Axes,
    arena: AbstractRegion,
    values: Float[np.ndarray, "rows columns"],
    *,
    colours: str,
    highest: float | None = None,
) -> AxesImage:
    """Values on the arena's bounding box, the first row at the bottom."""
    (left, bottom), (right, top) = np.asarray(arena.bounds())
    image = axes.imshow(
        values,
        origin="lower",
        extent=(left, right, bottom, top),
        cmap=colours,
        vmin=0.0 if highest is not None else None,
        vmax=highest,
        interpolation="nearest",
    )
    axes.figure.colorbar(image, ax=axes, fraction=0.046, pad=0.03)
    axes.set_aspect("equal")
    axes.spines[["left", "bottom"]].set_visible(False)
    return image
