"""Scripts as trials: good ones, bad ones, stubborn ones, and what they leave behind."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from scrimp.errors import CheckpointError
from scrimp.executors.command import CommandExecutor, Rules
from scrimp.executors.command_line import Command
from scrimp.executors.executor import Assignment
from scrimp.study_log.events import Ended, Event, Reported
from scrimp.testing.executors import ExecutorBattery
from scrimp.testing.executors import happened as run
from tests.executors.conftest import Start


def assignment(
    trial: int = 0, end: float = 1.0, folder: Path | None = None, **more: Any
) -> Assignment:
    return Assignment(
        trial,
        more.pop("config", {}),
        more.pop("attempt", 1),
        more.pop("begin", 0.0),
        end,
        folder,
        **more,
    )


def steps(events: list[Event]) -> list[float]:
    return [event.step for event in events if isinstance(event, Reported)]


def log(folder: Path) -> str:
    return folder.with_name(f"{folder.name}.log").read_text()


def test_reports_arrive_with_step_metrics_stderr_and_cost(start: Start, tmp_path: Path) -> None:
    code = (
        'print("scrimp:", \'{"loss": 0.5, "acc": 1, "stderr": 0.1}\'); print("scrimp:", \'{"loss":'
        ' 0.25, "step": 3}\')'
    )
    events = run(start(code), [assignment(4, 3.0, tmp_path / "t", attempt=2)])
    first, second = events
    assert isinstance(first, Reported) and isinstance(second, Reported)
    assert (first.trial, first.attempt, first.step, first.stderr) == (4, 2, 1.0, {"loss": 0.1})
    assert first.metrics == {"loss": 0.5, "acc": 1.0} and first.cost is not None and first.cost >= 0
    assert (second.step, second.metrics) == (3.0, {"loss": 0.25})


def test_a_script_sees_its_trial_in_variables_and_arguments(start: Start, tmp_path: Path) -> None:
    code = (
        "import json, os, sys\n"
        "seen = {name: os.environ[name] for name in os.environ if name.startswith('SCRIMP_')}\n"
        "seen['params'] = json.load(open(seen['SCRIMP_PARAMS'])); seen['argv'] = sys.argv[1:]\n"
        "seen['device'] = os.environ.get('CUDA_VISIBLE_DEVICES')\n"
        "open(os.environ['SCRIMP_CHECKPOINT_DIR'] + '/seen', 'w').write(json.dumps(seen))\n"
        "print('scrimp: {\"loss\": 1}')"
    )
    executor = start(code, [{"CUDA_VISIBLE_DEVICES": "5"}])
    run(executor, [assignment(7, 1.0, tmp_path / "t", config={"lr": 0.1, "kind": "a b"})])
    seen = json.loads((tmp_path / "t-1" / "step-1" / "seen").read_text())
    assert seen["params"] == {"lr": 0.1, "kind": "a b"} and seen["device"] == "5"
    assert seen["argv"] == ["7", "--lr", "0.1", "--kind", "a b"]
    assert (seen["SCRIMP_TRIAL"], seen["SCRIMP_ATTEMPT"]) == ("7", "1")
    assert (seen["SCRIMP_RESUME_STEP"], seen["SCRIMP_BUDGET"]) == ("0", "1")


WRITE = (
    "import os\nfolder = os.environ['SCRIMP_CHECKPOINT_DIR']\nfor step in"
    " range(int(os.environ['SCRIMP_RESUME_STEP']) + 1, int(os.environ['SCRIMP_BUDGET']) + 1):\n   "
    " open(folder + '/done', 'a').write(f'{step} ')\n    print('scrimp: {\"loss\": 0.5, \"answer\":"
    " true}'); open(os.environ['SCRIMP_ANSWERS']).readline()\n"
)


def test_each_report_keeps_the_checkpoint_and_a_later_grant_goes_on_from_it(
    start: Start, tmp_path: Path
) -> None:
    executor = start(WRITE)
    assert steps(run(executor, [assignment(0, 2.0, tmp_path / "t")])) == [1, 2]
    assert steps(run(executor, [assignment(0, 4.0, tmp_path / "t", begin=2.0, attempt=2)])) == [
        3,
        4,
    ]
    assert (tmp_path / "t-2" / "step-4" / "done").read_text() == "1 2 3 4 "
    assert "attempt 2, from 2 to 4" in log(tmp_path / "t")


def test_a_missing_checkpoint_folder_means_beginning_anew(start: Start, tmp_path: Path) -> None:
    events = run(start(WRITE), [assignment(0, 3.0, tmp_path / "nowhere", begin=2.0, attempt=2)])
    assert steps(events) == [1, 2, 3]  # the history counts each step once


def test_scripts_run_side_by_side_in_their_slots(start: Start) -> None:
    code = (
        "import os, time; device = os.environ['CUDA_VISIBLE_DEVICES']; time.sleep(0.3)\n"
        'print(\'scrimp: {"loss": 0, "device": %s}\' % device)'
    )
    executor = start(code, [{"CUDA_VISIBLE_DEVICES": "0"}, {"CUDA_VISIBLE_DEVICES": "1"}])
    executor.start(assignment(0))
    executor.start(assignment(1))
    assert executor.busy == executor.slots == 2
    events = [event for event in run(executor, []) if isinstance(event, Reported)]
    assert {event.metrics["device"] for event in events} == {0.0, 1.0}


BAD: dict[str, tuple[str, list[float], str, str]] = {
    "garbage": (
        (
            "print('scrimp: {nonsense'); print('\\x00\\xff\\x1b[2J'); print('scrimp: {\"loss\":"
            ' 0.5, "step": 3}\')'
        ),
        [3],
        "",
        "ignored: cannot read the report",
    ),
    "out of order": (
        '[print(\'scrimp: {"loss": 0.5, "step": %d}\' % step) for step in (2, 1, 3)]',
        [2, 3],
        "",
        "ignored: a report of step 1 after step 2",
    ),
    "twice": (
        '[print(\'scrimp: {"loss": 0.5, "step": %d}\' % step) for step in (1, 1, 3)]',
        [1, 3],
        "",
        "ignored: a report of step 1 after step 1",
    ),
    "after its grant": (
        '[print(\'scrimp: {"loss": 0.5, "step": %d}\' % step) for step in (1, 3, 4, 5)]',
        [1, 3],
        "",
        "ignored: a report that came after the end",
    ),
    "beyond its grant": (
        'print(\'scrimp: {"loss": 0.5, "step": 4}\')',
        [],
        "step 4 is beyond the grant of 3",
        "",
    ),
    "not a number": (
        "print('scrimp: {\"loss\": NaN}'); import time; time.sleep(600)",
        [1],
        "loss is nan at step 1: not a finite number",
        "",
    ),
    "a text": ('print(\'scrimp: {"loss": "low"}\')', [], "metric 'loss' is 'low' of type str", ""),
    "another metric": (
        "print('scrimp: {\"los\": 1}')",
        [],
        "metric 'loss' was not reported .reported: los.",
        "",
    ),
    "a bad step": ('print(\'scrimp: {"loss": 1, "step": "x"}\')', [], "step is 'x'", ""),
    "a bad stderr": ('print(\'scrimp: {"loss": 1, "stderr": -1}\')', [], "stderr is -1", ""),
    "nothing": (
        "print('done')",
        [],
        "reported nothing; print a line such as scrimp: ..loss.: 0.3.",
        "",
    ),
    "only garbage": (
        "print('scrimp: {x}')",
        [],
        "reported nothing(.|\n)*last remark: ignored: cannot read",
        "",
    ),
    "an exception": (
        "print('x'); 1 / 0",
        [],
        "exited with code 1(.|\n)*ZeroDivisionError: division by zero",
        "x\n",
    ),
    "a signal": (
        "import os; print('scrimp: {\"loss\": 1}'); os.kill(os.getpid(), 9)",
        [1],
        "killed by signal 9 .Killed.",
        "",
    ),
    "early end": ("print('scrimp: {\"loss\": 1}')", [1], "ended by itself before its grant", ""),
    "a line without end": ("print('scrimp: {\"loss\": 1, \"step\": 3}', end='')", [3], "", ""),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_scripts_are_noted_or_fail_and_nothing_else_happens(
    start: Start, tmp_path: Path, kind: str
) -> None:
    code, expected, message, remark = BAD[kind]
    events = run(start(code), [assignment(0, 3.0, tmp_path / "t")])
    assert steps(events) == expected
    ends = [event for event in events if isinstance(event, Ended)]
    assert [end.status for end in ends] == (
        [] if not message else ["completed" if kind == "early end" else "failed"]
    )
    for end in ends:
        assert re.search(message, end.message), end.message
    assert remark in log(tmp_path / "t")


def test_a_stopped_script_ends_and_what_it_still_says_is_ignored(
    start: Start, tmp_path: Path
) -> None:
    code = (
        "import signal, sys, time\n"
        'def late(*_):\n    print(\'scrimp: {"loss": 0, "step": 3}\'); sys.exit(0)\n'
        "signal.signal(signal.SIGTERM, late)\n"
        "print('scrimp: {\"loss\": 1}'); print('scrimp: {\"loss\": 1}'); time.sleep(600)"
    )
    events = run(start(code, grace=600.0), [assignment(0, 9.0, tmp_path / "t")], stop_at=2.0)
    assert steps(events) == [1, 2] and not any(isinstance(event, Ended) for event in events)
    assert "ignored: a report that came after the end" in log(tmp_path / "t")


def test_the_answer_tells_a_script_to_end(start: Start, tmp_path: Path) -> None:
    code = WRITE.replace(".readline()", ".readline() == 'go\\n' or open(folder + '/../told', 'w')")
    code = code.replace(
        "import os", "import os, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    )
    run(start(code), [assignment(0, 9.0, tmp_path / "t")], stop_at=2.0)
    assert (tmp_path / "t-1" / "told").exists()


def test_a_program_that_vanished_fails_its_trial(start: Start, tmp_path: Path) -> None:
    program = tmp_path / "train.sh"
    executor = CommandExecutor(Rules(Command([str(program)]), ("loss",)), environments=[{}])
    (end,) = run(executor, [assignment()])
    executor.close()
    assert isinstance(end, Ended) and "code 127" in end.message and "train.sh" in end.message


def test_a_folder_that_cannot_be_written_fails_no_trial(start: Start, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=f"cannot be written to {tmp_path}/file: File exists"):
        run(start("print(1)"), [assignment(0, 1.0, tmp_path / "file" / "t")])


@pytest.mark.parametrize(
    "words", ["No space left on device", "Read-only file system", "File too large"]
)
def test_a_script_that_dies_of_a_full_disk_fails_no_trial(
    start: Start, tmp_path: Path, words: str
) -> None:
    code = f"raise OSError('[Errno 28] {words}')"
    with pytest.raises(CheckpointError, match=f"cannot be written to {tmp_path}: {words}"):
        run(start(code), [assignment(0, 1.0, tmp_path / "t")])
    (end,) = run(
        start(code), [assignment(0, 1.0)]
    )  # it keeps no checkpoints: this must be about something else
    assert isinstance(end, Ended) and words in end.message


def test_a_log_that_cannot_be_written_fails_no_trial(start: Start, tmp_path: Path) -> None:
    (tmp_path / "t.log").mkdir()  # in the way of the log
    events = run(start("print('scrimp: {\"loss\": 1}')"), [assignment(0, 1.0, tmp_path / "t")])
    assert steps(events) == [1.0] and len(events) == 1


SCRIPTED = """
import sys
from scrimp import script
if script.params()["fails"]:
    sys.exit("as it was told")
for step in script.steps():
    if not script.report(loss=1.0 / step):
        break
"""


class TestCommandExecutor(ExecutorBattery):
    def make(self) -> CommandExecutor:
        command = Command(["{python}", "-c", SCRIPTED])
        return CommandExecutor(Rules(command, ("loss",), grace=1.0), environments=({},))
