"""Programs drive studies with plain JSON; repeated requests count once, and rights hold."""

import json
import urllib.request
from typing import Any

import pytest

import scrimp
from scrimp.explain.replay import replay
from scrimp.storage.http import HttpStorage
from scrimp.study_log.events import SourceAttached
from tests.tools.served import Served

SPACE = {
    "lr": {"type": "float", "low": 1e-5, "high": 0.1, "log": True},
    "kind": {"type": "categorical", "choices": ["a", "b"]},
    "batch": 32,
}


class Program:
    """A program with a token."""

    def __init__(self, server: Served, role: str = "own", prefix: str = "") -> None:
        self._server = server
        self.token = server.token(role, prefix)  # type: ignore[arg-type]

    def post(self, name: str, key: str = "", **body: Any) -> Any:
        headers = {"idempotency-key": key} if key else {}
        return self._server.ask(f"/api/{name}", self.token, {"study": "s", **body}, **headers)

    def get(self, name: str, query: str = "study=s") -> Any:
        return self._server.ask(f"/api/{name}?{query}", self.token)


@pytest.fixture
def own(server: Served) -> Program:
    program = Program(server)
    assert program.post("create", space=SPACE, method="random", seed=0, n_trials=4) == (200, {})
    return program


def test_a_study_from_beginning_to_end(server: Served, own: Program) -> None:
    worker = Program(server, "work")
    values = []
    while (said := worker.post("ask")[1])["state"] == "run":
        (trial,) = said["trials"]
        assert trial["params"]["batch"] == 32 and trial["attempt"] == 1
        values.append(trial["params"]["lr"])
        answer = worker.post("tell", trial=trial["id"], value=values[-1])
        assert answer == (200, {"continue": False, "status": "completed"})
    assert said["state"] == "finished" and said["reason"] and len(values) == 4
    facts = worker.get("study")[1]["facts"]
    assert facts["best"]["value"] == min(values) and facts["trials_in_all"] == 4
    assert len(worker.get("study", "study=s&start=1&count=2")[1]["facts"]["trials"]) == 2
    study = scrimp.load_study("s", storage=HttpStorage(server.url, worker.token))
    assert all(step.same for step in replay(study.history.events))
    assert study.user_attrs["created by"]


def test_budgets_reports_and_the_end_of_a_grant(server: Served) -> None:
    own = Program(server)
    budget = {"name": "epoch", "minimum": 1, "maximum": 9}
    own.post("create", space=SPACE, method="asha", budget=budget, metric="error", seed=1)
    (trial,) = own.post("ask")[1]["trials"]
    assert (trial["done"], trial["budget"]) == (0, 1)
    said = own.post("report", trial=0, step=1, metrics={"error": 0.5, "step": 3.0, "memory": None})
    assert said == (200, {"continue": False, "status": "paused"})
    assert own.post("report", trial=0, step=1, metrics={"error": 0.5})[0] == 400


def test_repeated_requests_count_once(server: Served, own: Program) -> None:
    """A program that lost an answer sends the same request again, also to a server that restarted."""
    first = own.post("ask", key="a")
    assert own.post("ask", key="a") == first and own.post("ask", key="b") != first
    for _ in range(2):
        said = own.post("tell", key="c", trial=0, value=0.5)
        assert said == (200, {"continue": False, "status": "completed"})
    assert own.post("tell", trial=0, value=0.5)[0] == 400
    for _ in range(2):
        assert own.post("enqueue", key="d", params={"lr": 0.01, "kind": "a"})[0] == 200
        advice = {"configs": [{"lr": 0.02, "kind": "a"}], "by": "ann", "why": "a hunch"}
        for _ in range(2):  # a repeated request proposes once
            assert own.post("advise", key="e", **advice)[0] == 200
        assert own.post("create", key="e", study="t", space=SPACE) == (200, {})
    assert own.post("create", study="t", space=SPACE)[0] == 400
    assert own.post("create", study="t", space=SPACE, load_if_exists=True)[0] == 200
    both = own.post("ask", key="f", count=2)
    assert own.post("ask", key="f", count=2) == both
    study = scrimp.load_study("s", storage=HttpStorage(server.url, own.token))
    assert len(study.trials) == 4 and study.history.length == len(study.history.events)
    assert sum(event.__class__.__name__ == "Reported" for event in study.history.events) == 1


def test_a_trial_without_heartbeats_is_handed_out_again(server: Served, own: Program) -> None:
    (trial,) = own.post("ask", lease=0.2)[1]["trials"]
    assert own.post("heartbeat", trial=0, attempt=1, lease=0.2)[1]["continue"]
    own.post("ask", lease=100)
    while True:
        (again,) = own.post("ask", lease=100)[1]["trials"] or [{"id": None}]
        if again["id"] in (0, None):
            break
        own.post("tell", trial=again["id"], value=1.0)
    if again["id"] is None:
        while not (found := own.post("ask", lease=100)[1]["trials"]):
            pass
        (again,) = found
    assert (again["id"], again["attempt"], again["params"]) == (0, 2, trial["params"])
    assert own.post("heartbeat", trial=0, attempt=1)[1] == {
        "continue": False,
        "status": "taken over",
    }
    status, said = own.post("tell", trial=0, attempt=1, value=0.1)
    assert status == 400 and "another program has the trial" in said["message"]
    assert own.post("tell", trial=0, attempt=2, value=0.2)[0] == 200


def test_several_metrics_predictions_and_explanations(server: Served) -> None:
    own = Program(server)
    metrics = {"error": "minimize", "latency": "minimize"}
    own.post("create", space=SPACE, metrics=metrics, method="gp", seed=0)
    for k in range(8):
        (trial,) = own.post("ask")[1]["trials"]
        own.post("tell", trial=trial["id"], metrics={"error": float(k), "latency": 8.0 - k})
    assert len(own.get("front")[1]["facts"]) == 8
    configs = [{"lr": 0.01, "kind": "a", "batch": 32}]
    status, said = own.post("predict", configs=configs)
    assert status == 200 and "error" in json.dumps(said)
    assert "trial" in json.dumps(own.get("explain", "study=s&trial=7")[1])
    assert own.get("explain", "study=s&trial=99")[0] == 400


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("create", {"study": "x", "space": {}}),
        ("create", {"study": "x", "space": {"x": {"type": "float", "low": 2, "high": 1}}}),
        ("create", {"study": "x", "space": {"x": [1, 2]}}),
        ("create", {"study": "x", "space": {f"p{k}": 1 for k in range(501)}}),
        ("create", {"study": "x", "space": SPACE, "method": "os.system"}),
        ("create", {"study": "x", "space": SPACE, "plugins": ["os"]}),
        ("create", {"study": "x\n", "space": SPACE}),
        ("ask", {"count": 0}),
        ("ask", {"count": 10**9}),
        ("ask", {"lease": -1}),
        ("tell", {"trial": 99, "value": 1}),
        ("tell", {"trial": -1, "value": 1}),
        ("tell", {"trial": 0}),
        ("tell", {"trial": 0, "value": "1"}),
        ("tell", {"trial": 0, "value": 1, "state": "won"}),
        ("report", {"trial": 0, "step": 1e308, "metrics": {"value": 1}}),
        ("report", {"trial": 0, "step": 1, "metrics": {f"m{k}": 1 for k in range(201)}}),
        ("enqueue", {"params": {"lr": 9.0}}),
        ("advise", {"configs": [{"lr": 9.0}], "by": "ann"}),
        ("advise", {"configs": [{"lr": 0.1}], "by": " "}),
        ("predict", {"configs": []}),
        ("heartbeat", {"trial": 5}),
    ],
)
def test_nonsense_is_refused_and_changes_nothing(own: Program, name: str, body: Any) -> None:
    own.post("ask")
    before = own.get("study")[1]["facts"]
    status, said = own.post(name, **body)
    assert status in (400, 422) and said["message"]
    assert own.get("study")[1]["facts"] == before and own.get("studies", "")[1]["names"] == ["s"]


def test_rights_hold_for_programs(server: Served, own: Program) -> None:
    worker, reader = Program(server, "work"), Program(server, "read")
    for name, body in [
        ("create", {"study": "x", "space": SPACE}),
        ("enqueue", {"params": {"lr": 0.01, "kind": "a"}}),
        ("advise", {"configs": [{"lr": 0.02, "kind": "a"}], "by": "ann"}),
        ("delete", {}),
    ]:
        assert worker.post(name, **body)[0] == 403 and reader.post(name, **body)[0] == 403
    assert reader.post("ask")[0] == reader.post("tell", trial=0, value=1)[0] == 403
    assert worker.post("ask")[0] == 200 and reader.get("study")[0] == 200
    other = Program(server, "own", "team/")
    assert other.get("studies", "")[1] == {"names": []}
    for name in ("ask", "delete", "enqueue", "advise"):
        assert other.post(name, params={})[0] in (403, 422)
    assert other.post("delete")[0] == other.get("study")[0] == 403
    assert other.post("create", study="team/x", space=SPACE, learn_from=["s"])[0] == 200
    made = scrimp.load_study("team/x", storage=HttpStorage(server.url, other.token)).history
    assert not any(isinstance(event, SourceAttached) for event in made.events)
    assert own.get("studies", "")[1]["names"] == ["s", "team/x"]
    assert own.post("delete")[0] == 200 and own.post("ask")[0] in (400, 404)


def test_a_total_holds_for_workers(server: Served, own: Program) -> None:
    worker = Program(server, "work")
    assert len(worker.post("ask", count=10)[1]["trials"]) == 4
    assert worker.post("ask")[1]["state"] == "wait"


def test_changes_are_streamed(server: Served, own: Program) -> None:
    request = urllib.request.Request(
        f"{server.url}/api/changes?study=s", headers={"authorization": f"Bearer {own.token}"}
    )
    with urllib.request.urlopen(request, timeout=30) as stream:
        lines = iter(stream)
        first = next(line for line in lines if line.startswith(b"data"))
        own.post("ask")
        second = next(line for line in lines if line.startswith(b"data"))
    lengths = [json.loads(line.removeprefix(b"data: "))["length"] for line in (first, second)]
    assert lengths[1] == lengths[0] + 3
    assert server.ask("/api/changes?study=s", server.token("read", "team/"))[0] == 403
    assert server.ask("/api/changes?study=x", own.token)[0] == 404
