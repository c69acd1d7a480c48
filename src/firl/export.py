"""A run's reward and policy for people without firl: safetensors, JSON, a NumPy-only loader."""

from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from firl.checkpoint import write_atomically
from firl.errors import FirlError
from firl.learned import Learned, load
from firl.rundir import RunDir, to_json
from firl.sac.networks import LOG_STD_MAX, LOG_STD_MIN

_LOADER = '''"""Loads what lies beside it. Needs NumPy and safetensors, nothing else.

    from load import policy, reward
    reward(states)          # [n, d] -> [n]
    policy(obs)             # [n, o] -> [n, a], the mode; policy(obs, rng) samples
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

HERE = Path(__file__).parent
ABOUT = json.loads((HERE / "about.json").read_text())
ARRAYS = load_file(HERE / "arrays.safetensors")


def network(name, x, activation):
    layers = ABOUT[name]["layers"]
    for i in range(layers):
        x = x @ ARRAYS[f"{name}/{i}/weight"] + ARRAYS[f"{name}/{i}/bias"]
        if i < layers - 1:
            x = np.tanh(x) if activation == "tanh" else np.maximum(x, 0.0)
    return x


def reward(states):
    centre, scale = np.array(ABOUT["reward"]["centre"]), np.array(ABOUT["reward"]["scale"])
    x = (np.asarray(states, np.float32) - centre) / scale
    x = network("reward", x, ABOUT["reward"]["activation"])[:, 0]
    bound = ABOUT["reward"]["bound"]
    soft = ABOUT["reward"]["soft_bound"]
    return bound * np.tanh(x / bound) if soft else np.clip(x, -bound, bound)


def policy(obs, rng=None):
    out = network("policy", np.asarray(obs, np.float32), "relu")
    mean, log_std = np.split(out, 2, axis=-1)
    if rng is not None:
        low, high = ABOUT["policy"]["log_std"]
        mean = mean + np.exp(np.clip(log_std, low, high)) * rng.standard_normal(mean.shape)
    low, high = np.array(ABOUT["policy"]["action_low"]), np.array(ABOUT["policy"]["action_high"])
    return low + (np.tanh(mean) + 1) / 2 * (high - low)
'''


def export_run(path: Path, out: Path, onnx: bool = False) -> Path:
    """Write `out`: arrays.safetensors, about.json, load.py, with `onnx` two models. Returns it."""
    learned, run = load(path), RunDir(path).read_about()
    if out.exists():
        raise FirlError(f"--out {out} exists: name a directory that does not.")
    arrays, about = _arrays(learned), _about(learned, run)
    files = {
        "arrays.safetensors": save(arrays),
        "about.json": to_json(about),
        "load.py": _LOADER.encode(),
    }
    if onnx:
        files |= _onnx_models(arrays, about)
    try:
        out.mkdir(parents=True)
        for name, content in files.items():
            write_atomically(out / name, content)
    except OSError as error:
        raise FirlError(
            f"--out {out} cannot be written ({error.strerror}): name another directory."
        ) from error
    return out


def _onnx_models(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> dict[str, bytes]:
    try:
        from firl.onnx_models import onnx_models
    except ModuleNotFoundError as error:
        raise FirlError(
            f"--onnx needs the package {error.name}, which is not installed: pip install onnx."
        ) from error
    return onnx_models(arrays, about)


def _arrays(learned: Learned) -> dict[str, np.ndarray]:
    """Weights [in, out] and biases of both networks, layer by layer."""
    arrays: dict[str, np.ndarray] = {}
    for i, layer in enumerate(learned.reward_net.layers):
        assert layer.bias is not None
        arrays[f"reward/{i}/weight"] = np.ascontiguousarray(np.asarray(layer.weight).T)
        arrays[f"reward/{i}/bias"] = np.asarray(layer.bias)
    net = learned.actor.net
    for i, (weight, bias) in enumerate(zip(net.weights, net.biases, strict=True)):
        arrays[f"policy/{i}/weight"] = np.asarray(weight)
        arrays[f"policy/{i}/bias"] = np.asarray(bias)
    return arrays


def _about(learned: Learned, run: dict[str, Any]) -> dict[str, Any]:
    """All that the arrays do not say."""
    config = learned.config
    return {
        "task": config.task,
        "state_columns": learned.state_columns,
        "reward": {
            "layers": len(learned.reward_net.layers),
            "activation": config.reward.activation,
            "bound": config.reward.bound,
            "soft_bound": config.reward.soft_bound,
            "centre": run["state_centre"],
            "scale": run["state_scale"],
        },
        "policy": {
            "layers": len(learned.actor.net.weights),
            "log_std": [LOG_STD_MIN, LOG_STD_MAX],
            "action_low": run["action_low"],
            "action_high": run["action_high"],
            "obs_dim": run["obs_dim"],
        },
    }
