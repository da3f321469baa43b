"""Published formats, in small files written here."""

import importlib.util
import json

import numpy as np
import pytest

from scrimp.bench import converting
from scrimp.bench.converting import convert
from scrimp.bench.tables import read_table
from scrimp.errors import TableError


def test_lcbench(tmp_path):
    rng = np.random.default_rng(0)
    losses = rng.random((2, 4, 7))
    data = {
        task: {
            str(k): {
                "config": {
                    "learning_rate": 10.0 ** -(k + 1),
                    "batch_size": 16 * (k + 1),
                    "imputation": "mean",
                },
                "log": {
                    "Train/val_cross_entropy": losses[t, k].tolist(),
                    "time": list(range(7)),
                    "epoch": list(range(7)),
                },
                "results": {},
            }
            for k in (2, 0, 1, 3)
        }
        for t, task in enumerate(("adult", "higgs"))
    }
    (tmp_path / "data.json").write_text(json.dumps(data))
    words = convert("lcbench", tmp_path / "data.json", tmp_path / "lcbench.npz")
    assert words == "2 tasks x 4 configurations x 5 levels"
    table = read_table(tmp_path / "lcbench.npz")
    assert list(table.space) == ["learning_rate", "batch_size"] and table.configs.ndim == 2
    task = table.task("higgs")
    assert task.pool.configs[2] == {"learning_rate": pytest.approx(1e-3), "batch_size": 48}
    np.testing.assert_allclose(task.value, losses[1][:, 1:6])
    np.testing.assert_allclose(task.elapsed[0], [1, 2, 3, 4, 5])


def test_taskset(tmp_path):
    configs = {f"adam_{k}": [{"learning_rate": 10.0**-k, "beta1": 0.1 * k}, None] for k in range(5)}
    (tmp_path / "adam8p.json").write_text(json.dumps(configs))
    ys = np.random.default_rng(0).random((5, 3, 6, 4))
    ys[4, 0, 4:, 1] = np.inf  # one replica diverges
    (tmp_path / "rnn").mkdir()
    np.savez(
        tmp_path / "rnn" / "adam8p_10000_replica5.npz",
        optimizers=np.array([b"adam_1", b"adam_0", b"adam_2", b"adam_3", b"adam_4"]),
        xs=np.arange(6),
        ys=ys,
    )
    convert("taskset", tmp_path, tmp_path / "taskset.npz")
    task = read_table(tmp_path / "taskset.npz").task("rnn")
    assert task.pool.configs[0] == {"learning_rate": 0.1, "beta1": 0.1}
    np.testing.assert_allclose(task.value[2], ys[2, :, 1:, 1].mean(axis=0))
    assert np.isfinite(task.value[4, :3]).all() and np.isnan(task.value[4, 3:]).all()


def test_hpob_with_pools_of_different_sizes(tmp_path):
    data = {
        "4796": {
            "3": {"X": [[0.0, 0.5, 1.0], [0.5, 0.5, 0.0]], "y": [[0.9], [0.7]]},
            "31": {"X": [[0.2, 0.5, 0.3]], "y": [[0.4]]},
        },
        "5527": {"3": {"X": [[0.1]], "y": [[0.5]]}},
    }
    path = tmp_path / "hpob.json"
    path.write_text(json.dumps(data))
    with pytest.raises(TableError, match="name one, as in"):
        convert("hpob", path, tmp_path / "t.npz")
    convert("hpob", tmp_path / "hpob.json#4796", tmp_path / "t.npz")
    table = read_table(tmp_path / "t.npz")
    assert list(table.space) == ["x0", "x2"] and table.unit is None
    np.testing.assert_allclose(table.task("3").final, [0.1, 0.3])
    assert len(table.task("31").pool.configs) == 1 and table.task("31").best == pytest.approx(0.6)


def test_nasbench201(tmp_path):
    first = "|nor_conv_3x3~0|+|none~0|skip_connect~1|+|none~0|none~1|avg_pool_3x3~2|"
    lines = [
        {
            "arch": first.replace("none", ["none", "nor_conv_1x1"][k]),
            "dataset": "cifar10",
            "seed": seed,
            "eval_acc1es": {
                "x-valid@0": level + k,
                "x-valid@1": level + k + 10.0,
                "ori-test@1": 1.0,
            },
        }
        for k in (0, 1)
        for seed, level in ((777, 20.0), (888, 30.0))
    ]
    (tmp_path / "nb.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    convert("nasbench201", tmp_path / "nb.jsonl", tmp_path / "nb.npz")
    table = read_table(tmp_path / "nb.npz")
    assert list(table.space) == ["edge1", "edge3", "edge4"]  # the others never vary here
    np.testing.assert_allclose(table.task("cifar10").value, [[75.0, 65.0], [74.0, 64.0]])
    assert table.task("cifar10").elapsed is None
    for place, line in enumerate(lines):
        line["train_times"] = {"0": 10.0 + place, "1": 12.0 + place}
    (tmp_path / "nb.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    convert("nasbench201", tmp_path / "nb.jsonl", tmp_path / "nb.npz")
    elapsed = read_table(tmp_path / "nb.npz").task("cifar10").elapsed
    np.testing.assert_allclose(elapsed, [[11.5, 23.0], [13.5, 27.0]])


@pytest.mark.skipif(importlib.util.find_spec("h5py") is None, reason="h5py is not installed")
def test_fcnet(tmp_path):
    import h5py

    mse = np.random.default_rng(0).random((4, 4, 10))
    with h5py.File(tmp_path / "fcnet_protein_structure_data.hdf5", "w") as file:
        for k in range(4):
            group = file.create_group(
                json.dumps(
                    {"init_lr": 10.0**-k, "activation_fn_1": ["relu", "tanh"][k % 2]},
                    sort_keys=True,
                )
            )
            group["valid_mse"], group["runtime"] = mse[k], [10.0, 20.0, 30.0, 40.0]
    convert("fcnet", tmp_path, tmp_path / "fcnet.npz")
    task = read_table(tmp_path / "fcnet.npz").task("protein_structure")
    for config, value, elapsed in zip(task.pool.configs, task.value, task.elapsed, strict=True):
        np.testing.assert_allclose(value, mse[round(-np.log10(config["init_lr"]))].mean(axis=0))
        assert elapsed[-1] == pytest.approx(25.0)


def test_yahpo(data, tmp_path, monkeypatch):
    monkeypatch.setattr(converting, "SURROGATE_CONFIGS", 3)
    source = data / "surrogates" / "lcbench_yahpo.npz"
    words = convert("yahpo", source, tmp_path / "y.npz")
    table = read_table(tmp_path / "y.npz")
    assert words == f"{len(table.tasks)} tasks x 3 configurations x 50 levels"
    from scrimp.bench.yahpo import read_yahpo

    network, task = read_yahpo(source), table.task(table.tasks[1])
    found = network.outputs(task.name, list(task.pool.configs), range(2, 52))
    np.testing.assert_allclose(task.value, 100 - found["val_accuracy"], rtol=1e-4)


def test_harness_results_become_scores(tmp_path):
    for step, score in ((100, 0.4), (200, 0.5)):
        folder = tmp_path / "evals" / f"step{step}"
        folder.mkdir(parents=True)
        results = {
            "arc": {"acc,none": score, "acc_stderr,none": 0.01},
            "boolq": {"acc,none": score + 0.1},
        }
        (folder / "results_1.json").write_text(json.dumps({"results": results}))
    assert (
        convert("lm-eval", tmp_path / "evals", tmp_path / "scores.csv") == "2 checkpoints x 2 tasks"
    )
    assert "step200,boolq,0.6," in (tmp_path / "scores.csv").read_text()
    with pytest.raises(TableError, match=r"must end in \.csv"):
        convert("lm-eval", tmp_path / "evals", tmp_path / "scores.npz")


def test_what_is_wrong_is_told(tmp_path):
    with pytest.raises(TableError, match="there are lcbench, "):
        convert("nasbench101", tmp_path, tmp_path / "t.npz")
    with pytest.raises(TableError, match="nothing at"):
        convert("lcbench", tmp_path / "none.json", tmp_path / "t.npz")
    with pytest.raises(TableError, match="no training runs of TaskSet"):
        convert("taskset", tmp_path, tmp_path / "t.npz")
    (tmp_path / "bad.json").write_text('{"adult": {"0": {"config": {}}}}')
    with pytest.raises(TableError, match="does not follow the format lcbench: KeyError"):
        convert("lcbench", tmp_path / "bad.json", tmp_path / "t.npz")
    assert not (tmp_path / "t.npz").exists()


def test_runs_of_different_lengths_are_cut_and_the_shortest_is_named(tmp_path):
    """LCBench with 4, 6 and 6 logged values, of which the first and the last are left out."""
    data = {
        "higgs": {
            str(number): {
                "config": {"lr": 10.0**-number, "batch": 16 * (number + 1)},
                "log": {"Train/val_cross_entropy": list(range(count))},
            }
            for number, count in enumerate((6, 4, 6))
        }
    }
    (tmp_path / "l.json").write_text(json.dumps(data))
    told = convert("lcbench", tmp_path / "l.json", tmp_path / "l.npz")
    assert "3 configurations x 2 levels; cut to 2 of up to 4 levels" in told
    assert "configuration 1 of task 'higgs'" in told
    assert read_table(tmp_path / "l.npz").task("higgs").value.shape == (3, 2)
    data["higgs"].pop("1")
    (tmp_path / "l.json").write_text(json.dumps(data))
    assert "cut" not in convert("lcbench", tmp_path / "l.json", tmp_path / "m.npz")
