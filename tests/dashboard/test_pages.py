"""Every page: what it shows, and that nothing of a study is read as HTML."""

import json
import re
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

import scrimp
from scrimp.cli.main import app
from scrimp.dashboard import pages
from scrimp.dashboard.book import OpenStudy
from scrimp.dashboard.server import create_app
from scrimp.storage.open import open_storage
from scrimp.study_log.events import StudyChanged
from scrimp.study_log.limits import Totals
from tests.dashboard.conftest import HOSTILE


def test_studies(client: Any) -> None:
    text = client.get("/").text
    for name in ("staged", "fallen"):
        assert f'href="/study?name={name}"' in text
    assert "<polyline" in text and "of 60</span>" in text and "state-finished" in text
    assert "now</td>" in text or "s ago</td>" in text or "min ago</td>" in text
    found = client.get("/?text=staged").text
    assert 'name=staged"' in found and 'name=fallen"' not in found
    assert "No study matches “nothing”" in client.get("/studies?text=nothing").text
    assert text.count('class="badge degraded"') == 1


def test_a_long_list_has_pages_and_is_searched_by_name(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = re.findall(r'data-mark aria-label="compare ([^"]+)"', client.get("/").text)
    monkeypatch.setattr(pages, "MAX_LISTED_STUDIES", 2)
    seen: list[str] = []
    for number in range(1, -(-len(whole) // 2) + 1):
        text = client.get(f"/?page={number}").text
        seen += re.findall(r'data-mark aria-label="compare ([^"]+)"', text)
        if len(seen) < len(whole):
            assert f'href="/?sort=created&amp;order=down&amp;page={number + 1}' in text
    assert sorted(seen) == sorted(whole) and len(whole) > 3
    for odd in ("0", "-1", "999999999999", "x"):
        assert client.get(f"/?page={odd}").status_code == 200
    found = client.get("/?text=stag").text
    assert 'name=staged"' in found and 'name=fallen"' not in found and "page 1 of 1" not in found


def test_numbers_of_a_study_are_those_of_the_command_line(client: Any, url: str) -> None:
    shown = CliRunner().invoke(app, ["show", "staged", "--storage", url, "--json"]).stdout
    record = json.loads(shown)
    text = client.get("/study?name=staged").text
    assert f'id="best-value" data-value="{record["best"]["value"]}"' in text
    assert f'id="spent" data-value="{record["spent"]}"' in text
    assert record["repeated"] > 0 and f">and {record['repeated']:g} repeated," in text
    counts = dict(re.findall(r'data-status="(\w+)" data-count="(\d+)"', text))
    assert f">{counts['paused']} paused<" in text  # the same word as in the table
    assert {status: int(count) for status, count in counts.items()} == record["counts"]
    shown = [int(number) for number in re.findall(r'<tr data-trial="(\d+)">', text)]
    known = [trial for trial in record["trials"] if trial["best"] is not None]
    best_first = [trial["id"] for trial in sorted(known, key=lambda trial: trial["best"])]
    assert shown == best_first[:50]
    reached = {row["budget"] for row in record["trials"]}
    assert 'id="rungs"' in text and reached >= {1.0, 9.0}


def test_the_table_pages_and_sorts(client: Any) -> None:
    study = scrimp.load_study("staged", storage=client.app.state.shelf.books[0].storage)
    best = min(
        (trial for trial in study.trials if trial.value is not None),
        key=lambda trial: trial.value or 0.0,
    )
    text = client.get("/study?name=staged&sort=value&order=up").text
    assert re.search(r'<tr data-trial="(\d+)">', text).group(1) == str(best.id)  # type: ignore[union-attr]
    second = client.get("/table?name=staged&page=2").text
    assert second.count("<tr data-trial=") == 10 and "<html" not in second
    assert (
        client.get("/table?name=staged&status=failed").text.count("<tr data-trial=")
        == study.history.counts["failed"]
    )


def test_a_trial_says_why(client: Any, url: str) -> None:
    study = scrimp.load_study("staged", storage=url)
    text = client.get(f"/trial?study=staged&number={study.best_trial.id}").text
    assert (
        "so it was promoted to 3 epochs" in text and f'id="value">{study.best_value:.6g}<' in text
    )
    failed = next(trial for trial in study.trials if trial.status == "failed")
    page = client.get(f"/trial?study=staged&number={failed.id}").text
    assert "<h2>Error</h2>" in page and "out of memory" in page and "<img src=x" not in page
    assert client.get("/trial?study=staged&number=99").status_code == 404
    assert client.get("/trial?study=staged&number=x").status_code == 422


def test_degraded_decisions_have_a_badge(client: Any) -> None:
    assert "the model failed; quasi-random instead" in client.get("/study?name=fallen").text
    assert 'class="badge degraded"' in client.get("/trial?study=fallen&number=0").text


def test_trials_side_by_side(client: Any, url: str) -> None:
    study = scrimp.load_study("staged", storage=url)
    best = study.best_trial.id
    text = client.get(f"/trials?study=staged&number={best}&number=0&number=999&number=x").text
    assert f"Trials {best}, 0<" in text and text.count('scope="row"') == 7
    assert f"&trial={best}&trial=0" in text and "onerror" not in text
    assert "Select at least one" in client.get("/trials?study=staged").text
    page = client.get("/trial?study=staged&number=0").text
    assert f"number=0&amp;number={best}" in page


def test_a_filter_that_is_not_understood_is_said_on_the_page(client: Any) -> None:
    text = client.get("/study?name=staged&text=vall_error%3C0.05").text
    assert 'id="filter-error"' in text and "there is no &#39;vall_error&#39;" in text
    good = client.get("/table?name=staged&text=val_error%3C0.3").text
    count = int(re.search(r'id="matching">(\d+)<', good).group(1))  # type: ignore[union-attr]
    assert 0 < count < 60 and 'id="filter-error"' not in good


def test_constraints_and_violations_are_seen(tmp_path: Any) -> None:
    from fastapi.testclient import TestClient

    from scrimp.dashboard.server import create_app
    from scrimp.storage.open import open_storage

    url = f"sqlite:///{tmp_path}/c.db"
    study = scrimp.create_study(
        "c",
        scrimp.Space(x=scrimp.Float(0, 1)),
        constraints={"<gb>": scrimp.AtMost(16)},
        method="random",
        storage=url,
    )
    for number in range(3):
        study.tell(study.ask(), {"value": number, "<gb>": 15 + number})
    client = TestClient(create_app(open_storage(url)), base_url="http://127.0.0.1")
    text = client.get("/study?name=c").text
    assert "&lt;gb&gt; at most 16" in text and "met by 2 of 3 trials" in text and "<gb>" not in text
    assert text.count(">infeasible<") == 1 and text.count('class="right bad"') == 1
    trial = client.get("/trial?study=c&number=2").text
    assert (">infeasible<" in trial and 'class="bad">17.0<' in trial) or 'class="bad">17<' in trial


def test_compare(client: Any) -> None:
    text = client.get("/compare?study=staged&study=fallen").text
    assert text.count('href="/study?name=') == 2 and "different metrics" in text
    assert "Select at least one" in client.get("/compare").text
    assert client.get("/compare?study=none").status_code == 404


@pytest.mark.parametrize(
    "path",
    ["/", "/study?name={}", "/trial?study={}&number=1", "/compare?study={}", "/summary?name={}"],
)
def test_hostile_texts_are_shown_and_not_obeyed(client: Any, path: str) -> None:
    answer = client.get(path.format(quote(HOSTILE, safe="")))
    assert answer.status_code == 200
    for evil in ("<script>alert", "<img src=x", "<i>p</i>", "<s>m</s>", "<u>"):
        assert evil not in answer.text
    assert "&lt;s&gt;m&lt;/s&gt;" in answer.text or "&lt;script&gt;" in answer.text


def test_a_hostile_filter_stays_a_text(client: Any) -> None:
    evil = quote('"><script>alert(1)</script>', safe="")
    text = client.get(f"/study?name=staged&text={evil}&sort={evil}&status={evil}&done={evil}").text
    assert "<script>alert" not in text and "&#34;&gt;&lt;script&gt;" in text


def test_a_log_that_is_being_read_says_so(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OpenStudy, "wait", lambda *_: None)
    for path in ("/study?name=staged", "/trial?study=staged&number=0", "/compare?study=staged"):
        answer = client.get(path)
        assert "being read for the first time" in answer.text and answer.headers["refresh"] == "1"
    assert client.get("/figure?study=staged&name=history").status_code == 202
    assert "reading the log" in client.get("/").text


def test_a_selection_by_question_shows_its_race(tmp_path: Any) -> None:
    from fastapi.testclient import TestClient

    from scrimp.dashboard.server import create_app
    from scrimp.storage.open import open_storage

    url = f"sqlite:///{tmp_path}/c.db"
    selection = scrimp.create_selection(
        "run", checkpoints=[100, 200, 300], tasks={"a": 40}, storage=url, seed=0
    )
    selection.stop_when(share=0.3)
    while not selection.finished:
        checkpoint, task, questions = selection.ask()
        selection.tell(checkpoint, task, [checkpoint / 400] * len(questions))
    client = TestClient(create_app(open_storage(url)), base_url="http://127.0.0.1")
    text = client.get("/study?name=run").text
    for name in ("selection_race", "selection_scores", "selection_tasks", "selection_saved"):
        assert f'id="figure-{name}"' in text
        assert client.get(f"/figure?study=run&name={name}").json()["data"]
    assert 'id="figure-selection_grid"' not in text
    assert "it has the highest score on the questions that the remaining checkpoints share" in text
    asked, answers = re.findall(r'id="asked">([\d,]+) <small>of ([\d,]+)<', text)[0]
    assert (int(asked), int(answers)) == (selection.recommend().asked, 120)
    assert "score of the last part" in text and 'id="rungs-table"' not in text
    ticks = client.get("/figure?study=run&name=selection_race").json()["layout"]["yaxis"][
        "tickvals"
    ]
    assert ticks[:4] == [1, 2, 5, 10]


def test_a_selection_has_its_own_pictures_and_no_buttons(tmp_path: Any) -> None:
    from fastapi.testclient import TestClient

    from scrimp.dashboard.server import create_app
    from scrimp.storage.open import open_storage

    url = f"sqlite:///{tmp_path}/c.db"
    selection = scrimp.create_selection(
        "run", checkpoints=[100, 200, 300, 400], tasks=["a", "b"], storage=url
    )
    for _ in range(5):
        checkpoint, task = selection.ask()
        selection.tell(checkpoint, task, 0.5 + checkpoint / 1000)
    client = TestClient(create_app(open_storage(url)), base_url="http://127.0.0.1")
    text = client.get("/study?name=run").text
    for name in (
        "selection_grid",
        "selection_curve",
        "selection_confidence",
        "selection_correlations",
    ):
        assert f'id="figure-{name}"' in text
        assert client.get(f"/figure?study=run&name={name}").json()["data"]
    assert (
        "why: of the checkpoints measured it has the highest expected mean" in text
        and "second opinion: " in text
    )
    assert 'action="/halt"' not in text
    assert client.post("/halt", data={"study": "run", "action": "stop"}).status_code == 400
    assert client.get("/").status_code == client.get("/trial?study=run&number=0").status_code == 200


def test_a_study_of_several_metrics_shows_its_front(own: Any) -> None:
    study = scrimp.create_study(
        "front",
        scrimp.Space(x=scrimp.Float(0, 1)),
        metrics={"error": "minimize", "speed": "maximize"},
        method="random",
        storage=own.url,
        seed=0,
    )
    for error, speed in ((0.5, 5.0), (0.2, 2.0), (0.9, 1.0)):
        study.tell(study.ask(), {"error": error, "speed": speed})
    text = own.get("/study?name=front").text
    assert '<p class="big" id="front-size">2' in text and "hypervolume" in text
    assert text.index("number=1") < text.index("number=0")  # by the first metric
    assert "sort=speed" in text and '<td class="right">5</td>' in text[text.index("trial-table") :]
    assert own.get("/").status_code == own.get("/trial?study=front&number=2").status_code == 200
    rows = re.findall(r'<tr data-trial="(\d)">.*?</tr>', text, re.DOTALL)
    assert rows == ["1", "0", "2"] and "on the front" in text
    first = re.search(r'<tr data-trial="1">.*?</tr>', text, re.DOTALL)
    assert first is not None
    assert re.findall(r"<td[^>]*>([\w.]+)</td>", first[0])[:3] == ["yes", "0.2", "2"]
    found = own.get("/table?name=front&text=front%3Dno").text
    assert re.findall(r'data-trial="(\d)"', found) == ["2"]
    assert "minimize error, maximize speed" in own.get("/compare?study=front").text
    assert "2 on the front" in own.get("/compare?study=front").text
    one, beaten = (own.get(f"/trial?study=front&number={number}").text for number in (1, 2))
    assert "on the front, at its knee, with 2 reports" in one and "rank" not in one
    assert '<p class="quiet">dominated by trial 1 and 1 more</p>' in beaten
    for name in ("front", "front_history", "trade_offs"):
        assert f'id="{name}"' in text or name in text
        assert "data" in own.get(f"/figure?study=front&name={name}").json()


def test_an_open_study_shows_its_progress_and_folds_its_hints(own: Any) -> None:
    study = scrimp.create_study(
        "open",
        scrimp.Space(x=scrimp.Float(0, 1), kind=scrimp.Categorical(["a", "b"])),
        method="random",
        storage=own.url,
        seed=0,
    )
    for x in (0.0, 0.001, 0.002):
        study.enqueue({"x": x, "kind": "a"})
    study.optimize(lambda trial: trial.params["x"], n_trials=4)
    with_total = StudyChanged(totals=Totals(n_trials=8))
    study._ledger.append([with_total])
    text = own.get("/study?name=open").text
    assert 'id="progress" max="1" value="0.500"' in text and "50% done" in text
    assert re.search(r'<details id="hints".*1 hint on the search space', text)
    assert 'aria-label="budget"' not in text  # one evaluation per trial is no budget
    assert re.search(r'<td class="right">0\.001</td><td>a</td>', text)


def test_the_list_shows_the_answer_of_a_selection(own: Any) -> None:
    selection = scrimp.create_selection(
        "pick", checkpoints=[1, 2, 3], tasks=["a", "b"], storage=own.url, seed=0
    )
    for checkpoint, task, score in ((1, "a", 0.1), (2, "a", 0.9), (2, "b", 0.8), (3, "a", 0.2)):
        selection.tell(checkpoint, task, score)
    assert "checkpoint 2</td>" in own.get("/").text
    assert "4 of 4 cells" in re.sub(r"<[^>]*>", "", own.get("/study?name=pick").text).replace(
        "\n", " "
    )


def test_a_selection_is_finished_once_its_rule_is_met_and_has_cells(tmp_path: Any) -> None:
    place = open_storage(f"sqlite:///{tmp_path}/s.db")
    steps, tasks = list(range(1, 9)), ["arc", "mmlu"]
    made = scrimp.create_selection("run", checkpoints=steps, tasks=tasks, storage=place, seed=0)
    made.run(lambda step, task: 0.1 * step + (task == "arc"), share=0.5)
    client = TestClient(create_app(place), base_url="http://127.0.0.1")
    page = client.get("/study", params={"name": "run"}).text
    assert 'state-finished" id="state">finished' in page and "limit: a share of 0.5" in page
    assert "Latest activity: cell 7" in page and "of 8 cells" in page
    numbers = re.findall(r'<tr data-trial="(\d+)">', page)
    assert numbers == [str(number) for number in range(7, -1, -1)], "the latest come first"


def test_past_studies_that_were_left_out_are_not_learned_from(tmp_path: Any) -> None:
    place, space = open_storage(f"sqlite:///{tmp_path}/s.db"), scrimp.Space(x=scrimp.Float(0, 1))
    for name, values in {"good": (1.0, 2.0, 3.0), "empty": ()}.items():
        past = scrimp.create_study(name, space, method="random", storage=place, seed=0)
        for value in values:
            past.tell(past.ask(), value)
    new = scrimp.create_study("new", space, storage=place, seed=0, learn_from=["good", "empty"])
    new.optimize(lambda trial: trial.params["x"], n_trials=3)
    client = TestClient(create_app(place), base_url="http://127.0.0.1")
    page = client.get("/study", params={"name": "new"}).text
    assert '<p class="quiet" id="sources">learns from good</p>' in page
    assert "1 past study left out" in page and "0 usable trials" in page
