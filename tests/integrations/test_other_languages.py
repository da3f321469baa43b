"""The scripts on the page about other languages, as trials: where the interpreter is installed."""

import re
import shutil
from pathlib import Path

import pytest

import scrimp

PAGE = Path(__file__).resolve().parents[2] / "docs" / "integrations" / "other-languages.md"
SCRIPTS = dict(
    re.findall(r'^```\w+ title="(train\.\w+)"\n(.*?)^```', PAGE.read_text(), re.M | re.S)
)
COMMANDS = {
    "train.sh": ["sh", "train.sh", "{lr}"],
    "train.R": ["Rscript", "train.R"],
    "train.js": ["node", "train.js"],
}


def test_the_page_has_them_all() -> None:
    assert sorted(SCRIPTS) == sorted(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_script_of_another_language_is_paused_and_goes_on(name: str, tmp_path: Path) -> None:
    command = COMMANDS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed here")
    (tmp_path / name).write_text(SCRIPTS[name])
    study = scrimp.create_study(
        name,
        scrimp.Space(lr=scrimp.Float(0.01, 0.9, log=True)),
        metric="val_error",
        budget=scrimp.Budget("epoch", 1, 9),
        method="asha",
        storage=f"sqlite:///{tmp_path / 'study.db'}",
        seed=0,
    )
    study.optimize(scrimp.Command(command, tmp_path), n_trials=4, time_limit=60)
    assert not study.history.with_status("failed"), [trial.message for trial in study.trials]
    (whole,) = study.history.with_status("completed")
    assert whole.attempt == 3 and [point.step for point in whole.curve] == list(range(1, 10))
    for trial in study.trials:  # a trial that began anew after a pause would have larger values
        expected = [(1 - trial.config["lr"]) ** point.step for point in trial.curve]
        assert [point.metrics["val_error"] for point in trial.curve] == pytest.approx(
            expected, rel=1e-3
        )
