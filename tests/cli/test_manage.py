"""scrimp note: written, shown, removed; bad input is refused."""

import csv
import io
import json
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import scrimp
from scrimp.cli.main import app
from scrimp.errors import StudyError
from scrimp.formats.imports import read_results
from scrimp.formats.result_folders import ImportSettings
from scrimp.integrations import tracker as trackers
from scrimp.integrations.tracker import Tracker, TrialNews
from scrimp.study_log.events import Enqueued, TrialAdded
from scrimp.study_log.history import History


def test_notes_and_attributes_of_trials_and_studies(small: str, run: Callable[..., Any]) -> None:
    text = run(
        "note",
        "small",
        "1",
        "--text",
        "odd",
        "--set",
        "host=a100",
        "--set",
        "n=[1, 2]",
        "--storage",
        small,
    )
    assert text.stdout == "note: odd\nhost = a100\nn = [1, 2]\n"
    trial = scrimp.load_study("small", storage=small).trials[1]
    assert trial.note == "odd" and trial.user_attrs == {"host": "a100", "n": [1, 2]}
    run("note", "small", "--set", "by=ann", "--storage", small)
    shown = json.loads(run("note", "small", "--storage", small, "--json").stdout)
    assert shown == {"note": "", "user_attrs": {"by": "ann"}}
    removed = run("note", "small", "1", "--text", "", "--unset", "host", "--storage", small).stdout
    assert removed == "no note\nn = [1, 2]\n"


@pytest.mark.parametrize("arguments", [["--set", "host"], ["99", "--text", "x"]])
def test_bad_input(small: str, run: Callable[..., Any], arguments: list[str]) -> None:
    with pytest.raises(StudyError, match=r"name=value|no trial 99"):
        run("note", "small", *arguments, "--storage", small)


STUDY = """\
name = "s"
command = "{python} train.py"
method = "random"
storage = "sqlite:///s.db"
space.x = {type = "float", low = 0, high = 1}
run.n_trials = 6
"""


def test_failed_trials_are_tried_again(run: Callable[..., Any], small: str) -> None:
    assert "queued 1 failed trial of 'small'" in run("retry", "small", "--storage", small).stdout
    assert scrimp.load_study("small", storage=small).history.counts["stale"] == 1
    assert "no failed trials" in run("retry", "small", "--storage", small).stdout


def test_a_broken_script_ends_the_run_and_its_trials_come_back(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "train.py").write_text("import no_such_module\n")
    result = run("run", "study.toml")
    assert result.exit_code == 1
    assert "first 3 trials" in result.stderr and "No module named 'no_such_module'" in result.stderr
    assert "scrimp retry s --storage sqlite:///" in result.stderr
    (tmp_path / "train.py").write_text("print('scrimp: {\"value\": 0.5}')\n")
    run("retry", "s", "--storage", "sqlite:///s.db")
    assert run("run", "study.toml").exit_code == 0
    assert scrimp.load_study("s", storage="sqlite:///s.db").history.counts["completed"] == 6
    again = run("run", "study.toml").stderr
    assert "already finished, nothing left to run" in again
    assert "scrimp retry" not in again


def test_a_run_that_counts_failed_trials_names_retry(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    toml = STUDY.replace('command = "{python} train.py"', 'objective = "counted:objective"')
    toml = toml.replace(
        "run.n_trials = 6", 'metrics = {a = "minimize", b = "minimize"}\nrun.n_trials = 3'
    )
    (tmp_path / "study.toml").write_text(toml)
    (tmp_path / "counted.py").write_text(
        "def objective(trial):\n"
        "    if trial.id == 1:\n"
        "        raise ValueError('bad luck')\n"
        "    return {'a': trial.params['x'], 'b': -trial.params['x']}\n"
    )
    result = run("run", "study.toml")
    assert result.exit_code == 0  # a front is a result
    assert "failed trials count towards n_trials" in result.stderr
    assert "scrimp retry s --storage sqlite:///" in result.stderr


def test_it_asks_first(small: str, run: Callable[..., Any]) -> None:
    refused = run("delete", "small", "--storage", small)
    assert refused.exit_code == 2 and "5 trials; add --yes" in refused.stderr
    assert scrimp.studies(small) == ["small"]
    assert (
        "deleted 'small' with 5 trials"
        in run("delete", "small", "--storage", small, "--yes").stdout
    )
    assert scrimp.studies(small) == []


def test_csv_survives_commas_quotes_and_line_ends(
    small: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    study = scrimp.load_study("small", storage=small)
    out = tmp_path / "trials.csv"
    assert "wrote 5 trials" in run("export", "small", "--out", str(out), "--storage", small).stdout
    with out.open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["value"] for row in table] == ["0.5", "0.2", "0.9", "", ""]
    assert [row["metrics_memory"] for row in table[:3]] == ["5.0", "2.0", "9.0"]
    for row, trial in zip(table, study.trials, strict=True):
        assert (
            float(row["params_x"]) == trial.params["x"]
            and row["params_kind"] == trial.params["kind"]
        )
        assert row["message"] == trial.message and row["status"] == trial.status
    shown = run("export", "small", "--storage", small).stdout
    assert next(csv.reader(io.StringIO(shown))) == list(table[0])


def test_json_holds_the_question_and_the_curves(
    small: str, run: Callable[..., Any], tmp_path: Path
) -> None:
    run("export", "small", "--out", str(tmp_path / "s.json"), "--storage", small)
    record = json.loads((tmp_path / "s.json").read_text())
    assert record["trials"][1]["reports"] == [[1.0, {"error": 0.2, "memory": 2.0}]]
    assert (
        scrimp.Space.from_json(record["problem"]["space"])
        == scrimp.load_study("small", storage=small).history.problem.space
    )


def test_parquet(small: str, run: Callable[..., Any], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    out = tmp_path / "s.parquet"
    run("export", "small", "--out", str(out), "--storage", small)
    table = parquet.read_table(out).to_pylist()
    assert [row["value"] for row in table] == [0.5, 0.2, 0.9, None, None]
    assert [row["params_x"] for row in table] == [
        t.params["x"] for t in scrimp.load_study("small", storage=small).trials
    ]


def test_columns_of_several_types_become_texts(run: Callable[..., Any], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    url = f"sqlite:///{tmp_path}/m.db"
    space = scrimp.Space(k=scrimp.Categorical(["a", 1, True]))
    study = scrimp.create_study("m", space, method="grid", storage=url, seed=0)
    study.optimize(lambda trial: 0.0, n_trials=3)
    run("export", "m", "--out", str(tmp_path / "m.parquet"), "--storage", url)
    texts = [row["params_k"] for row in parquet.read_table(tmp_path / "m.parquet").to_pylist()]
    assert sorted(texts) == ['"a"', "1", "true"]


@pytest.mark.parametrize(
    "arguments", [["--out", "x.xlsx"], ["--format", "xml"], ["--format", "parquet"]]
)
def test_what_cannot_be_written_is_said(
    small: str, run: Callable[..., Any], arguments: list[str]
) -> None:
    with pytest.raises(StudyError, match=r"csv, json, parquet|name a file"):
        run("export", "small", "--storage", small, *arguments)


def test_an_empty_study(run: Callable[..., Any], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/e.db"
    scrimp.create_study("e", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage=url)
    assert run("export", "e", "--storage", url).stdout.splitlines() == [
        "id,status,value,best,last,budget"
    ]


def test_formulas_are_defused_unless_told_otherwise_and_come_back(run: Any, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    choices = ["=HYPERLINK(0)", "+1+1", "-2+3", "@SUM(1)", "plain"]
    study = scrimp.create_study(
        "s",
        scrimp.Space(kind=scrimp.Categorical(choices)),
        method="grid",
        storage=url,
        metric="value",
    )
    for value in range(5):
        study.tell(study.ask(), float(-value))
    for more, first in (((), "'"), (("--formulas",), "")):
        run("export", "s", "--out", str(tmp_path / "s.csv"), "--storage", url, *more)
        rows = list(csv.DictReader(io.StringIO((tmp_path / "s.csv").read_text())))
        kinds = sorted(row["params_kind"] for row in rows)
        assert kinds == sorted(
            "plain" if choice == "plain" else first + choice for choice in choices
        )
        assert [row["value"] for row in rows][-1] == "-4.0", "numbers are numbers"
        (found,) = read_results(tmp_path / "s.csv", ImportSettings())
        assert sorted(trial.config["kind"] for trial in found.trials) == sorted(choices)


def test_a_terminal_gets_no_control_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    url = f"sqlite:///{tmp_path}/s.db"
    space = scrimp.Space(kind=scrimp.Categorical(["\x1b[2Ja", "b"]))
    study = scrimp.create_study("s", space, method="grid", storage=url)
    study.tell(study.ask(), 1.0)
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    app(["export", "s", "--storage", url], standalone_mode=False)
    assert "\x1b" not in terminal.getvalue() and "[2Ja" in terminal.getvalue()


def test_results_become_a_study(run: Callable[..., Any], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    (tmp_path / "old.csv").write_text("lr,val_error\n0.1,0.5\n0.2,0.25\n")
    said = run(
        "import", str(tmp_path / "old.csv"), "--metric", "val_error", "--storage", url
    ).stdout
    assert said == "imported 2 trials as study 'old'\n"
    assert scrimp.load_study("old", storage=url).best_params == {"lr": 0.2}
    run(
        "import",
        str(tmp_path / "old.csv"),
        "--study",
        "again",
        "--metric",
        "val_error",
        "--direction",
        "maximize",
        "--storage",
        url,
    )
    assert scrimp.load_study("again", storage=url).best_params == {"lr": 0.1}


CONDITIONAL = "opt,lr,momentum,value\nsgd,0.1,0.9,3\nadam,0.2,,2\nsgd,0.3,0.5,1\nadam,0.4,,4\n"


def test_conditions_are_inferred_and_printed(run: Callable[..., Any], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    (tmp_path / "old.csv").write_text(CONDITIONAL)
    said = run("import", str(tmp_path / "old.csv"), "--storage", url).stdout
    assert said == (
        "imported 4 trials as study 'old'\nnote: momentum exists when opt is 'sgd' (inferred)\n"
    )
    study = scrimp.load_study("old", storage=url)
    study.optimize(lambda trial: trial.params["lr"], n_trials=12)
    assert all(("momentum" in t.params) == (t.params["opt"] == "sgd") for t in study.trials)


def test_trials_that_do_not_fit_are_counted_everywhere(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 's.db'}"
    (tmp_path / "old.csv").write_text(f"{CONDITIONAL}sgd,0.35,,0.5\n")
    with pytest.raises(
        StudyError, match="3 of 5 trials with a result have no parameter 'momentum'"
    ):
        run("import", str(tmp_path / "old.csv"), "--storage", url)
    said = run(
        *("import", str(tmp_path / "old.csv"), "--when", "momentum: opt=sgd", "--storage", url)
    ).stdout
    assert "momentum exists when opt is 'sgd' (given)" in said
    assert "1 of 5 trials do not fit the space" in said
    study = scrimp.load_study("old", storage=url)
    study.optimize(lambda trial: 1.5 + trial.params["lr"], n_trials=9)
    shown = run("show", "old", "--storage", url).stdout
    assert "not in the space: 1 of 9 trials; models do not learn from them" in shown
    text = study.explain(8).details
    assert (
        "without 1 trial that did not fit the space; the best value so far was 1 (trial 2)" in text
    )


def test_a_condition_needs_its_parameter(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text(CONDITIONAL)
    words = ["import", str(tmp_path / "old.csv"), "--when", "mass: opt=sgd"]
    with pytest.raises(
        StudyError, match="--when names 'mass', which is not a parameter; there are opt"
    ):
        run(*words, "--storage", f"sqlite:///{tmp_path}/s.db")


def test_exports_come_back(small: str, run: Callable[..., Any], tmp_path: Path) -> None:
    run("export", "small", "--out", str(tmp_path / "s.json"), "--storage", small)
    run("import", str(tmp_path / "s.json"), "--study", "copy", "--storage", small)
    one, two = (scrimp.load_study(name, storage=small) for name in ("small", "copy"))
    assert two.best_value == one.best_value and two.history.problem == one.history.problem


def test_what_is_wrong_is_told(run: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="there is no file"):
        run("import", str(tmp_path / "none.csv"), "--storage", f"sqlite:///{tmp_path / 's.db'}")


class Counting(Tracker):
    """Counts what it was told in a file."""

    def __init__(self, place: str) -> None:
        self.path = Path(place)

    @property
    def label(self) -> str:
        return "the file"

    def begin(self, history: History) -> int:
        return int(self.path.read_text()) if self.path.exists() else 0

    def write(self, news: Sequence[TrialNews], history: History) -> None:
        self.path.write_text(str(history.length))

    def close(self) -> None:
        pass


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(trackers, "tracker_of", lambda name, place: Counting(place))
    url = f"sqlite:///{tmp_path / 's.db'}"
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("digits", space, method="random", storage=url, seed=0)
    study.optimize(lambda trial: trial.params["x"], n_trials=3)
    return ["track", "mlflow", "digits", "--storage", url, "--to", str(tmp_path / "count")]


def test_it_catches_up_and_says_how_far(command: list[str]) -> None:
    first = CliRunner().invoke(app, command)
    assert first.exit_code == 0
    assert "the file shows 3 trials of study 'digits', " in first.output
    assert CliRunner().invoke(app, command).output.endswith("'digits', 0 new events\n")


def test_following_ends_with_the_study(command: list[str]) -> None:
    done = CliRunner().invoke(app, [*command, "--follow"])
    assert done.exit_code == 0 and "shows 3 trials of study 'digits'\n" in done.output


@pytest.fixture
def three(tmp_path: Path) -> str:
    url = f"sqlite:///{tmp_path}/three.db"
    for name in ("a", "b", "c"):
        study = scrimp.create_study(
            name, scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage=url, seed=0
        )
        study.optimize(lambda trial: trial.params["x"], n_trials=2)
    return url


def damage(url: str, event: str = "'{'") -> None:
    with sqlite3.connect(url.removeprefix("sqlite:///")) as connection:
        connection.execute(f"UPDATE events SET event = {event} WHERE study = 2 AND position = 3")
    connection.close()


def test_intact_logs(three: str, run: Callable[..., Any]) -> None:
    done = run("verify", "--storage", three)
    assert done.exit_code == 0 and "3 of 3 studies" in done.stdout and "intact, " in done.stdout
    rows = json.loads(run("verify", "a", "--storage", three, "--json").stdout)
    assert [row["name"] for row in rows] == ["a"] and rows[0]["trials"] == 2


@pytest.mark.parametrize("event", ["'{'", "replace(event, '0', '1')"])
def test_one_bad_study_hides_no_other(three: str, run: Callable[..., Any], event: str) -> None:
    damage(three, event)
    listed = run("studies", "--storage", three)
    assert listed.exit_code == 1 and "event 3 of study 'b'" in listed.stderr
    assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == ["a", "c"]
    assert [
        row["name"] for row in json.loads(run("studies", "--storage", three, "--json").stdout)
    ] == ["a", "c"]
    verified = run("verify", "--storage", three)
    assert (
        verified.exit_code == 1
        and "b: DAMAGED: event 3" in verified.stdout
        and "2 of 3" in verified.stdout
    )
    assert run("show", "a", "--storage", three).exit_code == 0


def test_verifying_lists_what_does_not_count(three: str, run: Callable[..., Any]) -> None:
    study = scrimp.load_study("b", storage=three)
    study._ledger.append(
        [Enqueued(config={"x": "0; id\x1b[2J"}), TrialAdded(trial=2, config={}, tag={"slot": 1})]
    )
    done = run("verify", "b", "--storage", three)
    assert done.exit_code == 0 and "intact" in done.stdout and "\x1b" not in done.stdout
    assert "does not fit the space" in done.stdout and "has a slot and no bracket" in done.stdout
    (row,) = json.loads(run("verify", "b", "--storage", three, "--json").stdout)
    assert len(row["ignored"]) == 2 and not row["damage"]


def test_backup_and_restore(three: str, tmp_path: Path, run: Callable[..., Any]) -> None:
    target = f"journal:///{tmp_path}/copies"
    events = len(scrimp.load_study("a", storage=three).history.events)
    assert f"a: {events} events added" in run("backup", target, "--storage", three).stdout
    study = scrimp.load_study("a", storage=three)
    study.optimize(lambda trial: trial.params["x"], n_trials=3)
    again = run("backup", target, "a", "b", "--storage", three).stdout
    assert "b: 0 events added" in again and "a: 0" not in again
    restored = f"sqlite:///{tmp_path}/restored.db"
    assert run("backup", restored, "--storage", target).exit_code == 0
    copy = scrimp.load_study("a", storage=restored)
    assert copy.best_value == study.best_value and list(copy.history.events) == list(
        study.history.events
    )
    copy.optimize(lambda trial: trial.params["x"], n_trials=5)
    assert len(copy.trials) == 5


def test_a_backup_says_what_it_could_not_copy(
    three: str, tmp_path: Path, run: Callable[..., Any]
) -> None:
    damage(three)
    done = run("backup", f"sqlite:///{tmp_path}/copy.db", "--storage", three)
    assert done.exit_code == 1 and "b: event 3" in done.stderr
    assert scrimp.studies(f"sqlite:///{tmp_path}/copy.db") == ["a", "c"]


def test_importing_twice_names_the_option(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("x,value\n0.1,1.0\n0.2,2.0\n")
    words = ["import", str(tmp_path / "old.csv"), "--storage", f"sqlite:///{tmp_path}/s.db"]
    assert "imported 2 trials as study 'old'" in run(*words).stdout
    with pytest.raises(StudyError, match="another name with --study"):
        run(*words)
    assert "as study 'newer'" in run(*words, "--name", "newer").stdout
