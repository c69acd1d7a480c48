"""Strict JAX for all tests: no silent promotion of ranks or dtypes."""

import itertools
from collections.abc import Callable

import jax
import pytest
from jaxtyping import PRNGKeyArray

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture
def getkey() -> Callable[[], PRNGKeyArray]:
    """A fresh key at each call, the same sequence in each test."""
    counter = itertools.count()
    return lambda: jax.random.key(next(counter))
