"""Scripts end: at their time limit, with their children, their parent and the executor."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from scrimp.study_log.events import Ended, Event, Reported
from tests.executors.conftest import Start, alive, gone
from tests.executors.test_command import assignment, run, steps


def test_the_time_limit_ends_politely_then_firmly_with_all_children(
    start: Start, tmp_path: Path
) -> None:
    """The script ignores SIGTERM, and so does a child of it in a session of its own."""
    code = (
        "import os, signal, subprocess, sys, time\nsignal.signal(signal.SIGTERM,"
        " signal.SIG_IGN)\nchild = subprocess.Popen([sys.executable, '-I', '-S', '-c', 'import"
        " time; time.sleep(600)'], start_new_session=True)\nprint('scrimp: {\"loss\": %d}' %"
        " child.pid); time.sleep(600)"
    )
    executor = start(code, time_limit=1.5, grace=0.3)
    report, end = run(executor, [assignment(0, 9.0)])
    assert isinstance(report, Reported) and isinstance(end, Ended)
    assert end.status == "failed" and "time limit of 1.5 s" in end.message
    assert gone(int(report.metrics["loss"] or 0))


def test_what_a_script_leaves_running_ends_with_it(start: Start) -> None:
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-I', '-S', '-c', 'while True: print(1)'])\n"
        "print('scrimp: {\"loss\": %d}' % child.pid)"
    )
    report = run(start(code), [assignment()])[0]
    assert isinstance(report, Reported) and gone(int(report.metrics["loss"] or 0))


def test_a_script_that_outstays_its_grant_is_ended(start: Start) -> None:
    events = run(
        start("print('scrimp: {\"loss\": 1}'); import time; time.sleep(600)", grace=0.3),
        [assignment()],
    )
    assert steps(events) == [1] and len(events) == 1


def test_closing_ends_everything_at_once_and_twice_is_fine(start: Start) -> None:
    code = "import os; print('scrimp: {\"loss\": %d}' % os.getpid()); import time; time.sleep(600)"
    executor = start(code, ({}, {}))
    pids: list[int] = []

    def deliver(events: Sequence[Event]) -> None:
        pids.extend(
            int(event.metrics["loss"] or 0) for event in events if isinstance(event, Reported)
        )

    executor.start(assignment(0, 9.0))
    executor.start(assignment(1, 9.0))
    while len(pids) < 2:
        executor.wait(deliver)
    executor.close()
    executor.close()
    assert executor.busy == 0 and not any(alive(pid) for pid in pids)


def test_scripts_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    """Killed outright, the parent leaves neither the script nor a child that left its group."""
    code = (
        "import os, subprocess, sys, time\nchild = subprocess.Popen([sys.executable, '-I', '-S',"
        " '-c', 'import time; time.sleep(600)'], start_new_session=True)\nprint('scrimp:"
        ' {{"loss": %d, "child": %d}}\' % (os.getpid(), child.pid)); time.sleep(600)'
    )
    parent_script = tmp_path / "parent.py"
    parent_script.write_text(
        "from scrimp.executors.command import CommandExecutor, Rules\nfrom scrimp.executors.command_line"
        " import Command\nfrom scrimp.executors.executor import Assignment\nexecutor ="
        f" CommandExecutor(Rules(Command(['{{python}}', '-I', '-S', '-u', '-c', {code!r}]), ('loss',)),"
        " environments=[{}])\nexecutor.start(Assignment(0, {}, 1, 0.0, 9.0))\ndef"
        " deliver(events):\n    metrics = events[0].metrics\n    print(int(metrics['loss']),"
        " int(metrics['child']), executor._guard.pid, flush=True)\nwhile True:\n   "
        " executor.wait(deliver)\n"
    )
    with subprocess.Popen(
        [sys.executable, str(parent_script)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 3 and all(alive(pid) for pid in pids)
        parent.kill()
    assert gone(*pids)


def test_a_guard_that_is_killed_is_replaced_and_told_of_what_runs(start: Start) -> None:
    executor = start("print('scrimp: {\"loss\": 1}'); import time; time.sleep(600)")
    heard: list[Event] = []
    executor.start(assignment(0, 9.0))
    while not heard:
        executor.wait(heard.extend)
    first = executor._guard
    assert first is not None and len(executor._trees) == 1
    first.kill()
    first.wait()
    executor.wait(heard.extend)
    second = executor._guard
    assert second is not None and second is not first and second.poll() is None
    (keeper,) = [keeper for keeper, _ in executor._trees]
    executor.close()
    assert second.returncode == 0 and not alive(keeper) and executor._trees == {}
