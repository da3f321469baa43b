"""Rows of ``cv_results_`` that scikit-learn does not know of."""

import math

from scrimp.integrations.continued_fits import STATES
from scrimp.integrations.sklearn import SearchRow, SearchRows, blank_fold, stored_folds


def fold(score: float) -> dict[str, object]:
    return {"fit_time": 1.0, "test_scores": score}


def test_rows_stand_in_their_order_without_the_hidden_parameter() -> None:
    rows = SearchRows(
        [SearchRow({"c": 1}, 3, [fold(0.1), fold(0.2)])],
        [SearchRow({"c": 3, STATES: "x"}, 9, [])],
    )
    rows.evaluated = [{"c": 2, STATES: "y"}], 2, [fold(0.3), fold(0.4)], {"n_resources": [27]}
    params, n_splits, fits, more = rows.joined()
    assert params == [{"c": 1}, {"c": 2}, {"c": 3}] and n_splits == 2
    assert [fit["test_scores"] for fit in fits[:4]] == [0.1, 0.2, 0.3, 0.4]
    assert all(math.isnan(fit["test_scores"]) for fit in fits[4:]) and len(fits) == 6
    assert more == {"n_resources": [3, 27, 9]}


def test_what_is_told_is_not_formatted_again() -> None:
    rows = SearchRows(told=1)
    candidates = [{"c": 1, STATES: "y"}, {"c": 2, STATES: "y"}]
    rows.evaluated = candidates, 1, [fold(0.1), fold(0.2)], {"n_resources": [3, 9]}
    assert rows.untold() == ([{"c": 2}], 1, [fold(0.2)], {"n_resources": [9]})


def test_an_evaluation_made_again_is_not_shown() -> None:
    rows = SearchRows([SearchRow({"c": 1}, 3, [fold(0.1)])], repeats=True)
    rows.evaluated = [{"c": 1}], 1, [fold(0.9)], {"n_resources": [3]}
    assert rows.joined() == ([{"c": 1}], 1, [fold(0.1)], {"n_resources": [3]})


def test_folds_are_kept_as_metrics() -> None:
    metrics = {"split1_test_f1": 0.2, "split0_test_f1": 0.1, "split0_test_auc": 0.3, "f1": 0.15}
    first, second = stored_folds(metrics)
    assert first["test_scores"] == {"f1": 0.1, "auc": 0.3} and first["fit_time"] == 0.0
    assert second["test_scores"] == {"f1": 0.2}
    assert math.isnan(blank_fold(first)["test_scores"]["auc"])
