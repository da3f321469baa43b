"""Methods that compare tasks by features are refused where there is nothing to compare."""

from pathlib import Path

import pytest

import scrimp
from scrimp.errors import MethodError
from scrimp.tuning.task_features import check_features

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


def past(url: str, name: str, features: dict[str, float]) -> None:
    study = scrimp.create_study(name, SPACE, method="sobol", features=features, storage=url, seed=0)
    study.optimize(lambda trial: trial.params["x"], n_trials=4)


@pytest.mark.parametrize("method", ["tst-m", "taf-m", "rgpe:weights=features"])
def test_a_study_without_features_is_refused_with_a_remedy(method: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    past(url, "old", {"rows": 150.0})
    with pytest.raises(MethodError, match=r"features=.*tst-r"):
        scrimp.create_study("new", SPACE, method=method, learn_from=["old"], storage=url)
    assert scrimp.studies(url) == ["old"]  # nothing was stored
    study = scrimp.create_study(
        "new", SPACE, method=method, learn_from=["old"], features={"rows": 9.0}, storage=url
    )
    assert study.method == method.partition(":")[0]


def test_past_studies_without_the_features_are_named(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    past(url, "old", {"rows": 150.0})
    past(url, "bare", {})
    with pytest.raises(MethodError, match=r"'bare' have none of them.*learn_from"):
        scrimp.create_study(
            "new",
            SPACE,
            method="tst-m",
            learn_from=["old", "bare"],
            features={"rows": 9.0},
            storage=url,
        )


def test_without_past_studies_there_is_nothing_to_compare() -> None:
    assert scrimp.create_study("new", SPACE, method="tst-m", storage="memory://").method == "tst-m"


def test_one_shared_feature_is_enough() -> None:
    check_features(
        "tst-m",
        {"rows": 1.0, "classes": 2.0},
        {"a": {"rows": 1.0}, "b": {"rows": 3.0, "columns": 1.0}},
    )
    with pytest.raises(MethodError, match=r"no feature of this study .rows. is known"):
        check_features("tst-m", {"rows": 1.0}, {"a": {"rows": 1.0}, "b": {"columns": 3.0}})
