"""Policy × environment → trajectories → transitions. Nothing else steps a simulator."""

from firl.rollout.gym_simulator import GymSimulator as GymSimulator
from firl.rollout.jax_simulator import Dynamics as Dynamics
from firl.rollout.jax_simulator import JaxSimulator as JaxSimulator
from firl.rollout.jax_simulator import simulate as simulate
from firl.rollout.make import make_simulator as make_simulator
from firl.rollout.policies import UniformPolicy as UniformPolicy
from firl.rollout.transitions import all_transitions as all_transitions
from firl.rollout.transitions import transitions as transitions
