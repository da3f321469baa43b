"""A local Ray cluster: reports and answers, pauses through shared checkpoints, actors and nodes
that are lost."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import scrimp
from scrimp.errors import ObjectiveError, StudyError
from scrimp.executors.executor import Assignment
from scrimp.executors.live_trial import Task
from scrimp.executors.ray import RayExecutor, RaySettings
from scrimp.study_log.events import Ended, Event, Lost, Reported
from scrimp.testing.executors import ExecutorBattery, run_script

try:
    import ray
except ImportError:
    ray = None

needs_ray = pytest.mark.skipif(
    ray is None, reason="Ray is not installed: pip install 'scrimp[ray]'"
)
quiet = pytest.mark.filterwarnings("ignore")  # Ray's own deprecations and sockets

SPACE = scrimp.Space(x=scrimp.Float(0, 1))


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.skipif(ray is not None, reason="Ray is installed")
def test_without_ray_the_remedy_is_named() -> None:
    with pytest.raises(ObjectiveError, match=r"scrimp\[ray\]"):
        RayExecutor(Task(lambda trial: 1.0, ("loss",)), settings=RaySettings(), slots=1)


def test_settings_are_checked() -> None:
    with pytest.raises(StudyError, match="its settings: address, cpus, gpus, checkpoints"):
        RaySettings.of({"cpu": 1})
    with pytest.raises(StudyError, match="gpus is -1"):
        RaySettings.of({"gpus": -1})
    settings = RaySettings(cpus=2)
    assert RaySettings.of(settings) is settings
    study = scrimp.create_study("s", SPACE, storage="memory://")
    with pytest.raises(StudyError, match="Ray runs functions"):
        study.optimize(scrimp.Command("echo 1"), n_trials=1, ray={})


@needs_ray
@quiet
def test_reports_are_answered_and_a_stopped_trial_ends(cluster: None) -> None:
    def objective(trial: Any) -> None:
        for _ in trial.steps():
            if not trial.report(trial.params["x"]):
                break

    executor = RayExecutor(Task(objective, ("loss",)), settings=RaySettings(), slots=1)
    executor.start(Assignment(trial=0, config={"x": 0.5}, attempt=1, begin=0, end=10))
    events: list[Event] = []

    def deliver(news: Any) -> None:
        events.extend(news)
        if len(events) == 3:
            executor.stop(0)

    until(lambda: executor.busy == 0, lambda: executor.wait(deliver))
    executor.close()
    assert [event.step for event in events if isinstance(event, Reported)] == [
        1.0,
        2.0,
        3.0,
    ] and len(events) == 3


@needs_ray
@quiet
def test_a_failure_a_death_and_a_time_limit(cluster: None) -> None:
    def objective(trial: Any) -> float:
        if trial.params["x"] == 0:
            raise ValueError("bad luck")
        if trial.params["x"] == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)
        return 1.0

    executor = RayExecutor(
        Task(objective, ("loss",)), settings=RaySettings(), slots=3, time_limit=5.0
    )
    for number in range(3):
        executor.start(Assignment(trial=number, config={"x": number}, attempt=1, begin=0, end=1))
    events: list[Event] = []
    until(lambda: executor.busy == 0, lambda: executor.wait(events.extend))
    executor.close()
    by_trial = {event.trial: event for event in events if isinstance(event, Ended | Lost)}
    assert isinstance(by_trial[0], Ended) and "bad luck" in by_trial[0].message
    assert isinstance(by_trial[1], Lost) and "actor is gone" in by_trial[1].message
    assert isinstance(by_trial[2], Ended) and "time limit" in by_trial[2].message


@needs_ray
@quiet
@pytest.mark.parametrize("shared", [False, True])
def test_a_study_of_many_budgets_with_two_actors_killed(
    cluster: None, tmp_path: Path, shared: bool
) -> None:
    """Four actors, two of them killed: every trial is taken up from its checkpoint, and the totals
    are those of a quiet run."""

    def objective(trial: Any) -> None:
        state = trial.checkpoint_dir / "state"
        done = state.read_text().split() if trial.resumed else []
        for step in trial.steps():
            assert done == [str(number) for number in range(1, step)], f"step {step} got {done}"
            time.sleep(0.05)
            done.append(str(step))
            state.write_text(" ".join(done))
            marker = tmp_path / f"killed-{trial.id}"
            if trial.id in (2, 5) and step == 1 and not marker.exists():
                marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            trial.report(trial.params["x"] / step)

    checkpoints = {"checkpoints": f"file://{tmp_path}/shared"} if shared else {}
    study = scrimp.create_study(
        "s",
        SPACE,
        budget=scrimp.Budget("epoch", 1, 9),
        method="asha",
        storage=f"sqlite:///{tmp_path}/s.db",
        seed=0,
    )
    study.optimize(objective, n_trials=12, workers=4, keep="all", ray=checkpoints)
    history = study.history
    assert len(history.trials) == 12 and history.counts["failed"] == history.counts["running"] == 0
    lost = [event for event in history.events if isinstance(event, Lost)]
    assert len({event.trial for event in lost}) == 2 and history.counts["completed"] >= 1
    assert history.spent == sum(trial.budget for trial in history.trials)
    assert any(trial.attempt > 1 and trial.budget > 1 for trial in history.trials), (
        "paused trials went on"
    )
    places = list((tmp_path / "shared").rglob("*.complete"))
    assert bool(places) == shared
    assert (study.best_checkpoint / "state").read_text().split()[
        -1
    ] == f"{study.best_trial.budget:g}"


@needs_ray
@quiet
def test_a_node_is_lost_with_all_its_actors(tmp_path: Path) -> None:
    """Two nodes beside a head without CPUs; the one that runs trial 0 goes away, and its trials go
    on on the other."""
    script = tmp_path / "driver.py"
    script.write_text(NODES)
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    study = scrimp.load_study("s", storage=f"sqlite:///{tmp_path}/s.db")
    history = study.history
    assert len(history.trials) == history.counts["completed"] == 4 and history.spent == 12
    assert any(isinstance(event, Lost) and event.trial == 0 for event in history.events)


NODES = """
import os, time
import ray
from ray.cluster_utils import Cluster

import scrimp

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
cluster.wait_for_nodes()
ray.init(address=cluster.address, log_to_driver=False)
folder = os.getcwd()


def objective(trial):
    state = trial.checkpoint_dir / "state"
    done = state.read_text().split() if trial.resumed else []
    for step in trial.steps():
        assert done == [str(number) for number in range(1, step)]
        done.append(str(step))
        state.write_text(" ".join(done))
        trial.report(1.0 / step)
        if trial.id == 0 and not os.path.exists(f"{folder}/node"):
            with open(f"{folder}/node.part", "w") as file:
                file.write(ray.get_runtime_context().get_node_id())
            os.rename(f"{folder}/node.part", f"{folder}/node")
            time.sleep(120)


def lose(study, trial):
    if nodes and os.path.exists(f"{folder}/node"):
        lost = open(f"{folder}/node").read()
        for node in nodes:
            if node.node_id == lost:
                cluster.remove_node(node, allow_graceful=False)
        nodes.clear()


study = scrimp.create_study(
    "s",
    scrimp.Space(x=scrimp.Float(0, 1)),
    budget=scrimp.Budget("epoch", 3, 3),
    method="random",
    storage=f"sqlite:///{folder}/s.db",
    seed=0,
)
study.optimize(
    objective, n_trials=4, workers=2, callbacks=[lose], ray={"checkpoints": f"file://{folder}/shared"}, progress=False
)
ray.shutdown()
cluster.shutdown()
"""


def until(condition: Any, action: Any) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline
        action()


@needs_ray
@quiet
@pytest.mark.usefixtures("cluster")
class TestRayExecutor(ExecutorBattery):
    def make(self) -> RayExecutor:
        return RayExecutor(Task(run_script, ("loss",)), settings=RaySettings(), slots=1)
