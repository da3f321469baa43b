"""``scrimp bench make``: options, and what to do next."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from scrimp.bench.runner import run_cell
from scrimp.cli.bench import bench_app
from scrimp.errors import TableError

RUNNER = CliRunner()


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
