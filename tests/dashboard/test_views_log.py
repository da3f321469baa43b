"""The end of a trial's log."""

import os
from pathlib import Path

import scrimp
from scrimp.dashboard import views as module
from scrimp.dashboard.views import trial_log


def test_the_tail_of_the_log_beside_the_checkpoints(tmp_path: Path) -> None:
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("s", space, method="random", storage=f"sqlite:///{tmp_path}/s.db")
    assert trial_log(study, 0) == ""
    folder = study._checkpoints()
    folder.mkdir(parents=True)
    (folder / "trial-000000.log").write_bytes(b"loss \xff 1\n")
    assert trial_log(study, 0) == "loss � 1\n"
    (folder / "trial-000001.log").write_text("".join(f"line {number}\n" for number in range(5000)))
    text = trial_log(study, 1)
    assert (
        len(text) <= module.MAX_LOG_BYTES
        and text.startswith("line ")
        and text.endswith("line 4999\n")
    )


def test_a_script_leaves_its_log_where_the_page_looks(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("print('hello from the script')\nprint('scrimp: {\"value\": 0.5}')\n")
    space = scrimp.Space(x=scrimp.Float(0, 1))
    study = scrimp.create_study("s", space, method="random", storage=f"sqlite:///{tmp_path}/s.db")
    study.optimize(scrimp.Command(f"python {script} {{x}}"), n_trials=1)
    assert "hello from the script" in trial_log(study, 0)


def test_links_and_pipes_are_not_read(tmp_path: Path) -> None:
    study = scrimp.create_study(
        "s",
        scrimp.Space(x=scrimp.Float(0, 1)),
        method="random",
        storage=f"sqlite:///{tmp_path}/s.db",
    )
    folder = study._checkpoints()
    folder.mkdir(parents=True)
    (folder / "trial-000000.log").symlink_to("/etc/passwd")
    os.mkfifo(folder / "trial-000001.log")
    (folder / "trial-000002.log").mkdir()
    assert [trial_log(study, number) for number in range(3)] == ["", "", ""]
