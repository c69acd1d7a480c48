"""Means, intervals and smoothing, against what can be done by hand."""

import numpy as np
import pytest

from firl.metrics import bootstrap_interval, interquartile_mean, mean, moving_average
from firl.types import FirlError


def test_interquartile_mean_ignores_the_outer_quarters() -> None:
    values = np.array([100.0, 1.0, 2.0, 3.0, 4.0, -500.0, 5.0, 0.0])
    assert interquartile_mean(values) == pytest.approx(np.mean([1, 2, 3, 4]))
    curves = np.stack([values, values + 1], axis=1)
    np.testing.assert_allclose(interquartile_mean(curves), [2.5, 3.5])
    assert interquartile_mean(values[:3]) == mean(values[:3])


def test_interval_covers_the_mean_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    samples = rng.exponential(size=(40, 300))
    low, high = bootstrap_interval(samples)
    assert low.shape == high.shape == (300,)
    assert 0.88 < np.mean((low < 1) & (high > 1)) < 0.97
    standard_error = samples.std(axis=0) / np.sqrt(40)
    np.testing.assert_allclose(np.mean((high - low) / standard_error), 2 * 1.96, rtol=0.03)


def test_interval_is_the_same_each_time_and_nests() -> None:
    values = np.random.default_rng(0).normal(size=(5, 7))
    first, again = bootstrap_interval(values), bootstrap_interval(values)
    np.testing.assert_array_equal(first, again)
    low, high = bootstrap_interval(values, confidence=0.5)
    assert np.all(first[0] <= low)
    assert np.all(high <= first[1])
    robust = bootstrap_interval(values, interquartile_mean)
    assert not np.array_equal(robust, first)


def test_interval_of_three_seeds_stays_within_them() -> None:
    values = np.array([[1.0], [2.0], [4.0]])
    low, high = bootstrap_interval(values)
    assert (low[0], high[0]) == (1.0, 4.0)


def test_moving_average_looks_back() -> None:
    values = np.array([[3.0, 5.0, 1.0, 7.0], [0.0, 0.0, 0.0, 6.0]])
    expected = [[3.0, 4.0, 3.0, 13 / 3], [0.0, 0.0, 0.0, 2.0]]
    np.testing.assert_allclose(moving_average(values, 3), expected)
    np.testing.assert_allclose(moving_average(values, 1), values)
    np.testing.assert_allclose(moving_average(values, 100)[:, -1], values.mean(axis=1))
    line = np.arange(500.0)
    assert moving_average(line)[400] == pytest.approx(np.mean(line[281:401]))


def test_bad_input_is_refused() -> None:
    with pytest.raises(FirlError, match="window"):
        moving_average(np.zeros(3), 0)
    with pytest.raises(FirlError, match="confidence"):
        bootstrap_interval(np.zeros((3, 1)), confidence=95.0)
