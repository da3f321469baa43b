"""Freeze-thaw as a policy: the contract, resuming, pools and mixed spaces, and that it beats ASHA
where it should."""

import math
import re
import sys
from itertools import pairwise
from pathlib import Path
from types import FrameType

import numpy as np
import pytest

from scrimp.errors import MethodError, NumericalError
from scrimp.executors.simulated import Curve, Delays, Simulated, SimulatedCurves
from scrimp.freeze_thaw import freeze_thaw, scouts
from scrimp.freeze_thaw.curve_rows import CurveTable
from scrimp.freeze_thaw.freeze_thaw import FreezeThaw
from scrimp.json_values import Config
from scrimp.methods.policy import Policy, Scheduled, Start
from scrimp.schedulers.asynchronous import AsynchronousHalving
from scrimp.schedulers.scheduler import Resume
from scrimp.space.parameter import Categorical, Float, Int
from scrimp.space.space import Pool, Space
from scrimp.storage.event_json import decode, encode
from scrimp.storage.memory import MemoryStorage
from scrimp.study.decisions import checked_record
from scrimp.study.ledger import Ledger
from scrimp.study.stopping import MaxSeconds
from scrimp.study.tuner import Tuner, TunerSettings
from scrimp.study_log.decision_record import (
    AheadOfHalf,
    FirstDesign,
    Gain,
    Horizon,
    LeadsItsLevel,
    Modelled,
    Race,
    Scouted,
)
from scrimp.study_log.events import (
    BudgetGranted,
    Decided,
    Event,
    Reported,
    StudyChanged,
    StudyCreated,
    TrialAdded,
)
from scrimp.study_log.history import History
from scrimp.study_log.limits import Totals
from scrimp.study_log.problem import Budget, Problem
from scrimp.suggesters.suggester import ForecastPoints
from scrimp.suggesters.untried_configs import RandomSuggester
from scrimp.testing.policies import PolicyBattery
from tests.syntax_trees import ROOT

MIXED = Space(
    lr=Float(1e-4, 1e-1, log=True),
    layers=Int(1, 4),
    optimizer=Categorical(["adam", "sgd"]),
    momentum=Float(0.0, 0.99, when={"optimizer": "sgd"}),
)

LEVELS = tuple(float(level) for level in range(1, 28))


class TestFreezeThaw(PolicyBattery):
    def policy(self) -> Policy:
        return FreezeThaw()


class Runs(SimulatedCurves):
    """Power laws whose end, start and speed depend on the configuration; some diverge, some stay
    where they are."""

    def __init__(self, seed: int = 0, plateau: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.best_lr, self.best_layers, self.plateau = (
            rng.uniform(-3.0, -2.0),
            int(rng.integers(1, 5)),
            plateau,
        )

    @property
    def levels(self) -> tuple[float, ...]:
        return LEVELS

    def curve(self, config: Config) -> Curve:
        off = abs(math.log10(config["lr"]) - self.best_lr) + 0.15 * abs(
            config["layers"] - self.best_layers
        )
        off += 0.2 * (config["optimizer"] == "adam") + 0.3 * abs(config.get("momentum", 0.9) - 0.9)
        end, speed = 0.1 + 0.3 * off, 0.4 + 0.4 / (1.0 + off)
        values = [end + (0.9 - 0.2 * off) * level**-speed for level in LEVELS]
        if config["lr"] > 0.05:
            values[3:] = [math.nan] * (len(values) - 3)
        if self.plateau and off > 1.3:
            values = [0.69] * len(values)
        return Curve(tuple(values), (1.0,) * len(values))


class Basin(SimulatedCurves):
    """A wide basin of runs that end alike and fall until then."""

    @property
    def levels(self) -> tuple[float, ...]:
        return LEVELS

    def curve(self, config: Config) -> Curve:
        end = 0.3 + max(abs(config["x"] - 0.3) - 0.15, 0.0)
        return Curve(
            tuple(end + 0.5 * (1.0 + 0.1 * config["x"]) / level for level in LEVELS),
            (1.0,) * len(LEVELS),
        )


class Plateau(SimulatedCurves):
    """Runs that all stay where they are."""

    @property
    def levels(self) -> tuple[float, ...]:
        return LEVELS

    def curve(self, config: Config) -> Curve:
        return Curve((0.5,) * len(LEVELS), (1.0,) * len(LEVELS))


def played(
    policy: Policy, source: SimulatedCurves, space: Space, limit: float, seed: int = 0
) -> History:
    problem = Problem(
        space, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, LEVELS[-1]), seed=seed
    )
    created = StudyCreated(name="play", problem=problem.to_json(), method={})
    executor = Simulated(source, "loss", 4, Delays(limit=limit))
    first = [created, StudyChanged(totals=Totals(timeout=limit))]
    ledger = Ledger(MemoryStorage().create("play", first), executor.clock)
    Tuner(ledger, policy, executor, TunerSettings(stop=MaxSeconds(limit), leases=False)).run()
    return ledger.history


def pool_of(count: int) -> Pool:
    return Pool(MIXED, MIXED.sample(count, np.random.default_rng(0)))


@pytest.mark.parametrize("space", [MIXED, pool_of(150)], ids=["mixed", "pool"])
def test_every_decision_is_the_same_when_the_log_is_read_again(space: Space) -> None:
    """Resume equals uninterrupted: hyperparameters and pools come from the log, the factor is
    built again."""
    history = played(FreezeThaw(), Runs(), space, limit=40.0)
    events = list(history.events)
    noted = [place for place, event in enumerate(events) if type(event).__name__ == "Decided"]
    assert len(noted) > 30
    for place in noted[5::9]:
        before: list[Event] = decode(encode(events[:place]), "play")
        again = History.of(before)
        decision = FreezeThaw().decide(again, again.rng("decide"))
        assert checked_record(decision.record, "", 0) == events[place].record
        added = events[place + 1]
        match decision.action:
            case Start():
                assert added.config == decision.action.config
            case Resume():
                assert (added.trial, added.budget) == (
                    decision.action.trial,
                    decision.action.budget,
                )


def test_an_exhausted_pool_is_trained_to_the_end() -> None:
    pool = pool_of(6)
    history = played(FreezeThaw(), Runs(), pool, limit=1000.0)
    assert len(history.trials) == 6
    assert all(trial.finished for trial in history.trials)


def test_records_say_what_was_believed() -> None:
    history = played(FreezeThaw(), Runs(), pool_of(150), limit=40.0)
    noted = [event.record.reason for event in history.events if isinstance(event, Decided)]
    modelled = [reason for reason in noted if isinstance(reason, Modelled)]
    assert {type(reason.question) for reason in modelled} == {Race, Horizon}
    late = next(reason for reason in reversed(modelled) if isinstance(reason.question, Horizon))
    assert late.expected.low <= late.expected.loss <= late.expected.high
    assert 0.1 < late.question.threshold < 0.9 and 1 <= late.question.length <= 27
    assert len(late.rivals) == 3
    assert not history.degraded


def test_a_continuous_space_asks_of_all_candidates_how_much_they_will_gain() -> None:
    """New configurations begin with a first slice, of 1 unit of 27."""
    history = played(FreezeThaw(), Runs(), MIXED, limit=40.0)
    granted = [event for event in history.events if type(event).__name__ == "BudgetGranted"]
    first = {event.trial: event.budget for event in reversed(granted)}
    assert set(first.values()) == {1.0}
    reasons = [event.record.reason for event in history.events if isinstance(event, Decided)]
    asked = [reason.question for reason in reasons if isinstance(reason, Modelled)]
    late = next(question for question in reversed(asked) if isinstance(question, Gain))
    assert late.best is not None and 0.1 < late.best < 0.9 and 1 <= late.length <= 27


def test_a_continuous_space_sends_scouts_where_copies_gather(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Young trials beside the best do not share its value: the plateau alone calls for hardly any."""

    space = Space(x=Float(0.0, 1.0))

    def sent(seed: int) -> int:
        history = played(FreezeThaw(), Basin(), space, limit=25.0, seed=seed)
        reasons = [event.record.reason for event in history.events if isinstance(event, Decided)]
        return sum(isinstance(reason, Scouted) for reason in reasons)

    by_copies = sum(map(sent, range(3)))
    monkeypatch.setattr(scouts, "copies_probability", lambda behind: 0.0)
    by_plateau = sum(map(sent, range(3)))
    assert by_copies > by_plateau + 2


def test_scouts_that_are_stuck_on_a_plateau_get_no_more_training() -> None:
    history = played(FreezeThaw(), Plateau(), MIXED, limit=60.0)
    continued = [
        (place, after.trial)
        for place, (event, after) in enumerate(pairwise(history.events))
        if isinstance(event, Decided) and isinstance(event.record.reason, AheadOfHalf)
        if isinstance(after, BudgetGranted)
    ]
    assert continued
    for place, trial in continued:
        rows = History.of(history.events[:place]).derive(CurveTable())
        assert trial not in scouts.stuck_trials(rows, 0.0)


@pytest.mark.parametrize("full", [27, 9])
def test_the_first_design_of_a_continuous_space(full: int) -> None:
    """Three configurations for each parameter, however long first slices are."""
    space = Space(x=Float(0.0, 1.0), y=Float(0.0, 1.0), z=Float(0.0, 1.0))
    problem = Problem(space, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, full))
    created = StudyCreated(name="first", problem=problem.to_json(), method={})
    executor = Simulated(Basin(), "loss", 1, Delays(limit=100.0 * full))
    ledger = Ledger(MemoryStorage().create("first", [created]), executor.clock)
    Tuner(ledger, FreezeThaw(), executor, TunerSettings(stop=MaxSeconds(40.0), leases=False)).run()
    noted = [event.record.reason for event in ledger.history.events if isinstance(event, Decided)]
    assert sum(isinstance(reason, FirstDesign) for reason in noted) == 3 * len(space)


def test_leaders_continue_while_the_first_design_grows() -> None:
    """From the fourth configuration on; each had the lowest loss of its level when it continued."""
    history = played(FreezeThaw(), Runs(), MIXED, limit=20.0)
    decided = [event for event in history.events if isinstance(event, Decided)]
    kinds = [type(event.record.reason) for event in decided]
    first = kinds.index(LeadsItsLevel)
    assert first >= 4 and FirstDesign in kinds[first:]
    for place, event in enumerate(history.events):
        if isinstance(event, Decided) and isinstance(event.record.reason, LeadsItsLevel):
            rows = History.of(history.events[:place]).derive(CurveTable())
            (granted,) = (
                e for e in history.events[place : place + 2] if isinstance(e, BudgetGranted)
            )
            reached = rows.last_step[granted.trial]
            losses = [
                loss for step, loss in zip(rows.step, rows.standing, strict=True) if step == reached
            ]
            assert rows.lowest[granted.trial] == min(losses) and granted.budget <= 8.0


def test_of_equal_leaders_one_continues() -> None:
    history = played(FreezeThaw(), Plateau(), MIXED, limit=20.0)
    continued = {
        after.trial
        for event, after in pairwise(history.events)
        if isinstance(event, Decided) and isinstance(event.record.reason, LeadsItsLevel)
        if isinstance(after, BudgetGranted)
    }
    assert len(continued) == 1


def test_forecasts_narrow_towards_what_was_seen() -> None:
    history = played(FreezeThaw(), Runs(), pool_of(150), limit=40.0)
    rng = np.random.default_rng(0)
    seen = max(history.trials, key=lambda trial: (trial.budget < 27, trial.budget))
    points = ForecastPoints([seen.config] * 2, np.array([seen.budget, 27.0]))
    (column,) = FreezeThaw().forecast(history, points, rng)
    low, high = column.band(2.0)
    assert low[0] <= min(point.loss for point in seen.curve) + 0.05
    assert high[0] - low[0] <= high[1] - low[1]
    nothing = History.of(history.events[:2])
    assert FreezeThaw().forecast(nothing, points, rng) == ()


def test_there_is_no_forecast_before_the_first_row() -> None:
    """In a continuous space a report within the first slice is the best one, and gives no row."""
    problem = Problem(MIXED, metrics={"loss": "minimize"}, budget=Budget("epoch", 1, 100))
    (config,) = MIXED.sample(1, np.random.default_rng(0))
    history = History.of(
        [
            StudyCreated(name="early", problem=problem.to_json(), method={}),
            TrialAdded(trial=0, config=config),
            BudgetGranted(trial=0, budget=2),
            Reported(trial=0, step=1, metrics={"loss": 0.5}),
        ]
    )
    assert history.best is not None
    points = ForecastPoints([config], np.array([100.0]))
    assert FreezeThaw().forecast(history, points, np.random.default_rng(0)) == ()


def test_a_failing_model_is_replaced_openly(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise NumericalError("no factor")

    monkeypatch.setattr(freeze_thaw, "model_study", fails)
    history = played(FreezeThaw(), Runs(), MIXED, limit=40.0)
    assert len(history.degraded) > 30 and "successive halving" in history.degraded[0][1]
    assert max(trial.budget for trial in history.trials) >= 13


def test_settings_are_checked() -> None:
    with pytest.raises(MethodError, match="initial is 0"):
        FreezeThaw(initial=0)
    with pytest.raises(MethodError, match="race is 2"):
        FreezeThaw(race=2.0)


def test_a_decision_calls_its_steps_in_the_order_of_the_architecture_page() -> None:
    """The walkthrough of ARCHITECTURE.md, traced on a decision that fits, draws and nominates."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    way = text.split("**A freeze-thaw decision**")[1].split("\n**")[0]
    hops = re.findall(r"^\d+\. `(freeze_thaw/\w+\.py)` `([\w.]+)`", way, re.M)
    assert len(hops) == 14
    history = played(FreezeThaw(), Runs(), MIXED, limit=40.0)
    places = [place for place, event in enumerate(history.events) if isinstance(event, Decided)]
    noted = [place for place in places if history.events[place].record.curves is not None]
    fits = [history.events[place].record.curves.fits for place in noted]
    modelled = [
        place
        for place, last, fit in zip(noted[1:], fits, fits[1:], strict=False)
        if isinstance(history.events[place].record.reason, Modelled) and fit != last
    ]
    before = History.of(history.events[: modelled[-1]])
    rng, called = before.rng("decide"), {}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            file = Path(frame.f_code.co_filename)
            name = f"{file.parent.name}/{file.name}", frame.f_code.co_qualname
            called.setdefault(name, len(called))

    sys.setprofile(note)
    try:
        FreezeThaw().decide(before, rng)
    finally:
        sys.setprofile(None)
    order = [called.get(hop, -1) for hop in hops]
    assert -1 not in order, [hop for hop in hops if hop not in called]
    assert order == sorted(order)


def excess(policy: Policy, plateau: bool, seeds: range) -> float:
    """The mean over families of the best loss found, less the best of 4,000 random configurations
    trained to the end."""
    found = []
    for seed in seeds:
        source = Runs(seed, plateau)
        history = played(policy, source, MIXED, limit=67.5, seed=seed)
        assert history.best is not None and history.best[1].loss is not None
        possible = [
            source.curve(config).values[-1]
            for config in MIXED.sample(4000, np.random.default_rng(seed))
        ]
        found.append(history.best[1].loss - np.nanmin(possible))
    return float(np.mean(found))


@pytest.mark.parametrize("plateau", [False, True])
def test_beats_asha_on_power_laws(plateau: bool) -> None:
    """5 families, 4 workers, 10 full trainings, with and without a plateau below all beginnings: at
    most 0.6 x ASHA's excess."""
    asha = Scheduled(AsynchronousHalving(), RandomSuggester())
    assert excess(FreezeThaw(), plateau, range(5)) < 0.6 * excess(asha, plateau, range(5))
