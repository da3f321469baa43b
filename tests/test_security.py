"""What a hostile database, study name or URL cannot do."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import scrimp
from scrimp.errors import ScrimpError
from scrimp.executors.command_line import Command
from scrimp.history.events import StudyChanged
from scrimp.storage.open import open_storage, without_secrets
from scrimp.testing.postgres_server import PrivateServer, available
from scrimp.tuning.objectives import described, resolved, signed
from scrimp.tuning.studies import checkpoint_root, storage_at

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
FROM_ITS_OWN_PARENT = {"executors/worker_process.py"}
"""Worker processes get the objective from the process that started them, over a pipe that nobody else holds."""


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
        if any(keyword.arg == "allow_pickle" and ast.unparse(keyword.value) != "False" for keyword in call.keywords):
            found.append((name, "allow_pickle"))
    assert [item for item in found if not item[0].startswith("testing/")] == []


def test_a_pickle_in_the_log_stays_text(tmp_path: Path) -> None:
    """Records name objectives; whatever else stands there is refused, not loaded."""
    study = scrimp.create_study("s", SPACE, storage=f"sqlite:///{tmp_path}/s.db")
    study._ledger.append(
        [StudyChanged(objective={"pickle": "gASVHQAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAJpZJSFlFKULg=="})]
    )
    record = scrimp.load_study("s", storage=f"sqlite:///{tmp_path}/s.db").history.objective
    assert record is not None
    with pytest.raises(ScrimpError, match="no function and no command"):
        resolved(record)


def test_sql_is_text_of_our_own() -> None:
    """Every query is a constant, or put together from constants of its module; values travel beside it."""
    found = []
    for path in sorted((PACKAGE / "storage").glob("*.py")):
        module = ast.parse(path.read_text())
        for node in ast.walk(module):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute | ast.Name):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            if called in {"execute", "executemany", "executescript", "rows", "_rows", "_row", "_asked"}:
                query = node.args[1] if called in {"_rows", "_row"} else node.args[0]
                inserted = [part.value for part in ast.walk(query) if isinstance(part, ast.FormattedValue)]
                ours = all(ast.unparse(value).isupper() or ast.unparse(value) in NUMBERS for value in inserted)
                found += [] if ours else [f"{path.name}:{node.lineno}"]
                if isinstance(query, ast.BinOp | ast.Call):
                    found.append(f"{path.name}:{node.lineno}")
    assert found == []


@pytest.mark.parametrize("kind", ["sqlite", "journal", "postgresql"])
def test_hostile_names_are_names(kind: str, tmp_path: Path) -> None:
    def check(url: str) -> None:
        storage = open_storage(url)
        for name in HOSTILE:
            scrimp.create_study(name, SPACE, storage=storage, method="random").enqueue({"x": 0.5})
        assert storage.names() == HOSTILE
        assert all(scrimp.load_study(name, storage=storage).history.queue[0] == {"x": 0.5} for name in HOSTILE)
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
def test_checkpoints_stay_in_their_folder(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIMP_CHECKPOINTS", str(tmp_path / "kept"))
    root = checkpoint_root(storage_at("memory://"), name)()
    assert root.resolve().parent == (tmp_path / "kept").resolve() and len(root.name) < 100
    assert root != checkpoint_root(storage_at("memory://"), name + "?")()


@pytest.mark.parametrize("command", [["show", "s"], ["worker", "s", "--wait", "0"], ["--debug", "best", "s"]])
def test_passwords_are_never_shown(command: list[str]) -> None:
    url = f"postgresql://ann:{SECRET}@127.0.0.1:1/hpo?sslpassword={SECRET}&connect_timeout=2"
    program = [sys.executable, "-c", "from scrimp.cli.main import main; main()"]
    done = subprocess.run([*program, *command, "--storage", url], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "ann@127.0.0.1" in done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert SECRET not in without_secrets(url) and SECRET not in open_storage(url).url


def test_a_worker_with_a_token_runs_only_what_was_signed_with_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("def objective(trial):\n    return 1.0\n")
    url = f"sqlite:///{tmp_path}/s.db"
    study = scrimp.create_study("s", SPACE, storage=url, method="random")

    def worker(record: dict[str, object], *options: str) -> tuple[int, str]:
        study._ledger.append([StudyChanged(objective=record, totals={"n_trials": len(study.trials) + 1})])
        program = [sys.executable, "-c", "from scrimp.cli.main import main; main()"]
        command = [*program, "worker", "s", "--storage", url, *options]
        environment = {**os.environ, "SCRIMP_TOKEN": SECRET}
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
        assert SECRET not in done.stdout + done.stderr
        return done.returncode, done.stderr

    record = described("train:objective")
    ours = signed(record, "s", SECRET)
    assert worker(ours)[0] == 0 and len(study.trials) == 1
    for forged in (record, signed(record, "t", SECRET), signed(record, "s", "other"), {**ours, "function": "os:abort"}):
        code, said = worker(forged)
        assert code == 2 and "does not run it" in said
    assert len(study.trials) == 1
    assert worker(record, "--objective", "train:objective")[0] == 0


def test_a_worker_needs_the_password_of_the_database(tmp_path: Path) -> None:
    """What a worker connects to is the database: its authentication is the one that counts."""
    if not available():
        pytest.skip("no PostgreSQL server is installed here (initdb, pg_ctl)")
    with PrivateServer() as server:
        url = server.url("guarded")
        study = scrimp.create_study("s", SPACE, storage=url, method="random")
        study._ledger.append([StudyChanged(objective=described("train:objective"), totals={"n_trials": 1})])
        (tmp_path / "train.py").write_text("def objective(trial):\n    return 1.0\n")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"ALTER ROLE postgres PASSWORD '{SECRET}'".encode())
            (server.folder / "data" / "pg_hba.conf").write_text("local all all scram-sha-256\n")
            connection.execute("SELECT pg_reload_conf()")
        program = [sys.executable, "-c", "from scrimp.cli.main import main; main()"]
        for password, code in (("wrong", 1), (SECRET, 0)):
            command = [*program, "worker", "s", "--storage", url, "--wait", "0"]
            environment = {**os.environ, "PGPASSWORD": password}
            done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
            assert done.returncode == code and SECRET not in done.stderr


def test_nothing_but_the_dashboard_listens() -> None:
    """What listens needs a token; workers only connect, and what they start speaks over pipes they inherit."""
    listeners = {"listen", "Listener", "start_server", "create_server", "TCPServer", "HTTPServer", "uvicorn.run"}
    found = {name for name, call in calls() if ast.unparse(call.func).rpartition(".")[2] in listeners}
    assert {name for name in found if not name.startswith(("dashboard/", "testing/"))} == {"cli/dashboard.py"}


def test_values_never_reach_a_shell() -> None:
    words = Command("train --name {name}").arguments({"name": "$(id); rm -rf / `id`"}, {})
    assert words == ["train", "--name", "$(id); rm -rf / `id`"]
