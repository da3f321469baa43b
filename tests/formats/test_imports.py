"""Results of others become studies."""

import json
from pathlib import Path

import numpy as np
import pytest

import scrimp
from scrimp.errors import StudyError
from scrimp.formats.imports import read_results, store_results
from scrimp.formats.result_folders import Imported, ImportedTrial, ImportSettings, inferred_space
from scrimp.storage.memory import MemoryStorage

CSV = """trial,lr,layers,opt,batch,val_error,worker
0,0.001,2,adam,32,0.5,w1
1,0.1,3,sgd,32,0.25,w1
2,0.01,4,adam,32,,w2
3,1.0,5,adam,32,nan,w2
"""


def one(path: Path, settings: ImportSettings) -> Imported:
    (found,) = read_results(path, settings)
    return found


def test_csv_by_columns(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_text(CSV)
    found = one(path, ImportSettings("val_error"))
    assert found.name == "old"
    assert found.problem.space == scrimp.Space(
        lr=scrimp.Float(0.001, 1.0, log=True),
        layers=scrimp.Int(2, 5),
        opt=scrimp.Categorical(["adam", "sgd"]),
        batch=32,
    )
    assert [trial.status for trial in found.trials] == [
        "completed",
        "completed",
        "failed",
        "failed",
    ]
    assert found.trials[1] == ImportedTrial(
        {"lr": 0.1, "layers": 3, "opt": "sgd", "batch": 32}, ((1.0, 0.25),)
    )


def test_an_apostrophe_goes_where_an_export_put_it_and_stays_where_a_user_did(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.csv"
    path.write_text("params_word,value\n'=a,1\n'tis,2\n")
    (found,) = read_results(path, ImportSettings(metric="value"))
    assert [trial.config["word"] for trial in found.trials] == ["=a", "'tis"]


def test_named_parameters_only(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_text(CSV)
    found = one(path, ImportSettings("val_error", "maximize", ("lr", "worker")))
    assert list(found.problem.space) == ["lr", "worker"] and found.problem.direction == "maximize"
    with pytest.raises(
        StudyError, match="there is no column 'depth' for a parameter; there are trial, lr"
    ):
        read_results(path, ImportSettings("val_error", parameters=("depth",)))
    with pytest.raises(
        StudyError, match="has no column 'value'; name the value with --metric, one of trial, lr"
    ):
        read_results(path, ImportSettings())


def test_json_rows_flat_and_nested(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    path.write_text(
        json.dumps(
            [
                {"params": {"x": 1, "flag": True}, "value": 2.0},
                {"params": {"x": 3, "flag": False}, "value": 1},
            ]
        )
    )
    nested = one(path, ImportSettings())
    assert nested.trials[0].config == {"x": 1, "flag": True} and nested.trials[1].curve == (
        (1.0, 1.0),
    )
    path.write_text(json.dumps({"trials": [{"x": 0.5, "value": 2.0}, {"x": 0.75, "value": None}]}))
    assert one(path, ImportSettings()).problem.space == scrimp.Space(x=scrimp.Float(0.5, 0.75))


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for text, reason in (
        ("{", "neither CSV, nor JSON"),
        ("3", "has no list of results"),
        ("[1]", "has no list"),
    ):
        path = tmp_path / "bad.json"
        path.write_text(text)
        with pytest.raises(StudyError, match=reason):
            read_results(path, ImportSettings())
    for mark, word in ((";", "semicolons"), ("\t", "tabs")):
        path = tmp_path / "german.csv"
        path.write_text(f"x{mark}value\n0,5{mark}1,5\n")
        with pytest.raises(StudyError, match=f"separated by {word}; save the table with commas"):
            read_results(path, ImportSettings())
    with pytest.raises(StudyError, match="there is no file"):
        read_results(tmp_path / "none.csv", ImportSettings())
    empty = tmp_path / "v.csv"
    empty.write_text("id,value\n1,2\n")
    with pytest.raises(StudyError, match="has no parameters besides 'value'"):
        read_results(empty, ImportSettings())


def test_imported_studies_can_be_learned_from_and_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "old.csv"
    path.write_text("x,value\n" + "".join(f"{k / 20},{(k / 20 - 0.3) ** 2}\n" for k in range(21)))
    storage = MemoryStorage()
    store_results(storage, "old", one(path, ImportSettings()), 0.0)
    study = scrimp.load_study("old", storage=storage)
    assert (
        study.best_value == 0.0
        and len(study.trials) == 21
        and study.history.counts["completed"] == 21
    )
    assert study.ask().id == 21
    new = scrimp.create_study(
        "new", scrimp.Space(x=scrimp.Float(0.0, 1.0)), learn_from=["old"], storage=storage
    )
    assert abs(new.ask().params["x"] - 0.3) < 0.06


def test_curves_and_unfinished_trials() -> None:
    problem = scrimp.formats.imports.Problem(
        scrimp.Space(x=scrimp.Float(0.0, 1.0)), budget=scrimp.Budget("epoch", 1, 3)
    )
    trials = (
        ImportedTrial({"x": 0.1}, ((1.0, 0.5), (3.0, 0.2))),
        ImportedTrial({"x": 0.2}, ((1.0, 0.9),), "stopped"),
        ImportedTrial({"x": 0.3}, ((1.0, 0.4), (2.0, 0.3)), "completed"),
        ImportedTrial({"x": 0.4}, (), "running"),
    )
    storage = MemoryStorage()
    store_results(storage, "s", Imported("s", problem, trials), 0.0)
    study = scrimp.load_study("s", storage=storage)
    assert [trial.status for trial in study.trials] == ["completed", "stopped", "completed"]
    assert [trial.value for trial in study.trials] == [0.2, 0.9, 0.3]


def test_inferred_spaces() -> None:
    space = inferred_space(
        [
            {"a": 1, "b": 0.5, "c": "x"},
            {"a": 500, "b": 0.5, "c": "y", "d": 2.5},
            {"a": 3, "b": 0.5, "d": 3},
        ]
    )
    assert space == scrimp.Space(
        a=scrimp.Int(1, 500, log=True),
        b=0.5,
        c=scrimp.Categorical(["x", "y"]),
        d=scrimp.Float(2.5, 3.0),
    )


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_files_of_other_editors_are_read(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("größe,value\r\n1,2\r\n3,4\r\n".encode(encoding))
    (tmp_path / "b.json").write_bytes(
        '[{"größe": 1, "value": 2}, {"größe": 3, "value": 4}]'.encode(encoding)
    )
    for name in ("a.csv", "b.json"):
        (found,) = read_results(tmp_path / name, ImportSettings())
        assert [trial.config for trial in found.trials] == [{"größe": 1}, {"größe": 3}]


def test_an_even_column_is_not_logarithmic() -> None:
    rng = np.random.default_rng(0)
    even, powers = rng.uniform(0, 1, 200), 10 ** rng.uniform(-5, -2.5, 200)
    even[0] = 0.002
    space = inferred_space(
        [{"even": float(a), "powers": float(b)} for a, b in zip(even, powers, strict=True)]
    )
    assert not space["even"].log and space["powers"].log
