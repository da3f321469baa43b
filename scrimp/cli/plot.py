"""``scrimp plot``: write the figures of `scrimp.plots` to files."""

import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from html import escape, unescape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from typer import Argument, Option

from scrimp.checks import did_you_mean
from scrimp.cli.options import PluginOption, StorageOption
from scrimp.cli.printing import echo
from scrimp.errors import StudyError
from scrimp.storage.durable_files import write_whole
from scrimp.study.studies import DEFAULT_URL, load_study
from scrimp.study_log.messages import printable

if TYPE_CHECKING:  # loading them takes time
    from plotly.graph_objects import Figure

    from scrimp.checkpoint_selection.selection import Selection
    from scrimp.study.study import Study


IMAGES = ("png", "svg", "pdf", "webp")

SEVERAL_STUDIES = ("compare", "edf", "attainment")

MAX_DRAWING_SECONDS = 60.0
DRAWING_ATTEMPTS = 2

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

PLOTLY_SETTINGS = {"displaylogo": False, "showSendToCloud": False}
"""Settings of Plotly that keep a page from offering to send its data elsewhere."""


def plot_command(  # noqa: PLR0913 - options of a command
    study: str = Argument(
        metavar="STUDY", help="Name of the study; for regret, a results file of scrimp bench."
    ),
    name: str = Argument(
        metavar="NAME", help="Name of the figure, such as history, curves, importance."
    ),
    out: Path | None = Option(None, help="File to write: .html, .json, .png, .svg, .pdf."),
    parameter: list[str] | None = Option(None, help="Parameter to show; repeat for several."),
    over: str | None = Option(
        None, help="Axis of history and front_history: trials, time or budget."
    ),
    iteration: int | None = Option(
        None, help="surrogate: trial number; shows the model that chose this trial."
    ),
    log: bool = Option(False, "--log", help="Make the axis of values logarithmic."),
    others: list[str] | None = Option(
        None, "--with", help="Another study, for compare, edf and attainment; repeat for several."
    ),
    storage: StorageOption = DEFAULT_URL,
    plugin: PluginOption = None,
) -> None:
    """Write a figure of a study to a file: html, json, png, svg or pdf. Images need kaleido.

    Figures: history, curves, rungs, spending, parallel, slice, contour, importance, timeline, edf,
    compare, surrogate, source_weights, regret; for several metrics: front, front_history,
    trade_offs, attainment; for selections: selection_grid, selection_curve, selection_confidence,
    selection_correlations; for those by question: selection_race, selection_scores,
    selection_tasks, selection_saved.

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
            f"the figure {name!r} shows one study; leave out --with, or draw"
            f" {' or '.join(SEVERAL_STUDIES)}"
        )
    further = [_loaded(other, name, storage) for other in others or ()]
    options = {"over": over, "iteration": iteration, "log": log or None}
    settings = _settings(draw, name, parameter or [], options)
    picture = draw(given, *further, **settings)
    path = out if out is not None else Path(f"{name}.html")
    write_figure(picture, path)
    echo(printable(f"wrote {path}: {unescape(picture.layout.meta['alternative'])}"))


def _loaded(study: str, name: str, storage: str) -> "Study | Selection":
    """Load the study, or the selection for figures of selections."""
    if name.startswith("selection_"):
        from scrimp.checkpoint_selection.selections import load_selection

        return load_selection(study, storage=storage)
    return load_study(study, storage=storage)


def _settings(
    draw: Callable[..., "Figure"], name: str, parameters: list[str], options: Mapping[str, object]
) -> dict[str, object]:
    """Return the options as arguments of the figure; refuse one that it does not take."""
    known = inspect.signature(draw).parameters
    settings = {option: value for option, value in options.items() if value is not None}
    for option in settings:
        if option not in known:
            raise StudyError(f"the figure {name!r} has no {option} to choose; leave out --{option}")
    if parameters and "parameters" in known:
        settings["parameters"] = parameters
    elif parameters and "parameter" in known:
        settings["parameter"] = parameters[0]
    elif parameters and "x" in known:
        settings |= dict(zip(("x", "y"), parameters, strict=False))
    elif parameters:
        raise StudyError(f"the figure {name!r} has no parameters to choose; leave out --parameter")
    return settings


def write_figure(picture: "Figure", path: Path) -> None:
    """Write the figure in the format that the file's ending names."""
    kind = path.suffix.removeprefix(".").lower()
    if kind == "html":
        write_whole(path, figure_page(picture).encode())
    elif kind == "json":
        write_whole(path, picture.to_json().encode())
    elif kind in IMAGES:
        write_whole(path, _image(picture, kind))
    else:
        raise StudyError(
            f"{str(path)!r} has no known ending; use .html, .json, .{', .'.join(IMAGES)}"
        )


def figure_page(picture: "Figure") -> str:
    """Return an HTML page that needs no network, follows the reader's light or dark theme, and
    describes the figure in words."""
    alternative = escape(picture.layout.meta["alternative"])
    title = escape(picture.layout.title.text)
    body = picture.to_html(full_html=False, include_plotlyjs=True, config=PLOTLY_SETTINGS)
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
    for _ in range(DRAWING_ATTEMPTS):
        drawn = _drawn(figure, size)
        if drawn is not None:
            break
    else:
        tried = f"within {MAX_DRAWING_SECONDS:g} s, {DRAWING_ATTEMPTS} times"
        raise StudyError(f"kaleido's browser did not answer {tried}; write .html")
    image, error = drawn
    if not image:
        raise StudyError(f"kaleido could not draw: {error}; install Chromium, or write .html")
    return image


def _drawn(figure: str, size: tuple[str, str]) -> tuple[bytes, str] | None:
    """Draw with kaleido in a process of its own; return the image and the error. None if the
    browser does not answer, which happens now and then."""
    drawing = subprocess.Popen(
        [sys.executable, "-c", DRAW, *size],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        image, error = drawing.communicate(figure.encode(), timeout=MAX_DRAWING_SECONDS)
    except subprocess.TimeoutExpired:
        if sys.platform != "win32":
            # The group includes the browser.
            os.killpg(drawing.pid, signal.SIGKILL)
        drawing.kill()
        drawing.communicate()
        return None
    return image, error.decode(errors="replace").strip().rpartition("\n")[-1]
