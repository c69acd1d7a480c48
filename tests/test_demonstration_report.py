"""What `firl demos` says of demonstrations, and what it writes."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from firl import Demonstrations, from_arrays, read_demonstrations
from firl.cli import main
from firl.expert.report import clock_coordinates, constant_coordinates, duplicates
from firl.expert.write import write_minari, write_npz
from firl.types import Columns

LENGTHS = (5, 9, 5)


def walks(seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(length + 1, 3)).cumsum(axis=0) for length in LENGTHS]


def demonstrations(observations: list[np.ndarray] | None = None) -> Demonstrations:
    return from_arrays(
        observations or walks(),
        actions=[np.zeros((length, 2)) for length in LENGTHS],
        rewards=[np.full(length, 2.0) for length in LENGTHS],
        terminated=[False, True, False],
        env_id="Hopper-v5",
        provenance={"seed": 4, "command": "firl train hopper"},
    )


def line(demos: Demonstrations, name: str) -> list[str]:
    """What the lines of that name say."""
    parts = [re.split(r"  +", entry.strip(), maxsplit=1) for entry in demos.report()]
    return [said for start, said in parts if start == name]


def test_facts() -> None:
    demos = demonstrations()
    assert line(demos, "episodes") == ["3, of which 1 terminated"]
    assert line(demos, "steps") == ["min 5, median 5, max 9"]
    assert line(demos, "observations") == ["3 coordinates"]
    assert line(demos, "actions") == ["2 coordinates"]
    assert line(demos, "environment") == ["Hopper-v5"]
    assert line(demos, "seed") == ["4"]
    assert line(demos, "command") == ['"firl train hopper"']
    assert len(demos.report()) == 8, "nothing is odd about them"
    starts = {re.search(r"  +(?=\S)", entry[2:]).end() for entry in demos.report()}  # type: ignore[union-attr]
    assert len(starts) == 1, "one column"


def test_returns_are_reported() -> None:
    """Of 10, 18, 10: mean 38/3, standard deviation √(128/9)."""
    (said,) = line(demonstrations(), "true return")
    assert said.startswith("12.67 ± 3.77, min 10.00, max 18.00")
    assert "never learned from" in said


def test_what_was_not_recorded_is_said() -> None:
    bare = from_arrays(walks())
    for name in ("actions", "true return", "environment"):
        assert line(bare, name) == ["not recorded"]


def test_a_long_provenance_is_cut() -> None:
    (said,) = line(from_arrays(walks(), provenance={"returns": list(range(999))}), "returns")
    assert said.startswith("[0, 1, 2")
    assert said.endswith("…")
    assert len(said) <= 100


def test_duplicates_are_found() -> None:
    ours, other = walks(), walks(1)
    demos = from_arrays([ours[0], other[0], ours[0].copy(), ours[1], other[0], ours[0]])
    assert duplicates(demos) == [[0, 2, 5], [1, 4]]
    assert line(demos, "duplicates") == [
        "episodes 2, 5 are the same as episode 0",
        "episode 4 is the same as episode 1",
    ]
    shorter = from_arrays([ours[0], ours[0][:-1], ours[0].reshape(-1, 3)[::-1]])
    assert duplicates(shorter) == []


def test_constants_are_found_in_what_is_matched() -> None:
    observations = walks()
    for obs in observations:
        obs[1:, 1] = 0.3  # s_0 is not matched
    observations = [np.hstack([obs, np.full((len(obs), 4), 2.0)]) for obs in observations]
    observations[2][1, 4] = 2.1
    demos = from_arrays(observations)
    assert constant_coordinates(demos) == [1, 3, 5, 6]
    (said,) = line(demos, "constant")
    assert said.startswith("coordinates 1, 3, 5–6: the same everywhere")


def clocked(clock: Any) -> Demonstrations:
    """Walks whose second coordinate is a function of the step and of the episode."""
    observations = walks()
    for episode, obs in enumerate(observations):
        obs[:, 1] = [clock(step, episode) for step in range(len(obs))]
    return from_arrays([obs.astype(np.float32) for obs in observations])


CLOCKS: dict[str, tuple[Any, bool]] = {
    "time": (lambda step, episode: step * 0.05, True),
    "time left": (lambda step, episode: 1 - step / LENGTHS[episode], True),
    "another start": (lambda step, episode: 100 * episode + step / 3, True),
    "nearly": (lambda step, episode: step + 1e-5 * (-1) ** step, True),
    "level": (lambda step, episode: 3.0, False),
    "level once": (lambda step, episode: step * (episode != 1), False),
    "bent once": (lambda step, episode: step + 0.1 * step**2 * (episode == 2), False),
    "nearly not": (lambda step, episode: step + 0.05 * (-1) ** step, False),
}


@pytest.mark.parametrize("kind", CLOCKS)
def test_a_clock_is_found(kind: str) -> None:
    clock, found = CLOCKS[kind]
    demos = clocked(clock)
    assert clock_coordinates(demos) == ([1] if found else [])
    said = line(demos, "clock")
    assert len(said) == found
    assert not found or said[0].startswith("coordinate 1: linear in time")


def test_two_steps_are_always_straight() -> None:
    assert clock_coordinates(from_arrays([obs[:2] for obs in walks()])) == []
    few = from_arrays([*walks(), np.zeros((3, 3))])
    assert clock_coordinates(few) == []
    straight = np.column_stack([np.arange(6.0), np.arange(6.0) ** 2])
    assert clock_coordinates(from_arrays([straight, np.zeros((3, 2))])) == [0]


def test_demos_prints_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_npz(demonstrations(), tmp_path / "a.npz")
    assert main(["demos", str(tmp_path / "a.npz")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == read_demonstrations(tmp_path / "a.npz").report()
    assert lines[0] == "episodes      3, of which 1 terminated"


def test_demos_takes_minaris_ids(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    write_minari(demonstrations(), tmp_path / "mujoco" / "walk-v0")
    assert main(["demos", "minari:mujoco/walk-v0"]) == 0
    assert "3, of which 1 terminated" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["b.npz", "b.NPZ", "b", "new/b", "half.hopper-v0"])
def test_demos_writes_them_again(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = tmp_path / "a.npz", tmp_path / name
    write_npz(demonstrations(), source)
    words = ["demos", str(source), "--to", str(out)]
    assert main(words) == 0
    assert capsys.readouterr().out.splitlines()[-1] == str(out)
    again = read_demonstrations(out)
    assert again.report() == demonstrations().report()
    for ours, theirs in zip(again.observations, walks(), strict=True):
        np.testing.assert_array_equal(ours, theirs.astype(np.float32))
    if name.lower().endswith(".npz"):
        assert out.read_bytes() == source.read_bytes()
    else:
        assert h5py.is_hdf5(out / "data" / "main_data.hdf5")
    before = sorted(tmp_path.rglob("*"))
    assert main(words) == 2
    assert "there is something already" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


BAD = {
    "no file": (
        [],
        "takes one file before its options, as in firl demos expert.npz, but was given",
    ),
    "two files": (["a.npz", "b.npz"], "but was given 2"),
    "options first": (["--to", "b.npz", "a.npz"], "takes one file before its options"),
    "missing file": (["nowhere.npz"], "There are no demonstrations at 'nowhere.npz'"),
    "missing dataset": (["minari:nowhere-v0"], "Minari has no such dataset"),
    "damaged file": (["damaged.npz"], "damaged.npz: it is empty, damaged"),
    "unknown option": (["a.npz", "--too", "b.npz"], "There is no option --too: did you mean --to?"),
    "no name": (["a.npz", "--to"], "--to"),
    "onto itself": (["a.npz", "--to", "a.npz"], "--to a.npz: there is something already"),
    "onto another": (["a.npz", "--to", "damaged.npz"], "there is something already"),
    "onto a directory": (["a.npz", "--to", "."], "there is something already"),
    "csv": (["a.npz", "--to", "b.csv"], "--to b.csv: firl writes an .npz or a Minari"),
    "pickle": (["a.npz", "--to", "b.pkl"], "give the name the ending .npz, or none"),
    "id": (["a.npz", "--to", "minari:b-v0"], "firl writes an .npz or a Minari"),
    "nowhere": (["a.npz", "--to", "nowhere/b.npz"], "nowhere/b.npz: cannot be written"),
    "below a file": (["a.npz", "--to", "a.npz/b"], "cannot be written"),
    "bare": (["bare.npz", "--to", "b"], "has actions and rewards"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_input_is_one_sentence(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words, part = BAD[kind]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    write_npz(demonstrations(), "a.npz")
    write_npz(from_arrays(walks()), "bare.npz")
    Path("damaged.npz").write_bytes(b"PK\x03\x04")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert main(["demos", *words]) == 2
    said = capsys.readouterr()
    assert part in said.err
    assert said.err.startswith("firl: ")
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, firl.cli\n"
        "try: firl.cli.main(['demos', '--help'])\n"
        "except SystemExit as stop: assert not stop.code\n"
        "heavy = [m for m in ('jax', 'numpy', 'h5py', 'gymnasium') if m in sys.modules]\n"
        "print('heavy:', heavy)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "--to" in done.stdout
    assert done.stdout.splitlines()[-1] == "heavy: []"


PAGE = Path(__file__).parents[1] / "docs" / "demonstrations.md"


def test_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every block of docs/demonstrations.md, one after the other as a reader would."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    blocks = re.findall(r"```(python|csv|sh|text)\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert {language for language, _ in blocks} == {"python", "csv", "sh", "text"}
    names: dict[str, Any] = {}
    for language, block in blocks:
        if language == "python":
            exec(compile(block, str(PAGE), "exec"), names)
        elif language == "csv":
            Path("expert.csv").write_text(block)
            assert read_demonstrations("expert.csv").num == 2
        elif language == "sh":
            capsys.readouterr()
            for command in block.splitlines():
                words = command.split("#")[0].split()
                assert words[0] == "firl"
                assert main(words[1:]) == 0
        else:
            assert capsys.readouterr().out == block
    assert isinstance(names["state"], Columns)
