"""Figures as files: pages that need no network, pictures where kaleido and a browser are there."""

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.cli import plot
from scrimp.cli.plot import write_figure
from scrimp.errors import StudyError

DRAWN = [
    "history",
    "curves",
    "rungs",
    "spending",
    "parallel",
    "slice",
    "contour",
    "importance",
    "timeline",
    "edf",
    "surrogate",
]


@pytest.mark.parametrize("name", DRAWN)
def test_every_figure_is_written(
    small: str, run: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    out = tmp_path / f"{name}.json"
    assert "wrote" in run("plot", "small", name, "--out", str(out), "--storage", small).stdout
    assert json.loads(out.read_text())["data"]


def test_a_page_needs_no_network_and_has_words(
    small: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    out = tmp_path / "h.html"
    run("plot", "small", "history", "--over", "time", "--out", str(out), "--storage", small)
    text = out.read_text()
    assert "<script src=" not in text and 'content="light dark"' in text and len(text) > 1_000_000
    assert 'aria-label="The best error is 0.2, by trial 1' in text
    assert '"showSendToCloud": false' in text and "displaylogo" in text


def test_parameters_and_axes_are_options(
    small: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    def drawn(*arguments: str) -> Any:
        run("plot", "small", *arguments, "--out", str(tmp_path / "f.json"), "--storage", small)
        return json.loads((tmp_path / "f.json").read_text())["layout"]

    assert drawn("slice", "--parameter", "kind")["xaxis"]["title"]["text"] == "kind"
    assert drawn("surrogate", "--parameter", "kind")["xaxis"]["title"]["text"] == "kind"
    assert (
        drawn("contour", "--parameter", "kind", "--parameter", "x")["yaxis"]["title"]["text"] == "x"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["histry"], "did you mean 'history'"),
        (["history", "--out", "x.txt"], "has no known ending"),
        (["history", "--over", "moons"], "'moons'"),
        (["edf", "--parameter", "x"], "leave out --parameter"),
        (["edf", "--over", "time"], "leave out --over"),
        (["source_weights"], "learn_from"),
    ],
)
def test_what_cannot_be_drawn_is_said(
    small: str, run: Callable[..., Any], arguments: list[str], words: str
) -> None:
    with pytest.raises(StudyError, match=words):
        run("plot", "small", *arguments, "--storage", small)


def test_pictures_through_kaleido(
    small: str, run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("kaleido", reason="kaleido is not installed")
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None or sys.platform != "linux":
        pytest.skip("no Chromium is installed, and kaleido draws with it")
    monkeypatch.setenv("BROWSER_PATH", browser)
    run("plot", "small", "history", "--out", str(tmp_path / "h.png"), "--storage", small)
    assert (tmp_path / "h.png").read_bytes().startswith(b"\x89PNG")


def test_a_browser_that_never_answers_is_given_up(
    small: str, run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plot, "find_spec", lambda name: name)
    monkeypatch.setattr(plot, "DRAW", "import time; time.sleep(60)")
    monkeypatch.setattr(plot, "MAX_DRAWING_SECONDS", 0.2)
    with pytest.raises(StudyError, match=r"did not answer within 0\.2 s, 2 times"):
        run("plot", "small", "history", "--out", str(tmp_path / "h.png"), "--storage", small)
    monkeypatch.setattr(plot, "MAX_DRAWING_SECONDS", 60.0)
    monkeypatch.setattr(plot, "DRAW", "import sys; sys.exit('no browser')")
    with pytest.raises(StudyError, match="could not draw: no browser; install Chromium"):
        run("plot", "small", "history", "--out", str(tmp_path / "h.png"), "--storage", small)


@pytest.mark.parametrize(
    "name", ["selection_grid", "selection_curve", "selection_confidence", "selection_correlations"]
)
def test_figures_of_selections(
    small: str, run: Callable[..., Any], tmp_path: Path, name: str
) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    selection = scrimp.create_selection(
        "s", checkpoints=range(6), tasks=["a", "b"], storage=url, seed=0
    )
    selection.run(lambda checkpoint, task: checkpoint / 10)
    out = tmp_path / "f.json"
    assert "wrote" in run("plot", "s", name, "--out", str(out), "--storage", url).stdout
    assert json.loads(out.read_text())["data"]
    with pytest.raises(StudyError, match="load_selection"):
        run("plot", "s", "history", "--storage", url)
    with pytest.raises(StudyError, match="load_study"):
        run("plot", "small", name, "--storage", small)


def test_several_studies_in_one_figure(small: str, run: Callable[..., Any], tmp_path: Path) -> None:
    scrimp.create_study("other", scrimp.Space(x=scrimp.Float(0, 1)), metric="error", storage=small)
    out = tmp_path / "both.json"
    told = run(
        "plot",
        "small",
        "compare",
        "--with",
        "other",
        "--over",
        "time",
        "--storage",
        small,
        "--out",
        str(out),
    )
    assert "2 studies over time: small 0.2; other nothing" in told.stdout
    with pytest.raises(StudyError, match="shows one study"):
        run("plot", "small", "history", "--with", "other", "--storage", small)


def test_without_kaleido_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import plotly.graph_objects

    monkeypatch.setattr("scrimp.cli.plot.find_spec", lambda name: None)
    with pytest.raises(
        StudyError,
        match=r"png needs kaleido, which is not installed: pip install kaleido, or write \.html",
    ):
        write_figure(plotly.graph_objects.Figure(), tmp_path / "a.png")


def test_the_model_of_an_earlier_iteration(
    small: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    def drawn(*arguments: str) -> str:
        out = tmp_path / "f.json"
        shown = run("plot", "small", "surrogate", *arguments, "--out", str(out), "--storage", small)
        return str(shown.stdout)

    trials = len(scrimp.load_study("small", storage=small).trials)
    assert ": 1 observation of" in drawn("--iteration", "1")
    assert ": 1 observations of" not in drawn()
    with pytest.raises(StudyError, match=f"iteration is {trials}"):
        drawn("--iteration", str(trials))
    with pytest.raises(StudyError, match="leave out --iteration"):
        run("plot", "small", "history", "--iteration", "1", "--storage", small)


def test_a_logarithmic_axis(small: str, run: Callable[..., Any], tmp_path: Path) -> None:
    out = tmp_path / "f.json"
    run("plot", "small", "history", "--log", "--out", str(out), "--storage", small)
    assert json.loads(out.read_text())["layout"]["yaxis"]["type"] == "log"
    with pytest.raises(StudyError, match="leave out --log"):
        run("plot", "small", "timeline", "--log", "--storage", small)
