"""What pages show is what scrimp show prints."""

import scrimp
from scrimp.cli.show import show_record
from scrimp.dashboard.views import field_of, figures_of, summary_of, unit_of, working


def test_the_summary_agrees_with_the_command_line(url: str) -> None:
    study = scrimp.load_study("staged", storage=url)
    summary, record = summary_of(study), show_record(study)
    assert (summary.name, summary.metric, summary.method) == (record["name"], record["metric"], record["method"])
    assert summary.best == record["best"] and summary.counts == record["counts"] and summary.spent == record["spent"]
    assert summary.saved == 1 - study.history.spent / (9 * sum(1 for trial in study.trials if trial.curve))
    assert summary.state == "idle" and summary.unit == "epochs" and summary.limits == ("of 60 in all",)


def test_states() -> None:
    study = scrimp.create_study("s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://")
    study.ask()
    assert summary_of(study).state == "running" and summary_of(study).saved is None
    study.pause()
    assert summary_of(study).state == "paused" and summary_of(study).limits == ()
    study.resume()
    assert summary_of(study).state == "running" and unit_of(study.history) == "evaluations"
    assert [trial.id for trial in working(study.history)["running"]] == [0]


def test_figures_that_make_sense(url: str) -> None:
    assert "rungs" in figures_of(scrimp.load_study("staged", storage=url))
    fallen = figures_of(scrimp.load_study("fallen", storage=url))
    assert "source_weights" in fallen and "contour" not in fallen and "curves" not in fallen


def test_fields_of_forms(url: str) -> None:
    study = scrimp.load_study("staged", storage=url)
    assert field_of(study, "lr") == {
        "name": "lr",
        "kind": "float",
        "conditional": False,
        "low": 1e-5,
        "high": 0.1,
        "step": "any",
    }
    assert field_of(study, "kind")["choices"] == ("a", "<b>bold</b>")
    assert field_of(study, "depth")["conditional"] and field_of(study, "depth")["step"] == 1
