"""Tables as a whole: where they are written, and going on after a kill."""

import json

import numpy as np
import pytest

from scrimp.bench.making import MakingSettings, make_tables
from scrimp.bench.runner import run_cell
from scrimp.errors import TableError


@pytest.fixture
def here(monkeypatch):
    """Work is done in this process, and counted."""
    done = []

    def results(cells, processes):
        for cell in cells:
            done.append(cell)
            yield cell, run_cell(cell)

    monkeypatch.setattr("scrimp.bench.runner._results", results)
    return done


def test_work_that_is_done_is_not_done_again(here, tmp_path):
    settings = MakingSettings(configs=4, small=True)
    (path,) = make_tables("curves", tmp_path, settings)
    with np.load(path) as file:
        first = file["value"]
    lines = (tmp_path / "work.jsonl").read_text().splitlines(keepends=True)
    assert len(here) == len(lines) == 4
    (tmp_path / "work.jsonl").write_text(
        "".join(lines[:2]) + lines[2][:30]
    )  # killed while it wrote the third
    path.unlink()
    make_tables("curves", tmp_path, settings)
    assert [cell.method for cell in here[4:]] == ["2", "3"]
    with np.load(path) as file:
        np.testing.assert_array_equal(file["value"], first)


def test_families_and_runs_get_a_file_each(here, tmp_path):
    settings = MakingSettings(configs=3, small=True)
    files = make_tables("transfer", tmp_path, settings, families=["k-nearest", "linear"])
    assert [file.name for file in files] == ["k-nearest.npz", "linear.npz"]
    make_tables("checkpoints", tmp_path, settings)
    names = {
        json.loads(line)["table"] for line in (tmp_path / "work.jsonl").read_text().splitlines()
    }
    assert names == {"k-nearest", "linear", "good-labels", "wrong-labels", "narrowed"}
    with pytest.raises(TableError, match="there are curves, transfer, checkpoints"):
        make_tables("pictures", tmp_path, settings)
