"""What the README shows runs as it stands there, only shorter."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import firl
from firl.cli import COMMANDS, main
from firl.cli.options import option_names
from firl.cli.train import TrainCommand
from firl.tasks import TASKS, configure

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language, text=README):
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def test_python_example_runs(tmp_path, monkeypatch):
    (code,) = blocks("python")
    shorter = code.replace("env_steps=100_000", "env_steps=3_000, collect=SHORT, evaluation=FEW")
    assert shorter != code
    monkeypatch.chdir(tmp_path)
    from firl.config import CollectConfig, EvaluationConfig

    names: dict = {
        "SHORT": CollectConfig(random_episodes=1, rollouts=4, updates=5),
        "FEW": EvaluationConfig(episodes=3, expert_samples=100),
    }
    exec(compile(shorter, "README.md", "exec"), names)
    rewards = names["learned"].reward(np.array([[0.0], [np.pi]]))
    assert rewards.shape == (2,)
    torques = names["learned"].policy(np.array([[1.0, 0.0, 0.0]]))
    assert torques.shape == (1, 1)
    assert np.abs(torques).max() <= 2.0, "Pendulum's bounds"


@pytest.mark.parametrize("line", [line for b in blocks("sh") for line in b.splitlines()])
def test_commands_exist(line, capsys):
    words = shlex.split(line, comments=True)
    if not words or words[0] == "make":
        assert not words or f"\n{words[1]}:" in (ROOT / "Makefile").read_text()
        return
    assert words[0] == "firl"
    assert words[1] in COMMANDS
    if words[1] == "train":
        assert words[2] in TASKS
        known = option_names(TrainCommand(configure(words[2])))
        assert {word for word in words if word.startswith("--")} <= set(known)


def test_no_module_hides_a_public_name():
    """Importing firl.problem, say, would set firl's attribute of this name to the module."""
    modules = {path.stem for path in Path(firl.__file__).parent.iterdir()}
    assert not modules & set(firl.__all__)


def test_links_lead_somewhere():
    for page in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            if not target.startswith("http"):
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_make_commands_are_what_ci_runs():
    assert "make test" in README
    assert "make test" in (ROOT / ".ci" / "run").read_text()


def test_no_command_prints_usage(capsys):
    assert main([]) == 2
    assert "usage: firl" in capsys.readouterr().out
