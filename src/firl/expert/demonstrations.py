"""The expert, given as demonstrations: episodes that somebody recorded."""

import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int

from firl.errors import FirlError
from firl.expert.episode_checks import (
    check_episodes,
    check_provenance,
    check_steps,
    flags,
    numbers,
)


@dataclass(frozen=True, eq=False, init=False)
class Demonstrations:
    """N episodes as they were recorded: s_0, a_0, s_1, …, s_L, each of its own length L.

    Whatever numbers come in, integers or doubles, are checked to be finite and kept as float32.
    Episodes are counted from 0, in the order of the file. Nothing here can be written to.
    """

    observations: tuple[Float32[np.ndarray, "_ o"], ...]
    """s_0 … s_L of each episode, `[L + 1, o]`, as the environment emitted them."""
    actions: tuple[Float32[np.ndarray, "_ a"], ...] | None
    """a_0 … a_{L−1}, `[L, a]`, in the environment's own bounds; None where nobody recorded them."""
    rewards: tuple[Float32[np.ndarray, "_"], ...] | None
    """The environment's true reward, `[L]`. Only ever reported: nothing learns from it, and no
    demonstration is chosen by it."""
    terminated: Bool[np.ndarray, "n"]
    """True where the environment ended the episode; False where a time limit did (or nobody said
    what did)."""
    env_id: str | None
    """Which environment it was, as Gymnasium spells it."""
    provenance: dict[str, Any]
    """How the file came to be: command, versions, … What JSON can hold."""
    source: str
    """What messages call them: the path of the file they were read from."""

    def __init__(
        self,
        observations: Iterable[Any],
        actions: Iterable[Any] | None = None,
        rewards: Iterable[Any] | None = None,
        terminated: Any = None,
        env_id: str | None = None,
        provenance: dict[str, Any] | None = None,
        source: str = "demonstrations",
    ) -> None:
        """Check everything, once; from here on nobody needs to."""

        def keep(name: str, value: object) -> None:
            object.__setattr__(self, name, value)  # the only writing that a frozen class knows

        def every(what: str, rank: int, values: Iterable[Any]) -> tuple[np.ndarray, ...]:
            return tuple(numbers(source, what, i, each, rank) for i, each in enumerate(values))

        kept = every("observations", 2, observations)
        check_episodes(source, kept)
        keep("observations", kept)
        for name, rank, values in (("actions", 2, actions), ("rewards", 1, rewards)):
            arrays = None if values is None else every(name, rank, values)
            if arrays is not None:
                check_steps(source, name, arrays, kept)
            keep(name, arrays)
        keep("terminated", flags(source, terminated, len(kept)))
        keep("env_id", env_id)
        keep("provenance", check_provenance(source, provenance or {}))
        keep("source", source)

    @property
    def num(self) -> int:
        """N."""
        return len(self.observations)

    @property
    def obs_dim(self) -> int:
        """Coordinates of an observation."""
        return int(self.observations[0].shape[1])

    @property
    def act_dim(self) -> int | None:
        """Coordinates of an action, None where there are no actions."""
        return None if self.actions is None else int(self.actions[0].shape[1])

    @property
    def lengths(self) -> Int[np.ndarray, "n"]:
        """L, the steps of each episode."""
        return np.array([len(obs) - 1 for obs in self.observations])

    @property
    def returns(self) -> Float64[np.ndarray, "n"] | None:
        """Undiscounted true return of each episode, to be reported; None without rewards."""
        if self.rewards is None:
            return None
        return np.array([np.sum(rewards, dtype=np.float64) for rewards in self.rewards])

    def visited(self, horizon: int) -> Float32[np.ndarray, "n T o"]:
        """What is matched, s_1 … s_T.

        An episode that terminated before T stays in its last state until T, as the agent's do.
        """
        states = np.empty((self.num, _positive("horizon", horizon), self.obs_dim), np.float32)
        lengths = self.lengths
        for episode, length in enumerate(lengths):
            if length > horizon:
                raise FirlError(
                    f"{self.source}: episode {episode} has {length} steps, more than the horizon "
                    f"of {horizon}: choose a horizon of {lengths.max()}, the longest episode, or "
                    f"keep the first steps only, cut({horizon})."
                )
            if length < horizon and not self.terminated[episode]:
                shortest = lengths[~self.terminated].min()
                raise FirlError(
                    f"{self.source}: episode {episode} stops after {length} of {horizon} steps and "
                    "did not terminate, so nobody knows where it went: if the environment did end "
                    "it, say so (terminated), and if not, choose a horizon of "
                    f"{shortest}, the shortest such episode, and cut({shortest})."
                )
            states[episode, :length] = self.observations[episode][1:]
            states[episode, length:] = self.observations[episode][-1]
        return states

    def cut(self, horizon: int) -> "Demonstrations":
        """The first `horizon` steps of each episode. One that is cut has not terminated."""
        _positive("horizon", horizon)
        return replace(
            self,
            observations=tuple(obs[: horizon + 1] for obs in self.observations),
            actions=self.actions and tuple(actions[:horizon] for actions in self.actions),
            rewards=self.rewards and tuple(rewards[:horizon] for rewards in self.rewards),
            terminated=self.terminated & (self.lengths <= horizon),
        )

    def select(self, indices: Iterable[SupportsIndex | np.bool_]) -> "Demonstrations":
        """These episodes, in this order. Provenance stays that of the whole."""
        chosen = []
        for index in indices:
            if isinstance(index, bool | np.bool_):  # a mask: True would be episode 1
                raise FirlError(
                    f"{self.source}: episodes are selected by their numbers, but {index} is none: "
                    "pass numpy.flatnonzero of a mask."
                )
            number = operator.index(index)
            if not 0 <= number < self.num:
                raise FirlError(
                    f"{self.source}: there is no episode {number}: there are {self.num}, counted "
                    "from 0."
                )
            chosen.append(number)
        if not chosen:
            raise FirlError(f"{self.source}: no episode was selected: name at least one.")
        return replace(
            self,
            observations=tuple(self.observations[index] for index in chosen),
            actions=self.actions and tuple(self.actions[index] for index in chosen),
            rewards=self.rewards and tuple(self.rewards[index] for index in chosen),
            terminated=self.terminated[chosen],
        )

    def first(self, num: int) -> "Demonstrations":
        """The first so many in the order of the file: never the best ones."""
        if _positive("number of demonstrations", num) > self.num:
            raise FirlError(
                f"{self.source}: {num} demonstrations were asked for, but it holds {self.num}: ask "
                "for fewer, or record more."
            )
        return self.select(range(num))

    def check_against(
        self, obs_dim: int, act_dim: int | None = None, env_id: str | None = None
    ) -> None:
        """Refuse demonstrations of another environment than the one that is to be learned in."""
        name = env_id or "the environment"
        if self.env_id is not None and env_id is not None and self.env_id != env_id:
            raise FirlError(
                f"{self.source}: these are demonstrations of {self.env_id}, not of {env_id}: learn "
                f"in {self.env_id}, or, if both emit the same observations, set env_id to None."
            )
        if self.obs_dim != obs_dim:
            hint = (
                "as in Ant-v5, 105 with contact forces and 27 without"
                if "ant" in name.lower()
                else "such as exclude_current_positions_from_observation"
            )
            raise FirlError(
                f"{self.source}: these observations have {self.obs_dim} coordinates, but those of "
                f"{name} have {obs_dim}: make the environment with the options it was recorded "
                f"with ({hint}), or record again."
            )
        if act_dim is not None and self.act_dim is not None and self.act_dim != act_dim:
            raise FirlError(
                f"{self.source}: these actions have {self.act_dim} coordinates, but those of "
                f"{name} have {act_dim}: make the environment as it was recorded, or record again."
            )

    def report(self) -> list[str]:
        """What there is and what is odd about it, line by line."""
        from firl.expert.report import describe

        return describe(self)


def from_arrays(
    observations: Iterable[Any],
    *,
    actions: Iterable[Any] | None = None,
    rewards: Iterable[Any] | None = None,
    terminated: bool | np.bool_ | Iterable[Any] = False,
    env_id: str | None = None,
    provenance: dict[str, Any] | None = None,
) -> Demonstrations:
    """Demonstrations from one array per episode, or from one array with an axis of episodes.

    Observations are s_0 … s_L, `[L + 1, o]`; actions `[L, a]` and rewards `[L]`. `terminated` is
    one word for all episodes, or one each: did the environment end it (rather than a time limit)?
    """
    episodes = tuple(observations)
    one_word = isinstance(terminated, bool | np.bool_)
    ended: Any = [terminated] * len(episodes) if one_word else terminated
    return Demonstrations(episodes, actions, rewards, ended, env_id, provenance)


def _positive(what: str, number: int) -> int:
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or number < 1:
        raise FirlError(f"The {what} must be a whole number, 1 or more, got {number!r}.")
    return int(number)
