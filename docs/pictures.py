"""Every picture of the documentation, drawn again: ``make pictures``.

    python docs/pictures.py                      all of them, into docs/pictures
    python docs/pictures.py svm-history.svg      those that are named
    python docs/pictures.py --list

Plots of studies come from real runs, made here with fixed seeds. Plots of results are drawn from the
tables of benchmarks/notebook.md, so a picture and its figures cannot differ. SVG needs kaleido and Chromium.

A picture is a function that writes the file it is given, listed in `PICTURES`.
"""

import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import plotly.graph_objects as go

import scrimp
from scrimp.plots import style

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "pictures"
NOTEBOOK = ROOT / "benchmarks" / "notebook.md"
WIDTH, HEIGHT = 820, 380


def write(figure: go.Figure, path: Path, height: int = HEIGHT) -> None:
    """A figure as SVG."""
    figure.write_image(path, width=WIDTH, height=height)


# Results: the tables of the notebook


def table(heading: str, first: str) -> dict[str, list[str]]:
    """A table of the notebook as rows by their first cell, the header included.

    ``heading`` is that of its section; ``first`` the text of the table's first header cell.
    """
    text = NOTEBOOK.read_text(encoding="utf-8")
    section = re.split(rf"^#+ {re.escape(heading)}$", text, flags=re.MULTILINE)[1]
    block = section.split(f"\n| {first} |", 1)[1].split("\n\n")[0]
    marks = str.maketrans("", "", "*`")
    parted = [line.strip("|").split("|") for line in f"{first} |{block}".splitlines()]
    rows = [[cell.translate(marks).strip() for cell in row] for row in parted]
    return {row[0]: row[1:] for row in rows if not row[0].startswith("---")}


def numbers(cells: Sequence[str]) -> list[float]:
    """The first number of each cell; nothing for a cell without one."""
    found = [re.search(r"-?\d*\.?\d+(e-?\d+)?", cell) for cell in cells]
    return [float(each[0]) if each else float("nan") for each in found]


def lines(
    path: Path,
    rows: dict[str, list[float]],
    places: Sequence[float],
    titles: tuple[str, str, str],
    **axes: dict[str, object],
) -> None:
    """One line per row; ``titles``: of the figure and of its axes. Ours is the first and the thickest."""
    figure = go.Figure()
    for number, (name, values) in enumerate(rows.items()):
        colour = style.SERIES[number % len(style.SERIES)]
        line = {"color": colour, "width": 4 if number == 0 else 2}
        figure.add_scatter(x=list(places), y=values, name=name, mode="lines+markers", line=line)
    style.figure(figure, titles[0], titles[0])
    beside = {"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1.0, "yanchor": "top"}
    figure.update_layout(legend=beside, margin={"t": 56})
    figure.update_xaxes(title=titles[1], **axes.get("x", {}))
    figure.update_yaxes(title=titles[2], **axes.get("y", {}))
    write(figure, path)


def bars(path: Path, rows: dict[str, float], titles: tuple[str, str]) -> None:
    """One bar per row, the shortest on top."""
    ordered = sorted(rows.items(), key=lambda row: -row[1])
    colours = [
        style.ACCENT if name.startswith(("scrimp", "freeze")) else style.MUTED
        for name, _ in ordered
    ]
    names, values = zip(*ordered, strict=True)
    text = [f"{value:g}" for value in values]
    figure = go.Figure(
        go.Bar(
            x=values,
            y=names,
            orientation="h",
            marker={"color": colours},
            text=text,
            cliponaxis=False,
        )
    )
    style.figure(figure, titles[0], titles[0])
    figure.update_xaxes(title=titles[1])
    figure.update_layout(margin={"l": 150, "t": 56})
    write(figure, path, 300)


LOG = {"type": "log", "dtick": 1}


def decision_cost(path: Path) -> None:
    found = table("What a decision costs", "observations")
    names = {
        "scrimp gp": "scrimp gp",
        "Optuna GPSampler": "Optuna GP",
        "BoTorch (SingleTaskGP, log EI)": "BoTorch",
        "Syne Tune bayesopt (data limit 500)": "Syne Tune",
    }
    rows = {short: numbers(found[name]) for name, short in names.items()}
    places = numbers(found["observations"])
    titles = ("One decision", "observations", "CPU seconds of one ask")
    lines(path, rows, places, titles, x={"type": "log", "tickvals": places}, y=LOG)


def function_ranks(path: Path) -> None:
    found = table("What it finds", "scrimp `gp`")
    (name, names), (value, values) = found.items()
    rows = dict(zip([name, *names], numbers([value, *values]), strict=True))
    bars(
        path, rows, ("Ten test functions, 50 trials", "average rank of the final value (1 is best)")
    )


def curve_regret(path: Path) -> None:
    found = table("Peers on a surrogate", "method")
    names = {
        "freeze-thaw": "scrimp freeze-thaw",
        "asha": "scrimp asha",
        "Syne Tune, MOBSTER (joint)": "Syne Tune MOBSTER",
        "Syne Tune, Hyper-Tune": "Syne Tune Hyper-Tune",
        "Syne Tune, DyHPO": "Syne Tune DyHPO",
        "NePS, Hyperband (its own choice)": "NePS",
        "Optuna, GP with Hyperband pruning": "Optuna GP",
        "Optuna, TPE with Hyperband pruning": "Optuna TPE",
    }
    rows = {short: numbers(found[name])[1:6] for name, short in names.items()}
    titles = ("Training budgets: eight tasks, four workers", "share of the budget spent", "regret")
    lines(path, rows, numbers(found["method"][1:6]), titles, x={"tickformat": ".0%"})


def transfer_regret(path: Path) -> None:
    found = table("Transfer", "method")
    names = ["auto", "rgpe", "tst-r", "taf-r", "gp:initial=3", "random"]
    rows = {name: numbers(found[name])[:6] for name in names}
    places = numbers(found["method"][:6])
    titles = ("Learning from past studies: 50 data sets", "trials", "distance to the best")
    lines(path, rows, places, titles, x={"type": "log", "tickvals": places}, y=LOG)


def transfer_help(path: Path) -> None:
    """With past studies and without, over the families of models."""
    found = table("Families never seen", "after")
    past = numbers(found["auto"])
    apart = {name: numbers(found[f"less {name}"]) for name in ("cold gp", "portfolio")}
    rows = {"with past studies (auto)": past} | {
        shown: [own - less for own, less in zip(past, apart[name], strict=True)]
        for shown, name in (("without (gp)", "cold gp"), ("their best alone", "portfolio"))
    }
    places = numbers(found["after"])
    titles = ("What past studies are worth", "trials", "distance to the best")
    lines(path, rows, places, titles, x={"type": "log", "tickvals": places}, y=LOG)


def checkpoint_regret(path: Path) -> None:
    found = table("Checkpoints", "method")
    names = ["kg", "ei", "random", "stride", "last", "ei-icm"]
    rows = {name: numbers(found[name])[:4] for name in names}
    places = numbers(found["method"][:4])
    titles = (
        "Choosing a checkpoint: eleven training runs",
        "share of the evaluations that were run (%)",
        "score lost × 1000",
    )
    lines(path, rows, places, titles, x={"type": "log", "tickvals": places}, y=LOG)


def storage_cost(path: Path) -> None:
    found = table("Storage", "one process on SQLite")
    rows = {name: numbers(found[name])[0] for name in ("scrimp", "Optuna")}
    bars(path, rows, ("Ask and tell on SQLite", "CPU milliseconds of a pair"))


# Studies: the programs of the pages, run as they stand there

BLOCK = re.compile(r'^```\w+[^\n]*title="([^"]+)"\n(.*?)^```', re.MULTILINE | re.DOTALL)


@cache
def ran(page: str, *command: str) -> Path:
    """A folder with the files that a page shows, in which ``command`` of Python was run."""
    folder = Path(tempfile.mkdtemp(prefix="scrimp-pictures-"))
    for title, code in BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8")):
        (folder / title).write_text(code, encoding="utf-8")
    subprocess.run([sys.executable, *command], cwd=folder, check=True, env=environment())
    return folder


def environment() -> dict[str, str]:
    """That of this process, with scrimp from this checkout."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}


def svm() -> scrimp.Study:
    return scrimp.load_study("svm", storage=f"sqlite:///{ran('start.md', 'tune.py')}/tuning.db")


def digits() -> scrimp.Study:
    folder = ran("tutorials/train-with-epochs.md", "digits.py")
    return scrimp.load_study("digits", storage=f"sqlite:///{folder}/digits.db")


def spirals() -> scrimp.Study:
    program = "import sys; from scrimp.cli.main import main; sys.argv[0] = 'scrimp'; main()"
    folder = ran("tutorials/tune-a-script.md", "-c", program, "run", "study.toml")
    return scrimp.load_study("spirals", storage=f"sqlite:///{folder}/spirals.db")


def transfer_weights(path: Path) -> None:
    folder = ran("tutorials/learn-from-past-studies.md", "transfer.py")
    study = scrimp.load_study("classes", storage=f"sqlite:///{folder}/svms.db")
    write(scrimp.plots.source_weights(study), path)


@cache
def checkpoints() -> scrimp.Selection:
    folder = Path(tempfile.mkdtemp(prefix="scrimp-pictures-"))
    script = ROOT / "examples" / "checkpoints" / "select_checkpoint.py"
    subprocess.run([sys.executable, script, folder], check=True, env=environment())
    return scrimp.load_selection("digits", storage=f"sqlite:///{folder}/scrimp.db")


@cache
def language_model() -> scrimp.Selection:
    """The example with lm-eval, in the environment that `make test-integration-lm-eval` makes."""
    python = ROOT / ".venvs" / "test-lm-eval" / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"no {python}; make test-integration-lm-eval makes it")
    folder = Path(tempfile.mkdtemp(prefix="scrimp-pictures-"))
    script = ROOT / "examples" / "checkpoints" / "language_model.py"
    subprocess.run([python, script, folder, "--benchmarks"], check=True, env=environment())
    return scrimp.load_selection("whole-tasks", storage=f"sqlite:///{folder}/scrimp.db")


def own_acquisition(path: Path) -> None:
    folder = ran("tutorials/write-your-own-method.md", "-c", "import my_parts")
    sys.path.insert(0, str(folder))
    space = scrimp.Space(x=scrimp.Float(-5, 10), y=scrimp.Float(0, 15))
    study = scrimp.create_study(
        "own",
        space,
        method="gp:acquisition=my-optimist,kappa=1.5",
        plugins=["my_parts"],
        storage="memory://",
        seed=0,
    )
    study.optimize(
        lambda trial: (trial.params["x"] - 3) ** 2 + (trial.params["y"] - 2) ** 2, n_trials=7
    )
    write(scrimp.plots.surrogate(study, "x"), path, 460)


# The README: a terminal and the dashboard while the demo runs


@cache
def demo() -> Path:
    """A folder in which the demo was run."""
    folder = Path(tempfile.mkdtemp(prefix="scrimp-pictures-"))
    subprocess.run(
        [sys.executable, ROOT / "examples" / "demo.py"], cwd=folder, check=True, env=environment()
    )
    return folder


def live_terminal(path: Path) -> None:
    """The live display as it was after two thirds of the demo's log."""
    from rich.console import Console

    from scrimp.display.terminal import screen
    from scrimp.study_log.history import History
    from scrimp.study_log.record import StudyRecord

    events = scrimp.load_study("demo-auto", storage=f"sqlite:///{demo()}/scrimp.db").history.events
    history = History.of(events[: 2 * len(events) // 3])
    seconds = history.time - history.created.time
    console = Console(record=True, width=88, file=io.StringIO(), force_terminal=True)
    record = StudyRecord.of(history, seconds=seconds, done_before=0.0)
    for line in screen(record, 88):
        console.print(line)
    drawn = console.export_svg(title="make demo")
    alone = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)  # no font of another machine
    alone = re.sub(r"<!--.*?-->", "", alone, flags=re.DOTALL)
    path.write_text(alone, encoding="utf-8")


def dashboard(path: Path) -> None:
    """The page of the demo's study in Chromium, 1440 pixels wide."""
    from playwright.sync_api import sync_playwright

    names = ("chromium", "chromium-browser", "google-chrome")
    chromium = next((found for name in names if (found := shutil.which(name))), None)
    words = ["dashboard", "--no-token", "--port", "0", "--storage", f"sqlite:///{demo()}/scrimp.db"]
    command = [str(Path(sys.executable).with_name("scrimp")), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = server.stdout.readline().strip().rstrip("/")
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.goto(f"{address}/study?name=demo-auto")
            page.wait_for_selector(".js-plotly-plot .main-svg", timeout=120_000)
            page.wait_for_function(
                "() => document.querySelectorAll('.js-plotly-plot .main-svg').length >= 4",
                timeout=120_000,
            )
            page.wait_for_timeout(3000)
            page.screenshot(path=path)
            browser.close()
        server.terminate()


PICTURES: dict[str, Callable[[Path], None]] = {
    "terminal.svg": live_terminal,
    "dashboard.png": dashboard,
    "svm-contour.svg": lambda path: write(scrimp.plots.contour(svm(), "C", "gamma"), path, 420),
    "digits-curves.svg": lambda path: write(scrimp.plots.curves(digits(), log=True), path, 420),
    "digits-rungs.svg": lambda path: write(scrimp.plots.rungs(digits()), path),
    "spirals-slice.svg": lambda path: write(scrimp.plots.slice(spirals(), columns=3), path),
    "workers-timeline.svg": lambda path: write(scrimp.plots.timeline(spirals()), path, 260),
    "transfer-weights.svg": transfer_weights,
    "checkpoint-grid.svg": lambda path: write(
        scrimp.plots.selection_grid(checkpoints()), path, 420
    ),
    "checkpoint-curve.svg": lambda path: write(
        scrimp.plots.selection_curve(checkpoints()), path, 560
    ),
    "extend-surrogate.svg": own_acquisition,
    "results-decision-cost.svg": decision_cost,
    "results-functions.svg": function_ranks,
    "results-curves.svg": curve_regret,
    "results-transfer.svg": transfer_regret,
    "transfer-help.svg": transfer_help,
    "results-checkpoints.svg": checkpoint_regret,
    "results-storage.svg": storage_cost,
    "language-model-curve.svg": lambda path: write(
        scrimp.plots.selection_curve(language_model()), path, 560
    ),
    "language-model-grid.svg": lambda path: write(
        scrimp.plots.selection_grid(language_model()), path
    ),
}


def main() -> None:
    wanted = sys.argv[1:] or list(PICTURES)
    if wanted == ["--list"]:
        raise SystemExit("\n".join(PICTURES))
    unknown = [name for name in wanted if name not in PICTURES]
    if unknown:
        raise SystemExit(f"no picture {', '.join(unknown)}; there are {', '.join(PICTURES)}")
    FOLDER.mkdir(exist_ok=True)
    for name in wanted:
        PICTURES[name](FOLDER / name)
        print(f"{name}: {(FOLDER / name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
