"""``scrimp bench``: options, summaries, JSON, bad input."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from scrimp.bench.runner import run_cell
from scrimp.cli.bench import bench_app, method_list
from scrimp.errors import MethodError, TableError

RUNNER = CliRunner()


def test_settings_belong_to_the_method_before_them() -> None:
    assert method_list("gp:initial=3,fantasies=8, random") == ["gp:initial=3,fantasies=8", "random"]
    assert method_list("asha:brackets=4,published,gp") == ["asha:brackets=4,published", "gp"]
    assert method_list("asha:published,brackets=4") == ["asha:published,brackets=4"]
    with pytest.raises(MethodError, match="no method 'gps'"):
        method_list("random,gps")


def test_functions_prints_a_summary_and_appends_results(tmp_path: Path) -> None:
    out = tmp_path / "results.jsonl"
    options = [
        "--methods",
        "random,sobol",
        "--functions",
        "branin,failing",
        "--trials",
        "4",
        "--seeds",
        "2",
    ]
    done = RUNNER.invoke(bench_app, ["functions", *options, "--out", str(out)])
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0].split() == ["mean", "final", "regret", "random", "sobol"]
    assert [line.split()[0] for line in lines[1:3]] == ["branin", "failing"]
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(records) == 8 and {
        "suite",
        "table",
        "task",
        "method",
        "seed",
        "decision_seconds",
        "decisions",
        "at",
        "regret",
    } <= set(records[0])
    again = RUNNER.invoke(bench_app, ["functions", *options, "--out", str(out), "--json"])
    assert sorted(again.output.splitlines()) == sorted(out.read_text().splitlines())


def test_tables(tmp_path: Path) -> None:
    meta = {"format": 1, "name": "tiny", "metric": "error", "goal": "min", "budget": None}
    space = [{"name": "k", "type": "int", "low": 0, "high": 5, "log": False}]
    path = tmp_path / "tiny.npz"
    arrays = {"configs": np.arange(6.0)[:, None], "value": np.arange(6.0)[None, :, None]}
    np.savez(path, meta=json.dumps({**meta, "space": space}), tasks=np.array(["t"]), **arrays)
    done = RUNNER.invoke(
        bench_app,
        ["tables", str(path), "--methods", "random", "--trials", "6", "--seeds", "1", "--json"],
    )
    assert done.exit_code == 0, done.output
    record = json.loads(done.output)
    assert record["table"] == "tiny" and record["regret"][-1] == 0.0 and record["suite"] == "tables"
    missing = RUNNER.invoke(bench_app, ["tables", str(tmp_path / "none.npz")])
    assert isinstance(missing.exception, TableError)


def test_speed() -> None:
    done = RUNNER.invoke(bench_app, ["speed", "--sizes", "10,20", "--methods", "random"])
    assert done.exit_code == 0, done.output
    assert [line.split()[:2] for line in done.output.splitlines()[1:]] == [
        ["random", "10"],
        ["random", "20"],
    ]


@pytest.mark.parametrize(
    "arguments",
    [
        ["functions", "--seeds", "0"],
        ["functions", "--trials", "-1"],
        ["functions", "--methods", ","],
        ["speed", "--sizes", "ten"],
        ["speed", "--sizes", ""],
    ],
)
def test_bad_options_exit_with_2(arguments: list[str]) -> None:
    assert RUNNER.invoke(bench_app, arguments).exit_code == 2


def test_checkpoints(tmp_path: Path) -> None:
    lines = [f"{step},{task},{0.5 + 0.01 * step}" for step in range(1, 9) for task in "abc"]
    path, out = tmp_path / "scores.csv", tmp_path / "results.jsonl"
    path.write_text("\n".join(["checkpoint,task,score", *lines]))
    options = [
        "--methods",
        "kg,last",
        "--shares",
        "0.3,0.6",
        "--seeds",
        "2",
        "--processes",
        "1",
        "--out",
        str(out),
    ]
    done = RUNNER.invoke(bench_app, ["checkpoints", str(path), *options])
    assert done.exit_code == 0, done.output
    assert [line.split()[0] for line in done.output.splitlines()[1:]] == ["kg", "last"]
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(records) == 4 and all(
        record["share"] == [0.3, 0.6] and record["table"] == "scores" for record in records
    )
    assert all(record["regret"] == [0.0, 0.0] for record in records if record["method"] == "last")
    unknown = RUNNER.invoke(bench_app, ["checkpoints", str(path), "--methods", "gp"])
    assert isinstance(unknown.exception, MethodError) and "kg, ei" in str(unknown.exception)
    assert RUNNER.invoke(bench_app, ["checkpoints", str(path), "--shares", "few"]).exit_code == 2


def test_curves_on_surrogates_of_a_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.random(40)
    value = (x[:, None] - 0.3) ** 2 + 1.0 / np.arange(1, 5)
    meta = {
        "format": 1,
        "name": "bowl",
        "metric": "loss",
        "goal": "min",
        "budget": {"name": "epoch", "levels": [1, 2, 3, 4]},
    }
    space = [{"name": "x", "type": "float", "low": 0.0, "high": 1.0}]
    path, out = tmp_path / "bowl.npz", tmp_path / "results.jsonl"
    arrays = {"configs": x[:, None], "value": value[None]}
    np.savez(path, meta=json.dumps({**meta, "space": space}), tasks=np.array(["t"]), **arrays)
    options = [
        "--methods",
        "random",
        "--seeds",
        "1",
        "--fulls",
        "3",
        "--workers",
        "1",
        "--processes",
        "1",
    ]
    done = RUNNER.invoke(
        bench_app, ["curves", str(path), "--surrogate", "gp", *options, "--out", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert "t: held-out final values R2 " in done.stderr
    record = json.loads(out.read_text())
    assert record["table"] == "bowl-gp" and record["trials"] == 3
    assert [kept.name for kept in tmp_path.glob("*.surrogate.npz")] == [
        "bowl-t-gp-effff892.surrogate.npz"
    ]


def test_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "scrimp.bench.runner._results", lambda cells, _: ((cell, run_cell(cell)) for cell in cells)
    )  # in this process
    options = [
        "--small",
        "--configs",
        "3",
        "--families",
        "k-nearest,linear",
        "--out",
        str(tmp_path / "tables"),
    ]
    done = RUNNER.invoke(bench_app, ["make", "transfer", *options])
    assert done.exit_code == 0, done.output
    first, second, following = done.output.splitlines()
    assert first == f"wrote {tmp_path}/tables/k-nearest.npz" and second.endswith("linear.npz")
    assert following.startswith(f"next: scrimp bench transfer {tmp_path}/tables/k-nearest.npz ")
    unknown = RUNNER.invoke(bench_app, ["make", "pictures", "--out", str(tmp_path)])
    assert isinstance(unknown.exception, TableError) and "there are curves" in str(
        unknown.exception
    )
    assert RUNNER.invoke(bench_app, ["make", "curves"]).exit_code == 2  # where to?


def test_convert(tmp_path: Path) -> None:
    path = tmp_path / "hpob.json"
    path.write_text('{"7": {"3": {"X": [[0.0], [0.5]], "y": [[0.9], [0.7]]}}}')
    done = RUNNER.invoke(bench_app, ["convert", "hpob", str(path), str(tmp_path / "t.npz")])
    assert done.exit_code == 0, done.output
    assert done.output == f"wrote {tmp_path}/t.npz: 1 tasks x 2 configurations x 1 levels\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("functions", "--functions", "branin", "--methods", "random,nonsense"), "no method"),
        (("functions", "--functions", "branin", "--methods", "random,asha"), "training budgets"),
        (("functions", "--functions", "branin", "--methods", "random,gp:kernel=x"), "no kernel"),
        (("functions", "--functions", "branin", "--methods", "random,gp:size=3"), "size"),
        (("objectives", "--problems", "zdt1", "--methods", "random,rgpe"), "one metric"),
        (("speed", "--sizes", "5", "--methods", "random,median"), "training budgets"),
    ],
)
def test_a_method_that_cannot_run_is_refused_before_the_first_run(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[object] = []
    monkeypatch.setattr("scrimp.bench.runner._results", lambda cells, _: runs.extend(cells) or [])
    result = RUNNER.invoke(bench_app, [*words, "--out", str(tmp_path / "r.jsonl")])
    assert isinstance(result.exception, MethodError) and message in str(result.exception)
    assert runs == []
