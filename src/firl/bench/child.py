"""One process, pinned or not, that measures every setting and prints a row of JSON for each.

A process of its own, because the thread pools of XLA and PyTorch are sized once, at start.
"""

import argparse
import json
import os
import platform
from importlib import metadata


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cores", choices=("one", "all"), required=True)
    parser.add_argument("--repetitions", type=int, required=True)
    arguments = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    if arguments.cores == "one":
        cores = cores[-1:]
        os.sched_setaffinity(0, cores)  # before anything heavy counts the cores
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(len(cores))
    _measure(len(cores), arguments.repetitions)


def _measure(num_cores: int, repetitions: int) -> None:
    from firl.bench import ours, theirs
    from firl.bench.products import bare_products, flops
    from firl.bench.setting import SETTINGS, interleave

    for setting in SETTINGS:
        contenders = {
            "products float32": bare_products(setting, "float32"),
            "products bfloat16": bare_products(setting, "bfloat16"),
            **ours.contenders(setting),
            **theirs.contenders(setting),
        }
        row = {
            "cores": num_cores,
            "hidden": setting.hidden,
            "batch_size": setting.batch_size,
            "megaflops": flops(setting) / 1e6,
            "microseconds": interleave(contenders, repetitions),
            "versions": _versions(),
        }
        print(json.dumps(row), flush=True)


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("jax", "jaxlib", "mujoco", "torch", "stable_baselines3", "sbx-rl"):
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


if __name__ == "__main__":
    main()
