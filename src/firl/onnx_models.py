"""What `export.py` writes for NumPy once more, as ONNX models for whatever runs those.

The only module that imports onnx, which is an optional dependency.
"""

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

_Shapes = dict[str, list[int | str]]

_OPSET, _IR_VERSION = 17, 8
"""Of 2022, so that runtimes need not be new."""


def onnx_models(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> dict[str, bytes]:
    """The contents of reward.onnx and policy.onnx."""
    return {
        "reward.onnx": _reward(arrays, about["reward"]),
        "policy.onnx": _policy(arrays, about["policy"]),
    }


def _reward(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> bytes:
    """From `states` [n, d] to `reward` [n]."""
    graph, low, high = _Graph(), _floats(-about["bound"]), _floats(about["bound"])
    x = graph.add(
        "Div", graph.add("Sub", "states", _floats(about["centre"])), _floats(about["scale"])
    )
    x = graph.network(arrays, "reward", x, "Tanh" if about["activation"] == "tanh" else "Relu")
    x = graph.add("Squeeze", x, np.array([1]))
    if about["soft_bound"]:
        graph.add("Mul", graph.add("Tanh", graph.add("Div", x, high)), high, output="reward")
    else:
        graph.add("Clip", x, low, high, output="reward")
    return graph.model({"states": ["n", len(about["centre"])]}, {"reward": ["n"]})


def _policy(arrays: dict[str, np.ndarray], about: dict[str, Any]) -> bytes:
    """From `obs` [n, o] to `action` [n, a] in the environment's bounds.

    Chance comes in as `noise` [n, a], standard normal; zeros ask for the mode.
    """
    graph = _Graph()
    low, high = _floats(about["action_low"]), _floats(about["action_high"])
    act_dim = len(low)
    x = graph.network(arrays, "policy", "obs", "Relu")
    mean, log_std = (
        graph.add("Slice", x, np.array([first]), np.array([first + act_dim]), np.array([1]))
        for first in (0, act_dim)
    )
    std = graph.add("Exp", graph.add("Clip", log_std, *map(_floats, about["log_std"])))
    action = graph.add("Tanh", graph.add("Add", mean, graph.add("Mul", std, "noise")))
    action = graph.add("Mul", action, (high - low) / 2)
    graph.add("Add", action, (high + low) / 2, output="action")
    return graph.model(
        {"obs": ["n", about["obs_dim"]], "noise": ["n", act_dim]}, {"action": ["n", act_dim]}
    )


def _floats(values: Any) -> np.ndarray:
    return np.asarray(values, np.float32)


class _Graph:
    """Operators in the order they are added; their results are named after them."""

    def __init__(self) -> None:
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(self, operator: str, *inputs: str | np.ndarray, output: str | None = None) -> str:
        """Apply an operator to earlier results, by name, and to constants. Names its result."""
        output = output or f"{operator} {len(self._nodes)}"
        names = []
        for value in inputs:
            if isinstance(value, np.ndarray):
                value = self._constant(value)
            names.append(value)
        self._nodes.append(helper.make_node(operator, names, [output]))
        return output

    def _constant(self, value: np.ndarray) -> str:
        name = f"constant {len(self._constants)}"
        self._constants.append(numpy_helper.from_array(value, name))
        return name

    def network(self, arrays: dict[str, np.ndarray], name: str, x: str, activation: str) -> str:
        """Linear layers with the activation between them."""
        last = sum(key.startswith(f"{name}/") for key in arrays) // 2 - 1
        for i in range(last + 1):
            x = self.add("Gemm", x, arrays[f"{name}/{i}/weight"], arrays[f"{name}/{i}/bias"])
            if i < last:
                x = self.add(activation, x)
        return x

    def model(self, inputs: _Shapes, outputs: _Shapes) -> bytes:
        """The whole of it, with the names and shapes of what goes in and comes out."""
        graph = helper.make_graph(
            self._nodes, "firl", _described(inputs), _described(outputs), self._constants
        )
        opset = helper.make_opsetid("", _OPSET)
        model = helper.make_model(
            graph, opset_imports=[opset], ir_version=_IR_VERSION, producer_name="firl"
        )
        content: bytes = model.SerializeToString()
        return content


def _described(shapes: _Shapes) -> list[Any]:
    return [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in shapes.items()
    ]
