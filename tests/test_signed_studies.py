"""What a worker with a public key runs, and what a hostile log cannot make it do."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.executors.command_line import Command
from scrimp.storage.event_json import encode
from scrimp.storage.open import open_storage
from scrimp.study.workers import described
from scrimp.study_log.events import (
    BudgetGranted,
    Enqueued,
    Lost,
    StudyChanged,
    TrialAdded,
)
from scrimp.study_log.limits import Placement, Totals
from tests.test_security import SECRET, SPACE, scrimp_command

STUDY = """
name = "s"
command = 'bash -c "echo {x} >> ran-MARK; cat report"'
method = "random"
[space]
x = {type = "float", low = 0, high = 1}
[run]
n_trials = 1
"""


@pytest.fixture
def signed_study(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """A study that `scrimp run` signed; call it as a worker with the public key that insists on
    that."""
    pytest.importorskip("cryptography", reason="signing needs it: pip install 'scrimp[signing]'")
    code, said = scrimp_command("key", "new", "ann.key", folder=tmp_path)
    assert code == 0 and "SCRIMP_PUBLIC_KEY=ann.key.pub" in said
    (tmp_path / "s.toml").write_text(STUDY.replace("MARK", "first"))
    (tmp_path / "report").write_text('scrimp: {"value": 1}')
    url = f"sqlite:///{tmp_path}/s.db"
    code, said = scrimp_command(
        "run", "s.toml", "--storage", url, "--private-key", "ann.key", folder=tmp_path
    )
    assert code == 0, said

    def worker(*changes: Any, storage: str = url) -> tuple[int, str]:
        study = scrimp.load_study("s", storage=storage)
        study._ledger.append(
            [*changes, StudyChanged(totals=Totals(n_trials=len(study.trials) + 1))]
        )
        return scrimp_command(
            "worker", "s", "--storage", storage, folder=tmp_path, SCRIMP_PUBLIC_KEY="ann.key.pub"
        )

    return worker


def lines(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


def test_a_worker_with_a_public_key_runs_only_what_was_signed(
    signed_study: Any, tmp_path: Path
) -> None:
    assert signed_study()[0] == 0 and lines(tmp_path / "ran-first") == 2
    other = described(Command(["touch", "owned"]))
    code, said = signed_study(StudyChanged(objective=other))
    assert code == 2 and "does not run it" in said and not (tmp_path / "owned").exists()
    assert signed_study(StudyChanged(objective=described(Command("true"))))[0] == 2


def test_a_plugin_in_the_log_gets_no_module_imported(signed_study: Any, tmp_path: Path) -> None:
    """The signature covers what a study is made of; that a record alone imports nothing is tested
    with the commands."""
    (tmp_path / "evil.py").write_text("open('owned', 'w').close()")
    code, said = signed_study(StudyChanged(plugins=("evil",)))
    assert code == 2 and "was changed after it was signed" in said
    assert not (tmp_path / "owned").exists() and lines(tmp_path / "ran-first") == 1


def test_a_planted_checkpoint_url_ends_a_worker_with_a_public_key(
    signed_study: Any, tmp_path: Path
) -> None:
    """A chain of file systems whose first one computes what the second one holds."""
    url = "reference://X::data:application/json;base64,e30K"
    code, said = signed_study(StudyChanged(placement=Placement(checkpoints=url)))
    assert code == 2 and "was changed after it was signed" in said
    assert lines(tmp_path / "ran-first") == 1


def test_a_text_in_the_queue_never_reaches_a_command(signed_study: Any, tmp_path: Path) -> None:
    """The parameter is a number; who may write to the database puts a text in its place, in the
    queue and as a trial."""
    text = "0; touch owned; echo 1"
    code, said = signed_study(
        Enqueued(config={"x": text}),
        TrialAdded(trial=1, config={"x": text}),
        BudgetGranted(trial=1, budget=1.0),
        Lost(trial=1),
    )
    assert code == 0, said
    history = scrimp.load_study("s", storage=f"sqlite:///{tmp_path}/s.db").history
    assert not (tmp_path / "owned").exists() and "does not fit the space" in history.ignored[0][1]
    assert history.trials[1].status == "failed" and "not run: " in history.trials[1].message


def test_a_replayed_signature_is_refused(signed_study: Any, tmp_path: Path) -> None:
    study = scrimp.load_study("s", storage=f"sqlite:///{tmp_path}/s.db")
    old = [
        event
        for event in study.history.events
        if isinstance(event, StudyChanged) and event.objective
    ]
    signature = next(
        event.signature for event in study.history.events if getattr(event, "signature", None)
    )
    (tmp_path / "s.toml").write_text(
        STUDY.replace("MARK", "second").replace("n_trials = 1", "n_trials = 2")
    )
    run = ("run", "s.toml", "--storage", f"sqlite:///{tmp_path}/s.db")
    assert scrimp_command(*run, folder=tmp_path, SCRIMP_PRIVATE_KEY="ann.key")[0] == 0
    assert lines(tmp_path / "ran-first") == 1 and lines(tmp_path / "ran-second") == 1
    code, said = signed_study(StudyChanged(objective=old[0].objective, signature=signature))
    assert code == 2 and "changed after it was signed (revision 2)" in said
    assert lines(tmp_path / "ran-first") == 1 and lines(tmp_path / "ran-second") == 1


def test_a_signed_record_counts_in_no_other_storage(signed_study: Any, tmp_path: Path) -> None:
    study = scrimp.load_study("s", storage=f"sqlite:///{tmp_path}/s.db")
    for name, events in (("same", study.history.events), ("anew", study.history.events[1:])):
        url = f"sqlite:///{tmp_path}/{name}.db"
        if name == "same":
            open_storage(url).create("s", events)
        else:
            scrimp.create_study("s", SPACE, storage=url, method="random")._ledger.append(events)
        code, said = signed_study(storage=url)
        assert code == 2 and "another study or storage" in said
    assert lines(tmp_path / "ran-first") == 1


def test_empty_key_files_are_refused(signed_study: Any, tmp_path: Path) -> None:
    worker = ("worker", "s", "--storage", f"sqlite:///{tmp_path}/s.db")
    for more, variables, words in (
        ((), {"SCRIMP_PUBLIC_KEY": ""}, "empty"),
        (("--public-key", ""), {}, "empty"),
    ):
        code, said = scrimp_command(*worker, *more, folder=tmp_path, **variables)
        assert code == 2 and words in said and SECRET not in said and "Traceback" not in said
    assert lines(tmp_path / "ran-first") == 1


def test_nothing_in_the_log_tells_the_private_key(signed_study: Any, tmp_path: Path) -> None:
    """What stands in the log is checked with the public key, which tells nothing of the private
    one: nothing to guess."""
    study = scrimp.load_study("s", storage=f"sqlite:///{tmp_path}/s.db")
    told = "".join(encode(study.history.events))
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key((tmp_path / "ann.key").read_bytes(), None)
    raw = key.private_bytes(
        serialization.Encoding.Raw, serialization.PrivateFormat.Raw, serialization.NoEncryption()
    )
    assert raw.hex() not in told and (tmp_path / "ann.key").read_text().splitlines()[1] not in told


def test_the_owner_signs_the_plan_and_not_what_the_log_says(
    signed_study: Any, tmp_path: Path
) -> None:
    """Whoever may write to the database changes the study before its owner runs it again."""
    url = f"sqlite:///{tmp_path}/s.db"
    (tmp_path / "s.toml").write_text(
        STUDY.replace("MARK", "first").replace("n_trials = 1", "n_trials = 3")
    )
    for change, words in (
        (StudyChanged(placement=Placement(checkpoints="s3://evil/x")), "s3://evil/x"),
        (StudyChanged(plugins=("evil",)), "evil"),
        (StudyChanged(method={"name": "grid", "settings": {}}), "grid"),
    ):
        study = scrimp.load_study("s", storage=url)
        study._ledger.append([change])
        length = study.history.length
        code, said = scrimp_command(
            "run", "s.toml", "--storage", url, folder=tmp_path, SCRIMP_PRIVATE_KEY="ann.key"
        )
        assert code == 2 and "differs from your plan" in said and words in said
        added = study.history.events[length:]
        assert not any(getattr(event, "signature", None) for event in added)
    assert lines(tmp_path / "ran-first") == 1


def test_a_public_key_counts_beside_an_objective(signed_study: Any, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    (tmp_path / "mine.py").write_text("def objective(trial):\n    return 1.0\n")
    study = scrimp.load_study("s", storage=url)
    study._ledger.append([StudyChanged(totals=Totals(n_trials=2))])
    worker = ("worker", "s", "--storage", url, "--objective", "mine:objective")
    keyed = (*worker, "--public-key", "ann.key.pub")
    code, said = scrimp_command(*keyed, folder=tmp_path)
    assert code == 0 and len(study.trials) == 2, said
    wider = scrimp.Space(x=scrimp.Float(0, 1), y=scrimp.Categorical(["--evil", "b"]))
    change = StudyChanged(problem=replace(study.history.problem, space=wider).to_json())
    study._ledger.append([change, StudyChanged(totals=Totals(n_trials=3))])
    code, said = scrimp_command(*keyed, folder=tmp_path)
    assert code == 2 and "was changed after it was signed" in said and len(study.trials) == 2
    assert "--objective" not in said


@pytest.mark.parametrize("command", ["run", "worker"])
def test_a_function_of_a_command_finds_no_secret_in_the_environment(
    command: str, signed_study: Any, tmp_path: Path
) -> None:
    """One worker runs it in the process of scrimp; the owner's key is still trusted there."""
    (tmp_path / "look.py").write_text(
        "import os\nSEEN = dict(os.environ)\ndef objective(trial):\n    found = {**SEEN,"
        " **os.environ}\n    os.write(os.open('seen', os.O_CREAT | os.O_WRONLY), repr(found).encode())\n    return 1.0\n"
    )
    plan = STUDY.replace("command = 'bash -c \"echo {x} >> ran-MARK; cat report\"'", "")
    plan = plan.replace('"s"', '"f"\nobjective = "look:objective"')
    (tmp_path / "f.toml").write_text(plan)
    secrets = {
        "PGPASSWORD": SECRET,
        "SCRIMP_DASHBOARD_TOKEN": SECRET,
        "SCRIMP_STORAGE": f"postgresql://ann@db/hpo?%70assword={SECRET}",
        "SCRIMP_PRIVATE_KEY": "ann.key",
    }
    url = f"sqlite:///{tmp_path}/s.db"
    said = scrimp_command("run", "f.toml", "--storage", url, folder=tmp_path, **secrets)
    assert said[0] == 0, said
    if command == "worker":
        (tmp_path / "seen").unlink()
        study = scrimp.load_study("f", storage=url)
        study._ledger.append([StudyChanged(totals=Totals(n_trials=2))])
        said = scrimp_command("worker", "f", "--storage", url, folder=tmp_path, **secrets)
        assert said[0] == 0, said
    seen = (tmp_path / "seen").read_text()
    assert SECRET not in seen and "ann.key" not in seen and "PATH" in seen
