"""What a person types: bad input gets one sentence and exit code 2, and nothing is half-written."""

import resource
import subprocess
import sys

import pytest

from firl.cli import main

TASK = "pointmass-gaussian"

BAD = {
    "unknown command": (["trian"], "did you mean 'train'?"),
    "no task": (["train"], "needs a task: pointmass-gaussian"),
    "unknown task": (["train", "pointmass-gausian"], "did you mean 'pointmass-gaussian'?"),
    "unknown preset": (["train", TASK, "--preset", "papper"], "did you mean 'paper'?"),
    "unknown method": (["train", TASK, "--method", "maxnet"], "did you mean 'maxent'?"),
    "unknown divergence": (["train", TASK, "--divergence", "fkll"], "did you mean 'fkl'?"),
    "unknown option": (["train", TASK, "--sede", "3"], "did you mean --seed?"),
    "unknown nested option": (["train", TASK, "--sac.learnin-rate", "1"], "--sac.learning-rate?"),
    "word for a number": (["train", TASK, "--seed", "one"], "--seed"),
    "option without value": (["train", TASK, "--seed"], "--seed"),
    "zero budget": (["train", TASK, "--env-steps", "0"], "--env-steps is 0, but must be positive"),
    "negative budget": (["train", TASK, "--env-steps", "-5"], "--env-steps is -5"),
    "budget that exploration uses up": (["train", TASK, "--env-steps", "150"], "use up"),
    "negative seed": (["train", TASK, "--seed", "-1"], "--seed is -1"),
    "zero bandwidth": (["train", TASK, "--ratio.bandwidth", "0"], "--ratio.bandwidth is 0"),
    "nan learning rate": (["train", TASK, "--sac.learning-rate", "nan"], "--sac.learning-rate"),
    "infinite temperature": (["train", TASK, "--sac.temperature", "inf"], "--sac.temperature"),
    "discount of one": (["train", TASK, "--sac.discount", "1"], "--sac.discount is 1"),
    "one rollout": (["train", TASK, "--collect.rollouts", "1"], "--collect.rollouts is 1"),
    "missing picture": (["train", TASK, "--picture", "nowhere.png"], "no picture at 'nowhere.png'"),
    "nobody to imitate": (["train", "humanoid"], "name demonstrations, --demos FILE"),
    "evaluate nothing": (["evaluate"], "needs a run's directory"),
    "evaluate no run": (["evaluate", "nowhere"], "nowhere is not a run of firl"),
    "plot no run": (["plot", "nowhere"], "nowhere is not a run of firl"),
    "export no run": (["export", "nowhere"], "nowhere is not a run of firl"),
    "export two runs": (["export", "a", "b"], "takes one run"),
    "tasks with a word": (["tasks", "all"], "takes no arguments"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_one_sentence(kind, tmp_path, monkeypatch, capsys):
    words, part = BAD[kind]
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    complaint = capsys.readouterr().err
    assert part in complaint
    assert complaint.startswith("firl: ")
    assert complaint.count("\n") == 1
    assert list(tmp_path.iterdir()) == [], "something was written"


def test_blank_and_unreadable_pictures(tmp_path, capsys):
    import numpy as np
    from matplotlib.image import imsave

    imsave(tmp_path / "blank.png", np.zeros((4, 4, 3)))
    (tmp_path / "text.png").write_text("not a picture")
    for name, part in (("blank.png", "is blank"), ("text.png", "cannot be read as a PNG")):
        words = ["train", TASK, "--picture", str(tmp_path / name), "--out", str(tmp_path / "run")]
        assert main(words) == 2
        assert part in capsys.readouterr().err
        assert not (tmp_path / "run").exists()


def test_out_that_cannot_be_used(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("")
    for out, part in (
        (tmp_path / "file", "is a file"),
        (tmp_path / "file" / "below", "cannot be written"),
        (tmp_path / "full", "is not empty"),
        ("/proc/nowhere/run", "cannot be written"),
    ):
        assert main(["train", TASK, "--out", str(out)]) == 2
        assert part in capsys.readouterr().err


def test_help_is_quick_and_complete():
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-m", "firl", "train", "--help"], capture_output=True, text=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert done.returncode == 0
    for option in ("--env-steps", "--sac.learning-rate", "--resume", "--out"):
        assert option in done.stdout
    assert min(seconds) < 0.5, "of the processor's time, as the machine may be busy"


def test_help_imports_nothing_heavy():
    code = (
        "import sys, firl.cli.train, firl.cli.runs;"
        "print([m for m in ('jax', 'numpy', 'mujoco', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_tasks_are_listed(capsys):
    assert main(["tasks"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(TASK)
    assert len(lines) >= 4
