"""A history is a value: however it was reached, the same events give the same answers, now and
later."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.space.parameter import Float
from scrimp.space.space import Space
from scrimp.study_log.constraints import AtMost
from scrimp.study_log.decision_record import DecisionRecord
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Ended,
    Enqueued,
    Event,
    Lost,
    Reported,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.fold import Fold
from scrimp.study_log.history import History
from scrimp.study_log.limits import Totals
from scrimp.study_log.problem import Budget, Problem
from scrimp.study_log.trial import Trial

PROBLEM = Problem(
    Space(x=Float(0, 1)),
    budget=Budget("epoch", 1, 9),
    constraints={"memory": AtMost(2)},
    seed=3,
    metrics={"value": "maximize"},
)
FIRST = StudyCreated(name="s", problem=PROBLEM.to_json(), method={"name": "random"})


@dataclass(frozen=True)
class Tally(Fold[dict[str, Any]]):
    """What a policy might keep: a table of rungs and the path each trial took."""

    rung: float = 3.0

    def begin(self, problem: Problem) -> dict[str, Any]:
        return {"metric": problem.metric, "reached": {}, "paths": {}, "events": 0}

    def step(
        self, state: dict[str, Any], event: Event, before: Trial | None, trial: Trial | None
    ) -> None:
        state["events"] += 1
        if trial is None:
            return
        if before is None or before.status != trial.status:
            state["paths"].setdefault(trial.id, []).append(trial.status)
        if trial.budget >= self.rung and (before is None or before.budget < self.rung):
            state["reached"][trial.id] = trial.loss


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """Any order of events about trials that exist, sensible or not."""
    events: list[Event] = [FIRST]
    trials = decisions = 0
    for _ in range(draw(st.integers(0, 25))):
        kind = draw(
            st.sampled_from(
                [
                    "add",
                    "grant",
                    "report",
                    "report",
                    "report",
                    "end",
                    "lose",
                    "note",
                    "queue",
                    "total",
                ]
            )
        )
        time = draw(st.integers(0, 5)) * 1.0
        trial = draw(st.integers(0, trials - 1)) if trials else None
        attempt = draw(st.integers(1, 3))
        if kind == "add" or (trial is None and kind in ("grant", "report", "end", "lose")):
            events.append(
                TrialAdded(trial=trials, config={"x": 0.5}, enqueued=draw(st.booleans()), time=time)
            )
            trials += 1
        elif kind == "note":
            events.append(
                Decided(
                    decision=decisions,
                    seen=len(events),
                    record=DecisionRecord(own={"k": draw(st.integers(0, 3))}),
                )
            )
            decisions += 1
        elif kind == "queue":
            events.append(Enqueued(config={"x": draw(st.floats(0, 1))}))
        elif kind == "total":
            events.append(StudyChanged(totals=Totals(n_trials=draw(st.integers(1, 9))), time=time))
        elif trial is not None:
            events.append(about(draw, kind, trial, attempt, time))
    return events


def about(draw: st.DrawFn, kind: str, trial: int, attempt: int, time: float) -> Event:
    if kind == "grant":
        return BudgetGranted(
            trial=trial, budget=draw(st.sampled_from([1.0, 3.0, 9.0])), attempt=attempt, time=time
        )
    if kind == "end":
        return Ended(
            trial=trial,
            status=draw(st.sampled_from(["completed", "stopped", "failed"])),
            attempt=attempt,
        )
    if kind == "lose":
        return Lost(trial=trial, attempt=attempt, message="gone")
    metrics = {
        "value": draw(st.none() | st.integers(0, 5).map(float)),
        "memory": draw(st.none() | st.integers(0, 4).map(float)),
    }
    return Reported(
        trial=trial,
        step=float(draw(st.integers(1, 9))),
        metrics=metrics,
        attempt=attempt,
        time=time,
    )


def answers(history: History) -> dict[str, Any]:
    """Everything a history can be asked."""
    best = history.best
    return {
        "length": history.length,
        "events": list(history.events),
        "trials": list(history.trials),
        "counts": history.counts,
        "by status": {status: history.with_status(status) for status in history.counts},
        "queue": list(history.queue),
        "decisions": history.decisions,
        "note": history.recorded.own.get("k"),
        "degraded": list(history.degraded),
        "spent": history.spent,
        "time": history.time,
        "best": best,
        "limits": history.limits,
        "method": dict(history.method),
        "problem": history.problem,
        "created": history.created,
        "random": history.rng("suggest").random(),
    }


@settings(max_examples=50)
@given(logs(), st.data())
def test_step_by_step_equals_at_once(events: list[Event], data: st.DataObject) -> None:
    history = History.of(events[:1])
    place = 1
    while place < len(events):
        size = data.draw(st.integers(1, 4))
        history = history.with_events(events[place : place + size])
        place += size
    assert answers(history) == answers(History.of(events))


@settings(max_examples=50)
@given(logs(), st.data())
def test_old_versions_still_answer(events: list[Event], data: st.DataObject) -> None:
    versions = [History.of(events[:1])]
    for event in events[1:]:
        versions.append(versions[-1].with_events([event]))
        if data.draw(st.booleans()):
            versions[-1].derive(Tally())
    order = data.draw(st.permutations(range(len(versions))))
    for index in order:
        fresh = History.of(events[: index + 1])
        assert answers(versions[index]) == answers(fresh)
        assert versions[index].derive(Tally()) == fresh.derive(Tally())


@settings(max_examples=50)
@given(logs(), logs(), st.data())
def test_branches_do_not_disturb_each_other(
    events: list[Event], others: list[Event], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(1, len(events)))
    trunk = History.of(events[:cut])
    record: list[Event] = [event for event in others if isinstance(event, Decided | Enqueued)]
    one = trunk.with_events(events[cut:])
    other = trunk.with_events(record)
    third = other.with_events(record)
    for history, log in (
        (one, events),
        (other, events[:cut] + record),
        (trunk, events[:cut]),
        (third, events[:cut] + 2 * record),
    ):
        assert answers(history) == answers(History.of(log))


@settings(max_examples=50)
@given(logs(), st.data())
def test_derived_state_equals_a_fresh_one(events: list[Event], data: st.DataObject) -> None:
    begin = data.draw(st.integers(1, len(events)))
    history = History.of(events[:begin])
    history.derive(Tally())
    for event in events[begin:]:
        history = history.with_events([event])
    assert history.derive(Tally()) == History.of(events).derive(Tally())
    assert history.derive(Tally(1.0)) == History.of(events).derive(Tally(1.0))
    assert history.derive(Tally())["events"] == len(events) - 1


@given(logs())
def test_answers_agree_with_the_trials(events: list[Event]) -> None:
    """Counts, spending and best, computed the slow way."""
    history = History.of(events)
    for status, count in history.counts.items():
        assert count == sum(trial.status == status for trial in history.trials)
        assert {trial.id for trial in history.with_status(status)} == {
            t.id for t in history.trials if t.status == status
        }
    assert history.spent == sum(trial.budget for trial in history.trials)
    feasible = [
        point.loss
        for trial in history.trials
        for point in trial.curve
        if point.loss is not None and point.metrics["memory"] in (0.0, 1.0, 2.0)
    ]
    assert (history.best is None) == (not feasible)
    if history.best is not None:
        trial, point = history.best
        assert point.loss == min(feasible) and point in trial.curve
    for trial in history.trials:
        steps = [point.step for point in trial.curve]
        assert steps == sorted(set(steps))
        assert trial.value == (
            None if not trial.curve or trial.curve[-1].loss is None else -trial.curve[-1].loss
        )
        if trial.status == "completed" and not any(
            isinstance(e, Ended) and e.trial == trial.id for e in events
        ):
            assert trial.budget == 9


@settings(max_examples=30)
@given(logs(), st.data())
def test_a_bad_event_leaves_the_history_as_it_was(events: list[Event], data: st.DataObject) -> None:
    history = History.of(events)
    good = data.draw(st.integers(0, 2))
    with pytest.raises(Exception, match="never added"):
        history.with_events([*([Enqueued(config={})] * good), Lost(trial=999)])
    assert answers(history) == answers(History.of(events))
    assert answers(history.with_events([Enqueued(config={})])) == answers(
        History.of([*events, Enqueued(config={})])
    )


def draws(history: History, purpose: str) -> list[float]:
    return list(history.rng(purpose).random(4))


def test_generators_depend_on_seed_decisions_and_purpose_only() -> None:
    history = History.of([FIRST])
    assert draws(history, "a") == draws(history, "a") == draws(History.of([FIRST]), "a")
    more = history.with_events(
        [TrialAdded(trial=0, config={"x": 0.5}), Enqueued(config={"x": 1.0})]
    )
    assert draws(more, "a") == draws(history, "a")
    variants: list[Callable[[], list[float]]] = [
        lambda: draws(history, "a"),
        lambda: draws(history, "b"),
        lambda: draws(history.with_events([Decided(decision=0, seen=1)]), "a"),
        lambda: draws(history.with_events([Decided(decision=1, seen=1)]), "a"),
        lambda: draws(
            History.of(
                [
                    StudyCreated(
                        name="s", problem=Problem(PROBLEM.space, seed=4).to_json(), method={}
                    )
                ]
            ),
            "a",
        ),
    ]
    assert len({tuple(variant()) for variant in variants}) == len(variants)


def test_generators_are_independent() -> None:
    """1,000 decisions x 2 purposes: correlations of the first draws stay within 4 standard
    errors."""
    firsts, seconds = [], []
    for decision in range(1000):
        history = History.of([FIRST, Decided(decision=decision, seen=1)])
        firsts.append(history.rng("suggest").random())
        seconds.append(history.rng("schedule").random())
    bound = 4 / np.sqrt(1000)
    assert abs(np.corrcoef(firsts, seconds)[0, 1]) < bound
    assert abs(np.corrcoef(firsts[:-1], firsts[1:])[0, 1]) < bound
    assert abs(np.mean(firsts) - 0.5) < 4 * np.sqrt(1 / 12 / 1000)


def test_a_step_costs_the_same_however_long_the_log() -> None:
    """Work is counted, not timed: one event more touches one event, with a derived fold and with
    old trials."""
    seen = []

    @dataclass(frozen=True)
    class Counting(Fold[list[int]]):
        def begin(self, problem: Problem) -> list[int]:
            return []

        def step(
            self, state: list[int], event: Event, before: Trial | None, trial: Trial | None
        ) -> None:
            seen.append(event)

    history = History.of(
        [FIRST, *(TrialAdded(trial=number, config={"x": 0.5}) for number in range(1000))]
    )
    history.derive(Counting())
    seen.clear()
    longer = history.with_events([Enqueued(config={})])
    longer.derive(Counting())
    assert longer.counts["paused"] == 1000 and len(seen) == 1


def test_a_fold_of_some_kinds_gets_those_alone_whenever_it_begins() -> None:
    @dataclass(frozen=True)
    class Configs(Fold[list[Event]]):
        kinds = (TrialAdded, StudyChanged)

        def begin(self, problem: Problem) -> list[Event]:
            return []

        def step(
            self, state: list[Event], event: Event, before: Trial | None, trial: Trial | None
        ) -> None:
            assert before is None and trial is None
            state.append(event)

    log: list[Event] = [
        TrialAdded(trial=0, config={"x": 0.5}),
        BudgetGranted(trial=0, budget=1.0),
        StudyChanged(totals=Totals(n_trials=3)),
        Decided(decision=0, seen=1),
        TrialAdded(trial=1, config={"x": 0.25}),
    ]
    for begin in range(len(log) + 1):
        history = History.of([FIRST, *log[:begin]])
        assert history.derive(Configs()) == [
            event for event in log[:begin] if isinstance(event, Configs.kinds)
        ]
        longer = history.with_events(log[begin:])
        assert longer.derive(Configs()) == [log[0], log[2], log[4]]
        assert history.derive(Configs()) == [
            event for event in log[:begin] if isinstance(event, Configs.kinds)
        ]


def test_every_study_has_an_identity_of_its_own() -> None:
    def created(**more: object) -> StudyCreated:
        return StudyCreated(name="s", problem=PROBLEM.to_json(), method={"name": "random"}, **more)  # type: ignore[arg-type]

    assert History.of([created(identity="drawn")]).identity == "drawn"
    for planted in ("/../../o", "a/b", "..", "C:", "x' OR '1'='1", "a" * 65, "é"):
        found = History.of([created(identity=planted)]).identity
        assert found.isalnum() and found.isascii() and len(found) == 32
    first, later = (
        History.of([created(time=1.0)]).identity,
        History.of([created(time=2.0)]).identity,
    )
    assert len(first) == 32 and first != later, "logs of before: the first event tells them apart"
    assert History.of([created(time=1.0)]).identity == first


def test_what_is_remembered_lasts_until_the_history_grows() -> None:
    history = History.of([FIRST, TrialAdded(trial=0, config={"x": 0.5})])
    counts = [history.remember("count", lambda: len(history.trials)) for _ in range(2)]
    longer = history.with_events([TrialAdded(trial=1, config={"x": 0.6})])
    assert counts == [1, 1]
    assert longer.remember("count", lambda: len(longer.trials)) == 2
    assert history.remember("count", lambda: len(history.trials)) == 1
