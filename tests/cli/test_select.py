"""``scrimp select`` and what other commands say of selections."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import scrimp
from scrimp.checkpoint_selection.task_grid import TaskGrid
from scrimp.cli.main import app
from scrimp.cli.select import (
    print_failures,
    print_recommendation,
    recommendation_record,
    show_selection,
)
from scrimp.errors import ScrimpError
from tests.waiting import PATIENCE, eventually

FIELDS = [
    "checkpoint",
    "underlying",
    "expected_score",
    "standard_error",
    "expected_loss",
    "probability_best",
    "runner_up",
    "spent",
    "tolerance",
    "warnings",
    "interval",
    "asked",
    "answers",
    "scores",
    "scores_with_error",
    "smooth",
    "ordered",
    "tied",
    "ignored_errors",
]


def run(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.fixture
def scores(tmp_path: Path) -> Path:
    """Ten checkpoints, three tasks, eight scores; the rest is named with empty scores."""
    lines = ["checkpoint,task,score,stderr"]
    for step in range(1, 11):
        for place, task in enumerate(("a", "b", "c")):
            known = (3 * step + place) % 4 == 0
            lines.append(f"{step},{task},{0.5 + 0.01 * step + 0.1 * place if known else ''},")
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(lines))
    return path


def test_next_prints_json_in_the_promised_form(scores: Path) -> None:
    record = json.loads(run("select", "next", str(scores), "--count", "3", "--json").stdout)
    assert list(record) == ["recommendation", "next"] and list(record["recommendation"]) == FIELDS
    cells = [(cell["checkpoint"], cell["task"]) for cell in record["next"]]
    assert len(set(cells)) == 3 and all(
        list(cell) == ["checkpoint", "task"] for cell in record["next"]
    )
    known = [line.split(",") for line in scores.read_text().splitlines()[1:]]
    assert not {(int(step), task) for step, task, score, _ in known if score} & set(cells)
    assert record["recommendation"]["checkpoint"] >= 8
    assert json.loads(run("select", "next", str(scores), "--count", "3", "--json").stdout) == record


def test_next_fits_its_model_once(scores: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[str] = []
    fit = TaskGrid.fit

    def counted(self: TaskGrid, data: Any, start: Any = None) -> Any:
        fits.append(type(self.model).__name__)
        return fit(self, data, start)

    monkeypatch.setattr(TaskGrid, "fit", counted)
    for options in ([], ["--count", "4"], ["--share", "0.2"]):
        fits.clear()
        run("select", "next", str(scores), *options)
        assert fits == ["SharedCurve"], options
    fits.clear()
    run("select", "next", str(scores), "--method", "ei-icm")
    assert fits == [
        "Coregional",
        "SharedCurve",
    ]  # the one decides, the other says how sure the answer is


def test_next_takes_settings_and_directions(scores: Path) -> None:
    plain, flipped = (
        json.loads(run("select", "next", str(scores), "--json", *options).stdout)["recommendation"]
        for options in (
            [],
            ["--direction", "a=minimize", "--direction", "b=minimize", "--direction", "c=minimize"],
        )
    )
    assert plain["checkpoint"] >= 8 and flipped["checkpoint"] <= 3 and flipped["expected_score"] < 0
    text = run("select", "next", str(scores), "--method", "ei-icm:rank=1,coordinate=step").stdout
    assert "why: of the checkpoints measured" in text and "second opinion: " in text
    assert run("select", "next", str(scores), "--direction", "minimize").exit_code == 2


def test_next_on_rows_without_an_order_and_with_standard_errors(scores: Path) -> None:
    scores.write_text(scores.read_text().replace(",\n", ",0.3\n"))
    answers = [
        json.loads(run("select", "next", str(scores), "--json", *options).stdout)["recommendation"]
        for options in ([], ["--unordered"], ["--ignore-stderr"])
    ]
    assert len({answer["standard_error"] for answer in answers}) == 3


def test_next_for_people_with_costs_weights_and_a_share(scores: Path) -> None:
    text = run("select", "next", str(scores), "--cost", "a=9", "--weight", "c=2").stdout
    assert "measured 8 of 30 cells" in text and "take checkpoint" in text and "next: " in text
    spent = json.loads(run("select", "next", str(scores), "--cost", "a=9", "--json").stdout)[
        "recommendation"
    ]["spent"]
    assert spent > 8
    done = json.loads(run("select", "next", str(scores), "--share", "0.2", "--json").stdout)
    assert done["next"] == [] and done["recommendation"]["checkpoint"]
    text = run("select", "next", str(scores), "--share", "0.2").stdout
    assert "next: nothing; 8 of 30 cells have been measured (limit: a share of 0.2)" in text
    assert (
        len(
            json.loads(
                run(
                    "select", "next", str(scores), "--share", "0.3", "--count", "9", "--json"
                ).stdout
            )["next"]
        )
        == 1
    )


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("checkpoint,task,score\n1,a,high\n", [], "line 2: the score 'high' is not a number"),
        ("checkpoint,task,score\n1,a,1e12\n", [], "beyond"),
        ("checkpoint,task,score\n1,a,0.5\n1,a,0.6\n", [], "already"),
        ("step,task,score\n", [], "no column 'checkpoint'"),
        ("checkpoint,task,score\n1,a,0.5\n", ["--cost", "mmlu=2"], "'mmlu'"),
        ("checkpoint,task,score\n1,a,0.5\n", ["--method", "gp"], "kg, ei"),
        ("checkpoint,task,score\n1,a,0.5\n", ["--share", "2"], "share"),
    ],
)
def test_next_names_what_is_wrong(
    tmp_path: Path, text: str, options: list[str], words: str
) -> None:
    path = tmp_path / "s.csv"
    path.write_text(text)
    with pytest.raises(ScrimpError, match=words):
        run("select", "next", str(path), *options)
    assert run("select", "next", str(path), "--cost", "a").exit_code == 2


@pytest.mark.parametrize(
    ("text", "checkpoint"),
    [
        ("1,a,0.5\n", 1),
        ("1,a,\n2,a,\n3,a,\n", 3),
        ("1,a,nan\n2,a,nan\n3,a,0.5\n", None),
        ("1,a,0.5\n1,b,0.5\n2,a,0.5\n2,b,0.5\n3,a,\n3,b,\n", None),
        ("base,a,0.5\nchat,a,0.7\ncode,a,\n", None),
    ],
)
def test_next_on_small_and_odd_tables(tmp_path: Path, text: str, checkpoint: int | None) -> None:
    path = tmp_path / "s.csv"
    path.write_text("checkpoint,task,score\n" + text)
    record = json.loads(run("select", "next", str(path), "--json").stdout)
    if checkpoint is not None:
        assert record["recommendation"]["checkpoint"] == checkpoint


EVALUATE = """
import sys, json, pathlib, time
checkpoint, task = sys.argv[1], sys.argv[2]
if task == "broken":
    print("no such dataset", file=sys.stderr)
    raise SystemExit(4)
folder = pathlib.Path("out", checkpoint, task)
folder.mkdir(parents=True, exist_ok=True)
if not (folder / "tried").exists():
    (folder / "tried").touch()
    raise SystemExit(1)  # the first attempt always fails
time.sleep(float(sys.argv[3]))
score = float(checkpoint) / 100 + len(task)
(folder / "results_1.json").write_text(json.dumps({"results": {task: {"acc,none": score, "acc_stderr,none": 0.01}}}))
"""


def described(tmp_path: Path, seconds: float = 0.0, **run_settings: Any) -> Path:
    (tmp_path / "evaluate.py").write_text(EVALUATE)
    path = tmp_path / "select.toml"
    settings = {"share": 0.5, "workers": 2, "retries": 1, **run_settings}
    path.write_text(
        f"""
name = "demo"
checkpoints = [1, 2, 3, 4, 5]
tasks = ["arc", "mmlu", "broken"]
command = "{sys.executable} evaluate.py {{checkpoint}} {{task}} {seconds}"
results = "out/{{checkpoint}}/{{task}}"
storage = "sqlite:///{tmp_path}/s.db"
seed = 0
cost = {{mmlu = 3}}

[run]
"""
        + "\n".join(f"{name} = {value}" for name, value in settings.items())
    )
    return path


def test_run_evaluates_retries_keeps_failures_and_goes_on(tmp_path: Path) -> None:
    done = run("select", "run", str(described(tmp_path)), "--json")
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    assert sum(record["cells"].values()) == 8
    selection = scrimp.load_selection("demo", storage=f"sqlite:///{tmp_path}/s.db")
    table = selection.scores
    assert (table.errors[table.seen] == 0.01).all() and table.failed.sum() == record["cells"].get(
        "failed", 0
    )
    assert set(table.failed.nonzero()[1].tolist()) <= {2}
    failures = selection.history.with_status("failed")
    assert failures and all("no such dataset" in trial.message for trial in failures)
    again = run("select", "run", str(described(tmp_path, share=0.7)))
    assert (
        again.exit_code == 0
        and "failed: broken of checkpoint" in again.output
        and "no such dataset" in again.output
    )
    assert len(selection.history.trials) == 11
    url = f"sqlite:///{tmp_path}/s.db"
    replayed = run("replay", "demo", "--storage", url)
    assert replayed.exit_code == 0 and "are the same" in replayed.stdout
    shown = json.loads(run("show", "demo", "--storage", url, "--json").stdout)
    assert (
        shown["kind"] == "selection"
        and list(shown["recommendation"]) == FIELDS
        and len(shown["trials"]) == 11
    )
    assert "take checkpoint" in run("best", "demo", "--storage", url).stdout
    (row,) = json.loads(run("studies", "--storage", url, "--json").stdout)
    assert row == {
        "name": "demo",
        "method": "kg",
        "trials": 11,
        "best": None,
        "metric": "select checkpoint",
    }


def test_known_scores_are_told_first(tmp_path: Path) -> None:
    path = described(tmp_path, share=0.3)
    (tmp_path / "known.csv").write_text(
        "checkpoint,task,score\n1,arc,0.4\n2,arc,0.5\n9,arc,0.9\n3,other,0.1\n4,arc,\n"
    )
    path.write_text('scores = "known.csv"\n' + path.read_text())
    assert run("select", "run", str(path)).exit_code == 0
    table = scrimp.load_selection("demo", storage=f"sqlite:///{tmp_path}/s.db").scores
    assert table.scores[0, 0] == 0.4 and table.scores[1, 0] == 0.5
    assert int((table.seen | table.failed).sum()) == 5  # 0.3 of 15, the known ones among them


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('tasks = "arc"', "tasks"),
        ("colour = 1", "colour"),
        ('command = "lm_eval"', "does not exist"),
        (f'command = "{sys.executable} -m x {{task}}"', "no {checkpoint}"),
        (f'command = "{sys.executable} -m x {{step}}"', "no such parameter"),
        ('checkpoints = "nothing-*"', "no file or folder matches"),
        ("cost = {mmlu = -1}", "cost"),
        ("[run]\nshare = 0", "share"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, line: str, words: str) -> None:
    path = described(tmp_path)
    key = line.split(" = ")[0]
    kept = [old for old in path.read_text().splitlines() if not old.startswith(key)]
    text = "\n".join(kept).replace("[run]", "") if line.startswith("[run]") else "\n".join(kept)
    path.write_text(
        f"{line}\n{text}"
        if not line.startswith("[run]")
        else f"{text.partition('share')[0]}\n{line}"
    )
    with pytest.raises(ScrimpError, match=words):
        run("select", "run", str(path))
    assert run("select", "run", str(described(tmp_path)), "--check").stdout.startswith(
        f"{path} is valid"
    )


def test_interrupted_it_ends_its_commands_and_goes_on(tmp_path: Path) -> None:
    path = described(tmp_path, seconds=30.0)
    command = [str(Path(sys.executable).with_name("scrimp")), "select", "run", str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    eventually(lambda: list(tmp_path.glob("out/*/*/tried")))
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1 and "nothing is lost" in errors, errors
    marker = str(tmp_path / "evaluate.py").encode()
    alive = [entry for entry in Path("/proc").glob("[0-9]*/cmdline") if _holds(entry, marker)]
    assert not alive
    selection = scrimp.load_selection("demo", storage=f"sqlite:///{tmp_path}/s.db")
    open_cells = selection.pending
    assert open_cells and selection.ask() in open_cells  # what was under evaluation comes first
    assert os.path.exists(path)


def _holds(entry: Path, marker: bytes) -> bool:
    try:
        return marker in entry.read_bytes()
    except OSError:
        return False


@pytest.fixture
def ten_scores(tmp_path: Path) -> Path:
    """Ten checkpoints, three tasks, ten scores."""
    lines = ["checkpoint,task,score"]
    for step in range(1, 11):
        for place, task in enumerate(("a", "b", "c")):
            known = (3 * step + place) % 3 == 0 or step == 9
            lines.append(f"{step},{task},{0.5 + 0.01 * step + 0.1 * place if known else ''}")
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(lines))
    return path


def test_posterior_and_correlations_of_a_file(ten_scores: Path, tmp_path: Path) -> None:
    out = tmp_path / "cells.csv"
    text = run("select", "posterior", str(ten_scores), "--out", str(out)).stdout
    assert len(text.splitlines()) == 12 and "average" in text and "wrote" in text
    assert len(out.read_text().splitlines()) == 31 and out.read_text().startswith(
        "checkpoint,task,mean,std,measured"
    )
    record = json.loads(run("select", "posterior", str(ten_scores), "--json").stdout)
    answer = json.loads(run("select", "next", str(ten_scores), "--json").stdout)["recommendation"]
    best = record["checkpoints"].index(answer["checkpoint"])
    assert record["average_mean"][best] == pytest.approx(answer["expected_score"])
    assert record["average_std"][best] == pytest.approx(answer["standard_error"])
    text = run("select", "correlations", str(ten_scores)).stdout
    assert [line.split()[0] for line in text.splitlines()[1:]] == [
        "a",
        "b",
        "c",
    ] and " 1.00" in text
    matrix = json.loads(
        run("select", "correlations", str(ten_scores), "--json", "--kernel").stdout
    )["correlations"]
    assert matrix[0][1] == pytest.approx(matrix[0][2])
    with pytest.raises(ScrimpError, match="'stride' has no model"):
        run("select", "posterior", str(ten_scores), "--method", "stride")


def test_beliefs_of_a_stored_selection_and_of_many_tasks(tmp_path: Path) -> None:
    url, tasks = f"sqlite:///{tmp_path}/s.db", [f"t{place}" for place in range(14)]
    selection = scrimp.create_selection("s", checkpoints=range(6), tasks=tasks, storage=url, seed=0)
    selection.run(lambda checkpoint, task: checkpoint / 10, share=0.3)
    text = run("select", "correlations", "s", "--storage", url).stdout
    assert (
        "highest correlations:" in text
        and "lowest correlations:" in text
        and "91 pairs in all" in text
    )
    assert len(run("select", "posterior", "s", "--storage", url).stdout.splitlines()) == 7


def test_it_says_what_to_take_how_sure_and_what_failed(capsys: pytest.CaptureFixture[str]) -> None:
    selection = scrimp.create_selection(
        "s", checkpoints=range(9), tasks=["a", "b"], storage="memory://", seed=0
    )
    print_recommendation(selection.recommend(), selection.scores)
    assert "take checkpoint 8 (nothing was measured)" in capsys.readouterr().out
    for step in range(7):
        selection.tell(step, "a", 0.1 * step)
        selection.tell(step, "b", state="failed", message=f"\nno GPU for {step}\nlong story")
    selection.tell(7, "a", 99.0)
    show_selection(selection.history, as_json=False)
    text = capsys.readouterr().out
    assert (
        "measured 8 of 18 cells, 7 failed; cost so far 15" in text
        and "take checkpoint 7: mean score" in text
    )
    assert "expected loss" in text and "runner-up" in text and "warning: the score 99" in text
    assert (
        "failed: b of checkpoint 6: no GPU for 6" in text
        and "long story" not in text
        and "and 2 more" in text
    )
    show_selection(selection.history, as_json=True)
    record = json.loads(capsys.readouterr().out)
    assert record["cells"] == {"completed": 8, "failed": 7}
    assert record["recommendation"] == recommendation_record(selection.recommend())
    assert record["trials"][0] == {
        "id": 0,
        "status": "completed",
        "checkpoint": 0,
        "task": "a",
        "score": 0.0,
        "stderr": None,
        "error": "",
    }
    print_failures(
        scrimp.create_selection("t", checkpoints=[1, 2], tasks=["a"], storage="memory://").history
    )
    assert capsys.readouterr().out == ""


def test_a_cell_by_question_has_the_mean_of_all_its_answers(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    selection = scrimp.create_selection(
        "s", checkpoints=[1, 2], tasks={"a": 30}, storage=url, seed=0
    )
    selection.stop_when(share=0.5)
    told: dict[int, list[float]] = {1: [], 2: []}
    while not selection.finished:
        checkpoint, task, questions = selection.ask()
        answers = [float(len(told[checkpoint]) % 3 == 0)] * len(questions)
        told[checkpoint] += answers
        selection.tell(checkpoint, task, answers)
    shown = CliRunner().invoke(app, ["show", "s", "--storage", url, "--json"])
    for cell in json.loads(shown.stdout)["trials"]:
        answers = told[cell["checkpoint"]]
        assert cell["score"] == pytest.approx(sum(answers) / len(answers), abs=1e-6)
    said = CliRunner().invoke(app, ["explain", "s", "--checkpoint", "2", "--storage", url])
    assert said.stdout.startswith("Checkpoint 2 has answered ")


def test_an_answer_by_the_smooth_curve_and_rows_without_one(tmp_path: Path) -> None:
    rows = ["checkpoint,task,score"]
    rows += [f"{step},t{k},{0.5 + 0.1 * (step == 3)}" for step in range(1, 9) for k in range(2)]
    (tmp_path / "scores.csv").write_text("\n".join(rows))
    path = str(tmp_path / "scores.csv")
    measured = run("select", "next", path).stdout
    assert "take checkpoint 3:" in measured and "second opinion: the smoothed curve" in measured
    smooth = run("select", "next", path, "--answer", "smooth").stdout
    assert "why: the smooth curve" in smooth and "second opinion" not in smooth
    assert "curve" not in run("select", "next", path, "--unordered").stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--method", "stride", "--answer", "smooth"], "no model of a curve"),
        (["--method", "ei-icm:rank=full", "--unordered"], "'rank' has no effect"),
    ],
)
def test_options_without_effect_are_refused(scores: Path, options: list[str], words: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "scrimp", "select", "next", str(scores), *options],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert result.returncode == 2 and words in result.stderr and not result.stdout
