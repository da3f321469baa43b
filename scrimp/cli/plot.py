"""``scrimp plot``: the figures of `scrimp.plots` as files."""

import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from html import escape, unescape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scrimp.checks import did_you_mean
from scrimp.cli.plugins import PluginOption
from scrimp.cli.say import echo
from scrimp.cli.show import StorageOption
from scrimp.errors import StudyError
from scrimp.history.reports import printable
from scrimp.tuning.studies import DEFAULT_URL, load_study

if TYPE_CHECKING:  # loading them takes time
    from plotly.graph_objects import Figure

    from scrimp.selection.selection import Selection
    from scrimp.tuning.study import Study

__all__ = ["figure_page", "plot_command", "write_figure"]

IMAGES = ("png", "svg", "pdf", "webp")

SEVERAL_STUDIES = ("compare", "edf", "attainment")

PATIENCE, ATTEMPTS = 60.0, 2  # seconds for a picture, how often it is tried

DRAW = """
import sys

import plotly.io

kind, height = sys.argv[1:]
figure = plotly.io.from_json(sys.stdin.read())
try:
    image = figure.to_image(format=kind, width=1000, height=float(height), scale=2)
except (ImportError, ValueError, RuntimeError) as error:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    sys.exit(lines[0] if lines else type(error).__name__)
sys.stdout.buffer.write(image)
"""

AT_HOME = {"displaylogo": False, "showSendToCloud": False}
"""A page offers to send its data nowhere."""


def plot_command(  # noqa: PLR0913 - options of a command
    study: Annotated[
        str,
        typer.Argument(
            metavar="STUDY", help="Name of the study; for regret a file of results of scrimp bench."
        ),
    ],
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME", help="Name of the figure, such as history, curves, importance."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", help="File to write: .html, .json, .png, .svg.")
    ] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", help="Parameter to show; repeat for several.")
    ] = None,
    over: Annotated[
        str | None,
        typer.Option("--over", help="Axis of history and front_history: trials, time or budget."),
    ] = None,
    others: Annotated[
        list[str] | None,
        typer.Option(
            "--with", help="A further study, for compare, edf and attainment; repeat for several."
        ),
    ] = None,
    storage: StorageOption = DEFAULT_URL,
    plugin: PluginOption = None,
) -> None:
    """Write a figure of a study to a file: html, png, svg or json. PNG and SVG need kaleido.

    Figures: history, curves, rungs, spending, parallel, slice, contour, importance, timeline, edf,
    compare, surrogate, source_weights, regret; of several metrics: front, front_history, trade_offs,
    attainment; of selections: selection_grid, selection_curve,
    selection_confidence, selection_correlations.

    Example: scrimp plot digits importance --out importance.html
    """
    import scrimp.plots

    if name not in scrimp.plots.__all__:
        known = scrimp.plots.__all__
        hint = did_you_mean(name, known, f"; there are {', '.join(known)}")
        raise StudyError(f"there is no figure {name!r}{hint}")
    draw = getattr(scrimp.plots, name)
    given = study if name == "regret" else _loaded(study, name, storage)
    if others and name not in SEVERAL_STUDIES:
        raise StudyError(
            f"the figure {name!r} shows one study; leave out --with, or take"
            f" {' or '.join(SEVERAL_STUDIES)}"
        )
    further = [_loaded(other, name, storage) for other in others or ()]
    picture = draw(given, *further, **_settings(draw, name, parameter or [], over))
    path = out if out is not None else Path(f"{name}.html")
    write_figure(picture, path)
    echo(printable(f"wrote {path}: {unescape(picture.layout.meta['alternative'])}"))


def _loaded(study: str, name: str, storage: str) -> "Study | Selection":
    """The study, or the selection for figures of selections."""
    if name.startswith("selection_"):
        from scrimp.selection.selections import load_selection

        return load_selection(study, storage=storage)
    return load_study(study, storage=storage)


def _settings(
    draw: Callable[..., "Figure"], name: str, parameters: list[str], over: str | None
) -> dict[str, object]:
    """The options as arguments of the figure; one it does not take is an error."""
    known = inspect.signature(draw).parameters
    settings: dict[str, object] = {}
    if over is not None:
        settings["over"] = over
    if parameters and "parameters" in known:
        settings["parameters"] = parameters
    elif parameters and "parameter" in known:
        settings["parameter"] = parameters[0]
    elif parameters and "x" in known:
        settings |= dict(zip(("x", "y"), parameters, strict=False))
    elif parameters:
        raise StudyError(f"the figure {name!r} has no parameters to choose; leave out --parameter")
    if over is not None and "over" not in known:
        raise StudyError(f"the figure {name!r} has no axis to choose; leave out --over")
    return settings


def write_figure(picture: "Figure", path: Path) -> None:
    """Write the figure in the format that the file's ending names."""
    kind = path.suffix.removeprefix(".").lower()
    if kind == "html":
        path.write_text(figure_page(picture), encoding="utf-8")
    elif kind == "json":
        path.write_text(picture.to_json(), encoding="utf-8")
    elif kind in IMAGES:
        path.write_bytes(_image(picture, kind))
    else:
        raise StudyError(
            f"{str(path)!r} does not say which format; end it with .html, .json,"
            f" .{', .'.join(IMAGES)}"
        )


def figure_page(picture: "Figure") -> str:
    """A page of its own that needs no network, follows the reader's light or dark, and says in
    words what it shows."""
    alternative = escape(picture.layout.meta["alternative"])
    title = escape(picture.layout.title.text)
    body = picture.to_html(full_html=False, include_plotlyjs=True, config=AT_HOME)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="color-scheme"'
        f' content="light dark"><title>{title}</title></head>\n<body>\n<figure>\n<div role="img"'
        f' aria-label="{alternative}">{body}</div>\n<figcaption style="font: 14px sans-serif;'
        f' opacity: 0.75">{alternative}</figcaption>\n</figure>\n</body></html>\n'
    )


def _image(picture: "Figure", kind: str) -> bytes:
    if find_spec("kaleido") is None:
        raise StudyError(
            f"{kind} needs kaleido, which is not installed: pip install kaleido, or write .html"
        )
    figure, size = picture.to_json(), (kind, str(picture.layout.height or 600))
    for _ in range(ATTEMPTS):
        drawn = _drawn(figure, size)
        if drawn is not None:
            break
    else:
        raise StudyError(
            f"kaleido's browser did not answer within {PATIENCE:g} s, {ATTEMPTS} times; write .html"
        )
    image, error = drawn
    if not image:
        raise StudyError(f"kaleido could not draw: {error}; install Chromium, or write .html")
    return image


def _drawn(figure: str, size: tuple[str, str]) -> tuple[bytes, str] | None:
    """What kaleido draws, or says instead, in a process of its own: now and then its browser starts
    and never answers. None then."""
    drawing = subprocess.Popen(
        [sys.executable, "-c", DRAW, *size],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        image, error = drawing.communicate(figure.encode(), timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        if sys.platform != "win32":
            os.killpg(drawing.pid, signal.SIGKILL)  # with the browser
        drawing.kill()
        drawing.communicate()
        return None
    return image, error.decode(errors="replace").strip().rpartition("\n")[-1]
