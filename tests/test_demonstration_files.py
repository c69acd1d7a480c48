"""Demonstrations come back from disk as they went, and damaged files say that they are."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import h5py
import numpy as np
import pytest

from firl import Demonstrations, FirlError, from_arrays, read_demonstrations
from firl.expert.write import write_minari, write_npz

LENGTHS = [3, 1, 4, *[2] * 9]
"""Twelve episodes: HDF5 sorts the tenth before the second."""


def demonstrations(**changes: Any) -> Demonstrations:
    rng = np.random.default_rng(0)
    given: dict[str, Any] = {
        "actions": [rng.normal(size=(length, 1)) for length in LENGTHS],
        "rewards": [rng.normal(size=length) for length in LENGTHS],
        "terminated": np.arange(12) % 2 == 1,
        "env_id": "Pendulum-v1",
        "provenance": {"command": "firl expert", "seed": [1, 2], "of": {"θ": 0.5}},
    }
    observations = [rng.normal(size=(length + 1, 3)) for length in LENGTHS]
    return from_arrays(observations, **(given | changes))


def check_same(ours: Demonstrations, theirs: Demonstrations) -> None:
    assert (ours.actions is None) == (theirs.actions is None)
    assert (ours.rewards is None) == (theirs.rewards is None)
    for one, other in (
        (ours.observations, theirs.observations),
        (ours.actions or (), theirs.actions or ()),
        (ours.rewards or (), theirs.rewards or ()),
    ):
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(ours.terminated, theirs.terminated)
    assert (ours.env_id, ours.provenance) == (theirs.env_id, theirs.provenance)


BARE: dict[str, Any] = {"actions": None, "rewards": None, "env_id": None, "provenance": None}


@pytest.mark.parametrize("changes", [{}, BARE], ids=["all", "observations"])
def test_npz_comes_back_and_goes_again_byte_for_byte(changes: Any, tmp_path: Path) -> None:
    demos = demonstrations(**changes)
    write_npz(demos, tmp_path / "a.npz")
    read = read_demonstrations(tmp_path / "a.npz")
    check_same(read, demos)
    assert read.source == str(tmp_path / "a.npz")
    backwards = dict(reversed(read.provenance.items()))
    write_npz(replace(read, provenance=backwards), tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


OBS = np.arange(24.0).reshape(2, 4, 3)

ARRAYS: dict[str, Callable[[Path], object]] = {
    "episodes.npy": lambda path: np.save(path, OBS),
    "one.npy": lambda path: np.save(path, OBS[0].astype(int)),
    "episodes.npz": lambda path: np.savez(path, OBS),
    "one.npz": lambda path: np.savez(path, states=OBS[0]),
    "UPPER.NPZ": lambda path: path.write_bytes(npz(anything=OBS)),
    "npz-called.npy": lambda path: path.write_bytes(npz(observations=OBS, terminated=[0, 1])),
    "one-with-actions.npz": lambda path: np.savez(
        path, observations=OBS[0], actions=OBS[0, :3], rewards=[1, 2, 3], terminated=True, lengths=3
    ),
}


def npz(**arrays: Any) -> bytes:
    data = io.BytesIO()
    np.savez(data, **arrays)
    return data.getvalue()


@pytest.mark.parametrize("name", ARRAYS)
def test_plain_arrays_are_observations(name: str, tmp_path: Path) -> None:
    ARRAYS[name](tmp_path / name)
    demos = read_demonstrations(str(tmp_path / name))
    episodes = OBS[:1] if name.startswith("one") else OBS
    np.testing.assert_array_equal(np.stack(demos.observations), episodes)
    assert demos.terminated.any() == ("with" in name or "called" in name)


def test_what_lies_behind_an_episodes_end_is_not_looked_at(tmp_path: Path) -> None:
    padded, actions = OBS.copy(), np.ones((2, 3, 1))
    padded[1, 2:], actions[1, 1:] = np.nan, np.inf
    np.savez(tmp_path / "a.npz", observations=padded, actions=actions, lengths=[3, 1])
    demos = read_demonstrations(tmp_path / "a.npz")
    assert demos.lengths.tolist() == [3, 1]
    np.testing.assert_array_equal(demos.observations[1], OBS[1, :2])


CSV: dict[str, tuple[str, list[list[list[float]]]]] = {
    "numbers": ("1,2\n3,4.5\n-1e-3,6\n", [[[1, 2], [3, 4.5], [-1e-3, 6]]]),
    "header": ("x,y\n1,2\n3,4\n", [[[1, 2], [3, 4]]]),
    "episodes": ("x,episode\n1,a\n2,a\n7,b\n8,b\n9,b\n", [[[1], [2]], [[7], [8], [9]]]),
    "capitals": ("Episode,x\n3,1\n3,2\n1,7\n1,8\n", [[[1], [2]], [[7], [8]]]),
    "number in a header": ("episode,1\n0,5\n0,6\n", [[[5], [6]]]),
    "byte-order mark": ("\ufeffepisode,x\n0,5\n0,6\n", [[[5], [6]]]),
    "byte-order mark and numbers": ("\ufeff5,6\n7,8\n", [[[5, 6], [7, 8]]]),
    "from a spreadsheet": ('"x","y"\r\n1 , 2\r\n\r\n"3","4"\r\n,\r\n', [[[1, 2], [3, 4]]]),
    "one coordinate": ("0\n1\n2\n", [[[0], [1], [2]]]),
}


@pytest.mark.parametrize("kind", CSV)
def test_csv(kind: str, tmp_path: Path) -> None:
    text, episodes = CSV[kind]
    (tmp_path / "a.csv").write_bytes(text.encode())
    demos = read_demonstrations(tmp_path / "a.csv")
    assert demos.num == len(episodes)
    for ours, theirs in zip(demos.observations, episodes, strict=True):
        np.testing.assert_array_equal(ours, np.array(theirs, np.float32))
    assert not demos.terminated.any()


def half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def flipped(data: bytes) -> bytes:
    return data[:200] + bytes(255 - byte for byte in data[200:260]) + data[260:]


def zipped(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "no array")


saved = partial(npz, observations=OBS)
OBJECTS = np.array([np.zeros(2), None], dtype=object)

BAD: dict[str, tuple[str, bytes | str | Callable[[Path], object], str]] = {
    "pickle": ("a.pkl", pickle.dumps(OBS), r"\.pkl files are pickles.*firl never does"),
    "torch": ("a.pt", b"", r"\.pt files are pickles"),
    "other": ("a.mat", b"", r"does not read demonstrations from \.mat, but from a Minari"),
    "no ending": ("a", b"", "from a file without an ending"),
    "objects.npy": ("a.npy", lambda p: np.save(p, OBJECTS), "holds pickled objects"),
    "objects.npz": ("a.npz", npz(observations=OBJECTS), "holds pickled objects"),
    "empty.npz": ("a.npz", b"", "is empty, damaged or no .npz at all"),
    "empty.npy": ("a.npy", b"", "is empty, damaged or no .npy at all"),
    "text": ("a.npz", "not a zip", "is empty, damaged or no .npz at all"),
    "half.npz": ("a.npz", half(saved()), "is empty, damaged or no .npz at all"),
    "flipped.npz": ("a.npz", flipped(saved()), "is empty, damaged or no .npz at all"),
    "half.npy": (
        "a.npy",
        lambda p: (np.save(p, OBS), p.write_bytes(half(p.read_bytes()))),
        "is empty, damaged or no .npy at all",
    ),
    "no arrays": ("a.npz", npz(), "there are no arrays in it"),
    "no array": ("a.npz", zipped, r"'readme.txt' in it is no array"),
    "misspelt": ("a.npz", saved(action=OBS[:, :3]), "no array 'action'.*did you mean 'actions'"),
    "unknown": ("a.npz", saved(xyz=OBS), "no array 'xyz'.*leave it out, of observations, lengths"),
    "no observations": (
        "a.npz",
        npz(obs=OBS, actions=OBS),
        "no array 'observations' in it, but 'obs', 'actions'",
    ),
    "flat": ("a.npy", lambda p: np.save(p, OBS[0, 0]), r"has shape \[3\], but must be \[N, L"),
    "flat.npz": ("a.npz", npz(observations=OBS[0, 0]), r"observations have shape \[3\]"),
    "pictures": ("a.npz", npz(observations=OBS[None]), r"observations have shape \[1, 2, 4, 3\]"),
    "NaN": ("a.npy", lambda p: np.save(p, OBS * np.nan), "a.npy: episode 0 has nan in its obs"),
    "no step": ("a.npz", npz(observations=OBS[:, :1]), r"episode 0 has no step \(1 obs"),
    "off by one": ("a.npz", saved(actions=OBS), r"actions have shape \[2, 4, 3\].*\[2, 3\]"),
    "other number": ("a.npz", saved(rewards=np.ones((3, 3))), "observations are of 2 episodes"),
    "scalar": ("a.npz", saved(terminated=True), r"terminated have shape \[\]"),
    "too long": ("a.npz", saved(lengths=[3, 4]), "episode 1 is said to have 4 steps.*1 to 3"),
    "no length": ("a.npz", saved(lengths=[0, 3]), "episode 0 is said to have 0 steps"),
    "half a step": ("a.npz", saved(lengths=[1.5, 3]), "must be 2 whole numbers"),
    "two names": ("a.npz", saved(env_id=["a", "b"]), "env_id must be one string"),
    "no JSON": ("a.npz", saved(provenance="{"), "provenance is not JSON"),
    "no dict": ("a.npz", saved(provenance="[1]"), "provenance must be a JSON object"),
    "empty.csv": ("a.csv", "\n\n", "the file is empty"),
    "header only": ("a.csv", "x,y\n", "there is a header and no rows"),
    "ragged": ("a.csv", "x,y\n1,2\n\n3\n", "line 4 has 1 cells, but the first line has 2"),
    "word": ("a.csv", "x,y\n1,2\n3,four\n", "line 3, column y, holds 'four'"),
    "empty cell": ("a.csv", "1,2\n3,\n", "line 2, column 1, holds ''"),
    "NaN.csv": ("a.csv", "1,2\n3,nan\n", "episode 0 has nan in its observations, at row 1, col"),
    "one row": ("a.csv", "episode,x\n0,1\n0,2\n1,5\n", "episode 1 has no step"),
    "comes back": ("a.csv", "episode,x\n0,1\n1,2\n0,3\n", "episode '0' comes back in line 4"),
    "actions": ("a.csv", "x,Action_0\n1,2\n3,4\n", "column 'Action_0' is no coordinate"),
    "done": ("a.csv", "x,done\n1,0\n3,1\n", "column 'done' is no coordinate"),
    "row numbers": ("a.csv", ",x\n0,1\n1,3\n", "column 0 has no name, as the row numbers"),
    "column numbers": ("a.csv", "0,1\n0.5,1\n1,3\n", "its first line counts the columns"),
    "episode numbers": ("a.csv", "episode_id,x\n0,1\n0,3\n", "'episode_id' would be read as"),
    "only episodes": ("a.csv", "episode\n0\n0\n", "columns are episode: write one"),
    "two episodes": ("a.csv", "episode,Episode,x\n0,0,1\n", "columns are episode, episode, x"),
    "UTF-16": ("a.csv", "x,y\n1,2\n3,4\n".encode("utf-16"), "not numbers with commas.*UTF-8"),
    "open quote": ("a.csv", 'x,y\n1,"2\n', "not numbers with commas"),
    "directory": ("a", lambda p: p.mkdir(), "no Minari dataset, which has data/metadata.json:"),
    "missing": ("a.npz", lambda p: None, "There are no demonstrations at '.*a.npz': check"),
    "impossible": ("a" * 300 + ".npz", lambda p: None, "cannot be read"),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_files_are_refused_in_one_sentence(kind: str, tmp_path: Path) -> None:
    name, content, says = BAD[kind]
    path = tmp_path / name
    if callable(content):
        content(path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(FirlError, match=says) as caught:
        read_demonstrations(path)
    assert "\n" not in str(caught.value)


def test_writing_where_nobody_can(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FirlError, match="give the name that ending"):
        write_npz(demonstrations(), tmp_path / "a.csv")
    with pytest.raises(FirlError, match="cannot be written"):
        write_npz(demonstrations(), tmp_path / "nowhere" / "a.npz")
    with pytest.raises(FirlError, match="cannot be written"):
        write_minari(demonstrations(), tmp_path / "file" / "a")
    with pytest.raises(FirlError, match="there is something already"):
        write_minari(demonstrations(), tmp_path)
    with pytest.raises(FirlError, match=r"has actions and rewards.*write them as \.npz"):
        write_minari(demonstrations(rewards=None), tmp_path / "a")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_minari_comes_back(tmp_path: Path) -> None:
    demos = demonstrations()
    write_minari(demos, tmp_path / "a")
    for name in ("a", "a/data", "a/data/main_data.hdf5"):
        check_same(read_demonstrations(tmp_path / name), demos)


def test_minari_reads_what_we_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import minari

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    demos = demonstrations()
    write_minari(demos, tmp_path / "pendulum-v3", action_bounds=([-2.0], [2.0]))
    dataset = minari.load_dataset("pendulum-v3")
    assert (dataset.id, dataset.total_episodes, dataset.total_steps) == ("pendulum-v3", 12, 26)
    assert dataset.env_spec.id == "Pendulum-v1"
    assert dataset.action_space == gymnasium.spaces.Box(-2, 2, (1,))
    assert dataset.observation_space.shape == (3,)
    for number, episode in enumerate(dataset):
        assert dataset.observation_space.contains(episode.observations[0])
        np.testing.assert_array_equal(episode.observations, demos.observations[number])
        np.testing.assert_array_equal(episode.actions, demos.actions[number])
        np.testing.assert_array_equal(episode.rewards, demos.rewards[number])
        last = np.arange(len(episode)) + 1 == len(episode)
        np.testing.assert_array_equal(episode.terminations, last & demos.terminated[number])
        np.testing.assert_array_equal(episode.truncations, last & ~demos.terminated[number])


@pytest.mark.parametrize("env_id", ["unknown/Nowhere-v0", "Function-v0", "Array-v0", None])
def test_minari_without_an_environment(
    env_id: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that Gymnasium does not know, or knows and cannot write as JSON."""
    import minari

    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    monkeypatch.setattr(gymnasium, "registry", gymnasium.envs.registration.registry)
    gymnasium.register("Function-v0", entry_point=lambda: None)
    gymnasium.register("Array-v0", entry_point="a:b", kwargs={"goal": np.zeros(2)})
    demos = demonstrations(env_id=env_id)
    write_minari(demos, tmp_path / "a.b c")
    dataset = minari.MinariDataset(tmp_path / "a.b c" / "data")
    assert (dataset.env_spec, dataset.id) == (None, "a-b-c-v0")
    check_same(read_demonstrations(tmp_path / "a.b c"), demos)


@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")
def test_we_read_what_minari_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An upright pole stays up until the time limit; a pushed one falls, which terminates."""
    import minari

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    name = "InvertedPendulum-v5"
    env = minari.DataCollector(gymnasium.make(name, max_episode_steps=12, reset_noise_scale=0.001))
    steps: list[list[Any]] = []
    for seed in range(11):
        steps.append([env.reset(seed=seed)[0]])
        ended = False
        while not ended:
            push = np.full(1, 3.0 * (seed % 2), np.float32)
            obs, reward, terminated, truncated, _ = env.step(push)
            steps[-1] += [(push, reward, terminated), obs]
            ended = terminated or truncated
    about = dict.fromkeys(("author", "author_email", "code_permalink", "description"), "somebody")
    env.create_dataset("pole/test-v0", eval_env=name, algorithm_name="push", **about)

    demos = read_demonstrations("minari:pole/test-v0")
    assert demos.env_id == name
    assert demos.provenance["algorithm_name"] == "push"
    assert demos.provenance["environment options"] == {"reset_noise_scale": 0.001}
    assert demos.lengths.tolist() == [len(episode) // 2 for episode in steps]
    assert demos.terminated.tolist() == [seed % 2 == 1 for seed in range(11)]
    assert demos.lengths[0] == 12
    for number, episode in enumerate(steps):
        np.testing.assert_array_equal(demos.observations[number], np.float32(episode[::2]))
        np.testing.assert_array_equal(demos.actions[number], [step[0] for step in episode[1::2]])
        np.testing.assert_allclose(demos.rewards[number], [step[1] for step in episode[1::2]])
    check_same(read_demonstrations(tmp_path / "pole" / "test-v0"), demos)
    for missing in ("minari:pole/test-v1", "minari:"):
        with pytest.raises(FirlError, match=r"no such dataset.*minari download"):
            read_demonstrations(missing)
    with pytest.raises(FirlError, match="no Minari dataset"):
        read_demonstrations("minari:pole")


def metadata(**changes: Any) -> Callable[[Path], None]:
    def change(data: Path) -> None:
        file = data / "metadata.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return change


def main(change: Callable[[h5py.File], object]) -> Callable[[Path], None]:
    def open_and_change(data: Path) -> None:
        with h5py.File(data / "main_data.hdf5", "a") as file:
            change(file)

    return open_and_change


def put(name: str, values: Any) -> Callable[[Path], None]:
    def change(file: h5py.File) -> None:
        del file[name]
        file[name] = values

    return main(change)


def halved(name: str) -> Callable[[Path], None]:
    return lambda data: (data / name).write_bytes(half((data / name).read_bytes())) and None


def only_groups(file: h5py.File) -> None:
    del file["episode_2/observations"]
    file["episode_2/observations/position"] = np.zeros((5, 2))


BOX = '{"type": "Box", "shape": [8, 8, 3]}'

DAMAGED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "half the metadata": (halved("metadata.json"), r"metadata.json is damaged \(not JSON\)"),
    "no metadata": (lambda d: (d / "metadata.json").unlink(), r"Minari before 0\.5 wrote none"),
    "binary metadata": (lambda d: (d / "metadata.json").write_bytes(b"\xff"), "cannot be read"),
    "metadata in a list": (lambda d: (d / "metadata.json").write_text("[]"), "is damaged"),
    "space": (metadata(action_space="Box("), "action_space is damaged"),
    "specification": (metadata(env_spec=None), "env_spec is damaged"),
    "half the data": (halved("main_data.hdf5"), "is empty, damaged or not HDF5"),
    "empty data": (lambda d: (d / "main_data.hdf5").write_bytes(b""), "is empty, damaged or not"),
    "no data": (lambda d: (d / "main_data.hdf5").unlink(), "there is no main_data.hdf5 in it"),
    "arrow": (metadata(data_format="arrow"), "stored as arrow, but firl reads"),
    "dict": (metadata(observation_space='{"type": "Dict"}'), "observation space is of type Dict"),
    "pictures": (metadata(observation_space=BOX), r"is a Box of shape \[8, 8, 3\].*FlattenObs"),
    "discrete": (metadata(action_space='{"type": "Discrete"}'), "type Discrete.*continuous act"),
    "parts": (main(only_groups), r"episode 2 has observations in parts \(position\)"),
    "one less": (main(lambda f: f.pop("episode_11")), "promises 12.*holds 11 and no episode_11"),
    "a gap": (main(lambda f: f.move("episode_3", "episode_12")), "holds 12 and no episode_3"),
    "one more": (metadata(total_episodes=11), "promises 11 episodes, but .* holds 12: it was not"),
    "none": (main(lambda f: [f.pop(key) for key in list(f)]), "there are no episodes in it"),
    "no rewards": (main(lambda f: f.pop("episode_1/rewards")), "episode 1 has no rewards"),
    "goes on": (put("episode_0/terminations", [0, 1, 0]), "terminated in step 2 of 3 and yet goes"),
    "terminations": (
        put("episode_0/terminations", [0, 1]),
        r"terminations of shape \[2\] for 3 st",
    ),
    "one reward": (put("episode_0/rewards", 1.0), r"terminations of shape \[3\] for 1 steps"),
    "NaN": (put("episode_0/actions", np.full((3, 1), np.nan)), "episode 0 has nan in its actions"),
    "off by one": (put("episode_0/observations", np.ones((3, 3))), "one observation too few"),
    "words": (put("episode_0/observations", ["a"] * 4), "only numbers can be matched"),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_damaged_datasets_are_refused_in_one_sentence(kind: str, tmp_path: Path) -> None:
    damage, says = DAMAGED[kind]
    write_minari(demonstrations(), tmp_path / "a")
    damage(tmp_path / "a" / "data")
    with pytest.raises(FirlError, match=says) as caught:
        read_demonstrations(tmp_path / "a")
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "a"))
