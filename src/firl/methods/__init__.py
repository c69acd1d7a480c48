"""Every method, by the name that `--method` takes."""

from collections.abc import Callable
from typing import Any

from firl.config import TrainConfig
from firl.methods.airl import airl
from firl.methods.base import Method
from firl.methods.bc import bc
from firl.methods.f_irl import firl
from firl.methods.f_max import f_max_rkl, fairl
from firl.methods.gail import gail
from firl.methods.maxent_irl import maxent
from firl.methods.reinforce import learned_reward, true_reward
from firl.methods.smm import smm
from firl.problems import Problem

METHODS: dict[str, Callable[[Problem, TrainConfig], Method[Any]]] = {
    "firl": firl,
    "maxent": maxent,
    "airl": airl,
    "gail": gail,
    "f-max-rkl": f_max_rkl,
    "fairl": fairl,
    "smm": smm,
    "bc": bc,
    "true-reward": true_reward,
    "learned-reward": learned_reward,
}
