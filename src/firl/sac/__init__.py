"""Soft actor-critic: replay on device, rewards relabelled when drawn, updates fused into blocks."""

from firl.sac.agent import Agent as Agent
from firl.sac.networks import Actor as Actor
from firl.sac.networks import Critics as Critics
from firl.sac.networks import ModePolicy as ModePolicy
from firl.sac.replay import ReplayBuffer as ReplayBuffer
from firl.sac.temperature import AbstractTemperature as AbstractTemperature
from firl.sac.temperature import FixedTemperature as FixedTemperature
from firl.sac.temperature import LearnedTemperature as LearnedTemperature
from firl.sac.update import SACInfo as SACInfo
from firl.sac.update import improve as improve
