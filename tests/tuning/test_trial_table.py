"""The table of trials: one row each, under the names users know."""

import scrimp
from scrimp.tuning.trial_table import trial_frame


def test_one_row_per_trial() -> None:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://"
    )
    study.tell(study.ask(), 0.5)
    study.tell(study.ask(), state="failed", message="no")
    frame = trial_frame(study.history)
    assert list(frame["number"]) == [0, 1]
    assert list(frame["status"]) == ["completed", "failed"]
    assert list(frame["params_x"]) == [trial.config["x"] for trial in study.trials]
    assert (
        frame["value"][0] == frame["best"][0] == frame["last"][0] == 0.5
        and frame["message"][1] == "no"
    )
