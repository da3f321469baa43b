"""Runs of a comparison as studies: named by what they are, made anew by the same run, never in the
place of another study."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import scrimp
from scrimp.bench.curve_suite import CurveSuiteSettings, curve_cells
from scrimp.bench.regret_suite import table_cells
from scrimp.bench.runner import check_kept_in, kept_at, kept_name, run_cells
from scrimp.errors import StudyError


def test_runs_of_a_comparison_are_kept_as_studies(
    write_table: Callable[..., Path], tmp_path: Path
) -> None:
    path, url = write_table(), f"sqlite:///{tmp_path}/kept.db"
    cells = curve_cells(path, ["asha"], ["one"], 1, CurveSuiteSettings(fulls=2, workers=2))
    cells += table_cells(path, ["random"], ["two"], 1, trials=4)
    kept = [replace(cell, keep=url) for cell in cells]
    records = run_cells(kept, processes=1)
    assert [record.get("keep") for record in records] == [None, None]
    names = ["curves/small/one/asha/0", "tables/small/two/random/0"]
    assert [kept_name(cell) for cell in kept] == scrimp.studies(url) == names
    study = scrimp.load_study(names[0], storage=url)
    assert len(study.trials) == records[0]["trials"]
    run_cells(kept[:1], processes=1)  # made again, it replaces what was there
    assert sorted(scrimp.studies(url)) == names
    assert len(kept_name(replace(kept[0], method="gp:" + "x" * 300))) == 200


def test_a_study_of_somebody_elses_is_not_replaced(
    write_table: Callable[..., Path], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/kept.db"
    cell = replace(table_cells(write_table(), ["random"], ["two"], 1, trials=4)[0], keep=url)
    scrimp.create_study(kept_name(cell), scrimp.Space(x=scrimp.Float(0, 1)), storage=url)
    with pytest.raises(StudyError, match="has another study"):
        kept_at(cell, scrimp.Space(y=scrimp.Float(0, 1)))
    with pytest.raises(StudyError, match="runs cannot be saved"):
        check_kept_in("memory://")
