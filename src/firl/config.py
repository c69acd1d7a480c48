"""What a run is made of: frozen dataclasses, a docstring under each field, nothing heavy imported.

The docstrings are the command line's help. Defaults that differ per task live in `tasks.py`;
what differs from the paper has a line in docs/reproduction.md.
"""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from firl.errors import FirlError


@dataclass(frozen=True)
class SACConfig:
    """How the agent is built and how it learns."""

    hidden: tuple[int, ...] = (64, 64)
    """Widths of the hidden layers, of the actor and of both critics."""
    learning_rate: float = 1e-3
    """Adam's step size, for actor, critics and a learned temperature; at the start."""
    anneal_to: float = 1.0
    """Share of the step size that is left at the end of the budget, to which it falls linearly."""
    batch_size: int = 100
    """Transitions drawn for each update."""
    discount: float = 0.99
    """γ, below 1: an absorbing state is worth r / (1 − γ)."""
    polyak: float = 0.995
    """What the target critics keep of themselves at each update."""
    temperature: float = 0.2
    """α, the weight of the entropy; where a learned temperature starts."""
    learn_temperature: bool = False
    """Whether α follows `target_entropy` or stays what it is."""
    target_entropy: float | None = None
    """The entropy (nats) a learned temperature aims at; −act_dim when not given."""
    buffer_size: int = 1_000_000
    """Transitions that the replay buffer holds before the oldest are overwritten."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """What the factors of hidden × hidden products are rounded to; sums stay float32."""


@dataclass(frozen=True)
class RewardConfig:
    """The reward network and how it descends the divergence."""

    hidden: tuple[int, ...] = (64, 64)
    """Units in each hidden layer."""
    activation: Literal["relu", "tanh"] = "tanh"
    """Non-linearity after each hidden layer."""
    normalise: bool = True
    """Scale states to the arena, so that the network sees numbers around one."""
    bound: float = 10.0
    """Rewards stay within ± this."""
    soft_bound: bool = True
    """Bound by b·tanh(x/b), whose gradient never dies; otherwise clamp, as the paper does."""
    learning_rate: float = 1e-3
    """Adam's step size, at the start."""
    anneal_to: float = 0.1
    """Share of the step size that is left at the end of the budget, to which it falls linearly: a
    constant one never comes to rest."""
    weight_decay: float = 0.0
    """ℓ2 penalty on the weights, added to the gradient."""
    gradient_steps: int = 2
    """Steps on each iteration's gradient estimate."""


@dataclass(frozen=True)
class RatioConfig:
    """How log ρ_expert − log ρ_agent is estimated when the expert is a density."""

    bandwidth: float | None = None
    """Of the kernel density estimate of what the agent visits, in the state's units; Scott's rule
    on each iteration's states where it is not given."""
    kernel: Literal["epanechnikov", "gaussian"] = "epanechnikov"
    """Shape of the kernel."""
    leave_one_out: bool = False
    """Leave each state's own kernel out of the density at that state."""
    self_normalise: bool = True
    """MaxEntIRL's importance weights sum to one; the paper's need not."""


@dataclass(frozen=True)
class CollectConfig:
    """Which episodes an iteration runs. All of their steps count."""

    random_episodes: int = 5
    """Episodes of uniform actions before learning starts."""
    sac_episodes: int = 0
    """Episodes per iteration that only the replay buffer gets."""
    rollouts: int = 20
    """Episodes per iteration that the reward's gradient is estimated from."""
    window: int = 1
    """The gradient also uses the rollouts of the last `window` − 1 iterations."""
    learn_from_rollouts: bool = True
    """Put those rollouts into the replay buffer too, so that every step works twice."""
    updates: int = 300
    """SAC updates per iteration."""


@dataclass(frozen=True)
class ClassifierConfig:
    """How log ρ_expert − log ρ_agent is estimated when the expert is given by demonstrations."""

    hidden: tuple[int, ...] = (128, 128)
    """Units in each hidden layer."""
    learning_rate: float = 3e-4
    """Adam's step size."""
    weight_decay: float = 1e-4
    """ℓ2 penalty on the weights, added to the gradient."""
    batch_size: int = 256
    """States of each side in a step."""
    steps: int = 100
    """Steps per iteration, from where the last iteration stopped."""
    gradient_penalty: float = 10.0
    """Weight of the squared excess of the slope between expert and agent."""
    slope: float = 1.0
    """What the slope may be without penalty, in logits per standard deviation of the expert."""
    bound: float = 10.0
    """Logits stay within ± this, softly."""


@dataclass(frozen=True)
class ImitationConfig:
    """Which trajectories the reward's gradient is estimated from, given demonstrations."""

    demonstrations: int = 1
    """How many to use, in the order of the file: never the best ones."""
    rollouts: int = 0
    """More episodes per iteration for the gradient alone, as the paper has it; 0 takes those that
    SAC learns from."""
    window: int = 10
    """Episodes of the agent, its last ones."""
    batch: int = 10
    """Of these, how many are drawn for each step of the reward."""
    tail: int = 100
    """How many visits a terminal state counts at most, in place of all until T: of a short episode
    there would be nothing else to see. 100 is 1/(1 − γ), what it counts to the agent."""
    standardise: bool = True
    """Divide h_f by its standard deviation, so that the penalties keep their weight against it."""
    slope_penalty: float = 10.0
    """Weight of the squared excess of the reward's slope between expert and agent."""
    slope: float = 1.0
    """What that slope may be without penalty, per standard deviation of the expert."""
    average: float = 0.0
    """What the reward that the agent learns from keeps of itself at each iteration: 0 is the
    latest reward, more is an average over past ones."""


@dataclass(frozen=True)
class AdversarialConfig:
    """What a discriminator sees and pays, where it is all there is (gail, f-max-rkl, fairl)."""

    pays: Literal["positive", "negative"] = "positive"
    """What gail pays: −log(1 − D) or log D."""
    scale: float = 1.0
    """What the reward is multiplied by."""
    actions: bool = False
    """Whether it sees states and actions, rather than states."""


@dataclass(frozen=True)
class CloningConfig:
    """How behaviour cloning learns, and when it stops."""

    learning_rate: float = 3e-4
    """Adam's step size."""
    batch_size: int = 256
    """Pairs of observation and action in a step."""
    steps: int = 100
    """Steps per iteration, after each of which the held-out likelihood is looked at."""
    patience: int = 20
    """Iterations without a higher held-out likelihood after which it stops."""
    most_steps: int = 50_000
    """Steps after which it stops in any case."""
    stretch: int = 20
    """Consecutive steps of an episode that are held out, or learned from, together."""
    hold_out_every: int = 5
    """Of so many stretches the last one is held out."""


@dataclass(frozen=True)
class PracticeConfig:
    """How the agent acts and learns at the same time, where episodes are long."""

    random_steps: int = 1000
    """Steps of uniform actions before learning starts, in whole episodes."""
    steps: int = 1000
    """Steps per iteration, in whole episodes."""
    every: int = 50
    """Steps between blocks of updates."""
    updates: int = 50
    """SAC updates in each block."""


@dataclass(frozen=True)
class EvaluationConfig:
    """How the agent is scored during training. These steps are counted apart."""

    every: int = 10
    """Iterations between evaluations; the last iteration is always evaluated."""
    episodes: int = 100
    """Episodes of the stochastic policy."""
    expert_samples: int = 10_000
    """Samples of the expert's density to compare with."""
    neighbours: int = 3
    """k of the Kozachenko-Leonenko estimators."""


GIVEN_REWARD = ("true-reward", "learned-reward")
"""Methods that imitate nobody."""


@dataclass(frozen=True)
class TrainConfig:
    """One training, complete: the same configuration gives the same run, bit for bit."""

    task: Annotated[str, tyro.conf.Suppress]
    """What to learn; `firl tasks` lists them."""
    method: str = "firl"
    """How to learn it: firl, maxent, airl, gail, f-max-rkl, fairl, smm or bc; true-reward and
    learned-reward train SAC on a reward that is given."""
    divergence: str = "fkl"
    """What firl minimises between the expert's and the agent's state marginal: fkl, rkl, js, tv,
    hellinger, chi2, chi2-neyman, w1 or mmd."""
    preset: Literal["default", "paper"] = "default"
    """`paper` takes every hyper-parameter of the paper's appendix C."""
    seed: int = 0
    """Seeds everything."""
    env_steps: int = 100_000
    """Budget: simulator steps of training, the gradient's roll-outs included."""
    picture: Path | None = None
    """A PNG whose brightness over the arena is the density to match, instead of the task's own."""
    demos: Path | None = None
    """Demonstrations to imitate (a Minari dataset's directory, .npz, .npy or .csv), instead of the
    task's own."""
    learned_reward: Path | None = None
    """The run whose reward method learned-reward trains SAC on."""
    checkpoint_every: int = 20
    """Iterations between checkpoints; a killed run goes on from the last one."""
    collect: CollectConfig = field(default_factory=CollectConfig)
    practice: PracticeConfig = field(default_factory=PracticeConfig)
    imitation: ImitationConfig = field(default_factory=ImitationConfig)
    classifier: ClassifierConfig = field(default_factory=ClassifierConfig)
    adversarial: AdversarialConfig = field(default_factory=AdversarialConfig)
    cloning: CloningConfig = field(default_factory=CloningConfig)
    ratio: RatioConfig = field(default_factory=RatioConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    sac: SACConfig = field(default_factory=SACConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        """Refuse what cannot be run, naming the option and the value."""
        positive = {
            "--env-steps": self.env_steps,
            "--checkpoint-every": self.checkpoint_every,
            "--collect.window": self.collect.window,
            "--practice.steps": self.practice.steps,
            "--practice.every": self.practice.every,
            "--practice.updates": self.practice.updates,
            "--collect.updates": self.collect.updates,
            "--imitation.demonstrations": self.imitation.demonstrations,
            "--imitation.window": self.imitation.window,
            "--imitation.batch": self.imitation.batch,
            "--imitation.tail": self.imitation.tail,
            "--imitation.slope": self.imitation.slope,
            "--classifier.steps": self.classifier.steps,
            "--classifier.batch-size": self.classifier.batch_size,
            "--classifier.learning-rate": self.classifier.learning_rate,
            "--classifier.slope": self.classifier.slope,
            "--classifier.bound": self.classifier.bound,
            "--adversarial.scale": self.adversarial.scale,
            "--cloning.learning-rate": self.cloning.learning_rate,
            "--cloning.batch-size": self.cloning.batch_size,
            "--cloning.steps": self.cloning.steps,
            "--cloning.patience": self.cloning.patience,
            "--cloning.most-steps": self.cloning.most_steps,
            "--cloning.stretch": self.cloning.stretch,
            "--ratio.bandwidth": 1.0 if self.ratio.bandwidth is None else self.ratio.bandwidth,
            "--reward.bound": self.reward.bound,
            "--reward.learning-rate": self.reward.learning_rate,
            "--reward.gradient-steps": self.reward.gradient_steps,
            "--sac.learning-rate": self.sac.learning_rate,
            "--sac.batch-size": self.sac.batch_size,
            "--sac.buffer-size": self.sac.buffer_size,
            "--sac.temperature": self.sac.temperature,
            "--evaluation.every": self.evaluation.every,
            "--evaluation.episodes": self.evaluation.episodes,
            "--evaluation.expert-samples": self.evaluation.expert_samples,
            "--evaluation.neighbours": self.evaluation.neighbours,
        }
        for option, value in positive.items():
            if not 0 < value < float("inf"):
                raise FirlError(f"{option} is {value}, but must be positive and finite.")
        for part, share in (("reward", self.reward.anneal_to), ("sac", self.sac.anneal_to)):
            if not 0 <= share <= 1:
                raise FirlError(f"--{part}.anneal-to is {share}, but must be in [0, 1].")
        if self.collect.rollouts < 2:
            raise FirlError(
                f"--collect.rollouts is {self.collect.rollouts}, but a covariance needs at least 2."
            )
        if not 0 <= self.imitation.average < 1:
            raise FirlError(
                f"--imitation.average is {self.imitation.average}, but must be in [0, 1)."
            )
        if self.cloning.hold_out_every < 2:
            raise FirlError(
                f"--cloning.hold-out-every is {self.cloning.hold_out_every}, but must be at least "
                "2: something has to be left to learn from."
            )
        if self.imitation.batch > self.imitation.window:
            raise FirlError(
                f"--imitation.batch is {self.imitation.batch}, but the window to draw from holds "
                f"{self.imitation.window}: raise --imitation.window."
            )
        if self.picture is not None and self.demos is not None:
            raise FirlError("--picture and --demos are two experts: leave one of them out.")
        if not 0 <= self.sac.discount < 1:
            raise FirlError(f"--sac.discount is {self.sac.discount}, but must be in [0, 1).")
        not_negative = {
            "--seed": self.seed,
            "--collect.random-episodes": self.collect.random_episodes,
            "--collect.sac-episodes": self.collect.sac_episodes,
            "--practice.random-steps": self.practice.random_steps,
            "--reward.weight-decay": self.reward.weight_decay,
            "--imitation.rollouts": self.imitation.rollouts,
            "--imitation.slope-penalty": self.imitation.slope_penalty,
            "--classifier.gradient-penalty": self.classifier.gradient_penalty,
            "--classifier.weight-decay": self.classifier.weight_decay,
        }
        for option, value in not_negative.items():
            if not 0 <= value < float("inf"):
                raise FirlError(f"{option} is {value}, but must not be negative.")


def as_json(config: Any) -> dict[str, Any]:
    """A configuration as plain JSON values, nested as it is."""
    plain: dict[str, Any] = dataclasses.asdict(
        config, dict_factory=lambda items: {key: _plain(value) for key, value in items}
    )
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def from_json(plain: dict[str, Any]) -> TrainConfig:
    """The configuration that `as_json` wrote; unknown or missing fields are refused."""
    config = _build(TrainConfig, plain, "config")
    assert isinstance(config, TrainConfig)
    return config


_NESTED: dict[str, type] = {
    "collect": CollectConfig,
    "practice": PracticeConfig,
    "imitation": ImitationConfig,
    "classifier": ClassifierConfig,
    "adversarial": AdversarialConfig,
    "cloning": CloningConfig,
    "ratio": RatioConfig,
    "reward": RewardConfig,
    "sac": SACConfig,
    "evaluation": EvaluationConfig,
}


_PATHS = ("picture", "demos", "learned_reward")


def _build(cls: type, plain: dict[str, Any], where: str) -> Any:
    names = {f.name for f in dataclasses.fields(cls)}
    if set(plain) != names:
        odd = sorted(set(plain) ^ names)[0]
        raise FirlError(
            f"{where} has other fields than this version of firl writes ({odd!r}): it was written "
            "by another version; use that one, or start a new run."
        )
    values: dict[str, Any] = {}
    for name, value in plain.items():
        if name in _NESTED and cls is TrainConfig:
            value = _build(_NESTED[name], value, f"{where}.{name}")
        elif name in _PATHS and value is not None:
            value = Path(value)
        elif isinstance(value, list):
            value = tuple(value)
        values[name] = value
    return cls(**values)


def flatten(config: TrainConfig) -> dict[str, Any]:
    """Dotted option names and their values, as on the command line."""
    flat: dict[str, Any] = {}

    def visit(prefix: str, node: dict[str, Any]) -> None:
        for name, value in node.items():
            if isinstance(value, dict):
                visit(f"{prefix}{name}.", value)
            else:
                flat[f"{prefix}{name}"] = value

    visit("", as_json(config))
    return flat
