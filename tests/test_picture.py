"""A picture is the density that it looks like."""

from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from scipy.stats import chisquare, kstest

from firl.expert import Box, Disc, Picture, Truncated
from firl.types import FirlError

ARENA = Box([0.0, -1.0], [6.0, 3.0])
BRIGHTNESS = np.array([[0, 255, 0], [51, 102, 204]], np.uint8)
"""Two rows, three columns: unlike any of its reflections and its transpose."""


@pytest.fixture
def save(tmp_path: Path) -> Callable[[np.ndarray], Path]:
    def write(pixels: np.ndarray) -> Path:
        path = tmp_path / "picture.png"
        Image.fromarray(pixels).save(path)
        return path

    return write


def pixel_centres(picture: Picture) -> jax.Array:
    rows, columns = picture.log_density.shape
    across, up = np.meshgrid((np.arange(columns) + 0.5) / columns, (np.arange(rows) + 0.5) / rows)
    units = jnp.asarray(np.stack([across.ravel(), 1 - up.ravel()], axis=1), jnp.float32)
    return picture.region.from_unit_cube(units)


def test_brightness_is_density_and_the_top_row_is_the_largest_y(
    save: Callable[[np.ndarray], Path],
) -> None:
    picture = Picture(save(BRIGHTNESS), ARENA, floor=0.0)
    top_middle, bottom_left = jnp.asarray([[3.0, 2.9]]), jnp.asarray([[0.5, -0.9]])
    density = np.exp(picture.log_prob(jnp.concatenate([top_middle, bottom_left]))) * 4.0
    np.testing.assert_allclose(density, np.array([255, 51]) / 612, rtol=1e-5)
    corners = jnp.asarray([[0.0, 3.0], [0.0, -1.0], [6.0, -1.0]])
    density = np.exp(picture.log_prob(corners)) * 4.0
    np.testing.assert_allclose(density, np.array([0, 51, 204]) / 612, rtol=1e-5)
    assert np.all(np.asarray(picture.log_prob(jnp.asarray([[6.1, 0.0], [3.0, 3.1]]))) == -np.inf)


@pytest.mark.parametrize("floor", [0.0, 0.01, 0.5])
def test_integrates_to_one_with_its_floor(save: Callable[[np.ndarray], Path], floor: float) -> None:
    picture = Picture(save(BRIGHTNESS), ARENA, floor=floor)
    masses = np.exp(np.asarray(picture.log_prob(pixel_centres(picture)), float)) * 24 / 6
    assert masses.sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(masses[0], floor / 6, rtol=1e-4)


def test_samples_follow_the_picture(save: Callable[[np.ndarray], Path]) -> None:
    picture = Picture(save(BRIGHTNESS), ARENA, floor=0.1)
    samples = np.asarray(picture.sample(jax.random.key(0), 30_000))
    expected = np.exp(np.asarray(picture.log_prob(pixel_centres(picture)), float)) * 4 * 30_000
    counts = np.histogram2d(samples[:, 1], samples[:, 0], [2, 3], [(-1, 3), (0, 6)])[0][::-1]
    assert counts.sum() == 30_000
    assert chisquare(counts.ravel(), expected / expected.sum() * 30_000).pvalue > 1e-3
    in_one = samples[(samples[:, 0] > 2) & (samples[:, 0] < 4) & (samples[:, 1] > 1)]
    assert kstest((in_one[:, 0] - 2) / 2, "uniform").pvalue > 1e-3
    assert kstest((in_one[:, 1] - 1) / 2, "uniform").pvalue > 1e-3


def test_black_is_never_drawn_without_a_floor(save: Callable[[np.ndarray], Path]) -> None:
    pixels = np.zeros((300, 400), np.uint8)
    pixels[100:102, 50:53] = 1
    picture = Picture(save(pixels), ARENA, floor=0.0)
    samples = picture.sample(jax.random.key(0), 20_000)
    assert bool(jnp.all(jnp.isfinite(picture.log_prob(samples))))


def test_traces_and_truncates(save: Callable[[np.ndarray], Path]) -> None:
    picture = Picture(save(np.kron(BRIGHTNESS, np.ones((4, 4), np.uint8))), ARENA)
    disc = Disc([3.0, 1.0], 1.5)
    round_picture = Truncated(picture, disc)
    states = disc.sample(jax.random.key(0), 12)
    plain = picture.log_prob(states)
    batched = jax.jit(jax.vmap(lambda batch: picture.log_prob(batch)))(states.reshape(3, 4, 2))
    np.testing.assert_allclose(batched.ravel(), plain)
    np.testing.assert_allclose(
        round_picture.log_prob(states), plain - round_picture.log_mass[None], rtol=1e-5
    )


def as_grey(pixels: np.ndarray) -> np.ndarray:
    return pixels


def as_grey_16_bits(pixels: np.ndarray) -> np.ndarray:
    return pixels.astype(np.uint16) * 257


def as_colour(pixels: np.ndarray) -> np.ndarray:
    return np.stack([pixels] * 3, axis=-1)


def as_transparency(pixels: np.ndarray) -> np.ndarray:
    white = np.full_like(pixels, 255)
    return np.stack([white, white, white, pixels], axis=-1)


def as_grey_with_alpha(pixels: np.ndarray) -> np.ndarray:
    return np.stack([pixels, np.full_like(pixels, 128)], axis=-1)


@pytest.mark.parametrize(
    "encode", [as_grey, as_grey_16_bits, as_colour, as_transparency, as_grey_with_alpha]
)
def test_encodings_agree(
    save: Callable[[np.ndarray], Path], encode: Callable[[np.ndarray], np.ndarray]
) -> None:
    picture = Picture(save(encode(BRIGHTNESS)), ARENA, floor=0.0)
    masses = np.exp(np.asarray(picture.log_density, float)) * 4
    np.testing.assert_allclose(masses, BRIGHTNESS / BRIGHTNESS.sum(), rtol=1e-4)


def test_green_is_brighter_than_blue(save: Callable[[np.ndarray], Path]) -> None:
    pixels = np.array([[[255, 0, 0], [0, 255, 0], [0, 0, 255]]], np.uint8)
    masses = np.exp(Picture(save(pixels), ARENA, floor=0.0).log_density[0]) * 8
    np.testing.assert_allclose(masses, [0.299, 0.587, 0.114], rtol=1e-4)


def test_bad_pictures_are_refused(save: Callable[[np.ndarray], Path], tmp_path: Path) -> None:
    def refused(path: Path, says: str) -> None:
        with pytest.raises(FirlError, match=says) as caught:
            Picture(path, ARENA)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)

    refused(tmp_path / "missing.png", "no picture")
    refused(tmp_path, "cannot be read")
    text = tmp_path / "text.png"
    text.write_text("this is not a picture")
    refused(text, "cannot be read")
    empty = tmp_path / "empty.png"
    empty.write_bytes(b"")
    refused(empty, "cannot be read")
    whole = save(np.random.default_rng(0).integers(0, 255, (200, 200), np.uint8)).read_bytes()
    for share in (0.01, 0.3, 0.9):
        cut = tmp_path / "cut.png"
        cut.write_bytes(whole[: int(len(whole) * share)])
        refused(cut, "cannot be read")
    jpeg = tmp_path / "photo.jpg"
    Image.fromarray(BRIGHTNESS).save(jpeg)
    refused(jpeg, "cannot be read")
    refused(save(np.zeros((5, 5), np.uint8)), "blank")
    refused(save(np.full((5, 5), 255, np.uint8)), "blank")


def test_bad_options_are_refused(save: Callable[[np.ndarray], Path]) -> None:
    path = save(BRIGHTNESS)
    with pytest.raises(FirlError, match="floor"):
        Picture(path, ARENA, floor=1.0)
    with pytest.raises(FirlError, match="covers a plane"):
        Picture(path, Box([0.0] * 3, [1.0] * 3))
