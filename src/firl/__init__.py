"""firl: learn a reward from what an expert visits.

    run = firl.train("pointmass-gaussian", out="runs/first")
    learned = firl.load("runs/first")
    learned.reward(states)   # [n, d] -> [n]
    learned.policy(obs)      # [n, o] -> [n, a]

Names are imported when first used, so that the command line answers at once.
"""

import importlib
from typing import TYPE_CHECKING, Any

from firl.errors import FirlError as FirlError
from firl.errors import LearningDiverged as LearningDiverged

if TYPE_CHECKING:
    from firl.api import Run as Run
    from firl.api import problem as problem
    from firl.api import train as train
    from firl.config import TrainConfig as TrainConfig
    from firl.expert.demonstrations import Demonstrations as Demonstrations
    from firl.expert.demonstrations import from_arrays as from_arrays
    from firl.expert.read import read_demonstrations as read_demonstrations
    from firl.learned import Learned as Learned
    from firl.learned import load as load
    from firl.wrapper import RewardWrapper as RewardWrapper


_LAZY = {
    "Demonstrations": "firl.expert.demonstrations",
    "Learned": "firl.learned",
    "RewardWrapper": "firl.wrapper",
    "Run": "firl.api",
    "TrainConfig": "firl.config",
    "from_arrays": "firl.expert.demonstrations",
    "load": "firl.learned",
    "problem": "firl.api",
    "read_demonstrations": "firl.expert.read",
    "train": "firl.api",
}

__all__ = ["FirlError", "LearningDiverged", *_LAZY]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'firl' has no attribute {name!r}")
