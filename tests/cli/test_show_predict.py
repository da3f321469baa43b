import json
from pathlib import Path

import pytest

import scrimp


@pytest.fixture
def url(tmp_path: Path) -> str:
    place = f"sqlite:///{tmp_path}/s.db"
    study = scrimp.create_study(
        "digits",
        scrimp.Space(lr=scrimp.Float(1e-4, 1, log=True)),
        metric="error",
        budget=scrimp.Budget("epoch", 1, 9),
        method="mobster-joint",
        storage=place,
        seed=0,
    )

    def objective(trial: scrimp.LiveTrial) -> None:
        for step in trial.steps():
            trial.report(error=abs(trial.params["lr"] - 0.1) + 1 / step)

    study.optimize(objective, n_trials=10, progress=False)
    return place


def test_prints_a_row_for_each_configuration(run, url) -> None:
    result = run(
        "predict", "digits", "--storage", url, "--params", '{"lr": 0.1}', "--params", '{"lr": 0.01}'
    )
    assert result.exit_code == 0
    header, first, second = result.stdout.strip().splitlines()
    assert header.split("\t") == ["params", "at", "error"]
    assert first.startswith("lr=0.1\t9\t") and "±" in first and second.startswith("lr=0.01\t9\t")


def test_json_has_the_numbers_of_the_library(run, url) -> None:
    result = run(
        "predict", "digits", "--storage", url, "--params", '{"lr": 0.1}', "--at", "3", "--json"
    )
    (found,) = json.loads(result.stdout)
    expected = scrimp.load_study("digits", storage=url).predict({"lr": 0.1}, at=3)
    assert found["params"] == {"lr": 0.1} and found["at"] == 3.0
    assert found["metrics"]["error"]["mean"] == expected.mean[0, 0]
    assert found["metrics"]["error"]["std"] == expected.std[0, 0]


@pytest.mark.parametrize("text", ["lr=0.1", "[1, 2]"])
def test_what_is_no_configuration_is_refused(run, url, text) -> None:
    with pytest.raises(scrimp.errors.ConfigError, match="--params"):
        run("predict", "digits", "--storage", url, "--params", text)


def test_a_verdict_in_words_and_as_json(run, url) -> None:
    words = run("verdict", "digits", "--storage", url)
    expected = scrimp.load_study("digits", storage=url).verdict()
    assert words.exit_code == 0 and words.stdout.startswith("Best: trial")
    found = json.loads(
        run("verdict", "digits", "--storage", url, "--json", "--level", "0.9").stdout
    )
    assert found["level"] == 0.9 and found["noise"] == expected.noise
    assert found["probability_better"] == expected.probability_better
