"""The same figures as in Python, as JSON."""

import json
from typing import Any
from urllib.parse import quote

import pytest

import scrimp
from scrimp.dashboard.figures import FIGURES
from tests.dashboard.conftest import HOSTILE

SEVERAL = ("front", "front_history", "trade_offs")


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_is_the_one_of_the_library(client: Any, url: str, name: str) -> None:
    of = {"source_weights": "fallen"}.get(name, "several" if name in SEVERAL else "staged")
    study = scrimp.load_study(of, storage=url)
    body = client.get(f"/figure?study={of}&name={name}").json()
    assert body == json.loads(getattr(scrimp.plots, name)(study).to_json())


def test_options(client: Any) -> None:
    over = client.get("/figure?study=staged&name=history&over=budget").json()
    assert over["layout"]["xaxis"]["title"]["text"] == "budget spent (epochs)"
    one = client.get("/figure?study=staged&name=curves&trial=2").json()
    assert one["layout"]["meta"]["alternative"].startswith("val_error of trial 2")
    weights = client.get("/figure?study=fallen&name=source_weights").json()
    assert [trace["y"] for trace in weights["data"]] == [[0.4], [0.6]]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/figure?study=staged&name=nonsense", "no figure"),
        ("/figure?study=staged&name=__init__", "no figure"),
        ("/figure?study=fallen&name=surrogate", "no observations"),
        ("/figure?study=staged&name=history&over=moons", "moons"),
        ("/figure?study=staged&name=curves&trial=12345", "no trial"),
        ("/figure?study=staged&name=source_weights", "learn_from"),
    ],
)
def test_what_cannot_be_drawn_is_said(client: Any, path: str, words: str) -> None:
    answer = client.get(path)
    assert (
        answer.status_code == 200 and words in answer.json()["message"]
    )  # else a browser would complain


def test_figures_of_several_studies(client: Any) -> None:
    lines = client.get("/compared?name=compare&study=staged&study=fallen&over=budget").json()[
        "data"
    ]
    assert [line["name"] for line in lines] == ["fallen", "staged"]
    assert len(client.get("/compared?name=edf&study=staged").json()["data"]) == 1
    assert client.get("/compared?name=history&study=staged").status_code == 404


def test_names_of_users_are_not_markup_in_figures(client: Any) -> None:
    for name in ("history", "slice", "parallel"):
        text = client.get(f"/figure?study={quote(HOSTILE, safe='')}&name={name}").text
        assert "<script>" not in text and "<i>p</i>" not in text and "<u>" not in text


def test_a_figure_is_computed_once_per_length(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = client.get("/figure?study=staged&name=edf&once=1").text

    def twice(*_: Any) -> None:
        raise AssertionError("drawn again")

    monkeypatch.setattr(scrimp.plots, "edf", twice)
    assert client.get("/figure?study=staged&name=edf&once=1").text == first
