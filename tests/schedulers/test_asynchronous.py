"""ASHA by promotion and by stopping, and asynchronous Hyperband."""

import math
import time
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scrimp.errors import MethodError
from scrimp.executors.simulated import Curve, Simulated, SimulatedCurves
from scrimp.methods.policy import Policy, Scheduled
from scrimp.schedulers.asynchronous import BRACKET_SPENDING, AsynchronousHalving, turn_of
from scrimp.schedulers.rungs import bracket_law, geometric_levels
from scrimp.schedulers.scheduler import Finish, Resume, Sample, Scheduler, Verdict, Wait
from scrimp.schedulers.synchronous import SynchronousHalving
from scrimp.storage.memory import MemoryStorage
from scrimp.study.ledger import Ledger
from scrimp.study.tuner import Tuner, TunerSettings
from scrimp.study_log.decision_record import InBracket, Promoted
from scrimp.study_log.events import StudyChanged, StudyCreated
from scrimp.study_log.limits import Totals
from scrimp.testing.policies import SchedulerBattery, UniformSuggester, World, play


class TestPromotion(SchedulerBattery):
    def scheduler(self) -> Scheduler:
        return AsynchronousHalving()


class TestPublished(SchedulerBattery):
    def scheduler(self) -> Scheduler:
        return AsynchronousHalving(cutoff="top")


class TestDelayed(SchedulerBattery):
    def scheduler(self) -> Scheduler:
        return AsynchronousHalving(cutoff="delayed")


class TestFullRungs(SchedulerBattery):
    def scheduler(self) -> Scheduler:
        return AsynchronousHalving(cutoff="delayed", full_rungs=True)


class TestInTurn(SchedulerBattery):
    def scheduler(self) -> Scheduler:
        return AsynchronousHalving(brackets=None, bracket_rule="in-turn", cutoff="top")


class TestInTurnStopping(SchedulerBattery):
    def scheduler(self) -> Scheduler:
        return AsynchronousHalving(type="stopping", brackets=2, bracket_rule="in-turn")


def test_a_rung_promotes_once_it_holds_as_many_as_halving_would_start(log):
    """Of 1 to 9 epochs the lowest rung waits for nine trials where others begin with three."""
    plain, full = (AsynchronousHalving(cutoff="top", full_rungs=full) for full in (False, True))
    for number in range(9):
        assert isinstance(log.ask(full), Sample)
        assert isinstance(log.ask(plain), Resume if number >= 3 else Sample)
        log.report(log.start(1.0), 1, 0.1 * number)
    assert log.ask(full) == Resume(0, 3.0, Promoted(1))


def test_brackets_have_their_turns_and_rungs_of_their_own(log):
    """Three brackets over 1 to 9 epochs, each until it has spent 3 x 9."""
    rule = AsynchronousHalving(brackets=None, bracket_rule="in-turn", cutoff="top")
    spent, brackets = {0: 0.0, 1: 0.0, 2: 0.0}, []
    while min(spent.values()) < 27:
        asked = log.ask(rule)
        if isinstance(asked, Sample):
            bracket, trial = asked.bracket, log.start(asked.budget, **asked.tag)
            spent[bracket] += asked.budget
        else:
            trial = asked.trial
            bracket = log.history.trials[trial].tag.get("bracket", 0)
            spent[bracket] += asked.budget - log.history.trials[trial].granted
            log.resume(trial, asked.budget)
        brackets.append(bracket)
        log.report(trial, asked.budget, 1.0 - 0.01 * trial)
    assert brackets == sorted(brackets) and set(brackets) == {0, 1, 2}
    assert all(27 <= used < 36 for used in spent.values())
    assert log.history.trials[log.ask(rule).trial].tag == {}  # the next round, in bracket 0


def test_once_nothing_may_be_added_brackets_are_finished_out_of_turn(log):
    """Bracket 0 has its turn and nothing to promote; bracket 1 has."""
    rule = AsynchronousHalving(brackets=None, bracket_rule="in-turn", cutoff="top")
    for loss in (0.3, 0.2, 0.1):
        log.report(log.start(3.0, bracket=1), 3, loss)
    assert log.ask(rule) == Sample(1.0, 0, {}, InBracket(0))
    log.limit(3)
    assert log.ask(rule) == Resume(2, 9.0, Promoted(3))
    log.resume(2, 9.0)
    log.report(2, 9, 0.05)
    assert isinstance(log.ask(rule), Finish)


def test_a_bracket_rule_that_does_not_exist_is_refused():
    with pytest.raises(MethodError, match="bracket_rule"):
        AsynchronousHalving(bracket_rule="fair")


class TestStopping(SchedulerBattery):
    def scheduler(self) -> Scheduler:
        return AsynchronousHalving(type="stopping")


class TestHyperband(SchedulerBattery):
    def scheduler(self) -> Scheduler:
        return AsynchronousHalving(brackets=None)


class TestHyperbandStopping(SchedulerBattery):
    def scheduler(self) -> Scheduler:
        return AsynchronousHalving(type="stopping", brackets=3, increment=2)


@settings(max_examples=25, deadline=None)
@given(
    kind=st.sampled_from(["promotion", "stopping"]),
    brackets=st.integers(1, 4),
    seed=st.integers(0, 10_000),
    workers=st.integers(1, 6),
    chances=st.tuples(*[st.sampled_from([0.0, 0.05, 0.3])] * 5),
)
def test_keeps_the_rules_in_any_world(kind, brackets, seed, workers, chances):
    failing, vanishing, early, skipping, diverging = chances
    world = World(seed, workers, 80, 15, failing, vanishing, early, skipping, diverging)
    play(Scheduled(AsynchronousHalving(kind, brackets), UniformSuggester()), world)


def started(log, losses, budget=1.0):
    """Trials that reported these losses at the end of their first grant."""
    for loss in losses:
        log.report(log.start(budget), budget, loss)


def test_promotes_the_best_within_the_cutoff_and_starts_otherwise(log):
    asha = AsynchronousHalving()
    assert log.ask(asha) == Sample(1.0, 0, {}, InBracket(0))
    started(log, [0.5])
    assert isinstance(log.ask(asha), Sample)  # a single loss cannot be compared
    started(log, [0.4])
    assert log.ask(asha) == Resume(1, 3.0, Promoted(1))
    log.resume(1, 3.0)
    assert isinstance(log.ask(asha), Sample)  # 0.5 is beyond quantile((0.4, 0.5), 1/3)
    started(log, [0.6, 0.7])
    assert log.ask(asha) == Resume(
        0, 3.0, Promoted(1)
    )  # quantile((0.4, ..., 0.7), 1/3) = 0.5: the promoted count


def test_asha_as_published_promotes_the_best_third_once_there_are_three(log):
    asha = AsynchronousHalving(cutoff="top")
    started(log, [0.5, 0.4])
    assert isinstance(log.ask(asha), Sample)  # floor(2 / 3) = 0, where the quantile lets one go on
    started(log, [0.6])
    assert log.ask(asha) == Resume(1, 3.0, Promoted(1))
    log.resume(1, 3.0)
    started(log, [0.3, 0.7])
    assert (
        isinstance(log.ask(asha), Sample) is False and log.ask(asha).trial == 3
    )  # 0.3 is the best of five now


def test_delayed_promotion_lets_no_more_than_a_third_go_on(log):
    """D-ASHA: one of five went on, so the better one that came late waits until there are six."""
    asha = AsynchronousHalving(cutoff="delayed")
    started(log, [0.5, 0.4, 0.6])
    log.resume(log.ask(asha).trial, 3.0)
    started(log, [0.3, 0.7])
    assert isinstance(log.ask(asha), Sample)
    started(log, [0.8])
    assert log.ask(asha) == Resume(3, 3.0, Promoted(1))


def test_looks_at_the_highest_rung_first(log):
    asha = AsynchronousHalving()
    started(log, [0.5, 0.4, 0.3, 0.2])
    for trial, loss in ((3, 0.25), (2, 0.15)):
        log.resume(trial, 3.0)
        log.report(trial, 3.0, loss)
    assert log.ask(asha) == Resume(2, 9.0, Promoted(3))


def test_follows_numpy_quantile_on_random_histories(new_log):
    """Every promotion against a table that is searched and sorted anew, 400 decisions."""
    rng = np.random.default_rng(0)
    asha, log = AsynchronousHalving(), new_log(27)
    levels = [1.0, 3.0, 9.0, 27.0]
    for _ in range(400):
        expected = None
        for level, above in reversed(list(pairwise(levels))):
            at = {t.id: p.loss for t in log.history.trials for p in t.curve if p.step == level}
            paused = [(loss, t) for t, loss in at.items() if log.history.trials[t].budget == level]
            if (
                len(at) > 1
                and paused
                and min(paused)[0] <= np.quantile(list(at.values()), level / above)
            ):
                expected = min(paused)[1], above
                break
        request = log.ask(asha)
        if expected is None:
            assert isinstance(request, Sample)
            trial, budget = log.start(1.0), 1.0
        else:
            assert (request.trial, request.budget) == expected
            trial, budget = expected
            log.resume(trial, budget)
        log.report(trial, budget, float(np.round(rng.random(), 2)))
    assert len([t for t in log.history.trials if t.status == "completed"]) >= 5


def test_a_report_that_skips_counts_at_every_rung_it_passed(log):
    asha = AsynchronousHalving()
    trial = log.start(1.0)
    log.report(trial, 4.0, 0.3)
    log.report(trial, 2.0, 0.9)  # late: changes nothing
    rungs = asha.rungs(log.history).rungs
    assert [rung.losses for rung in rungs] == [[0.3], [0.3]]
    started(log, [0.5])
    log.resume(1, 3.0)
    log.report(1, 3.0, 0.5)
    assert log.ask(asha) == Resume(0, 9.0, Promoted(3))


def test_a_run_that_ended_early_counts_at_every_higher_rung(log):
    asha = AsynchronousHalving()
    trial = log.start(1.0)
    log.report(trial, 1.0, 0.3)
    log.end(trial, "completed")
    assert [rung.losses for rung in asha.rungs(log.history).rungs] == [[0.3], [0.3]]
    started(log, [0.2, 0.9])
    log.resume(1, 3.0)
    log.report(1, 3.0, 0.25)
    assert log.ask(asha) == Resume(1, 9.0, Promoted(3))  # better than the run that ended


def test_a_failed_trial_counts_nowhere(log):
    asha = AsynchronousHalving()
    started(log, [0.1, 0.5, 0.6])
    log.resume(0, 3.0)
    log.end(0, "failed")
    assert asha.rungs(log.history).rungs[0].losses == [0.5, 0.6]
    assert log.ask(asha).trial == 1


def test_a_stale_trial_is_not_promoted_before_it_was_taken_over(log):
    asha = AsynchronousHalving()
    started(log, [0.1, 0.5, 0.6])
    log.resume(0, 3.0)
    log.lose(0)
    assert isinstance(log.ask(asha), Sample)
    log.resume(0, 3.0)
    log.report(0, 3.0, 0.1)
    started(log, [0.7, 0.8])
    assert log.ask(asha).trial == 1


def test_what_is_not_finite_never_goes_on(log):
    asha, stopping = AsynchronousHalving(), AsynchronousHalving(type="stopping")
    started(log, [None, None, None])
    assert isinstance(log.ask(asha), Sample)
    assert stopping.review(log.history, 0) is Verdict.STOP


def test_by_stopping_each_loss_is_judged_with_itself_included(new_log):
    scheduler = AsynchronousHalving(type="stopping")
    rng = np.random.default_rng(3)
    log, seen = new_log(9), {1.0: [], 3.0: []}
    assert log.ask(scheduler) == Sample(9.0, 0, {}, InBracket(0))
    for _ in range(200):
        trial = log.start(9.0)
        for step in range(1, 10):
            loss = float(np.round(rng.random(), 2))
            log.report(trial, step, loss)
            expected = Verdict.CONTINUE
            if step in seen:
                seen[step].append(loss)
                if len(seen[step]) > 1 and loss > np.quantile(seen[step], 1 / 3):
                    expected = Verdict.STOP
            assert scheduler.review(log.history, trial) is (
                expected if step < 9 else Verdict.CONTINUE
            )
            if expected is Verdict.STOP:
                log.end(trial, "stopped")
                break
    assert log.history.counts["completed"] > 5
    assert log.history.counts["stopped"] > 100


def test_brackets_start_where_the_law_says(new_log):
    scheduler, log, count = AsynchronousHalving(brackets=4), new_log(200), 4_000
    rng = np.random.default_rng(0)
    levels = geometric_levels(1, 200)
    drawn = [scheduler.next_request(log.history, rng) for _ in range(count)]
    assert all(item.budget == levels[item.bracket] for item in drawn)
    assert drawn[0].tag == ({"bracket": drawn[0].bracket} if drawn[0].bracket else {})
    counts = np.bincount([item.bracket for item in drawn], minlength=4)
    expected = count * np.array(bracket_law(levels, 4))
    assert (
        float(np.sum((counts - expected) ** 2 / expected)) < 16.3
    )  # chi-square, 3 degrees, level 0.001


def test_a_bracket_is_drawn_before_a_promotion_is_looked_for(log):
    scheduler = AsynchronousHalving(brackets=2)
    started(log, [0.1, 0.5])
    with_promotion, without = np.random.default_rng(5), np.random.default_rng(5)
    assert isinstance(scheduler.next_request(log.history, with_promotion), Resume)
    log.resume(0, 3.0)
    assert isinstance(scheduler.next_request(log.history, without), Sample)
    assert with_promotion.random() == without.random()  # both decisions used the generator alike


def test_a_bracket_is_not_compared_at_the_rungs_it_skips(log):
    scheduler = AsynchronousHalving(brackets=2)
    trial = log.start(3.0, bracket=1)
    log.report(trial, 1.0, 0.1)
    log.report(trial, 3.0, 0.2)
    assert [rung.losses for rung in scheduler.rungs(log.history).rungs] == [[], [0.2]]


def test_after_the_last_configuration_only_promotions(log):
    asha = AsynchronousHalving()
    log.limit(3)
    started(log, [0.1, 0.5, 0.6])
    assert log.ask(asha).trial == 0
    log.resume(0, 3.0)
    assert isinstance(log.ask(asha), Wait)
    log.report(0, 3.0, 0.2)
    assert isinstance(log.ask(asha), Finish)
    log.limit(4)
    assert isinstance(log.ask(asha), Sample)


def test_a_changed_budget_makes_new_rungs(log):
    asha = AsynchronousHalving()
    started(log, [0.1, 0.5, 0.6])
    problem = log.history.problem
    record = {**problem.to_json(), "budget": ["epoch", 1, 27]}
    log.append(StudyChanged(problem=record))
    assert [rung.level for rung in asha.rungs(log.history).rungs] == [1, 3, 9]
    assert asha.rungs(log.history).rungs[0].losses == [0.1, 0.5, 0.6]


@dataclass(frozen=True)
class Noise(SimulatedCurves):
    """Nine epochs of x plus noise, each of its own length."""

    levels: tuple = tuple(float(level) for level in range(1, 10))

    def curve(self, config):
        rng = np.random.default_rng(int(config["x"] * 2**40))
        return Curve(tuple((config["x"] + rng.random(9)).tolist()), tuple(rng.random(9).tolist()))


@dataclass(frozen=True)
class Timed(Policy):
    """Keeps the CPU time of every decision."""

    policy: Policy
    seconds: list

    def decide(self, history, rng):
        began = time.process_time()
        decision = self.policy.decide(history, rng)
        self.seconds.append(time.process_time() - began)
        return decision

    def review(self, history, trial):
        return self.policy.review(history, trial)


@pytest.mark.parametrize("scheduler", [AsynchronousHalving(brackets=2), SynchronousHalving(None)])
def test_a_decision_costs_the_same_however_long_the_history(new_log, scheduler):
    """4,000 trials on the simulated clock, medians of the first and the last thousand decisions;
    20,000 behave alike."""
    problem = new_log().history.problem.to_json()
    events = [
        StudyCreated(name="long", problem=problem, method={}),
        StudyChanged(totals=Totals(n_trials=4_000)),
    ]
    executor = Simulated(Noise(), "loss", slots=8)
    ledger = Ledger(MemoryStorage().create("long", events), executor.clock)
    policy = Timed(Scheduled(scheduler, UniformSuggester()), [])
    Tuner(ledger, policy, executor, TunerSettings(leases=False)).run()
    assert len(ledger.history.trials) == 4_000
    assert np.median(policy.seconds[-1000:]) < 2 * np.median(policy.seconds[:1000])


def test_bad_settings_are_refused():
    with pytest.raises(MethodError, match="type is 'sideways'"):
        AsynchronousHalving(type="sideways")
    with pytest.raises(MethodError, match="brackets is 0"):
        AsynchronousHalving(brackets=0)
    with pytest.raises(MethodError, match="reduction is nan"):
        AsynchronousHalving(reduction=math.nan)
    with pytest.raises(MethodError, match="increment is 0"):
        AsynchronousHalving(increment=0)
    with pytest.raises(MethodError, match="cutoff is 'none'"):
        AsynchronousHalving(cutoff="none")
    with pytest.raises(MethodError, match="'top' is a rule of promotion"):
        AsynchronousHalving("stopping", cutoff="top")


def test_what_brackets_spent_follows_grants_and_ends(log):
    """A running trial counts with its grant, a stopped one with what it used."""
    first = log.start(3.0)
    second = log.start(9.0, bracket=1)
    assert log.history.derive(BRACKET_SPENDING) == {0: 3.0, 1: 9.0}
    log.report(second, 4, 0.5)
    log.end(second, "stopped")
    log.report(first, 3, 0.5)
    log.resume(first, 9.0)
    assert log.history.derive(BRACKET_SPENDING) == {0: 9.0, 1: 4.0}


def test_the_bracket_that_is_behind_by_a_share_has_the_turn():
    assert turn_of({0: 5.0}, 3, 10.0) == 0
    assert turn_of({0: 12.0}, 3, 10.0) == 1
    assert turn_of({0: 12.0, 1: 10.0, 2: 31.0}, 3, 10.0) == 0
