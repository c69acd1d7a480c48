"""A density that somebody draws: the brightness of a PNG over the arena."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from firl.expert.base import AbstractDensity
from firl.expert.cells import Cells
from firl.expert.regions import Box
from firl.types import FirlError

_LUMA = (0.299, 0.587, 0.114)
"""How bright red, green and blue look (ITU-R BT.601), on the file's own values without undoing
their gamma: half-way grey on the screen is half the density."""


class Picture(AbstractDensity):
    """Brightness as density, constant over each pixel, so that it is normalised exactly.

    The picture fills the box: its top row is the largest y, its left column the smallest x, a
    pixel a small rectangle. Colours count by their brightness, and transparency darkens:
    transparent is zero.

    Black would mean a log-density of −inf, which no gradient gets an agent out of. A share
    `floor` of the mass is therefore spread evenly over the arena: 1 % by default, so that black is
    a hundred times rarer than an even spread, a log-ratio to be felt but not to overflow.
    """

    region: Box
    log_density: Float[Array, "rows columns"]
    cells: Cells

    def __init__(self, path: str | Path, region: Box, floor: float = 0.01) -> None:
        """Read the picture; `floor` in [0, 1) is the share of the mass that is spread evenly."""
        if region.dim != 2:
            raise FirlError(f"A picture covers a plane, but the arena has {region.dim} dimensions.")
        if not 0 <= floor < 1:
            raise FirlError(f"A picture's floor must lie in [0, 1), got {floor}.")
        brightness = read_brightness(path)
        masses = (1 - floor) * brightness / brightness.sum() + floor / brightness.size
        pixel_area = float(region.volume) / brightness.size
        with np.errstate(divide="ignore"):  # black without a floor is a log-density of −inf
            self.log_density = jnp.asarray(np.log(masses / pixel_area), dtype=float)
        self.region = region
        self.cells = Cells(masses.ravel())

    @property
    def dim(self) -> int:
        """The plane's two."""
        return 2

    @property
    def normalised(self) -> bool:
        """Yes, on the box."""
        return True

    @eqx.filter_jit
    def log_prob(self, states: Float[Array, "n d"]) -> Float[Array, "n"]:
        """The pixel's, −inf outside of the box."""
        rows, columns = self.log_density.shape
        low, high = self.region.bounds()
        across, up = ((states - low[None, :]) / (high - low)[None, :]).T
        column = jnp.clip(jnp.floor(across * columns), 0, columns - 1).astype(int)
        row = jnp.clip(jnp.floor((1 - up) * rows), 0, rows - 1).astype(int)
        return jnp.where(self.region.contains(states), self.log_density[row, column], -jnp.inf)

    @eqx.filter_jit
    def sample(self, key: PRNGKeyArray, num: int) -> Float[Array, "num d"]:
        """Draw a pixel by its mass, then a point spread uniformly over it. Exact."""
        key_pixel, key_within = jax.random.split(key)
        rows, columns = self.log_density.shape
        row, column = jnp.unravel_index(self.cells.sample(key_pixel, num), (rows, columns))
        down, across = jax.random.uniform(key_within, (2, num))
        right, below = column.astype(float) + across, row.astype(float) + down
        units = jnp.stack([right / columns, 1 - below / rows], axis=1)
        return self.region.from_unit_cube(units)


def read_brightness(path: str | Path) -> Float[np.ndarray, "rows columns"]:
    """Brightness in [0, 1] of a PNG, grey or colour, 8 or 16 bits, with or without alpha."""
    from matplotlib.image import imread  # a third of a second to import, and only pictures need it

    try:
        pixels = np.asarray(imread(path, format="png"), dtype=np.float64)
    except FileNotFoundError as error:
        raise FirlError(f"There is no picture at '{path}': check the path.") from error
    except (OSError, SyntaxError, ValueError) as error:  # what damaged files make of a decoder
        raise FirlError(f"'{path}' cannot be read as a PNG picture: save it as one.") from error
    if pixels.ndim == 3:
        colours, alpha = pixels[..., :3], pixels[..., 3:]
        pixels = colours @ np.asarray(_LUMA) * (alpha[..., 0] if alpha.size else 1.0)
    if np.ptp(pixels) == 0:
        raise FirlError(
            f"The picture '{path}' is blank, one brightness all over: draw where the agent should "
            "go in white on black (or use Uniform for an even spread)."
        )
    return pixels
