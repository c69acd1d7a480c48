"""Stable-Baselines3's and SBX's SAC, as their users would run them for speed."""

import importlib.util

from firl.bench.setting import BLOCK, ENVIRONMENT, WARM_UP, Contender, Setting

_TEMPERATURE = 0.2
"""Fixed, as ours is in this comparison."""


def missing() -> list[str]:
    """One sentence for each competitor that cannot be measured here."""
    return [
        f"{name} is not installed, so its column is missing: pip install '.[bench]' brings it."
        for name, module in (("Stable-Baselines3", "stable_baselines3"), ("SBX", "sbx"))
        if importlib.util.find_spec(module) is None
    ]


def contenders(setting: Setting) -> dict[str, Contender]:
    """Those that are installed."""
    named: dict[str, Contender] = {}
    if importlib.util.find_spec("stable_baselines3") is not None:
        named |= _stable_baselines3(setting)
    if importlib.util.find_spec("sbx") is not None:
        named |= _sbx(setting)
    return named


def _stable_baselines3(setting: Setting) -> dict[str, Contender]:
    import stable_baselines3

    model = stable_baselines3.SAC(
        "MlpPolicy",
        ENVIRONMENT,
        batch_size=setting.batch_size,
        policy_kwargs={"net_arch": [setting.hidden, setting.hidden]},
        learning_starts=WARM_UP,
        ent_coef=_TEMPERATURE,
        train_freq=1,
        gradient_steps=1,
        device="cpu",
        seed=0,
    )
    model.learn(WARM_UP)
    return {
        "SB3, update": Contender(lambda: _block(model.train(BLOCK, setting.batch_size))),
        "SB3, step + update": Contender(
            lambda: _block(model.learn(BLOCK, reset_num_timesteps=False))
        ),
    }


def _sbx(setting: Setting) -> dict[str, Contender]:
    import jax
    import sbx

    model = sbx.SAC(
        "MlpPolicy",
        ENVIRONMENT,
        batch_size=setting.batch_size,
        policy_kwargs={"net_arch": [setting.hidden, setting.hidden]},
        learning_starts=WARM_UP,
        ent_coef=_TEMPERATURE,
        train_freq=BLOCK,  # updates in blocks: its best setting, twice as fast as one at a time
        gradient_steps=BLOCK,
        seed=0,
    )
    model.learn(WARM_UP)

    def update() -> int:
        model.train(BLOCK, setting.batch_size)
        jax.block_until_ready((model.policy.qf_state.params, model.policy.actor_state.params))
        return BLOCK

    return {
        "SBX, update": Contender(update),
        "SBX, step + update": Contender(
            lambda: _block(model.learn(BLOCK, reset_num_timesteps=False))
        ),
    }


def _block(_: object) -> int:
    return BLOCK
