"""Several storages behind one server."""

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import scrimp
from scrimp.dashboard.book import Mark, Shelf, given_marks
from scrimp.dashboard.server import create_app
from scrimp.errors import StudyError
from scrimp.storage.open import open_storage

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


@pytest.fixture
def both(tmp_path: Path) -> Any:
    """A client over two storages; each has a study ``same``, with one trial and with two."""
    urls = [f"sqlite:///{tmp_path}/{name}.db" for name in ("first", "second")]
    for count, url in enumerate(urls, 1):
        study = scrimp.create_study("same", SPACE, method="random", storage=url, seed=count)
        for _ in range(count):
            study.tell(study.ask(), 1.0 / count)
    scrimp.create_study("alone", SPACE, method="random", storage=urls[1])
    app = create_app([open_storage(url) for url in urls])
    client = TestClient(app, base_url="http://127.0.0.1")
    client.urls = urls  # type: ignore[attr-defined]
    return client


def test_marks_tell_studies_of_one_name_apart() -> None:
    given = [("study", "a"), ("study.1", "a"), ("study", "a"), ("over", "time"), ("study.x", "b")]
    assert given_marks(given) == [Mark(0, "a"), Mark(1, "a")]
    assert len(given_marks([("study", str(number)) for number in range(999)])) == 200


def test_a_storage_that_is_not_there() -> None:
    shelf = Shelf([open_storage("memory://")])
    assert shelf.book("") is shelf.book("0") is shelf.books[0]
    for place in ("1", "-1", "x", "9" * 99):
        with pytest.raises(StudyError, match="there is no storage"):
            shelf.book(place)


def test_every_page_stays_with_its_storage(both: Any) -> None:
    text = both.get("/").text
    assert 'href="/study?name=same"' in text and 'href="/study?at=1&amp;name=same"' in text
    assert all(url.split("/")[-1] in text for url in both.urls)
    first, second = both.get("/study?name=same").text, both.get("/study?at=1&name=same").text
    assert 'id="trial-count">1<' in first and 'id="trial-count">2<' in second
    assert "at=1" not in first and 'name="at" value="1"' in second
    assert "/trial?at=1&amp;study=same&amp;number=1" in second
    assert both.get("/trial?study=same&number=1").status_code == 404
    assert both.get("/trial?at=1&study=same&number=1").status_code == 200
    assert both.get("/study?at=2&name=same").status_code == 404
    assert both.get("/study?name=alone").status_code == 404
    picture = both.get("/figure?at=1&study=same&name=history").json()
    assert len(picture["data"][0]["x"]) == 2


def test_studies_of_several_storages_are_compared(both: Any) -> None:
    text = both.get("/compare?study=same&study.1=same").text
    assert text.count('<td class="name">') == 2 and "study.1=same" in text
    lines = both.get("/compared?name=compare&study=same&study.1=same").json()["data"]
    assert [line["y"][-1] for line in lines] == [1.0, 0.5]


def test_buttons_act_on_their_storage(both: Any) -> None:
    form = {"study": "same", "action": "pause", "at": "1"}
    answer = both.post("/halt", data=form, follow_redirects=False)
    assert answer.headers["location"] == "/study?at=1&name=same&done=pause"
    halts = [scrimp.load_study("same", storage=url).history.limits.halt for url in both.urls]
    assert halts == [None, "paused"]
    both.post("/delete", data={"study.1": "same"})
    assert [scrimp.studies(url) for url in both.urls] == [["same"], ["alone"]]
