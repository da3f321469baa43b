"""A simulated study: the run of `bench curves`, finished, with virtual times, and every picture and
command works on it."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import scrimp
from scrimp.bench.curve_suite import CurveSuiteSettings, curve_cells, run_curves
from scrimp.errors import MethodError, StudyError, TableError
from scrimp.explain.replay import replay
from tests.bench.conftest import META


def curves(write_table: Callable[..., Path]) -> Path:
    """The small table with four levels: runs of 1 to 4 epochs are compared at 1 and 3."""
    value = np.random.default_rng(1).random((2, 12, 2))
    return write_table(value=value)


def test_it_is_the_run_of_the_comparison_and_finished(write_table: Callable[..., Path]) -> None:
    path = curves(write_table)
    study = scrimp.simulate(path, "ASHA", task="two", workers=2, fulls=3, seed=1)
    assert (study.name, study.method) == ("small/two/asha/1", "asha")
    cells = curve_cells(path, ["asha"], ["two"], 2, CurveSuiteSettings(fulls=3, workers=2))
    record = run_curves(cells[1])
    assert record["trials"] == len(study.trials) and record["decisions"] == study.history.decisions
    task_best = min(
        point.loss for trial in study.trials for point in trial.curve if point.loss is not None
    )
    assert record["value"][-1] == pytest.approx(task_best)
    counts = study.history.counts
    assert counts["running"] == counts["stale"] == 0 and len(study.trials) > 3
    assert study.history.created.time == 0.0 and 0.0 < study.history.time <= 3 * 2.0 / 2
    assert all(outcome.same for outcome in replay(study.history.events))
    for name in ("curves", "rungs", "timeline", "history", "parallel", "slice", "importance"):
        assert getattr(scrimp.plots, name)(study).data


def test_cut_trials_are_stopped_at_the_end_of_the_clock(write_table: Callable[..., Path]) -> None:
    study = scrimp.simulate(curves(write_table), "random", task="one", workers=3, fulls=1)
    cut = [trial for trial in study.trials if trial.status == "stopped"]
    assert cut and all(
        trial.message == "the virtual clock ended" and trial.ended == 2 / 3 for trial in cut
    )


def test_it_can_be_kept_and_looked_at_by_name(
    write_table: Callable[..., Path], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/kept.db"
    path = curves(write_table)
    made = scrimp.simulate(
        path, scrimp.Method("asha", type="stopping"), task="one", fulls=2, name="mine", storage=url
    )
    assert scrimp.studies(url) == ["mine"]
    assert scrimp.load_study("mine", storage=url).history.events == made.history.events
    with pytest.raises(StudyError, match="exists already"):
        scrimp.simulate(path, "asha", task="one", fulls=2, name="mine", storage=url)


def test_what_cannot_be_simulated_is_said(write_table: Callable[..., Path]) -> None:
    path = curves(write_table)
    with pytest.raises(TableError, match="2 tasks; choose one, such as task='one'"):
        scrimp.simulate(path, "asha")
    with pytest.raises(TableError, match="three"):
        scrimp.simulate(path, "asha", task="three")
    with pytest.raises(MethodError, match="did you mean 'asha'"):
        scrimp.simulate(path, "ahsa", task="one")
    with pytest.raises(MethodError, match="'bracket_rule' has no effect with brackets=1"):
        scrimp.simulate(path, "asha:bracket_rule=in-turn", task="one")
    with pytest.warns(UserWarning, match="'hint' has no effect: the study has no past studies"):
        scrimp.simulate(path, "freeze-thaw:hint=true", task="one", fulls=1)
    for wrong in ({"workers": 0}, {"fulls": 0}, {"workers": 1.5}):
        with pytest.raises(StudyError, match="at least 1"):
            scrimp.simulate(path, "asha", task="one", **wrong)  # type: ignore[arg-type]


def test_the_length_may_be_seconds_of_the_clock(write_table: Callable[..., Path]) -> None:
    value = np.random.default_rng(1).random((2, 12, 2))
    elapsed = np.broadcast_to(np.array([10.0, 40.0]), (2, 12, 2))
    path = write_table(value=value, elapsed=elapsed)
    study = scrimp.simulate(path, "asha", task="one", workers=2, seconds=95.0)
    assert study.history.time == 95.0 and study.history.counts["stopped"] > 0
    with pytest.raises(StudyError, match="give one of them"):
        scrimp.simulate(path, "asha", task="one", seconds=10.0, fulls=3)
    with pytest.raises(StudyError, match="seconds is 0; it must be a positive number"):
        scrimp.simulate(path, "asha", task="one", seconds=0)


def test_final_values_with_seconds_are_trainings_without_budgets(
    write_table: Callable[..., Path],
) -> None:
    value = np.random.default_rng(1).random((2, 12, 1))
    meta = {**META, "budget": None}
    path = write_table(meta=json.dumps(meta), value=value, elapsed=20.0 + 10.0 * value)
    study = scrimp.simulate(path, "gp", task="one", workers=2, seconds=100.0)
    done = [trial for trial in study.trials if trial.status == "completed"]
    assert study.budget is None and 4 <= len(done) <= 10
    assert all(
        trial.ended - trial.started == pytest.approx(20.0 + 10.0 * trial.value) for trial in done
    )
    with pytest.raises(TableError, match="final values only; compare on it with 'scrimp bench"):
        curve_cells(path, ["asha"], ["one"], 1)


def test_seconds_are_refused_where_a_table_has_none(write_table: Callable[..., Path]) -> None:
    with pytest.raises(TableError, match="cost one unit each, not seconds"):
        scrimp.simulate(curves(write_table), "asha", task="one", seconds=10.0)


def test_final_values_without_seconds_are_refused(write_table: Callable[..., Path]) -> None:
    value = np.random.default_rng(1).random((2, 12, 1))
    path = write_table(meta=json.dumps({**META, "budget": None}), value=value)
    with pytest.raises(TableError, match="without seconds"):
        scrimp.simulate(path, "gp", task="one", seconds=10.0)
