"""Buttons: what they append to the log, and what they refuse."""

import sys
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import scrimp
from scrimp.dashboard.actions import form_config
from scrimp.dashboard.server import MAX_BODY_BYTES, Secrets, create_app
from scrimp.errors import ConfigError, ReportError
from scrimp.storage.open import open_storage
from scrimp.study_log.events import StudyChanged
from scrimp.study_log.limits import Totals


def study_of(client: Any) -> scrimp.Study:
    return scrimp.load_study("mine", storage=client.url)


def test_pause_stop_and_resume(own: Any) -> None:
    for action, halt in (("pause", "paused"), ("stop", "stopped"), ("resume", None)):
        answer = own.post("/halt", data={"study": "mine", "action": action}, follow_redirects=False)
        assert (
            answer.status_code == 303
            and answer.headers["location"] == f"/study?name=mine&done={action}"
        )
        assert study_of(own).history.limits.halt == halt
        page = own.get(answer.headers["location"]).text
        assert 'role="status"' in page and ("Resume" in page) == (halt is not None)
    assert own.post("/halt", data={"study": "mine", "action": "explode"}).status_code == 400


def test_enqueue(own: Any) -> None:
    form = {"study": "mine", "params_x": "0.25", "params_n": "3", "params_kind": "1"}
    assert "runs next" in own.post("/enqueue", data=form).text
    assert list(study_of(own).history.queue) == [{"x": 0.25, "n": 3, "kind": 1}]
    assert own.post("/enqueue", data={"study": "mine", "params_x": "7"}).status_code == 400
    assert study_of(own).ask().config == {"x": 0.25, "n": 3, "kind": 1}


def test_enqueue_says_when_it_will_not_be_tried(own: Any) -> None:
    study = study_of(own)
    study._change(StudyChanged(totals=Totals(n_trials=len(study.trials))))
    form = {"study": "mine", "params_x": "0.25", "params_n": "3", "params_kind": "1"}
    assert "raise n_trials to run it" in own.post("/enqueue", data=form).text
    assert "Nothing was queued" in own.post("/enqueue", data=form).text


def test_what_is_left_empty_is_filled_in(own: Any) -> None:
    own.post("/enqueue", data={"study": "mine", "params_x": "0.5", "params_n": " "})
    (config,) = study_of(own).history.queue
    assert config["x"] == 0.5 and set(config) == {"x", "n", "kind"}


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"params_x": "a lot"}, "finite number"),
        ({"params_x": "nan"}, "finite number"),
        ({"params_kind": "9"}, "from 0 to 2"),
        ({"params_kind": "<b>"}, "from 0 to 2"),
    ],
)
def test_forms_that_make_no_sense(own: Any, form: dict[str, str], words: str) -> None:
    with pytest.raises((ConfigError, ReportError), match=words):
        form_config(study_of(own).history.problem.space, form)
    assert own.post("/enqueue", data={"study": "mine", **form}).status_code == 400


def test_tell_a_value(own: Any) -> None:
    own.post(
        "/tell", data={"study": "mine", "number": "0", "metric_loss": "0.125", "state": "completed"}
    )
    assert study_of(own).trials[0].value == 0.125 and study_of(own).trials[0].status == "completed"
    again = own.post("/tell", data={"study": "mine", "number": "0", "metric_loss": "0.5"})
    assert again.status_code == 400 and "completed already" in again.text


def test_tell_a_failure(own: Any) -> None:
    own.post("/tell", data={"study": "mine", "number": "0", "state": "failed", "message": "melted"})
    assert (study_of(own).trials[0].status, study_of(own).trials[0].message) == ("failed", "melted")


def test_tell_a_value_of_each_metric(own: Any) -> None:
    metrics = {"error": "minimize", "ms": "minimize"}
    space = scrimp.Space(x=scrimp.Float(0, 1))
    scrimp.create_study("two", space, metrics=metrics, storage=own.url, method="random").ask()
    for page in ("/study?name=two", "/trial?study=two&number=0"):
        text = own.get(page).text
        assert 'name="metric_error"' in text and 'name="metric_ms"' in text
    form = {"study": "two", "number": "0", "metric_error": "0.5"}
    assert "ms is &#39;&#39;" in own.post("/tell", data=form).text
    own.post("/tell", data={**form, "metric_ms": "7"})
    trial = scrimp.load_study("two", storage=own.url).trials[0]
    assert trial.last is not None and trial.last.metrics == {"error": 0.5, "ms": 7.0}


def test_a_study_whose_trials_all_failed_can_be_tried_again(own: Any) -> None:
    assert "nothing to retry" in own.post("/retry", data={"study": "mine"}).text
    study_of(own).tell(0, state="failed")
    page = own.get("/study?name=mine").text
    assert 'action="/retry"' in page and "Pause" not in page
    assert "are queued ahead of new ones" in own.post("/retry", data={"study": "mine"}).text
    assert study_of(own).history.with_status("failed") == []
    assert 'action="/retry"' not in own.get("/controls?name=mine").text


def test_a_finished_study_is_neither_paused_nor_stopped(own: Any) -> None:
    assert "Pause" in own.get("/controls?name=mine").text
    study = study_of(own)
    study.tell(0, 0.5)
    study._change(StudyChanged(totals=Totals(n_trials=1)))
    assert "<button" not in own.get("/controls?name=mine").text


@pytest.mark.parametrize(
    "form",
    [{"number": "x"}, {"number": "7", "metric_loss": "1"}, {"number": "0", "metric_loss": ""}],
)
def test_tell_nonsense(own: Any, form: dict[str, str]) -> None:
    before = study_of(own).history.length
    assert own.post("/tell", data={"study": "mine", **form}).status_code == 400
    assert study_of(own).history.length == before


def test_studies_that_are_not_there_and_forms_that_are_too_long(own: Any) -> None:
    assert own.post("/halt", data={"study": "none", "action": "stop"}).status_code == 400
    assert own.post("/enqueue", content=b"x" * (MAX_BODY_BYTES + 1)).status_code == 413
    assert own.get("/halt").status_code == 405
    refused = own.post(
        "/halt", data={"study": "mine", "action": "stop"}, headers={"origin": "http://evil.example"}
    )
    assert refused.status_code == 403 and study_of(own).history.limits.halt is None


def test_two_dashboards_on_one_storage(own: Any) -> None:
    from fastapi.testclient import TestClient

    from scrimp.dashboard.server import create_app
    from scrimp.storage.open import open_storage

    other = TestClient(create_app(open_storage(own.url)), base_url="http://127.0.0.1")
    assert 'id="state">running<' in other.get("/study?name=mine").text
    own.post("/halt", data={"study": "mine", "action": "pause"})
    assert 'id="state">paused<' in other.get("/study?name=mine").text


def test_notes_and_attributes(own: Any) -> None:
    form = {"study": "mine", "note": "<b>new</b> data", "attribute": "tag", "setting": "<i>x</i>"}
    assert "The note is saved" in own.post("/note", data=form).text
    own.post("/note", data={**form, "number": "0", "note": "look at <u>this</u>"})
    study = study_of(own)
    assert (study.note, study.user_attrs) == ("<b>new</b> data", {"tag": "<i>x</i>"})
    assert study.trials[0].note == "look at <u>this</u>"
    page, trial = (
        own.get(f"/{path}").text for path in ("study?name=mine", "trial?study=mine&number=0")
    )
    assert "&lt;b&gt;new&lt;/b&gt; data" in page and "&lt;u&gt;this" in trial
    assert "<b>new" not in page and "<u>this" not in trial and "<i>x" not in page + trial
    assert (
        'id="matching">1<' in own.get("/table?name=mine&text=tag%3D%22%3Ci%3Ex%3C%2Fi%3E%22").text
    )
    own.post("/note", data={"study": "mine", "attribute": "tag"})
    assert (study_of(own).note, study_of(own).user_attrs) == ("", {})
    assert own.post("/note", data={"study": "mine", "number": "9"}).status_code == 400
    assert own.post("/note", data={"study": "mine", "number": "x"}).status_code == 400


def test_delete_asks_first_and_then_deletes(own: Any) -> None:
    scrimp.create_study("other", scrimp.Space(x=scrimp.Float(0, 1)), storage=own.url)
    asked = own.get("/delete?study=other&study=mine").text
    assert 'value="other"' in asked and "Delete 2 studies permanently" in asked
    assert scrimp.studies(own.url) == ["mine", "other"], "asking deletes nothing"
    refused = own.post("/delete", data={"study": ["other", "mine"]})
    assert refused.status_code == 400 and "&#39;mine&#39; is running" in refused.text
    assert scrimp.studies(own.url) == ["mine", "other"], "all of them or none"
    own.post("/halt", data={"study": "mine", "action": "stop"})
    done = own.post("/delete", data={"study": "mine"}, follow_redirects=False)
    assert done.status_code == 303 and done.headers["location"] == "/?done=deleted"
    assert scrimp.studies(own.url) == ["other"]
    assert own.get("/study?name=mine").status_code == 404
    assert own.post("/delete", data={"study": "none"}).status_code == 400
    assert own.post("/delete", data={}).status_code == 400


def test_deleting_needs_the_secret_to_change_and_a_page_of_this_server(own: Any) -> None:
    from fastapi.testclient import TestClient

    from scrimp.dashboard.server import Secrets, create_app
    from scrimp.storage.open import open_storage

    study_of(own).stop()
    app = create_app(open_storage(own.url), Secrets("w" * 16, "r" * 16))
    client = TestClient(app, base_url="http://127.0.0.1")
    form = {"study": "mine"}
    assert client.post("/delete", data=form).status_code == 401
    looking = {"authorization": f"Bearer {'r' * 16}"}
    assert client.post("/delete", data=form, headers=looking).status_code == 403
    assert "Delete selected" not in client.get("/", headers=looking).text
    assert "/delete" not in client.get("/study?name=mine", headers=looking).text
    changing = {"authorization": f"Bearer {'w' * 16}"}
    foreign = {**changing, "origin": "http://evil.example"}
    assert client.post("/delete", data=form, headers=foreign).status_code == 403
    assert client.get("/delete?study=mine", headers=changing).status_code == 200
    assert scrimp.studies(own.url) == ["mine"]
    assert client.post("/delete", data=form, headers=changing, follow_redirects=False).is_redirect
    assert scrimp.studies(own.url) == []


FILE = """
name = "from a file"
metrics = {error = "minimize", latency = "minimize"}
method = "random"
seed = 3

[space]
lr = {type = "float", low = 1e-5, high = 1e-1, log = true}

[constraints]
memory = {at_most = 4}

[run]
n_trials = 7
"""


def test_a_study_is_created_by_form_or_file_and_worked_on(own: Any) -> None:
    form = {
        "name": "by form",
        "space": "x = float(0, 1)\nkind = categorical(a, b)",
        "metric": "loss",
        "direction": "maximize",
        "n_trials": "5",
        "budget": "epoch(1,9)",
        "method": "asha",
        "seed": "",
    }
    page = own.post("/create", data=form).text
    assert "The study is created" in page and ">new</span>" in page
    assert "scrimp worker &#39;by form&#39; --storage" in page and "module:function" in page
    study = scrimp.load_study("by form", storage=own.url)
    assert study.metric == "loss" and study.direction == "maximize" and study.method == "asha"
    assert study.budget == scrimp.Budget("epoch", 1, 9) and list(study.space) == ["x", "kind"]
    assert study.history.totals.n_trials == 5 and study.history.objective is None
    assert own.post("/create", data={"toml": FILE}).status_code == 200
    study = scrimp.load_study("from a file", storage=own.url)
    assert list(study.history.problem.metrics) == ["error", "latency"]
    assert study.history.problem.seed == 3 and study.history.totals.n_trials == 7
    study.optimize(lambda trial: {"error": 1.0, "latency": 2.0, "memory": 1.0}, n_trials=7)
    assert "finished" in own.get("/study", params={"name": "from a file"}).text


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"toml": FILE.replace("from a file", "mine")}, "there is a study &#39;mine&#39; already"),
        ({"toml": "name = "}, "not valid TOML"),
        ({"toml": FILE.replace("n_trials = 7", "workers = 2")}, "an option of the worker"),
        ({"toml": FILE.replace("[run]\nn_trials = 7", "")}, "would never end"),
        ({"toml": FILE.replace('"random"', '"randm"')}, "randm"),
        ({"name": "x", "space": "lr = flot(1, 2)", "n_trials": "3"}, "flot"),
        ({"name": "x", "space": "lr = float(0, 1)", "n_trials": "many"}, "give a whole number"),
        ({"name": "", "space": "lr = float(0, 1)", "n_trials": "3"}, "name"),
    ],
)
def test_mistakes_in_a_new_study_are_shown_in_the_form(
    own: Any, form: dict[str, str], words: str
) -> None:
    answer = own.post("/create", data=form)
    assert answer.status_code == 400 and words in answer.text
    assert "<h1>New study</h1>" in answer.text, "nothing that was typed is lost"
    assert own.get("/").text.count('name="study"') == 1


@pytest.mark.parametrize(
    "line",
    [
        'objective = "planted:run"',
        'command = "touch planted"',
        'plugins = ["planted"]',
        'storage = "sqlite:///elsewhere.db"',
    ],
)
def test_a_study_from_the_page_names_no_code(
    own: Any, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "planted.py").write_text("raise SystemExit('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    answer = own.post("/create", data={"toml": f"{line}\n{FILE}"})
    assert answer.status_code == 400 and "cannot be set here" in answer.text
    assert "planted" not in sys.modules and not (tmp_path / "elsewhere.db").exists()
    assert "from a file" not in own.get("/").text


def test_creating_needs_the_secret_to_change_and_a_page_of_this_server(own: Any) -> None:
    app = create_app(open_storage(own.url), Secrets("w" * 20, "r" * 20))
    client = TestClient(app, base_url="http://127.0.0.1")
    looking, changing = ({"authorization": f"Bearer {key * 20}"} for key in "rw")
    assert "<button>Create" not in client.get("/new", headers=looking).text
    assert "<button>Create" in client.get("/new", headers=changing).text
    elsewhere = {**changing, "origin": "http://evil.example"}
    for headers in (looking, elsewhere, {}):
        assert client.post("/create", data={"toml": FILE}, headers=headers).status_code in (
            401,
            403,
        )
    assert client.post("/create", data={"toml": FILE}, headers=changing).status_code == 200
