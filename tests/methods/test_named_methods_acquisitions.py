"""Settings of acquisitions beside those of the method, in text, tables and Python; the pure methods
of the textbook."""

from typing import Any

import numpy as np
import pytest

import scrimp
from scrimp.acquisition.named_acquisitions import acquisition_settings, create_acquisition
from scrimp.errors import MethodError
from scrimp.study_log.events import Decided
from scrimp.suggesters.bayesian import BayesianSuggester
from scrimp.suggesters.experts import MODEL, expert_of

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def suggester(method: Any) -> BayesianSuggester:
    found = scrimp.create_study("m", SPACE, method=method, storage="memory://", seed=0).suggester
    assert isinstance(found, BayesianSuggester)
    return found


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("gp-ucb:kappa=3", {"kappa": 3}),
        ("gp-ei:margin=0.1", {"margin": 0.1}),
        (
            "gp-ei:margin=0.1,margin_unit=metric,patience=4",
            {"margin": 0.1, "margin_unit": "metric"},
        ),
        ("gp:acquisition=ucb,kappa=0.5", {"kappa": 0.5}),
        ({"name": "gp-pi", "margin": 0.2}, {"margin": 0.2}),
        (scrimp.Method("gp-ucb", acquisition_settings={"kappa": 1.5}), {"kappa": 1.5}),
    ],
)
def test_they_are_written_like_settings_of_the_method(
    method: Any, settings: dict[str, Any]
) -> None:
    found = suggester(method)
    assert dict(found.acquisition_settings) == settings
    create_acquisition(found.acquisition, **found.acquisition_settings)
    assert set(settings) <= set(acquisition_settings(found.acquisition))


def test_gp_ei_pi_and_ucb_are_the_textbook_and_gp_is_ours() -> None:
    for name in ("gp-ei", "gp-pi", "gp-ucb"):
        found = suggester(name)
        assert (found.patience, found.model.transform) == (0, "plain")
    assert dict(suggester("gp-pi").acquisition_settings) == {"margin": 0.0}
    assert (suggester("gp").patience, suggester("gp").model.transform) == (6, "auto")


def test_the_textbook_never_switches_and_bends_no_target() -> None:
    """A plateau, on which others than the model of `gp` take turns, and a loss that diverged, which
    `gp` caps."""
    for name, switches in (("gp-ei", False), ("gp", True)):
        study = scrimp.create_study(
            "p", SPACE, method=f"{name}:initial=3", storage="memory://", seed=0
        )
        for _ in range(14):
            trial = study.ask()
            study.tell(trial, 1.0 if trial.id else 50.0)
        record = [event.record for event in study.history.events if isinstance(event, Decided)]
        taken = {expert_of(note) for note in record} - {None}
        assert taken >= {MODEL} and (len(taken) > 1) == switches
        steps = [note.fit["loss"].state for note in record if note.fit][-1]
        if name == "gp-ei":
            values = np.array([trial.loss for trial in study.trials[:-1]], dtype=float)
            assert [set(step) for step in steps["steps"]] == [{"centre", "spread"}]
            assert steps["steps"][0]["spread"] == pytest.approx(values.std())


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("gp-ucb:kapa=3", "did you mean 'kappa'"),
        ("gp-ei:kappa=3", "no setting 'kappa'.*margin"),
        ("gp-ucb:kappa=wide", "kappa.*finite number"),
        ("gp-ei:margin=0.1,margin_unit=percent", "deviation, metric"),
        ("gp:noise_floor=0", "noise_floor is 0"),
        ("gp:restarts=-1", "restarts is -1"),
        ("tpe:margin=1", "no setting 'margin'"),
    ],
)
def test_mistakes_are_named(method: str, message: str) -> None:
    with pytest.raises(MethodError, match=message):
        suggester(method)


def test_a_margin_in_the_metrics_units_is_the_same_in_any_scale() -> None:
    """Scaling the metric and the margin together changes nothing; a margin in deviations needs no
    scaling."""

    def tried(method: str, scale: float) -> list[float]:
        study = scrimp.create_study("s", SPACE, method=method, storage="memory://", seed=1)
        for _ in range(8):
            trial = study.ask()
            study.tell(trial, scale * float(np.sin(9 * trial.params["x"])))
        return [trial.params["x"] for trial in study.trials]

    fine = tried("gp-ei:margin=0.5,margin_unit=metric", 1.0)
    np.testing.assert_allclose(tried("gp-ei:margin=50,margin_unit=metric", 100.0), fine, atol=1e-3)
    assert not np.allclose(tried("gp-ei:margin=0.5,margin_unit=metric", 100.0), fine, atol=1e-3)


def test_the_noise_floor_and_the_number_of_restarts_reach_the_fit() -> None:
    study = scrimp.create_study(
        "n", SPACE, method="gp-ei:noise_floor=0.2,restarts=3,initial=3", storage="memory://", seed=1
    )
    for _ in range(7):
        trial = study.ask()
        study.tell(trial, trial.params["x"] ** 2)
    noise = study.history.recorded.fit["loss"].state["inner"]["parameters"]["noise"]
    assert noise[0] == pytest.approx(0.2, rel=1e-6)
    assert not study.history.degraded
