"""A checkpoint gives back exactly what was saved, or says in one sentence why it cannot."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from firl.checkpoint import load_about, load_part, load_tree, save_tree
from firl.errors import FirlError


def tree(seed=0, width=3):
    return {
        "net": eqx.nn.MLP(2, 1, width, 1, key=jax.random.key(seed)),
        "count": jnp.asarray(seed, jnp.int32),
    }


def test_roundtrip_is_exact(tmp_path):
    path = tmp_path / "state.safetensors"
    saved = tree(seed=3)
    save_tree(path, saved, {"iteration": 7})
    loaded, about = load_tree(path, tree(seed=0))
    assert about == {"iteration": 7}
    assert eqx.tree_equal(saved, loaded)
    assert not eqx.tree_equal(saved, tree(seed=0))


def test_part_is_loaded_alone(tmp_path):
    path = tmp_path / "state.safetensors"
    saved = tree(seed=3)
    save_tree(path, saved, {})
    assert eqx.tree_equal(load_part(path, "net", tree()["net"]), saved["net"])


def test_overwriting_leaves_no_partial_file(tmp_path):
    path = tmp_path / "state.safetensors"
    for seed in range(3):
        save_tree(path, tree(seed), {"iteration": seed})
    assert [child.name for child in tmp_path.iterdir()] == ["state.safetensors"]
    assert load_about(path) == {"iteration": 2}


@pytest.mark.parametrize("kept", [0, 1, 7, 100, -1])
def test_truncated_file_is_refused(tmp_path, kept):
    path = tmp_path / "state.safetensors"
    save_tree(path, tree(), {})
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(FirlError, match="not a whole checkpoint"):
        load_tree(path, tree())


def test_foreign_file_is_refused(tmp_path):
    from safetensors.numpy import save_file

    path = tmp_path / "state.safetensors"
    save_file({"x": jnp.zeros(3).__array__()}, path)
    with pytest.raises(FirlError, match="not a checkpoint of this version"):
        load_tree(path, tree())


def test_other_shapes_and_names_are_refused(tmp_path):
    path = tmp_path / "state.safetensors"
    save_tree(path, tree(width=3), {})
    with pytest.raises(FirlError, match="another kind of training"):
        load_tree(path, tree(width=4))
    with pytest.raises(FirlError, match="another kind of training"):
        load_tree(path, tree() | {"more": jnp.zeros(1)})
    with pytest.raises(FirlError, match="another kind of training"):
        load_part(path, "nothing", tree()["net"])
