"""From an environment to the simulator that is fastest for it."""

from firl.envs.point_mass import PointMass, PointMassEnv
from firl.rollout.checks import Env, EnvFactory, choose_horizon, factory_of
from firl.rollout.gym_simulator import GymSimulator
from firl.rollout.jax_simulator import JaxSimulator
from firl.types import Simulator


def make_simulator(env: str | EnvFactory, horizon: int | None = None) -> Simulator:
    """A simulator of a Gymnasium environment, given by its id or by a function that makes one.

    `horizon` defaults to the environment's own time limit. Environments that firl cannot learn
    in are refused with the reason.
    """
    make = factory_of(env)
    first = make()
    if _is_plain(first) and isinstance(first.unwrapped, PointMassEnv):
        size = first.unwrapped.dynamics.size
        return JaxSimulator(PointMass(size, choose_horizon(first, horizon)))
    first.close()
    return GymSimulator(env, horizon)


def _is_plain(env: Env) -> bool:
    """Whether no wrapper changes what the environment does (a time limit does not)."""
    return env is env.unwrapped or (env.spec is not None and not env.spec.additional_wrappers)
