"""Densities that have a formula. All of them trace under `jit` and `vmap`."""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from firl.expert.base import AbstractDensity, Vector
from firl.expert.regions import AbstractRegion
from firl.types import FirlError


class Gaussian(AbstractDensity):
    """A normal distribution, such as the targets of the paper's Figures 2 and 6."""

    mean: Float[Array, "d"]
    scale: Float[Array, "d d"]
    """Lower-triangular L with L Lᵀ the covariance."""

    def __init__(self, mean: Vector, std: float | Vector) -> None:
        """`std` is one number, one per coordinate, or a lower-triangular L of the covariance."""
        self.mean = jnp.asarray(mean, dtype=float)
        scale = np.asarray(std, dtype=float)
        dim = self.mean.shape[0] if self.mean.ndim == 1 else -1
        if scale.ndim < 2 and scale.shape in ((), (dim,)):
            scale = np.diag(np.broadcast_to(scale, (dim,)))
        square = scale.shape == (dim, dim) and np.array_equal(scale, np.tril(scale))
        finite = bool(np.all(np.isfinite(self.mean)) and np.all(np.isfinite(scale)))
        if not (square and finite and np.all(np.diag(scale) > 0)):
            raise FirlError(
                f"A Gaussian needs a finite mean, a list of d numbers, and a positive std, one "
                f"number or d of them, got mean={mean!r} and std={std!r}."
            )
        self.scale = jnp.asarray(scale, dtype=float)

    @classmethod
    def with_covariance(cls, mean: Vector, covariance: np.ndarray) -> "Gaussian":
        """The normal distribution with this covariance matrix."""
        matrix = np.asarray(covariance, dtype=float)
        try:
            if not np.allclose(matrix, matrix.T):
                raise np.linalg.LinAlgError
            return cls(mean, np.linalg.cholesky(matrix))
        except np.linalg.LinAlgError as error:
            raise FirlError(
                f"A covariance must be a symmetric positive definite matrix, got {matrix.tolist()}."
            ) from error

    @property
    def dim(self) -> int:
        """d."""
        return self.mean.shape[0]

    @property
    def normalised(self) -> bool:
        """Yes."""
        return True

    @eqx.filter_jit
    def log_prob(self, states: Float[Array, "n d"]) -> Float[Array, "n"]:
        """−½|L⁻¹(s − μ)|² − log det L − d/2 log 2π."""
        white = solve_triangular(self.scale, (states - self.mean[None, :]).T, lower=True)
        log_volume = jnp.sum(jnp.log(jnp.diag(self.scale))) + self.dim / 2 * jnp.log(2 * jnp.pi)
        return -0.5 * jnp.sum(white**2, axis=0) - log_volume

    @eqx.filter_jit
    def sample(self, key: PRNGKeyArray, num: int) -> Float[Array, "num d"]:
        """μ + L ε."""
        return self.mean[None, :] + jax.random.normal(key, (num, self.dim)) @ self.scale.T


class Mixture(AbstractDensity):
    """Σ_k w_k ρ_k of normalised densities; weights are relative and divided by their sum."""

    components: tuple[AbstractDensity, ...]
    log_weights: Float[Array, "k"]

    def __init__(self, components: Sequence[AbstractDensity], weights: Vector) -> None:
        self.components = tuple(components)
        relative = np.asarray(weights, dtype=float)
        if relative.shape != (len(self.components),) or not np.all(relative > 0):
            raise FirlError(
                f"A Mixture of {len(self.components)} components needs as many positive weights, "
                f"got {weights!r}."
            )
        if len({component.dim for component in self.components}) != 1:
            raise FirlError("The components of a Mixture must have the same number of coordinates.")
        if not all(component.normalised for component in self.components):
            raise FirlError(
                "The components of a Mixture must integrate to one, or weights mean nothing: "
                "apply normalise_on(component, region) first."
            )
        self.log_weights = jnp.asarray(np.log(relative / relative.sum()), dtype=float)

    @property
    def dim(self) -> int:
        """d."""
        return self.components[0].dim

    @property
    def normalised(self) -> bool:
        """Yes."""
        return True

    @eqx.filter_jit
    def log_prob(self, states: Float[Array, "n d"]) -> Float[Array, "n"]:
        """Log of the weighted sum, without leaving the log scale."""
        per_component = jnp.stack([component.log_prob(states) for component in self.components])
        return logsumexp(per_component + self.log_weights[:, None], axis=0)

    @eqx.filter_jit
    def sample(self, key: PRNGKeyArray, num: int) -> Float[Array, "num d"]:
        """Draw from every component, keep the one that its weight chooses."""
        key_choice, *keys = jax.random.split(key, len(self.components) + 1)
        choice = jax.random.categorical(key_choice, self.log_weights, shape=(num,))
        draws = [
            component.sample(key_component, num)
            for component, key_component in zip(self.components, keys, strict=True)
        ]
        return jnp.stack(draws)[choice, jnp.arange(num)]


class Uniform(AbstractDensity):
    """The same everywhere in a region and nothing outside, as the prior of the paper's Figure 4."""

    region: AbstractRegion

    @property
    def dim(self) -> int:
        """d."""
        return self.region.dim

    @property
    def normalised(self) -> bool:
        """Yes."""
        return True

    @eqx.filter_jit
    def log_prob(self, states: Float[Array, "n d"]) -> Float[Array, "n"]:
        """−log volume inside, −inf outside."""
        return jnp.where(self.region.contains(states), -jnp.log(self.region.volume), -jnp.inf)

    @eqx.filter_jit
    def sample(self, key: PRNGKeyArray, num: int) -> Float[Array, "num d"]:
        """Points spread uniformly."""
        return self.region.sample(key, num)
