"""What a hostile database, study name or URL cannot do."""

import ast
import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace

import scrimp
from scrimp.cli.main import main
from scrimp.errors import ScrimpError
from scrimp.executors.command_line import Command
from scrimp.storage.event_json import StoredLine
from scrimp.storage.leases import MAX_LEASES, Lease, this_host
from scrimp.storage.open import open_storage, without_secrets
from scrimp.study.studies import checkpoint_root, storage_at
from scrimp.study.workers import described, resolved
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Lost,
    Reported,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.limits import Placement, StopSettings, Totals
from scrimp.study_log.problem import Problem
from tests.tools.postgres_server import PrivateServer, available

PACKAGE = Path(scrimp.__file__).parent
SPACE = scrimp.Space(x=scrimp.Float(0, 1))
HOSTILE = [
    "'; DROP TABLE studies; --",
    '"; DROP TABLE scrimp_events; --',
    "%s %(name)s {x}",
    "../../../etc",
    "/etc/x",
    "..",
]
SECRET = "hunter2secret"

NUMBERS = {"len(self._steps)"}
"""What may stand in a query besides constants: a PRAGMA takes no parameters."""

UNPICKLES = {"load", "loads", "Unpickler"}
PICKLERS = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
FROM_ITS_OWN_PARENT = {"executors/worker_process.py", "integrations/continued_fits.py"}
"""Worker processes get the objective from the process that started them, over a pipe that nobody
else holds; a search's fits read states from a folder that the search made for its own user and
removes."""


def calls() -> Iterator[tuple[str, ast.Call]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield str(path.relative_to(PACKAGE)), node


def test_nothing_is_unpickled_or_evaluated() -> None:
    found = []
    for name, call in calls():
        function = call.func
        if isinstance(function, ast.Name) and function.id in {"eval", "exec", "__import__"}:
            found.append((name, function.id))
        loader = ast.unparse(function).rpartition(".")
        if loader[0] in PICKLERS and loader[2] in UNPICKLES and name not in FROM_ITS_OWN_PARENT:
            found.append((name, ast.unparse(function)))
        if any(
            keyword.arg == "allow_pickle" and ast.unparse(keyword.value) != "False"
            for keyword in call.keywords
        ):
            found.append((name, "allow_pickle"))
    assert [item for item in found if not item[0].startswith("testing/")] == []


def test_a_pickle_in_the_log_stays_text(tmp_path: Path) -> None:
    """Records name objectives; whatever else stands there is refused, not loaded."""
    study = scrimp.create_study("s", SPACE, storage=f"sqlite:///{tmp_path}/s.db")
    study._ledger.append(
        [
            StudyChanged(
                objective={"pickle": "gASVHQAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAJpZJSFlFKULg=="}
            )
        ]
    )
    record = scrimp.load_study("s", storage=f"sqlite:///{tmp_path}/s.db").history.objective
    assert record is not None
    with pytest.raises(ScrimpError, match="neither a function nor a command"):
        resolved(record)


def quotes_names(query: ast.expr) -> bool:
    """Whether psycopg puts names, quoted, into a constant of ours."""
    return (
        isinstance(query, ast.Call)
        and isinstance(query.func, ast.Attribute)
        and query.func.attr == "format"
        and ast.unparse(query.func.value).startswith("sql.SQL('")
        and all("sql.Identifier" in ast.unparse(part) for part in query.args)
    )


SCHEMA_PUT_IN = {
    "_placed(query, self.schema)",
    "step(connection.schema).encode()",
}
"""Queries of PostgreSQL with the schema's name, which the server has quoted, in their text."""


def test_sql_is_text_of_our_own() -> None:
    """Every query is a constant, or put together from constants of its module; values travel beside
    it."""
    found = []
    for path in sorted((PACKAGE / "storage").glob("*.py")):
        module = ast.parse(path.read_text())
        for node in ast.walk(module):
            if not isinstance(node, ast.Call) or not isinstance(
                node.func, ast.Attribute | ast.Name
            ):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if called in {
                "execute",
                "executemany",
                "executescript",
                "rows",
                "_rows",
                "_row",
                "_asked",
                "ask",
            }:
                query = node.args[1] if called in {"_rows", "_row"} else node.args[0]
                inserted = [
                    part.value for part in ast.walk(query) if isinstance(part, ast.FormattedValue)
                ]
                ours = all(
                    ast.unparse(value).isupper() or ast.unparse(value) in NUMBERS
                    for value in inserted
                )
                found += [] if ours else [f"{path.name}:{node.lineno}"]
                if ast.unparse(query) in SCHEMA_PUT_IN:
                    continue
                if isinstance(query, ast.BinOp | ast.Call) and not quotes_names(query):
                    found.append(f"{path.name}:{node.lineno}")
    assert found == []


@pytest.mark.parametrize("kind", ["sqlite", "journal", "postgresql"])
def test_hostile_names_are_names(kind: str, tmp_path: Path) -> None:
    def check(url: str) -> None:
        storage = open_storage(url)
        for name in HOSTILE:
            scrimp.create_study(name, SPACE, storage=storage, method="random").enqueue({"x": 0.5})
        assert storage.names() == HOSTILE
        assert all(
            scrimp.load_study(name, storage=storage).history.queue[0] == {"x": 0.5}
            for name in HOSTILE
        )
        scrimp.delete_study(HOSTILE[0], storage=storage)
        assert storage.names() == HOSTILE[1:]
        storage.close()

    if kind != "postgresql":
        return check(f"{kind}:///{tmp_path}/studies")
    if not available():
        pytest.skip("no PostgreSQL server is installed here (initdb, pg_ctl)")
    with PrivateServer() as server:
        return check(server.url("hostile"))


@pytest.mark.parametrize("name", [*HOSTILE, "a/../../b", "..\\..\\b", "\0", "~root", "x" * 500])
def test_checkpoints_stay_in_their_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIMP_CHECKPOINTS", str(tmp_path / "kept"))
    root = checkpoint_root(storage_at("memory://"), name)()
    assert root.resolve().parent == (tmp_path / "kept").resolve() and len(root.name) < 100
    assert root != checkpoint_root(storage_at("memory://"), name + "?")()


@pytest.mark.parametrize(
    "command", [["show", "s"], ["worker", "s", "--wait", "0"], ["--debug", "best", "s"]]
)
def test_passwords_are_never_shown(command: list[str]) -> None:
    url = f"postgresql://ann:{SECRET}@127.0.0.1:1/hpo?sslpassword={SECRET}&connect_timeout=2"
    program = [sys.executable, "-c", "from scrimp.cli.main import main; main()"]
    done = subprocess.run(
        [*program, *command, "--storage", url], capture_output=True, text=True, timeout=60
    )
    assert done.returncode != 0 and "ann@127.0.0.1" in done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert SECRET not in without_secrets(url) and SECRET not in open_storage(url).url


def scrimp_command(*words: str, folder: Path, **variables: str) -> tuple[int, str]:
    """Exit code and all output of the command, run in ``folder`` with more variables."""
    said, before = io.StringIO(), os.getcwd()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(said), redirect_stderr(said):
        patch.chdir(folder)
        patch.setattr(sys, "argv", ["scrimp", *words])
        for name, value in variables.items():
            patch.setenv(name, value)
        try:
            main()
            code: Any = 0
        except SystemExit as end:
            code = end.code
    assert os.getcwd() == before
    return int(code or 0), said.getvalue()


@pytest.mark.parametrize(
    "url",
    [
        "reference://X::data:application/json;base64,e30K",
        "reference://X",
        "zip://X::file:///tmp/evil.zip",
        "simplecache::s3://bucket/x",
        "file://X::data:application/json;base64,e30K",
        "s3://bucket/x::http://127.0.0.1:1/",
        "http://127.0.0.1:1/latest/meta-data",
        "https://example.org/x",
        "data:application/json,{}",
        "github://a:b@c/d",
        "dask://x",
        "jlab://x",
        "file:/etc",
        "S3x://bucket",
    ],
)
def test_a_checkpoint_url_in_the_log_reaches_no_other_file_system(url: str, tmp_path: Path) -> None:
    """The worker goes on without looking there, and who asks for the checkpoint is told."""
    pytest.importorskip("fsspec")
    study = scrimp.create_study(
        "s", SPACE, storage=f"sqlite:///{tmp_path}/s.db", method="random", seed=0
    )
    study._ledger.append([StudyChanged(placement=Placement(checkpoints=url))])
    study.optimize(lambda trial: 0.5, n_trials=1)
    with pytest.raises(ScrimpError, match=r"must be one URL, not a chain|come with a password"):
        scrimp.load_study("s", storage=f"sqlite:///{tmp_path}/s.db").best_checkpoint


def test_files_at_a_url_cannot_leave_their_checkpoint(tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    from scrimp.errors import StorageError
    from scrimp.executors.shared_checkpoints import SharedCheckpoints

    there = tmp_path / "there-1"
    (there / "step-1").mkdir(parents=True)
    for mark in ("step-1", "step-nan", "step-inf", "step-../x", "other"):
        (there / f"{mark.replace('/', '_')}.complete").touch()
    shared = SharedCheckpoints(f"file://{tmp_path}/there")
    assert shared.steps(1) == ["step-1"]
    (there / "step-1" / "link").symlink_to("/etc/hostname")
    with pytest.raises(StorageError, match="leads out of it"):
        shared.fetch(tmp_path / "here", {1: 1.0})
    (there / "step-1" / "link").unlink()
    os.mkfifo(there / "step-1" / "pipe")
    with pytest.raises(StorageError, match="is no plain file"):
        shared.fetch(tmp_path / "here", {1: 1.0})
    names = {f"{there}/step-1/../../../owned": {}}
    shared._files = SimpleNamespace(find=lambda *_, **__: names)  # an object store takes any name
    with pytest.raises(StorageError, match="leads out of it"):
        shared._content(f"{there}/step-1")


def test_a_worker_needs_the_password_of_the_database(tmp_path: Path) -> None:
    """What a worker connects to is the database: its authentication is the one that counts."""
    if not available():
        pytest.skip("no PostgreSQL server is installed here (initdb, pg_ctl)")
    with PrivateServer() as server:
        url = server.url("guarded")
        study = scrimp.create_study("s", SPACE, storage=url, method="random")
        study._ledger.append(
            [StudyChanged(objective=described("train:objective"), totals=Totals(n_trials=1))]
        )
        (tmp_path / "train.py").write_text("def objective(trial):\n    return 1.0\n")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"ALTER ROLE postgres PASSWORD '{SECRET}'".encode())
            (server.folder / "data" / "pg_hba.conf").write_text("local all all scram-sha-256\n")
            connection.execute("SELECT pg_reload_conf()")
        program = [sys.executable, "-c", "from scrimp.cli.main import main; main()"]
        for password, code in (("wrong", 1), (SECRET, 0)):
            command = [*program, "worker", "s", "--storage", url, "--wait", "0"]
            environment = {**os.environ, "PGPASSWORD": password}
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60
            )
            assert done.returncode == code and SECRET not in done.stderr


def test_nothing_but_the_dashboard_listens() -> None:
    """What listens needs a token; workers only connect, and what they start speaks over pipes they
    inherit."""
    listeners = {
        "listen",
        "Listener",
        "start_server",
        "create_server",
        "TCPServer",
        "HTTPServer",
        "uvicorn.run",
    }
    found = {
        name for name, call in calls() if ast.unparse(call.func).rpartition(".")[2] in listeners
    }
    assert {name for name in found if not name.startswith(("dashboard/", "testing/"))} == {
        "cli/serve.py"
    }


def test_values_never_reach_a_shell() -> None:
    words = Command("train --name {name}").arguments({"name": "$(id); rm -rf / `id`"}, {})
    assert words == ["train", "--name", "$(id); rm -rf / `id`"]


@pytest.mark.parametrize("attempt", [0, 1])
def test_a_planted_trial_is_judged_before_it_is_run(attempt: int) -> None:
    study = scrimp.create_study(
        "s", scrimp.Space(x=scrimp.Float(0, 1)), method="random", storage="memory://", seed=0
    )
    study._ledger.append(
        [
            TrialAdded(trial=0, config={"x": "$(touch owned)"}),
            BudgetGranted(trial=0, budget=1.0, attempt=attempt),
            Lost(trial=0, attempt=attempt),
        ]
    )
    seen: list[object] = []
    study.optimize(lambda trial: seen.append(trial.params["x"]) or 1.0, n_trials=3, progress=False)  # type: ignore[func-returns-value]
    assert len(seen) == 2 and all(isinstance(value, float) for value in seen)
    assert study.trials[0].status == "failed" and "not run: " in study.trials[0].message


def test_numbers_without_measure_keep_no_worker_busy(tmp_path: Path) -> None:
    """Attempts are gone through one by one, decisions and leases are columns of 64 bits."""
    url = f"sqlite:///{tmp_path}/s.db"
    study = scrimp.create_study("s", SPACE, storage=url, method="random", seed=0)
    study._ledger.append([TrialAdded(trial=number, config={"x": 0.5}) for number in range(3)])
    for number, attempt in enumerate((10**12, 10**30, -(10**30))):
        study._ledger.append(
            [
                BudgetGranted(trial=number, budget=1.0, attempt=attempt),
                Lost(trial=number, attempt=attempt),
            ]
        )
    study._ledger.append([Decided(decision=10**30, seen=1)])
    study._ledger.store.lease(Lease(999, 1, "w", this_host(), 2**22 + 1, 60.0, 1))
    study._ledger.store.lease(Lease(-999, 1, "w", this_host(), 2**22 + 1, 60.0, 1))
    loaded = scrimp.load_study("s", storage=url)
    loaded.optimize(lambda trial: 0.5, n_trials=5, progress=False)
    assert loaded.history.counts["completed"] == 2 and len(loaded.history.ignored) == 7


def test_leases_without_number_are_not_all_read(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    study = scrimp.create_study("s", SPACE, storage=url, method="random", seed=0)
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection, connection:
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)"
            " INSERT INTO leases (study, trial, attempt, worker, host, pid, started, seconds,"
            " expires) SELECT 1, i, 1, 'w', ?, 1, 1, 60, 9e9 FROM n",
            (this_host(),),
        )
    study.optimize(lambda trial: 0.5, n_trials=3, progress=False)
    assert len(study._ledger.store.leases()) == MAX_LEASES
    assert study.history.counts["completed"] == 3


def cells(**changes: Any) -> list[StudyCreated | StudyChanged | TrialAdded]:
    """The beginning of a selection by question, with changes of its first event."""
    chosen = scrimp.create_selection(
        "s", checkpoints=[1, 2], tasks={"a": 4, "b": 4}, storage="memory://", seed=0
    )
    return [replace(chosen.history.created, **changes)]


SETTINGS = cells()[0].method["settings"]


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({"method": {"name": "race"}}, []),
        ({"method": {"name": "kg", "settings": {"ordered": True, "weights": "x"}}}, []),
        (
            {
                "method": {
                    "name": "race",
                    "settings": SETTINGS | {"questions": {"a": 10**13, "b": 4}},
                }
            },
            [],
        ),
        ({"method": {"name": "race", "settings": SETTINGS | {"questions": {"a": -3, "b": 4}}}}, []),
        ({"problem": Problem(SPACE).to_json()}, []),
        ({}, [TrialAdded(trial=0, config={"checkpoint": [1]})]),
        (
            {"method": {"name": "kg", "settings": SETTINGS}},
            [StudyChanged(stop=StopSettings(share=1e308))],
        ),
    ],
)
def test_a_planted_selection_ends_nobody_with_a_traceback(
    changes: dict[str, Any], more: list[Any], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    scrimp.create_study("good", SPACE, storage=url, method="random")
    open_storage(url).create("s", [*cells(**changes), *more])
    code, said = scrimp_command("show", "s", "--storage", url, folder=tmp_path)
    assert code and "Traceback" not in said and said.startswith("scrimp: "), said
    assert "good" in scrimp_command("studies", "--storage", url, folder=tmp_path)[1]


@pytest.mark.parametrize("config", [{"x": "a"}, {"x": [1]}, {"x": 10**400}, {"y": 1}, {}])
def test_a_planted_result_ends_nobody_with_a_traceback(config: Any, tmp_path: Path) -> None:
    """The best value of a study, with a configuration and notes that nobody could have written."""
    url = f"sqlite:///{tmp_path}/s.db"
    study = scrimp.create_study("s", SPACE, storage=url, method="random", seed=0)
    for value in (0.3, 0.2, 0.4):
        study.tell(study.ask(), value)
    record = {"own": {"reason": [1], "left_out": 3, "weights": {"a": "b"}, "fit": 5}}
    decided = {"event": "decided", "decision": 3, "seen": 10**9, "record": record}
    study._ledger.store.append(
        [
            StoredLine(f"1 {json.dumps(decided)}"),
            TrialAdded(trial=3, config=config),
            BudgetGranted(trial=3, budget=1.0),
            Reported(trial=3, step=1.0, metrics={"value": -1.0}),
            StudyChanged(method={}),
        ]
    )
    for words in (["show", "s"], ["best", "s"], ["explain", "s", "3"], ["verify"]):
        code, said = scrimp_command(*words, "--storage", url, folder=tmp_path)
        assert code == 0 and "Traceback" not in said, said
    loaded = scrimp.load_study("s", storage=url)
    assert scrimp.plots.spending(loaded) and scrimp.plots.importance(loaded)
