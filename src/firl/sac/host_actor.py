"""The actor in NumPy, for simulators that step on the host.

One observation through a small network is microseconds of arithmetic; handing it to a compiled
function and back costs several times that.
"""

import numpy as np
from jaxtyping import Float32

from firl.sac.networks import LOG_STD_MAX, LOG_STD_MIN, Actor


class HostActor:
    """A copy of an actor's weights, and the same arithmetic."""

    def __init__(self, actor: Actor) -> None:
        # Copies: the actor's own arrays are donated to the next block of updates.
        layers = zip(actor.net.weights, actor.net.biases, strict=True)
        self._layers = [(np.array(weight), np.array(bias)) for weight, bias in layers]

    def __call__(
        self, obs: Float32[np.ndarray, "m o"], noise: Float32[np.ndarray, "m a"]
    ) -> Float32[np.ndarray, "m a"]:
        """tanh(μ + σε)."""
        x = obs
        last = len(self._layers) - 1
        for i, (weight, bias) in enumerate(self._layers):
            x = x @ weight
            x += bias
            if i < last:
                np.maximum(x, 0, out=x)
        act_dim = noise.shape[1]
        log_std = np.minimum(np.maximum(x[:, act_dim:], LOG_STD_MIN), LOG_STD_MAX)
        actions: np.ndarray = np.tanh(x[:, :act_dim] + np.exp(log_std) * noise)
        return actions
