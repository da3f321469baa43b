"""One call."""

from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import ObjectiveError

SPACE = scrimp.Space(x=scrimp.Float(-1, 1))


def test_minimize_and_maximize() -> None:
    low = scrimp.minimize(lambda params: (params["x"] - 0.5) ** 2, SPACE, n_trials=15, seed=0)
    assert low.best_value < 1e-3 and abs(low.best_params["x"] - 0.5) < 0.05
    high = scrimp.maximize(lambda params: -((params["x"] - 0.5) ** 2), SPACE, n_trials=15, seed=0)
    assert high.best_value == pytest.approx(-low.best_value) and high.best_params == low.best_params
    assert len(low.history.trials) == 15 and "best_value" in repr(low)


def test_options_go_to_optimize() -> None:
    seen: list[Any] = []
    result = scrimp.minimize(
        lambda params: {"value": params["x"], "other": 1},
        SPACE,
        n_trials=50,
        seed=0,
        method="random",
        stop=scrimp.MaxTrials(5),
        callbacks=[lambda study, trial: seen.append(trial.id)],
    )
    assert len(result.history.trials) == 5 and seen == [0, 1, 2, 3, 4]


def test_an_objective_that_is_no_function_is_refused() -> None:
    objective: Any = 3
    with pytest.raises(ObjectiveError, match="3"):
        scrimp.minimize(objective, SPACE, n_trials=5)


def test_plugins_are_named_as_for_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_bound.py").write_text(
        "from dataclasses import dataclass\n"
        "from scrimp.extend import MeanStdAcquisition, register\n"
        "@dataclass(frozen=True)\n"
        "class OwnBound(MeanStdAcquisition):\n"
        "    def alpha(self, mean, std, incumbent):\n"
        "        return 3 * std - mean\n"
        "    def derivatives(self, mean, std, incumbent):\n"
        "        return -1.0, 3.0\n"
        "register('acquisition', 'own-bound', OwnBound)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    space = scrimp.Space(x=scrimp.Float(0, 1))
    for solve in (scrimp.minimize, scrimp.maximize):
        result = solve(
            lambda params: params["x"],
            space,
            3,
            seed=0,
            method="gp:acquisition=own-bound,initial=2",
            plugins=["own_bound"],
        )
        assert result.history.plugins == ("own_bound",)


def test_results_are_cards_in_notebooks() -> None:
    result = scrimp.minimize(lambda params: params["x"], scrimp.Space(x=scrimp.Float(0, 1)), 2)
    assert "2 of 2 trials" in result._repr_html_() and result._repr_html_().startswith("<div")


def test_a_result_without_a_finite_value_has_a_text() -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    result = scrimp.minimize(lambda params: float("nan"), space, n_trials=2, seed=0)
    assert repr(result).startswith("Result(") and "finite" in str(result)


def test_a_storage_is_refused_with_the_way_to_keep_a_study() -> None:
    space, options = scrimp.Space(x=scrimp.Float(0, 1)), {"storage": "memory://"}
    for call in (scrimp.minimize, scrimp.maximize):
        with pytest.raises(TypeError, match=f"create_study.*{call.__name__} keeps nothing"):
            call(lambda params: 1.0, space, 2, **options)  # type: ignore[arg-type]
